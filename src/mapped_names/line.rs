//! The line of a name in this process, and its answers.

use std::collections::VecDeque;
use std::io::Error;
use std::sync::Arc;

use waitasync_core::mapped::names::{Key, Mode, Permit, Refusal};

use crate::file_locks::{Answer, Mailbox};

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

/// A request in a line.
pub(super) struct Waiting {
    pub(super) asked: Arc<Asked>,
    pub(super) number: i64,
    pub(super) mailbox: Arc<Mailbox>,
}

impl Waiting {
    pub(super) fn answer(self, answer: Answer) {
        self.mailbox.answer(self.number, answer);
    }
}

/// What this process has of a name.
#[derive(Default)]
pub(super) struct Line {
    pub(super) requests: VecDeque<Waiting>,
    pub(super) shares: usize,
    /// Permits, and locks with a limit: also those that were lost, until they are given back.
    pub(super) others: usize,
    /// The name is used with so many permits, and the process shares it.
    pub(super) permits: u32,
}

impl Line {
    pub(super) fn is_unused(&self) -> bool {
        self.requests.is_empty() && self.shares + self.others == 0
    }

    pub(super) fn count(&mut self, held: &Held) -> &mut usize {
        if held.mode == Mode::Shared { &mut self.shares } else { &mut self.others }
    }
}

/// What was taken for a request.
pub(super) struct Held {
    pub(super) mode: Mode,
    pub(super) owner_died: bool,
    pub(super) permit: Option<Permit>,
}

impl Held {
    /// Whether the line does not count it.
    pub(super) fn is_plain(&self) -> bool {
        self.mode == Mode::Exclusive && self.permit.is_none()
    }
}

/// The text of an error begins with the code that `lib/processes/engines/memory.js` knows.
pub(super) fn refused(refusal: Refusal) -> Error {
    match refusal {
        Refusal::Unlike(permits) => Error::other(format!("ERR_PERMITS {permits}")),
        Refusal::Full(names) => Error::other(format!("all {names} names of the table are in use")),
        Refusal::Taken | Refusal::Renamed => unreachable!("the request waits"),
    }
}
