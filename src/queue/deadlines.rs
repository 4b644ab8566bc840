//! The deadlines of one bucket's waiters: a heap whose entries can be removed from the middle.
//!
//! Each waiter knows the index of its deadline; whenever an entry moves, its new index is reported. A wait that ends leaves
//! nothing behind, and a time-out costs 16 bytes.

use crate::clock::Timestamp;

/// The key of a waiter.
type Key = u32;

/// How many children an entry has: with four, an entry and those it is compared with share a cache line.
const CHILDREN: usize = 4;

/// A min-heap of deadlines, equal ones by key.
#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    heap: Vec<(Timestamp, Key)>,
}

impl Deadlines {
    /// The earliest deadline, and the key of its waiter.
    pub(crate) fn first(&self) -> Option<(Timestamp, Key)> {
        self.heap.first().copied()
    }

    /// The deadline at `index`.
    pub(crate) fn at(&self, index: u32) -> Timestamp {
        self.heap[index as usize].0
    }

    /// Adds a deadline. Reports each new index by `moved`.
    pub(crate) fn insert(&mut self, deadline: Timestamp, key: Key, mut moved: impl FnMut(Key, u32)) {
        self.heap.push((deadline, key));
        self.rise(self.heap.len() - 1, &mut moved);
    }

    /// Removes the entry at `index`. Reports each new index by `moved`.
    pub(crate) fn remove(&mut self, index: u32, mut moved: impl FnMut(Key, u32)) {
        let index = index as usize;
        self.heap.swap_remove(index);
        if index < self.heap.len() && self.rise(index, &mut moved) == index {
            self.sink(index, &mut moved);
        }
    }

    /// Moves the entry at `index` towards the root as far as it belongs there. Gives its new index.
    fn rise(&mut self, mut index: usize, moved: &mut impl FnMut(Key, u32)) -> usize {
        let entry = self.heap[index];
        while index > 0 {
            let parent = (index - 1) / CHILDREN;
            if self.heap[parent] <= entry {
                break;
            }
            self.put(index, self.heap[parent], moved);
            index = parent;
        }
        self.put(index, entry, moved);
        index
    }

    /// Moves the entry at `index` away from the root as far as it belongs there.
    fn sink(&mut self, mut index: usize, moved: &mut impl FnMut(Key, u32)) {
        let entry = self.heap[index];
        loop {
            let children = index * CHILDREN + 1..(index * CHILDREN + 1 + CHILDREN).min(self.heap.len());
            let Some(child) = children.min_by_key(|&child| self.heap[child]) else { break };
            if entry <= self.heap[child] {
                break;
            }
            self.put(index, self.heap[child], moved);
            index = child;
        }
        self.put(index, entry, moved);
    }

    fn put(&mut self, index: usize, entry: (Timestamp, Key), moved: &mut impl FnMut(Key, u32)) {
        self.heap[index] = entry;
        moved(entry.1, index as u32);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn behaves_as_a_sorted_set_and_reports_every_index(
            operations in prop::collection::vec((any::<bool>(), 0..50_u64, any::<prop::sample::Index>()), 0..300)
        ) {
            let mut deadlines = Deadlines::default();
            let mut places: BTreeMap<Key, u32> = BTreeMap::new();
            let mut model: Vec<(Timestamp, Key)> = Vec::new();
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
