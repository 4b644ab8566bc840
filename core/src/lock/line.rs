//! The claims at one location: their number, the threads behind a promise's claim, and the claims that are awake.

use std::collections::VecDeque;

use super::fairness::Overtaken;
use crate::clock::Timestamp;
use crate::queue::{Successor, WaiterKey};

/// At most one claim of a promise, and one of a thread.
type OneOfEach = [Option<WaiterKey>; 2];

/// The index of a promise's.
const PROMISE: usize = 0;

/// Returns whether it was one of the two.
fn remove(each: &mut OneOfEach, key: WaiterKey) -> bool {
    each.iter_mut().any(|claim| claim.take_if(|claim| *claim == key).is_some())
}

/// A line that has claims. `blocks`: whether a claim is a blocked thread's.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// Never 0: the line is removed with its last claim.
    pub(super) claims: u32,
    promises: u32,
    /// The blocked threads, with and without claims, that came while a promise's claim was in the line; in their order.
    /// If the first claim is a promise's, then these are all the threads behind it.
    threads: VecDeque<WaiterKey>,
    /// The claims that have been woken and have not retried yet.
    awake: OneOfEach,
    /// The claims that have been woken and have retried in vain.
    tried: OneOfEach,
    pub(super) overtaken: Overtaken,
    /// Since when at least whoever holds the word has held it, if that is known: see `holding`.
    pub(super) held_since: Option<Timestamp>,
}

impl Line {
    pub(super) fn append(&mut self, key: WaiterKey, blocks: bool) {
        self.claims += 1;
        if blocks {
            self.append_thread(key);
        } else {
            self.promises += 1;
        }
    }

    pub(super) fn append_thread(&mut self, key: WaiterKey) {
        if self.promises > 0 {
            self.threads.push_back(key);
        }
    }

    /// Removes a claim. If it has retried, it may have left the lock free: a panic may have ended the retry.
    pub(super) fn remove(&mut self, key: WaiterKey, blocks: bool) -> Successor {
        self.claims -= 1;
        if blocks {
            self.remove_thread(key);
        } else {
            self.promises -= 1;
        }
        self.overtaken.remove(key);
        let (was_awake, has_tried) = (remove(&mut self.awake, key), remove(&mut self.tried, key));
        if was_awake || has_tried { Successor::ToBeWoken } else { Successor::Unconcerned }
    }

    pub(super) fn remove_thread(&mut self, key: WaiterKey) {
        // Mostly the first; and there are no more of them than threads.
        if let Some(index) = self.threads.iter().position(|thread| *thread == key) {
            self.threads.remove(index);
        }
    }

    /// Returns the blocked threads behind the first claim, in their order: if that is a promise's.
    pub(super) fn threads(&self) -> impl Iterator<Item = WaiterKey> {
        self.threads.iter().copied()
    }

    /// Notes that the claim is being woken. Returns false if it is awake already.
    #[must_use]
    pub(super) fn begins_to_wake(&mut self, key: WaiterKey, blocks: bool) -> bool {
        self.awake[usize::from(blocks)].replace(key) != Some(key)
    }

    /// Notes that the claim is about to retry. Returns false if it has not been woken to do so.
    #[must_use]
    pub(super) fn retries(&mut self, key: WaiterKey, blocks: bool) -> bool {
        let was_woken = remove(&mut self.awake, key);
        if was_woken {
            // If it succeeds, it leaves.
            self.tried[usize::from(blocks)] = Some(key);
        }
        was_woken
    }

    /// Whether the first claim is a promise's, woken and without a retry.
    pub(super) fn awaits_promise(&self) -> bool {
        self.awake[PROMISE].is_some()
    }

    pub(super) fn head_start(&self, thread: WaiterKey) -> Option<Timestamp> {
        let is_awake = |promise| self.awake == [Some(promise), Some(thread)];
        self.overtaken.head_start_of(is_awake)
    }

    pub(super) fn has_tried(&self, key: WaiterKey) -> bool {
        self.tried.contains(&Some(key))
    }
}
