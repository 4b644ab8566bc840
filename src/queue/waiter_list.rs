//! The waiters of one bucket: a first-in-first-out [`WaiterList`] per [`Location`] and an index of their deadlines.
//!
//! Plain data without locks, threads or `unsafe`: lists are linked by slab keys. A waiter is in its list exactly as long
//! as it has a key here (invariant 1), and leaves either from the front or by that key. Adding, removing by key and
//! taking the front cost O(1), a deadline O(log n), whatever the number of other waiters.
//!
//! `P` is the party that waits: the store's entrant, or a plain number in the property test.

use hashbrown::HashTable;
use slab::Slab;

use crate::clock::Timestamp;
use crate::queue::deadlines::Deadlines;
use crate::queue::location::Location;

/// Names a waiter within its bucket as long as it waits; may be given to another one afterwards.
pub type WaiterKey = u32;

/// The end of a list.
const NIL: WaiterKey = WaiterKey::MAX;

/// The place of a waiter whose deadline has come and is no longer among the deadlines. (No key is as large, nor any place.)
const OVERDUE: u32 = NIL - 1;

/// Slabs larger than this are given back to the allocator when their last waiter leaves.
pub(crate) const RETAINED_CAPACITY: usize = 1024;

/// One entry of a [`WaiterList`] (the specification's Waiter Record).
#[derive(Debug)]
pub struct Waiter<P> {
    /// The one before it; of the first one, the last.
    previous: WaiterKey,
    /// The one after it; of the last one, [`NIL`].
    next: WaiterKey,
    /// Its place among the deadlines; [`NIL`] if it has no deadline, [`OVERDUE`] if that has come.
    place: u32,
    /// Where it waits.
    pub location: Location,
    /// Who is to be woken.
    pub party: P,
}

impl<P> Waiter<P> {
    /// Whether it has been marked by [`WaiterLists::mark_overdue`].
    pub fn is_overdue(&self) -> bool {
        self.place == OVERDUE
    }

    /// The one that stood before it when it was taken out of its list; `None` if it was the first.
    pub(crate) fn before(&self) -> Option<WaiterKey> {
        (self.previous != NIL).then_some(self.previous)
    }
}

/// The waiters of one location, in the order they came (invariant 4). Never empty: the last waiter takes it along.
///
/// No more than what the first waiter does not say itself, so that many of them share a cache line.
#[derive(Debug)]
struct WaiterList {
    head: WaiterKey,
    length: u32,
}

/// All waiter lists of one bucket.
#[derive(Debug)]
pub struct WaiterLists<P> {
    waiters: Slab<Waiter<P>>,
    /// By the location of their first waiters.
    lists: HashTable<WaiterList>,
    deadlines: Deadlines,
}

impl<P> Default for WaiterLists<P> {
    fn default() -> Self {
        Self { waiters: Slab::new(), lists: HashTable::new(), deadlines: Deadlines::default() }
    }
}

impl<P> WaiterLists<P> {
    /// Appends a waiter to the list of `location` (the specification's `AddWaiter`).
    ///
    /// It is found by [`Self::due`] when its deadline has come, unless that is [`Timestamp::NEVER`].
    #[expect(clippy::cast_possible_truncation, reason = "2^32 waiters do not fit into memory")]
    pub fn push_back(&mut self, location: Location, deadline: Timestamp, party: P) -> WaiterKey {
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
        self.waiters.insert(Waiter { previous, next: NIL, place: NIL, location, party });
        if deadline != Timestamp::NEVER {
            let waiters = &mut self.waiters;
            self.deadlines.insert(deadline, key, |key, place| waiters[key as usize].place = place);
        }
        key
    }

    /// Takes a waiter out of its list (the specification's `RemoveWaiter`), which still knows the one [`Waiter::before`] it.
    ///
    /// # Panics
    /// If there is no waiter with this key.
    pub fn remove(&mut self, key: WaiterKey) -> Waiter<P> {
        let mut waiter = self.waiters.remove(key as usize);
        let is_its =
            |list: &WaiterList| list.head == key || self.waiters[list.head as usize].location == waiter.location;
        let entry = self.lists.find_entry(waiter.location.hash(), is_its);
        let mut entry = entry.expect("a waiter's list exists as long as the waiter");
        let list = entry.get_mut();
        let was_first = list.head == key;
        list.length -= 1;
        if list.length == 0 {
            entry.remove();
        } else {
            if was_first {
                list.head = waiter.next;
            } else {
                self.waiters[waiter.previous as usize].next = waiter.next;
            }
            // Whose predecessor it was; if nobody's, it was the last, of which the first one knows.
            let after = if waiter.next == NIL { list.head } else { waiter.next };
            self.waiters[after as usize].previous = waiter.previous;
        }
        self.remove_deadline(waiter.place);
        self.shrink();
        if was_first {
            waiter.previous = NIL;
        }
        waiter
    }

    /// A waiter that is due stays in its list, and [`Self::due`] does not find it any more.
    ///
    /// # Panics
    /// If there is no waiter with this key.
    pub fn mark_overdue(&mut self, key: WaiterKey) {
        let place = std::mem::replace(&mut self.waiters[key as usize].place, OVERDUE);
        self.remove_deadline(place);
    }

