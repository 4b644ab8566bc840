//! The line of a name in this process, and its answers.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io::{Error, Result};
use std::mem;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use waitasync_core::lock::Outbox;
use waitasync_core::mapped::names::{Key, Mode, Place, Refusal, Way};

use super::table::Table;
use crate::file_locks::{Answer, Files, Granted, Lock, Mailbox, Queue};
use crate::mapped::now;

/// What requests for a name have in common.
pub(crate) struct Asked {
    pub(crate) table: &'static Table,
    pub(crate) key: Key,
    pub(crate) name: String,
    pub(crate) mode: Mode,
    pub(crate) thread: u32,
    pub(crate) label: String,
    /// For how many milliseconds it may have the lock; 0: without a limit.
    pub(crate) max_hold: u64,
    /// It asks for one of so many permits; 0: for the lock.
    pub(crate) permits: u32,
}

/// A thread's way to a name.
pub struct Requester {
    asked: Arc<Asked>,
    /// Where the name was found last.
    known: Cell<Option<Place>>,
}

impl Requester {
    pub(crate) fn new(asked: Asked) -> Self {
        Self { asked: Arc::new(asked), known: Cell::default() }
    }

    /// Takes a lock that is free.
    pub(crate) fn take(&self, files: &Files, is_attempt: bool) -> Result<Option<Granted>> {
        let way = if is_attempt { Way::Attempt } else { Way::New };
        let Self { asked, known } = self;
        loop {
            let place = known.get().map_or_else(|| asked.table.place(asked), Ok).map_err(refused)?;
            known.set(Some(place));
            match asked.table.take(place, asked, way) {
                Ok(grant) => return Ok(Some(files.keep(Box::new(grant)))),
                Err(Refusal::Taken) => return Ok(None),
                Err(Refusal::Renamed) => known.set(None),
                Err(refusal) => return Err(refused(refusal)),
            }
        }
    }

    /// Lets a request wait. Returns its number.
    pub(crate) fn wait(&self, files: &Files, outbox: &Arc<Outbox>) -> i64 {
        let asked = Arc::clone(&self.asked);
        let (number, mailbox) = files.wait_in(outbox, Box::new(Arc::clone(&asked)));
        self.asked.table.enqueue(Waiting { asked, number, mailbox });
        number
    }
}

impl Queue for Arc<Asked> {
    fn dequeue(&self, number: i64, mailbox: &Arc<Mailbox>) {
        let is_other = |waiting: &Waiting| waiting.number != number || !Arc::ptr_eq(&waiting.mailbox, mailbox);
        self.table.change(&self.key, |line| line.requests.retain(is_other));
    }
}

/// A request in a line.
pub(super) struct Waiting {
    pub(super) asked: Arc<Asked>,
    number: i64,
    mailbox: Arc<Mailbox>,
}

impl Waiting {
    pub(super) fn answer(self, granted: std::result::Result<Grant, Refusal>) {
        let failed = |refusal| Answer::Failed(refused(refusal));
        self.mailbox.answer(self.number, granted.map_or_else(failed, |grant| Answer::Granted(Box::new(grant))));
    }
}

/// The text of an error begins with the code that `lib/processes/engines/memory.js` knows.
fn refused(refusal: Refusal) -> Error {
    match refusal {
        Refusal::Unlike(permits) => Error::other(format!("ERR_PERMITS {permits}")),
        Refusal::Full(names) => Error::other(format!("all {names} names of the table are in use")),
        Refusal::Taken | Refusal::Renamed => unreachable!("the request waits"),
    }
}

/// What this process awaits of a name, and shares.
#[derive(Default)]
pub(super) struct Line {
    pub(super) requests: VecDeque<Waiting>,
    /// How many holders share the lock or have a permit: also of those that were lost, until they are given back.
    pub(super) holders: usize,
    /// Where the name was found, once a request has asked there.
    pub(super) place: Option<Place>,
}

impl Line {
    pub(super) fn awaits_permit(&self) -> bool {
        self.requests.front().is_some_and(|waiting| waiting.asked.permits != 0)
    }
}

/// A lock or a permit that was granted.
pub(super) struct Grant {
    table: &'static Table,
    pub(super) place: Place,
    pub(super) mode: Mode,
    pub(super) permit: Option<u32>,
    /// The line that counts it, unless it is a lock that is not shared.
    pub(super) line: Option<Key>,
    token: u64,
    pub(super) owner_died: bool,
}

impl Grant {
    /// Notes the holder, for others.
    pub(super) fn new(asked: &Asked, place: Place, mode: Mode, permit: Option<u32>, owner_died: bool) -> Self {
        let Asked { table, key, thread, ref label, .. } = *asked;
        let token = if mode == Mode::Shared {
            table.names.token(place)
        } else {
            let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            table.names.note_holder(place, table.mapping.me(), thread, label, since_1970.as_micros() as u64)
        };
        let line = (mode == Mode::Shared || permit.is_some()).then_some(key);
        Self { table, place, mode, permit, line, token, owner_died }
    }
}

impl Lock for Grant {
    fn granted(&self) -> (u64, bool) {
        (self.token, self.owner_died)
    }

    fn permit(&self) -> Option<u32> {
        self.permit
    }

    fn is_held(&self) -> Result<bool> {
        Ok(self.table.is_held(self))
    }

    fn left(&self) -> Option<Duration> {
        let Mode::Until(end) = self.mode else { return None };
        Some(Duration::from_micros((end * 1000).saturating_sub(now())))
    }

    fn release(self: Box<Self>, died: bool) -> Result<bool> {
        let was_held = self.table.release(&self, died);
        mem::forget(*self);
        Ok(was_held)
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        self.table.release(self, true);
    }
}
