//! The line of a name in this process.

use std::collections::VecDeque;
use std::io::Error;
use std::sync::Arc;

use waitasync_core::mapped::names::{Key, Mode, Place, Refusal};

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

/// The text of an error begins with the code that `lib/processes/engines/memory.js` knows.
pub(super) fn refused(refusal: Refusal) -> Error {
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