    fn remove_deadline(&mut self, place: u32) {
        if place < OVERDUE {
            let waiters = &mut self.waiters;
            self.deadlines.remove(place, |key, place| waiters[key as usize].place = place);
        }
    }

    /// Takes out the first one at `location` if that has no deadline and `takes` says so. And which one is the first then.
    pub fn pop_front_if(
        &mut self,
        location: Location,
        takes: impl FnOnce(&P) -> bool,
    ) -> Option<(P, Option<WaiterKey>)> {
        let is_its = |list: &WaiterList| self.waiters[list.head as usize].location == location;
        let mut entry = self.lists.find_entry(location.hash(), is_its).ok()?;
        let list = entry.get_mut();
        let head = list.head as usize;
        if !self.waiters.get(head).is_some_and(|first| first.place == NIL && takes(&first.party)) {
            return None;
        }
        let Waiter { previous, next, party, .. } = self.waiters.remove(head);
        list.length -= 1;
        if next == NIL {
            entry.remove();
        } else {
            list.head = next;
            self.waiters[next as usize].previous = previous;
        }
        self.shrink();
        Some((party, (next != NIL).then_some(next)))
    }

    /// Gives back the memory that many waiters have left.
    fn shrink(&mut self) {
        if self.waiters.is_empty() && self.waiters.capacity() > RETAINED_CAPACITY {
            *self = Self::default();
        }
    }

    fn list(&self, location: Location) -> Option<&WaiterList> {
        self.lists.find(location.hash(), |list| self.waiters[list.head as usize].location == location)
    }

    /// The waiter with this key, if there is one now.
    pub fn get(&self, key: WaiterKey) -> Option<&Waiter<P>> {
        self.waiters.get(key as usize)
    }

    /// The deadline of one of these waiters; [`Timestamp::NEVER`] if it has none. That of one that is marked overdue is not known
    /// any more: some moment in the past.
    pub fn deadline(&self, waiter: &Waiter<P>) -> Timestamp {
        match waiter.place {
            NIL => Timestamp::NEVER,
            OVERDUE => Timestamp::from_nanos(0),
            place => self.deadlines.at(place),
        }
    }

    /// The one that has waited longest at `location`.
    pub fn front(&self, location: Location) -> Option<WaiterKey> {
        self.list(location).map(|list| list.head)
    }

    /// The one that came after the waiter with this key, at the same location.
    pub fn next(&self, key: WaiterKey) -> Option<WaiterKey> {
        let next = self.waiters.get(key as usize)?.next;
        (next != NIL).then_some(next)
    }

    /// The one that came before the waiter with this key, at the same location.
    pub fn previous(&self, key: WaiterKey) -> Option<WaiterKey> {
        let previous = self.waiters.get(key as usize)?.previous;
        // The first one has the last there.
        (self.waiters.get(previous as usize)?.next == key).then_some(previous)
    }

    /// The waiter with the earliest deadline, if that is not later than `now`, and where it waits.
    pub fn due(&self, now: Timestamp) -> Option<(WaiterKey, Location)> {
        let (deadline, key) = self.deadlines.first()?;
        (deadline <= now).then(|| (key, self.waiters[key as usize].location))
    }

    /// The earliest deadline.
    pub fn earliest_deadline(&self) -> Timestamp {
        self.deadlines.first().map_or(Timestamp::NEVER, |(deadline, _)| deadline)
    }

    /// How many wait at `location`.
    pub fn count(&self, location: Location) -> u32 {
        self.list(location).map_or(0, |list| list.length)
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
                        let key = lists.push_back(location(at), deadline, arrivals);
                        model.0.push((key, location(at), deadline, arrivals));
                        arrivals += 1;
                    }
                    Operation::RemoveNth(n) if !model.0.is_empty() => {
                        let (key, .., arrival) = model.0.remove(n % model.0.len());
                        prop_assert_eq!(lists.remove(key).party, arrival);
                        prop_assert!(lists.get(key).is_none());
                    }
                    Operation::RemoveNth(_) => {}
                    Operation::PopFront(at) => {
                        let expected = model.0.iter().position(|waiter| waiter.1 == location(at)).map(|n| model.0.remove(n).3);
                        let actual = lists.front(location(at)).map(|key| lists.remove(key).party);
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
                        let due = lists.due(now).map(|(key, _)| (lists.deadline(&lists.waiters[key as usize]), lists.remove(key).party));
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
                    prop_assert_eq!(lists.get(waiter.0).map(|found| lists.deadline(found)), Some(waiter.2));
                    prop_assert_eq!(lists.get(waiter.0).map(Waiter::is_overdue), Some(waiter.2 == LONG_AGO));
                }
                prop_assert_eq!(lists.earliest_deadline(), model.earliest_deadline().unwrap_or(Timestamp::NEVER));
            }
        }
    }

    #[test]
    fn memory_is_given_back_when_the_last_waiter_leaves() {
        let mut lists = WaiterLists::default();
        let keys: Vec<_> = (0..10_000).map(|n| lists.push_back(location(0), Timestamp::from_nanos(n), n)).collect();
        for key in keys {
            lists.remove(key);
        }
        assert!(lists.is_empty());
        assert_eq!(lists.waiters.capacity(), 0);
    }
}
