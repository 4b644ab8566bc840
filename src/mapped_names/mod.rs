//! Named locks in mapped memory: what `lib/processes/engines/memory.js` is made of. Linux only.
//!
//! `waitasync_core::mapped::names` has the locks of processes. Here are the requests of this one: several threads, and several
//! requests of one thread, count as one process there.
//!
//! # Invariants
//! 1. The process's bit in `waiting` of a name is set while requests wait in its line: each look at the line sets it. It may be
//!    cleared by others if this process is suspended: then it was rung, and looks at the line when it goes on.
//! 2. A request is answered once, after it has left its line, and not while the lines are locked.
//! 3. The process has its bit among those that share a lock while its line counts holders; and among those of a name with
//!    permits, also while it awaits one.
//! 4. The watcher comes when the limit of a hold is over: of each that this process has, and of those in its way, once a look at
//!    the line has seen it. A limit that began later is seen within a second, as deaths are. It comes as well when a turn is over
//!    that this process has given.
//! 5. Lock order: the lines, the sweep, the visits. A mailbox is locked while no other is.
//! 6. A ring concerns no line whose lock another has alone, while this process's bit is set: whoever frees it rings again.

mod table;

use std::cell::Cell;
use std::collections::VecDeque;
use std::io::{Error, Result};
use std::sync::Arc;

use crate::file_locks::{Files, Granted, Mailbox, Queue};
pub(crate) use table::{Table, open};
use waitasync_core::mapped::names::{Key, Mode, Place, Refusal, Way};

/// What requests for a name have in common.
pub(crate) struct Asked {
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

struct Waiting {
    asked: Arc<Asked>,
    number: i64,
    mailbox: Arc<Mailbox>,
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
struct Line {
    requests: VecDeque<Waiting>,
    /// How many holders share the lock or have a permit: also of those that were lost, until they are given back.
    holders: usize,
    /// Where the name was found, once a request has asked there.
    place: Option<Place>,
}

impl Line {
    fn awaits_permit(&self) -> bool {
        self.requests.front().is_some_and(|waiting| waiting.asked.permits != 0)
    }
}

/// A thread's way to a name.
pub struct Requester {
    table: &'static Table,
    asked: Arc<Asked>,
    /// Where the name was found last.
    known: Cell<Option<Place>>,
}

impl Requester {
    pub(crate) fn new(table: &'static Table, asked: Asked) -> Self {
        Self { table, asked: Arc::new(asked), known: Cell::default() }
    }

    /// Takes a lock that is free.
    pub(crate) fn take(&self, files: &Files, is_attempt: bool) -> Result<Option<Granted>> {
        let way = if is_attempt { Way::Attempt } else { Way::New };
        let Self { table, asked, known } = self;
        loop {
            let place = known.get().map_or_else(|| table.place(asked), Ok).map_err(refused)?;
            known.set(Some(place));
            match table.take(place, asked, way) {
                Ok(grant) => return Ok(Some(files.keep(Box::new(grant)))),
                Err(Refusal::Taken) => return Ok(None),
                Err(Refusal::Renamed) => known.set(None),
                Err(refusal) => return Err(refused(refusal)),
            }
        }
    }

    /// Lets a request wait. Returns its number.
    pub(crate) fn wait(&self, files: &Files) -> i64 {
        let Self { table, asked, .. } = self;
        let (number, mailbox) = files.begin(Some(Box::new((*table, asked.key))));
        table.enqueue(Waiting { asked: Arc::clone(asked), number, mailbox });
        number
    }
}

impl Queue for (&'static Table, Key) {
    fn dequeue(&self, number: i64, mailbox: &Arc<Mailbox>) {
        let is_other = |waiting: &Waiting| waiting.number != number || !Arc::ptr_eq(&waiting.mailbox, mailbox);
        self.0.change(&self.1, |line| line.requests.retain(is_other));
    }
}
