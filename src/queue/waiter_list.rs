//! The waiters of one bucket: a first-in, first-out list per [`Location`], and their deadlines.
//!
//! Plain data without locks or threads: lists are linked by slab keys. A waiter is in its list exactly as long as it has a key
//! here (invariant 1). Adding and removing cost O(1), a deadline O(log n), whatever the number of other waiters.
//!
//! `W`: the waiter, or a plain number in the property test.

use std::collections::BTreeSet;

use hashbrown::HashTable;
use slab::Slab;

use super::location::Location;
use crate::clock::Timestamp;

/// Identifies a waiter within its bucket as long as it waits. Reused afterwards.
pub type WaiterKey = u32;

/// The end of a list.
const NIL: WaiterKey = WaiterKey::MAX;

/// The deadline of a waiter whose deadline has come and that [`WaiterLists::due`] no longer finds.
const OVERDUE: Timestamp = Timestamp::from_nanos(0);

/// Larger slabs are given back to the allocator when their last waiter leaves.
pub(crate) const RETAINED_CAPACITY: usize = 1024;

/// A waiter in a list (the specification's Waiter Record).
#[derive(Debug)]
pub struct Record<W> {
    /// The waiter before it; of the first one, the last.
    previous: WaiterKey,
    /// The waiter after it; of the last one, [`NIL`].
    next: WaiterKey,
    /// [`Timestamp::NEVER`] if it has none, [`OVERDUE`] once that has come.
    pub(super) deadline: Timestamp,
    /// Where it waits.
    pub location: Location,
    /// What the store keeps of the waiter.
    pub waiter: W,
}

impl<W> Record<W> {
    /// Whether [`WaiterLists::mark_overdue`] has marked it.
    pub fn is_overdue(&self) -> bool {
        self.deadline == OVERDUE
    }
}

/// The waiters of one location, in the order they came (invariant 4). Never empty: it is removed with its last waiter.
///
/// It repeats nothing that the first waiter says, so that many lists share a cache line.
#[derive(Debug)]
struct WaiterList {
    head: WaiterKey,
    length: u32,
}

/// The waiter lists of one bucket.
#[derive(Debug)]
pub struct WaiterLists<W> {
    waiters: Slab<Record<W>>,
    /// By the location of their first waiters.
    lists: HashTable<WaiterList>,
    /// Those that have not come, with the waiters' keys.
    deadlines: BTreeSet<(Timestamp, WaiterKey)>,
}

impl<W> Default for WaiterLists<W> {
    fn default() -> Self {
        Self { waiters: Slab::new(), lists: HashTable::new(), deadlines: BTreeSet::new() }
    }
}

impl<W> WaiterLists<W> {
    /// Appends a waiter to the list of `location` (the specification's `AddWaiter`).
    ///
    /// If `is_timed`, [`Self::due`] finds it when its deadline has come, unless that is [`Timestamp::NEVER`].
    pub fn push_back(&mut self, location: Location, deadline: Timestamp, is_timed: bool, waiter: W) -> WaiterKey {
        let key = self.waiters.vacant_key() as WaiterKey;
        let place_of = |list: &WaiterList| self.waiters[list.head as usize].location;
        let entry = self.lists.entry(location.hash(), |list| place_of(list) == location, |list| place_of(list).hash());
        let list = entry.or_insert(WaiterList { head: key, length: 0 }).into_mut();
        list.length += 1;
        let previous = match list.head {
            head if head == key => key,
            head => {
                let tail = std::mem::replace(&mut self.waiters[head as usize].previous, key);
                self.waiters[tail as usize].next = key;
                tail
            }
        };
        self.waiters.insert(Record { previous, next: NIL, deadline, location, waiter });
        if is_timed && deadline != Timestamp::NEVER {
            self.deadlines.insert((deadline, key));
        }
        key
    }

    /// Removes a waiter from its list (the specification's `RemoveWaiter`).
    ///
    /// # Panics
    /// If there is no waiter with this key.
    pub fn remove(&mut self, key: WaiterKey) -> Record<W> {
        let record = self.waiters.remove(key as usize);
        let is_its =
            |list: &WaiterList| list.head == key || self.waiters[list.head as usize].location == record.location;
        let entry = self.lists.find_entry(record.location.hash(), is_its);
        let mut entry = entry.expect("a waiter's list exists as long as the waiter");
        let list = entry.get_mut();
        list.length -= 1;
        if list.length == 0 {
            entry.remove();
        } else {
            if list.head == key {
                list.head = record.next;
            } else {
                self.waiters[record.previous as usize].next = record.next;
            }
            // The first waiter's predecessor is the last waiter.
            let after = if record.next == NIL { list.head } else { record.next };
            self.waiters[after as usize].previous = record.previous;
        }
        self.remove_deadline(record.deadline, key);
        self.shrink();
        record
    }

