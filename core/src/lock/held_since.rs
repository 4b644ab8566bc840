//! How long a word has been held, as long as claims wait.
//!
//! JavaScript notes no time when it takes a free lock. But while a claim is counted, every release comes to native
//! code. So a lock that native code finds held then has been held ever since, unless it has been released:
//!
//! | event | whoever holds the word has held it |
//! |---|---|
//! | a claim joins the line, or retries in vain, or the service looks | since then, if nothing is known of an earlier time |
//! | native code takes it, for a claim or for a newcomer | since then |
//! | a lock is freed, or notified by code that uses the bare word | for an unknown time: a newcomer may have taken it |
//!
//! In a strict line only native code gives anything to anybody, so releases of others change nothing. Code that frees
//! the bare word and calls nothing of this package is not seen.

use super::WaiterListStore;
use super::bucket::Section;
use crate::clock::Timestamp;
use crate::queue::Location;

impl Section<'_> {
    pub(super) fn found_held(&mut self, location: Location) {
        let now = self.now();
        if let Some(line) = self.lists.policy.line_mut(location) {
            line.held_since.get_or_insert(now);
        }
    }

    pub(super) fn was_taken(&mut self, location: Location) {
        // Mostly there are no lines: then nobody asks for the time.
        if self.lists.policy.is_empty() {
            return;
        }
        let now = self.now();
        if let Some(line) = self.lists.policy.line_mut(location) {
            line.held_since = Some(now);
        }
    }

    /// Notes that the lock was freed. It may have been taken again.
    pub(super) fn was_freed(&mut self, location: Location) {
        if let Some(line) = self.lists.policy.line_mut(location) {
            line.held_since = None;
        }
    }
}

impl WaiterListStore {
    /// Returns since when at least the word has been held; `None` if nobody waits for it, or nothing is known.
    pub fn held_since(&self, location: Location) -> Option<Timestamp> {
        self.critical_section_at(location, |section| section.lists.policy.line(location)?.held_since)
    }
}
