//! Requests that wait for names.

use std::sync::Arc;

use crate::file_locks::{Answer, Mailbox};
use waitasync_core::mapped::names::{Key, Mode};

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
