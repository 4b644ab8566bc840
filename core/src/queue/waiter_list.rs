//! The waiters of one bucket: a first-in, first-out list per [`Location`], and their deadlines.
//!
//! Plain data without locks or threads: lists are linked by slab keys. A waiter is in its list exactly as long as it
//! has a key here (invariant 1). Adding and removing cost O(1), a deadline O(log n), however many others wait.

use std::collections::BTreeSet;

use hashbrown::HashTable;
use slab::Slab;

use super::{Listed, Location};
use crate::clock::Timestamp;

/// Identifies a waiter within its bucket as long as it waits. Reused afterwards.
pub type WaiterKey = u32;

/// Finds a waiter again. Valid only with the waiter that it was made for: so a reused key is recognised.
///
/// Packed, so that an agent keeps it and its other facts of a wait in eight bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(Rust, packed(2))]
pub struct Ticket {
    pub(super) key: WaiterKey,
    pub(super) bucket: u16,
}

/// The end of a list.
const NIL: WaiterKey = WaiterKey::MAX;

/// The deadline of a waiter whose deadline has come and that [`WaiterLists::due`] no longer finds.
pub(super) const OVERDUE: Timestamp = Timestamp::from_nanos(0);

/// Larger slabs are given back to the allocator when their last waiter leaves.
const RETAINED_CAPACITY: usize = 1024;

/// A waiter in a list (the specification's Waiter Record).
#[derive(Debug)]
pub(crate) struct Record<C> {
    /// The waiter before it; of the first one, the last.
    previous: WaiterKey,
    /// The waiter after it; of the last one, [`NIL`].
    next: WaiterKey,
    /// [`Timestamp::NEVER`] if it has none, [`OVERDUE`] once the deadline has come.
    pub(super) deadline: Timestamp,
    pub location: Location,
    pub listed: Listed<C>,
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
pub(crate) struct WaiterLists<C> {
    waiters: Slab<Record<C>>,
    /// By the location of their first waiters.
    lists: HashTable<WaiterList>,
    /// The deadlines of promises and their claims that have not come, with the keys of the waiters.
    deadlines: BTreeSet<(Timestamp, WaiterKey)>,
}

impl<C> Default for WaiterLists<C> {
    fn default() -> Self {
        Self { waiters: Slab::new(), lists: HashTable::new(), deadlines: BTreeSet::new() }
    }
}

impl<C> WaiterLists<C> {
    /// Appends a waiter to the list of `location` (the specification's `AddWaiter`).
    ///
    /// [`Self::due`] finds a promise when its deadline has come. A blocked thread watches its deadline itself.
    pub(crate) fn push_back(&mut self, location: Location, deadline: Timestamp, listed: Listed<C>) -> WaiterKey {
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
        if deadline != Timestamp::NEVER && !listed.waiter.blocks() {
            self.deadlines.insert((deadline, key));
        }
        self.waiters.insert(Record { previous, next: NIL, deadline, location, listed });
        key
    }

    /// Removes a waiter from its list (the specification's `RemoveWaiter`).
    pub(crate) fn remove(&mut self, key: WaiterKey) -> Record<C> {
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
        if record.deadline != Timestamp::NEVER && !record.listed.waiter.blocks() {
            self.deadlines.remove(&(record.deadline, key));
        }
        self.shrink();
        record
    }

    /// Marks a due waiter, so that [`Self::due`] no longer finds it.
    pub(crate) fn mark_overdue(&mut self, key: WaiterKey) {
        let deadline = std::mem::replace(&mut self.waiters[key as usize].deadline, OVERDUE);
        self.deadlines.remove(&(deadline, key));
    }

    /// Removes the first waiter if it is an untimed promise without claim. Returns it, and the key of the next one.
    pub(crate) fn pop_front_promise(&mut self, location: Location) -> Option<(Listed<C>, Option<WaiterKey>)> {
        let is_its = |list: &WaiterList| self.waiters[list.head as usize].location == location;
        let mut entry = self.lists.find_entry(location.hash(), is_its).ok()?;
        let list = entry.get_mut();
        let head = list.head as usize;
        let first = self.waiters.get(head)?;
        if first.deadline != Timestamp::NEVER || !first.listed.is_plain_promise() {
            return None;
        }
        let Record { previous, next, listed, .. } = self.waiters.remove(head);
        list.length -= 1;
        if next == NIL {
            entry.remove();
        } else {
            list.head = next;
            self.waiters[next as usize].previous = previous;
        }
        self.shrink();
        Some((listed, (next != NIL).then_some(next)))
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

    pub(crate) fn get(&self, key: WaiterKey) -> Option<&Record<C>> {
        self.waiters.get(key as usize)
    }

    pub(crate) fn front(&self, location: Location) -> Option<WaiterKey> {
        self.list(location).map(|list| list.head)
    }

    pub(crate) fn next(&self, key: WaiterKey) -> Option<WaiterKey> {
        let next = self.waiters.get(key as usize)?.next;
        (next != NIL).then_some(next)
    }

    pub(crate) fn previous(&self, key: WaiterKey) -> Option<WaiterKey> {
        let previous = self.waiters.get(key as usize)?.previous;
        // That of the first waiter is the last one.
        (self.waiters.get(previous as usize)?.next == key).then_some(previous)
    }

    /// Finds the waiter with the earliest deadline, if that has come.
    pub(crate) fn due(&self, now: Timestamp) -> Option<(WaiterKey, Location)> {
        let &(deadline, key) = self.deadlines.first()?;
        (deadline <= now).then(|| (key, self.waiters[key as usize].location))
    }

    pub(crate) fn earliest_deadline(&self) -> Timestamp {
        self.deadlines.first().map_or(Timestamp::NEVER, |&(deadline, _)| deadline)
    }

    pub(crate) fn count(&self, location: Location) -> u32 {
        self.list(location).map_or(0, |list| list.length)
    }

    pub(crate) fn locations(&self) -> Vec<Location> {
        self.lists.iter().map(|list| self.waiters[list.head as usize].location).collect()
    }
}
