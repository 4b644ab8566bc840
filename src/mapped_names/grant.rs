//! Locks and permits that were granted.

use std::io::Result;
use std::time::{Duration, SystemTime};

use waitasync_core::mapped::names::{Mode, Place};

use super::table::{Held, Table};
use super::waiting::Asked;
use crate::file_locks::Lock;
use crate::mapped::now;

pub(super) struct Grant {
    table: &'static Table,
    /// That of the line.
    place: Place,
    held: Held,
    token: u64,
    is_over: bool,
}

impl Grant {
    pub(super) fn new(table: &'static Table, place: Place, asked: &Asked, held: Held) -> Self {
        let token = if held.mode == Mode::Shared {
            table.names.token(place)
        } else {
            let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            let (microseconds, me) = (since_1970.as_micros() as u64, table.mapping.me());
            let noted = held.permit.map_or(place, |permit| permit.place);
            table.names.note_holder(noted, me, asked.thread, &asked.label, microseconds)
        };
        Self { table, place, held, token, is_over: false }
    }
}

impl Lock for Grant {
    fn granted(&self) -> (u64, bool) {
        (self.token, self.held.owner_died)
    }

    fn permit(&self) -> Option<u32> {
        self.held.permit.map(|permit| permit.number)
    }

    fn is_held(&self) -> Result<bool> {
        let place = self.held.permit.map_or(self.place, |permit| permit.place);
        Ok(self.table.names.is_held(place, self.table.mapping.me(), self.held.mode))
    }

    fn left(&self) -> Option<Duration> {
        let Mode::Until(end) = self.held.mode else { return None };
        Some(Duration::from_micros((end * 1000).saturating_sub(now())))
    }

    fn release(mut self: Box<Self>, died: bool) -> Result<bool> {
        self.is_over = true;
        Ok(self.table.release(self.place, &self.held, died))
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        if !self.is_over {
            self.table.release(self.place, &self.held, true);
        }
    }
}
