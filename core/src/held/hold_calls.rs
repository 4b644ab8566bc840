//! Where and when a thread took its holds, if stalls are reported. JavaScript tells of each, with the call's stack.
//!
//! A hold is known by the serial number of its entry in the robust list, which stays the same while entries move.
//! JavaScript begins a hold before it takes the lock, and ends it before it releases the lock; so an entry that other
//! threads find in the list is known here. A grant that has no entry yet has its call in the notes on the wait: see
//! [`super::notes::Noted`].
//!
//! Also of which holds it is known what their callbacks claim: see `lib/holding/tasks.js`.

use std::sync::{Arc, Mutex};

use rustc_hash::{FxHashMap, FxHashSet};

use super::stacks::StackId;
use crate::clock::{Timestamp, now};
use crate::lock::shrink;
use crate::sync::lock;

/// A set that is empty keeps its memory up to this length.
const RETAINED: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Taken {
    pub call: StackId,
    pub since: Timestamp,
    /// Whether the token that stands for it has been collected.
    pub is_orphaned: bool,
    /// Whether a callback runs with it of which the claims are known.
    pub in_task: bool,
}

#[derive(Default)]
struct Holds {
    taken: FxHashMap<u32, Taken>,
    /// Those whose callbacks run. A wait of a `Condition` ends a hold, but not its callback.
    tasks: FxHashSet<u32>,
}

/// The holds of a thread, by their serial numbers. Any thread may read it.
#[derive(Clone, Default)]
pub struct SharedTaken(Arc<Mutex<Holds>>);

impl SharedTaken {
    pub fn get(&self, serial: u32) -> Option<Taken> {
        let holds = lock(&self.0);
        let taken = *holds.taken.get(&serial)?;
        Some(Taken { in_task: holds.tasks.contains(&serial), ..taken })
    }

    pub fn begin(&self, serial: u32, call: StackId) {
        lock(&self.0).taken.insert(serial, Taken { call, since: now(), is_orphaned: false, in_task: false });
    }

    pub fn end(&self, serial: u32) {
        let holds = &mut lock(&self.0).taken;
        holds.remove(&serial);
        shrink(holds);
    }

    pub fn orphan(&self, serial: u32) {
        if let Some(taken) = lock(&self.0).taken.get_mut(&serial) {
            taken.is_orphaned = true;
        }
    }

    /// Notes that a callback begins to run with the hold.
    pub fn begin_task(&self, serial: u32) {
        lock(&self.0).tasks.insert(serial);
    }

    pub fn end_task(&self, serial: u32) {
        let tasks = &mut lock(&self.0).tasks;
        tasks.remove(&serial);
        if tasks.is_empty() {
            tasks.shrink_to(RETAINED);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hold_is_known_until_it_ends_and_its_callback_until_that_ends_and_no_memory_is_left() {
        let taken = SharedTaken::default();
        for serial in 1..=100_000 {
            taken.begin(serial, 7);
        }
        taken.orphan(5);
        // A callback goes on beyond its hold, which may begin again.
        taken.begin_task(6);
        taken.end(6);
        assert!(taken.get(6).is_none());
        taken.begin(6, 7);
        let known = |serial| taken.get(serial).map(|taken| (taken.call, taken.is_orphaned, taken.in_task));
        let others = [Some((7, false, false)), Some((7, true, false)), Some((7, false, true))];
        assert_eq!([4, 5, 6].map(known), others);
        taken.end_task(6);
        assert_eq!([0, 6].map(known), [None, others[0]]);
        for serial in 1..=100_000 {
            taken.end(serial);
            taken.orphan(serial);
        }
        assert_eq!(known(5), None);
        assert!(lock(&taken.0).taken.capacity() < 100);
    }
}