    /// Leaves a waiter that is due in its list, where [`Self::due`] no longer finds it.
    ///
    /// # Panics
    /// If there is no waiter with this key.
    pub fn mark_overdue(&mut self, key: WaiterKey) {
        let deadline = std::mem::replace(&mut self.waiters[key as usize].deadline, OVERDUE);
        self.remove_deadline(deadline, key);
    }

    fn remove_deadline(&mut self, deadline: Timestamp, key: WaiterKey) {
        if deadline != Timestamp::NEVER {
            self.deadlines.remove(&(deadline, key));
        }
    }

    /// Removes the first waiter at `location` if it has no deadline and `takes` says so. Gives it, and the key of the next one.
    pub fn pop_front_if(
        &mut self,
        location: Location,
        takes: impl FnOnce(&W) -> bool,
    ) -> Option<(W, Option<WaiterKey>)> {
        let is_its = |list: &WaiterList| self.waiters[list.head as usize].location == location;
        let mut entry = self.lists.find_entry(location.hash(), is_its).ok()?;
        let list = entry.get_mut();
        let head = list.head as usize;
        if !self.waiters.get(head).is_some_and(|first| first.deadline == Timestamp::NEVER && takes(&first.waiter)) {
            return None;
        }
        let Record { previous, next, waiter, .. } = self.waiters.remove(head);
        list.length -= 1;
        if next == NIL {
            entry.remove();
        } else {
            list.head = next;
            self.waiters[next as usize].previous = previous;
        }
        self.shrink();
        Some((waiter, (next != NIL).then_some(next)))
    }

    /// Gives back the memory that many waiters have occupied.
    fn shrink(&mut self) {
        if self.waiters.is_empty() && self.waiters.capacity() > RETAINED_CAPACITY {
            *self = Self::default();
        }
    }

    fn list(&self, location: Location) -> Option<&WaiterList> {
        self.lists.find(location.hash(), |list| self.waiters[list.head as usize].location == location)
    }

    /// The waiter with this key.
    pub fn get(&self, key: WaiterKey) -> Option<&Record<W>> {
        self.waiters.get(key as usize)
    }

    /// The first waiter at `location`.
    pub fn front(&self, location: Location) -> Option<WaiterKey> {
        self.list(location).map(|list| list.head)
    }

    /// The waiter after the one with this key, at the same location.
    pub fn next(&self, key: WaiterKey) -> Option<WaiterKey> {
        let next = self.waiters.get(key as usize)?.next;
        (next != NIL).then_some(next)
    }

    /// The waiter before the one with this key, at the same location.
    pub fn previous(&self, key: WaiterKey) -> Option<WaiterKey> {
        let previous = self.waiters.get(key as usize)?.previous;
        // That of the first waiter is the last one.
        (self.waiters.get(previous as usize)?.next == key).then_some(previous)
    }

    /// The waiter with the earliest deadline, and where it waits, if that deadline has come at `now`.
    pub fn due(&self, now: Timestamp) -> Option<(WaiterKey, Location)> {
        let &(deadline, key) = self.deadlines.first()?;
        (deadline <= now).then(|| (key, self.waiters[key as usize].location))
    }

    /// The earliest deadline.
    pub fn earliest_deadline(&self) -> Timestamp {
        self.deadlines.first().map_or(Timestamp::NEVER, |&(deadline, _)| deadline)
    }

    /// The number of waiters at `location`.
    pub fn count(&self, location: Location) -> u32 {
        self.list(location).map_or(0, |list| list.length)
    }

    /// The locations that have waiters.
    pub fn locations(&self) -> Vec<Location> {
        self.lists.iter().map(|list| self.waiters[list.head as usize].location).collect()
    }

    /// The number of waiters at all locations.
    pub fn len(&self) -> usize {
        self.waiters.len()
    }

    /// Whether there are no waiters.
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
    struct Model(Vec<(WaiterKey, Location, Timestamp, u32)>);

    /// The deadline of those marked overdue: earlier than any that `operation` makes, and found by nobody.
    const LONG_AGO: Timestamp = Timestamp::from_nanos(0);

