//! A thread's way to a name.

use std::cell::Cell;
use std::io::Result;
use std::sync::Arc;

use waitasync_core::lock::Outbox;
use waitasync_core::mapped::names::{Key, Place, Refusal, Way};

use super::line::{Asked, Waiting, refused};
use super::table::Table;
use crate::file_locks::{Files, Granted, Mailbox, Queue};

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
    pub(crate) fn wait(&self, files: &Files, outbox: &Arc<Outbox>) -> i64 {
        let Self { table, asked, .. } = self;
        let (number, mailbox) = files.wait_in(outbox, Box::new((*table, asked.key)));
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
