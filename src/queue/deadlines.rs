//! The deadlines of one bucket's waiters: a heap whose entries can be removed from the middle.
//!
//! Each waiter knows its place in the heap; whenever an entry moves, its new place is reported. A wait that is over leaves
//! nothing behind, and one with a time-out costs 16 bytes more than one without.

use crate::clock::Timestamp;
use crate::queue::waiter_list::WaiterKey;

/// How many children an entry has: with four, an entry and those it is compared with share a cache line.
const CHILDREN: usize = 4;

/// A min-heap of deadlines, equal ones by key.
#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    heap: Vec<(Timestamp, WaiterKey)>,
}

impl Deadlines {
    /// The earliest deadline, and whose it is.
    pub(crate) fn first(&self) -> Option<(Timestamp, WaiterKey)> {
        self.heap.first().copied()
    }

    /// The deadline at `place`.
    pub(crate) fn at(&self, place: u32) -> Timestamp {
        self.heap[place as usize].0
    }

    /// Adds a deadline. Reports the place of each entry that has a new one, by `moved`.
    pub(crate) fn insert(&mut self, deadline: Timestamp, key: WaiterKey, mut moved: impl FnMut(WaiterKey, u32)) {
        self.heap.push((deadline, key));
        self.rise(self.heap.len() - 1, &mut moved);
    }

    /// Removes the entry at `place`. Reports the place of each other entry that has a new one, by `moved`.
    pub(crate) fn remove(&mut self, place: u32, mut moved: impl FnMut(WaiterKey, u32)) {
        let place = place as usize;
        self.heap.swap_remove(place);
        if place < self.heap.len() && self.rise(place, &mut moved) == place {
            self.sink(place, &mut moved);
        }
    }

    /// Moves the entry at `place` towards the root as far as it belongs there; gives its new place.
    fn rise(&mut self, mut place: usize, moved: &mut impl FnMut(WaiterKey, u32)) -> usize {
        let entry = self.heap[place];
        while place > 0 {
            let parent = (place - 1) / CHILDREN;
            if self.heap[parent] <= entry {
                break;
            }
            self.put(place, self.heap[parent], moved);
            place = parent;
        }
        self.put(place, entry, moved);
        place
    }

    /// Moves the entry at `place` away from the root as far as it belongs there.
    fn sink(&mut self, mut place: usize, moved: &mut impl FnMut(WaiterKey, u32)) {
        let entry = self.heap[place];
        loop {
            let children = place * CHILDREN + 1..(place * CHILDREN + 1 + CHILDREN).min(self.heap.len());
            let Some(child) = children.min_by_key(|&child| self.heap[child]) else { break };
            if entry <= self.heap[child] {
                break;
            }
            self.put(place, self.heap[child], moved);
            place = child;
        }
        self.put(place, entry, moved);
    }

    #[expect(clippy::cast_possible_truncation, reason = "2^32 waiters do not fit into memory")]
    fn put(&mut self, place: usize, entry: (Timestamp, WaiterKey), moved: &mut impl FnMut(WaiterKey, u32)) {
        self.heap[place] = entry;
        moved(entry.1, place as u32);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn behaves_as_a_sorted_set_and_says_where_everything_is(
            operations in prop::collection::vec((any::<bool>(), 0..50_u64, any::<prop::sample::Index>()), 0..300)
        ) {
            let mut deadlines = Deadlines::default();
            let mut places: BTreeMap<WaiterKey, u32> = BTreeMap::new();
            let mut model: Vec<(Timestamp, WaiterKey)> = Vec::new();
            for (number, (inserts, nanos, which)) in (0..).zip(operations) {
                if inserts || model.is_empty() {
                    let entry = (Timestamp::from_nanos(nanos), number);
                    deadlines.insert(entry.0, entry.1, |key, place| { places.insert(key, place); });
                    model.push(entry);
                } else {
                    let (_, key) = model.swap_remove(which.index(model.len()));
                    let place = places.remove(&key).expect("it has been told");
                    deadlines.remove(place, |key, place| { places.insert(key, place); });
                }
                prop_assert_eq!(deadlines.first(), model.iter().min().copied());
                prop_assert_eq!(places.len(), model.len());
                for (deadline, key) in &model {
                    prop_assert_eq!(deadlines.heap[places[key] as usize], (*deadline, *key));
                }
            }
        }
    }
}