    impl Model {
        fn earliest_deadline(&self) -> Option<Timestamp> {
            let deadlines = self.0.iter().map(|waiter| waiter.2);
            deadlines.filter(|&deadline| deadline != LONG_AGO && deadline != Timestamp::NEVER).min()
        }
    }

    #[derive(Debug, Clone)]
    enum Operation {
        PushBack { location: usize, deadline: Option<u64> },
        RemoveNth(usize),
        PopFront(usize),
        PopFrontIf { location: usize, parity: u32 },
        PopDue(u64),
        MarkDue(u64),
    }

    fn operation() -> impl Strategy<Value = Operation> {
        prop_oneof![
            4 => (0..4_usize, prop::option::of(1..20_u64))
                .prop_map(|(location, deadline)| Operation::PushBack { location, deadline }),
            2 => any::<usize>().prop_map(Operation::RemoveNth),
            2 => (0..4_usize).prop_map(Operation::PopFront),
            2 => (0..4_usize, 0..2_u32).prop_map(|(location, parity)| Operation::PopFrontIf { location, parity }),
            1 => (0..20_u64).prop_map(Operation::PopDue),
            1 => (0..20_u64).prop_map(Operation::MarkDue),
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
                let earliest_before = model.earliest_deadline();
                match operation {
                    Operation::PushBack { location: at, deadline } => {
                        let deadline = deadline.map_or(Timestamp::NEVER, Timestamp::from_nanos);
                        let key = lists.push_back(location(at), deadline, true, arrivals);
                        model.0.push((key, location(at), deadline, arrivals));
                        arrivals += 1;
                    }
                    Operation::RemoveNth(n) if !model.0.is_empty() => {
                        let (key, .., arrival) = model.0.remove(n % model.0.len());
                        prop_assert_eq!(lists.remove(key).waiter, arrival);
                        prop_assert!(lists.get(key).is_none());
                    }
                    Operation::RemoveNth(_) => {}
                    Operation::PopFront(at) => {
                        let expected = model.0.iter().position(|waiter| waiter.1 == location(at)).map(|n| model.0.remove(n).3);
                        let actual = lists.front(location(at)).map(|key| lists.remove(key).waiter);
                        prop_assert_eq!(actual, expected);
                    }
                    Operation::PopFrontIf { location: at, parity } => {
                        let first = model.0.iter().position(|waiter| waiter.1 == location(at));
                        let taken = first.filter(|&n| model.0[n].2 == Timestamp::NEVER && model.0[n].3 % 2 == parity);
                        let expected = taken.map(|n| {
                            let (.., arrival) = model.0.remove(n);
                            let next = model.0.iter().find(|waiter| waiter.1 == location(at)).map(|waiter| waiter.0);
                            (arrival, next)
                        });
                        let actual = lists.pop_front_if(location(at), |arrival| arrival % 2 == parity);
                        prop_assert_eq!(actual, expected);
                    }
                    Operation::PopDue(now) => {
                        let now = Timestamp::from_nanos(now);
                        let due = lists.due(now).map(|(key, _)| (lists.waiters[key as usize].deadline, lists.remove(key).waiter));
                        prop_assert_eq!(due.map(|(deadline, _)| deadline), model.earliest_deadline().filter(|&earliest| earliest <= now));
                        if let Some((_, arrival)) = due {
                            model.0.retain(|waiter| waiter.3 != arrival);
                        }
                    }
                    Operation::MarkDue(now) => {
                        let Some((key, _)) = lists.due(Timestamp::from_nanos(now)) else { continue };
                        lists.mark_overdue(key);
                        let marked = model.0.iter_mut().find(|waiter| waiter.0 == key).expect("it waits");
                        prop_assert_eq!(Some(marked.2), earliest_before);
                        marked.2 = LONG_AGO;
                    }
                }
                prop_assert_eq!(lists.len(), model.0.len());
                for at in 0..4 {
                    let waiting = model.0.iter().filter(|waiter| waiter.1 == location(at)).count();
                    prop_assert_eq!(lists.count(location(at)) as usize, waiting);
                }
                for waiter in &model.0 {
                    prop_assert_eq!(lists.get(waiter.0).map(|found| found.deadline), Some(waiter.2));
                    prop_assert_eq!(lists.get(waiter.0).map(Record::is_overdue), Some(waiter.2 == LONG_AGO));
                }
                prop_assert_eq!(lists.earliest_deadline(), model.earliest_deadline().unwrap_or(Timestamp::NEVER));
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
