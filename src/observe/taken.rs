//! Where and when a thread took its holds, if stalls are reported. JavaScript tells of each, with the call's stack.
//!
//! A hold is known by the serial number of its entry in the robust list, which stays the same while entries move.
//! JavaScript begins a hold before it takes the lock, and ends it before it releases the lock; so an entry that other
//! threads find in the list is known here. A grant that has no entry yet has its call in the notes on the wait: see
//! [`crate::agent::Noted`].

use std::sync::{Arc, Mutex};

use rustc_hash::FxHashMap;

use crate::observe::stacks::StackId;
use waitasync_core::clock::{Timestamp, now};
use waitasync_core::sync::lock;

/// A table that is empty keeps its memory up to this length.
const RETAINED: usize = 4096;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Taken {
    pub(crate) call: StackId,
    pub(crate) since: Timestamp,
    /// Whether the token that stands for it has been collected.
    pub(crate) is_orphaned: bool,
}

/// The holds of a thread, by their serial numbers. Any thread may read it.
#[derive(Clone, Default)]
pub(crate) struct SharedTaken(Arc<Mutex<FxHashMap<u32, Taken>>>);

impl SharedTaken {
    pub(crate) fn len(&self) -> usize {
        lock(&self.0).len()
    }

    pub(crate) fn get(&self, serial: u32) -> Option<Taken> {
        lock(&self.0).get(&serial).copied()
    }

    pub(crate) fn begin(&self, serial: u32, call: StackId) {
        lock(&self.0).insert(serial, Taken { call, since: now(), is_orphaned: false });
    }

    pub(crate) fn end(&self, serial: u32) {
        let mut holds = lock(&self.0);
        holds.remove(&serial);
        if holds.is_empty() && holds.capacity() > RETAINED {
            holds.shrink_to_fit();
        }
    }

    pub(crate) fn orphan(&self, serial: u32) {
        if let Some(taken) = lock(&self.0).get_mut(&serial) {
            taken.is_orphaned = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hold_is_known_until_it_ends_and_leaves_no_memory_behind() {
        let taken = SharedTaken::default();
        for serial in 1..=100_000 {
            taken.begin(serial, 7);
        }
        taken.orphan(5);
        let known = |serial| taken.get(serial).map(|taken| (taken.call, taken.is_orphaned));
        assert_eq!([known(0), known(4), known(5)], [None, Some((7, false)), Some((7, true))]);
        for serial in 1..=100_000 {
            taken.end(serial);
            taken.orphan(serial);
        }
        assert_eq!(known(5), None);
        assert!(lock(&taken.0).capacity() <= RETAINED);
    }
}
