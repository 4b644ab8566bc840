//! The waiters of one bucket: a first-in-first-out [`WaiterList`] per [`Location`] and an index of their deadlines.
//!
//! Plain data without locks, threads or `unsafe`: lists are linked by slab keys. A waiter is in its list exactly as long
//! as it has a key here (invariant 1), and leaves either from the front or by that key. Adding, removing by key and
//! taking the front cost O(1), a deadline O(log n), whatever the number of other waiters.
//!
//! `P` is the party that waits: [`crate::store::Entrant`], or a plain number in the property test.

use std::collections::HashMap;

use slab::Slab;

use crate::clock::Timestamp;
use crate::deadlines::Deadlines;
use crate::location::{BuildLocationHasher, Location};

/// Names a waiter within its bucket as long as it waits; may be given to another one afterwards.
pub type WaiterKey = u32;

/// The end of a list.
const NIL: WaiterKey = WaiterKey::MAX;

/// Slabs larger than this are given back to the allocator when their last waiter leaves.
const RETAINED_CAPACITY: usize = 1024;

/// One entry of a [`WaiterList`] (the specification's Waiter Record).
#[derive(Debug)]
pub struct Waiter<P> {
    previous: WaiterKey,
    next: WaiterKey,
    /// Its place among the deadlines, [`NIL`] if it is not there.
    place: u32,
    /// Where it waits.
    pub location: Location,
    /// From this moment on it is timed out and takes no notification; [`Timestamp::NEVER`] without a time-out.
    pub deadline: Timestamp,
    /// Who is to be woken.
    pub party: P,
}

/// The waiters of one location, in the order they came (invariant 4). Never empty: the last waiter takes it along.
#[derive(Debug, Clone, Copy)]
struct WaiterList {
    head: WaiterKey,
    tail: WaiterKey,
    length: u32,
}

/// All waiter lists of one bucket.
#[derive(Debug)]
pub struct WaiterLists<P> {
    waiters: Slab<Waiter<P>>,
    lists: HashMap<Location, WaiterList, BuildLocationHasher>,
    deadlines: Deadlines,
}

impl<P> Default for WaiterLists<P> {
    fn default() -> Self {
        Self { waiters: Slab::new(), lists: HashMap::default(), deadlines: Deadlines::default() }
    }
}

impl<P> WaiterLists<P> {
    /// Appends a waiter to the list of `location` (the specification's `AddWaiter`).
    ///
    /// An `indexed` waiter is found by [`Self::due`] when its deadline has come; one that is not watches its deadline
    /// itself (a blocked thread does).
    #[expect(clippy::cast_possible_truncation, reason = "2^32 waiters do not fit into memory")]
    pub fn push_back(&mut self, location: Location, deadline: Timestamp, indexed: bool, party: P) -> WaiterKey {
        let indexed = indexed && deadline != Timestamp::NEVER;
        let entry = self.waiters.vacant_entry();
        let key = entry.key() as WaiterKey;
        let list = self.lists.entry(location).or_insert(WaiterList { head: key, tail: NIL, length: 0 });
        let previous = std::mem::replace(&mut list.tail, key);
        list.length += 1;
        entry.insert(Waiter { previous, next: NIL, place: NIL, location, deadline, party });
        if previous != NIL {
            self.waiters[previous as usize].next = key;
        }
        if indexed {
            let waiters = &mut self.waiters;
            self.deadlines.insert(deadline, key, |key, place| waiters[key as usize].place = place);
        }
        key
    }

    /// Takes a waiter out of its list (the specification's `RemoveWaiter`).
    ///
    /// # Panics
    /// If there is no waiter with this key.
    pub fn remove(&mut self, key: WaiterKey) -> Waiter<P> {
        let waiter = self.waiters.remove(key as usize);
        if waiter.previous == NIL && waiter.next == NIL {
            self.lists.remove(&waiter.location);
        } else {
            let list = self.lists.get_mut(&waiter.location).expect("a waiter's list exists as long as the waiter");
            list.length -= 1;
            match waiter.previous {
                NIL => list.head = waiter.next,
                previous => self.waiters[previous as usize].next = waiter.next,
            }
            match waiter.next {
                NIL => list.tail = waiter.previous,
                next => self.waiters[next as usize].previous = waiter.previous,
            }
        }
        if waiter.place != NIL {
            let waiters = &mut self.waiters;
            self.deadlines.remove(waiter.place, |key, place| waiters[key as usize].place = place);
        }
        if self.waiters.is_empty() && self.waiters.capacity() > RETAINED_CAPACITY {
            *self = Self::default();
        }
        waiter
    }

    /// The waiter with this key, if there is one now.
    pub fn get(&self, key: WaiterKey) -> Option<&Waiter<P>> {
        self.waiters.get(key as usize)
    }

    /// The one that has waited longest at `location`.
    pub fn front(&self, location: Location) -> Option<WaiterKey> {
        self.lists.get(&location).map(|list| list.head)
    }

