//! Threads that have ended, as part of a wait's story: one of them may have owed the notification that is awaited.
//!
//! A memory remembers the last ones that had locks in it (`core/src/lock/tracked_buffers.rs`).

use std::sync::Arc;

use super::rows::EndedRow;
use super::survey::{Entry, What};
use crate::clock::Timestamp;
use crate::held::Process;
use crate::lock::Request;
use crate::lock::tracked_buffers::Ended;

/// How a thread ends: for programs, and in a sentence. `MANNERS` in `lib/agent/ending.js` has the numbers. The first is
/// that of a thread that does not tell.
const MANNERS: [(Option<&str>, &str); 5] = [
    (None, "ended"),
    (Some("terminate"), "was terminated"),
    (Some("end"), "came to its end"),
    (Some("exit"), "ended by process.exit()"),
    (Some("exception"), "ended by an uncaught exception"),
];

impl Entry {
    /// Adds who has used the memory, and ended. Called with no bucket locked.
    ///
    /// Only to a wait that any thread may end: a lock has holders, and who holds it is known.
    #[must_use]
    pub fn with_ended(self, process: &Process) -> Self {
        let is_owed = matches!(self.what, What::Awaits(_) | What::Requests(Request::Signals(_)));
        let ended = if is_owed { process.tracked_buffers.ended(self.location) } else { Vec::new() };
        Self { ended, ..self }
    }

    /// Whether a user of the memory has ended since this began.
    pub fn has_lost_one(&self) -> bool {
        self.ended.first().zip(self.since).is_some_and(|(ended, since)| ended.at > since)
    }
}

pub(super) fn ended_rows(now: Timestamp, ended: &[Arc<Ended>]) -> Option<Vec<EndedRow>> {
    let row = |ended: &Arc<Ended>| EndedRow {
        thread_id: ended.thread_id.into(),
        thread_name: ended.thread_name.as_deref().map(str::to_owned),
        how: manner_of(ended).0.map(str::to_owned),
        milliseconds: Some(now.duration_since(ended.at).as_secs_f64() * 1e3),
    };
    (!ended.is_empty()).then(|| ended.iter().map(row).collect())
}

fn manner_of(ended: &Ended) -> (Option<&'static str>, &'static str) {
    MANNERS.get(ended.manner as usize).copied().unwrap_or(MANNERS[0])
}

/// Returns the words for how a thread ended. Others than ours are as if that were unknown.
pub(super) fn words_of(how: Option<&str>) -> &'static str {
    MANNERS.iter().find(|(key, _)| *key == how).unwrap_or(&MANNERS[0]).1
}
