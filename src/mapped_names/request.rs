//! What an environment asks for.

use std::cell::Cell;
use std::io::Result;
use std::sync::Arc;

use super::line::{Asked, Waiting, refused};
use super::table::{Grant, Table};
use crate::file_locks::{Files, Granted, Mailbox, Queue};
use waitasync_core::lock::Outbox;
use waitasync_core::mapped::names::{Place, Refusal, Way};

impl Queue for &'static Table {
    fn dequeue(&self, number: i64, mailbox: &Arc<Mailbox>) {
        Table::dequeue(self, |waiting| waiting.number == number && Arc::ptr_eq(&waiting.mailbox, mailbox));
    }
}

/// Takes a lock on this thread. `known`: where the name was found last.
pub(crate) fn take(
    files: &Files,
    table: &'static Table,
    asked: &Asked,
    known: &Cell<Option<Place>>,
    is_attempt: bool,
) -> Result<Option<Granted>> {
    let way = if is_attempt { Way::Attempt } else { Way::New };
    loop {
        let place = known.get().map_or_else(|| table.place(asked), Ok).map_err(refused)?;
        known.set(Some(place));
        match table.take(place, asked, way) {
            Ok(held) => return Ok(Some(files.keep(Box::new(Grant::new(table, place, asked, held))))),
            Err(Refusal::Taken) => return Ok(None),
            Err(Refusal::Renamed) => known.set(None),
            Err(refusal) => return Err(refused(refusal)),
        }
    }
}

/// Lets a request wait. Returns its number.
pub(crate) fn request(files: &Files, outbox: &Arc<Outbox>, table: &'static Table, asked: &Arc<Asked>) -> Result<i64> {
    let (number, mailbox) = files.wait_in(outbox, Box::new(table));
    let waiting = Waiting { asked: Arc::clone(asked), number, mailbox };
    table.enqueue(waiting).map_err(refused).inspect_err(|_| files.forget(number))?;
    Ok(number)
}