    /// The one that came after the waiter with this key, at the same location.
    pub fn next(&self, key: WaiterKey) -> Option<WaiterKey> {
        let next = self.waiters.get(key as usize)?.next;
        (next != NIL).then_some(next)
    }

    /// The waiter with the earliest deadline, if that is not later than `now`, and where it waits.
    pub fn due(&self, now: Timestamp) -> Option<(WaiterKey, Location)> {
        let (deadline, key) = self.deadlines.first()?;
        (deadline <= now).then(|| (key, self.waiters[key as usize].location))
    }

    /// The earliest indexed deadline.
    pub fn earliest_deadline(&self) -> Timestamp {
        self.deadlines.first().map_or(Timestamp::NEVER, |(deadline, _)| deadline)
    }

    /// How many wait at `location`.
    pub fn count(&self, location: Location) -> u32 {
        self.lists.get(&location).map_or(0, |list| list.length)
    }

    /// How many wait at all the bucket's locations.
    pub fn len(&self) -> usize {
        self.waiters.len()
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.waiters.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What the lists are meant to be: one sequence in the order of arrival.
    #[derive(Default)]
    struct Model(Vec<(WaiterKey, Location, Timestamp, bool, u32)>);

    #[derive(Debug, Clone)]
    enum Operation {
        PushBack { location: usize, deadline: Option<u64>, indexed: bool },
        RemoveNth(usize),
        PopFront(usize),
        PopDue(u64),
    }

    fn operation() -> impl Strategy<Value = Operation> {
        prop_oneof![
            4 => (0..4_usize, prop::option::of(0..20_u64), any::<bool>())
                .prop_map(|(location, deadline, indexed)| Operation::PushBack { location, deadline, indexed }),
            2 => any::<usize>().prop_map(Operation::RemoveNth),
            2 => (0..4_usize).prop_map(Operation::PopFront),
            1 => (0..20_u64).prop_map(Operation::PopDue),
        ]
    }

    fn location(index: usize) -> Location {
        Location::from_address(0x1000 + index * 4)
    }

    proptest! {
        #[test]
        fn behaves_as_one_sequence_of_waiters(operations in prop::collection::vec(operation(), 0..200)) {
            let mut lists = WaiterLists::default();
            let mut model = Model::default();
            let mut arrivals = 0;
            for operation in operations {
                match operation {
                    Operation::PushBack { location: at, deadline, indexed } => {
                        let deadline = deadline.map_or(Timestamp::NEVER, Timestamp::from_nanos);
                        let key = lists.push_back(location(at), deadline, indexed, arrivals);
                        model.0.push((key, location(at), deadline, indexed, arrivals));
                        arrivals += 1;
                    }
                    Operation::RemoveNth(n) if !model.0.is_empty() => {
                        let (key, .., arrival) = model.0.remove(n % model.0.len());
                        prop_assert_eq!(lists.remove(key).party, arrival);
                        prop_assert!(lists.get(key).is_none());
                    }
                    Operation::RemoveNth(_) => {}
                    Operation::PopFront(at) => {
                        let expected = model.0.iter().position(|waiter| waiter.1 == location(at)).map(|n| model.0.remove(n).4);
                        let actual = lists.front(location(at)).map(|key| lists.remove(key).party);
                        prop_assert_eq!(actual, expected);
                    }
                    Operation::PopDue(now) => {
                        let now = Timestamp::from_nanos(now);
                        let due = lists.due(now).map(|(key, _)| lists.remove(key)).map(|waiter| (waiter.deadline, waiter.party));
                        let earliest = model.0.iter().filter(|waiter| waiter.3 && waiter.2 <= now).map(|waiter| waiter.2).min();
                        prop_assert_eq!(due.map(|(deadline, _)| deadline), earliest);
                        if let Some((_, arrival)) = due {
                            model.0.retain(|waiter| waiter.4 != arrival);
                        }
                    }
                }
                prop_assert_eq!(lists.len(), model.0.len());
                for at in 0..4 {
                    let waiting = model.0.iter().filter(|waiter| waiter.1 == location(at)).count();
                    prop_assert_eq!(lists.count(location(at)) as usize, waiting);
                }
                let earliest = model.0.iter().filter(|waiter| waiter.3).map(|waiter| waiter.2).min();
                prop_assert_eq!(lists.earliest_deadline(), earliest.unwrap_or(Timestamp::NEVER));
            }
        }
    }

    #[test]
    fn memory_is_given_back_when_the_last_waiter_leaves() {
        let mut lists = WaiterLists::default();
        let keys: Vec<_> =
            (0..10_000).map(|n| lists.push_back(location(0), Timestamp::from_nanos(n), true, n)).collect();
        for key in keys {
            lists.remove(key);
        }
        assert!(lists.is_empty());
        assert_eq!(lists.waiters.capacity(), 0);
    }
}
