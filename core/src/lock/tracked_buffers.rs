//! The memories in which threads have made locks, and whether they exist.
//!
//! Abandoned locks are remembered by address, and have to be forgotten when their memory is freed: otherwise the next
//! lock at such an address would be reported as abandoned. Node-API does not tell when memory is freed. But JavaScript
//! can tell when a `SharedArrayBuffer` object has been collected; a memory may have several of those, in several
//! threads.
//!
//! # When a memory counts as gone
//! - No object of it is known, and no lock in it is abandoned, or it has certainly been freed ([`TrackedBuffers::look`]).
//! - A thread makes a lock on a new object at its address, no other object is known, and an earlier object of that
//!   thread at this address has been collected. (Other threads kept the earlier memory, and have ended since.)
//! - A thread makes the first lock in a memory that overlaps it and begins elsewhere.
//!
//! That no object is known does not count: a thread that has made no lock in the memory may keep it, and hand it to a
//! new worker, which is to see the death. The last [`MOST_LEFT`] such memories are remembered.
//!
//! # Who has used it
//! A memory remembers the last threads that had objects of it and have ended, for people: a wait may stand still since
//! one of them has not notified. They are forgotten with the memory, so a later one at its address has none of them.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::WaiterListStore;
use super::bucket::shrink;
use super::names::Text;
use crate::clock::Timestamp;
use crate::queue::Location;
use crate::sync::{Mutex, lock};

/// How many memories are remembered of which no object is known.
pub const MOST_LEFT: usize = 1024;

/// How many ended threads a memory remembers.
pub const MOST_ENDED: usize = 3;

/// The memories of a process. Any thread may call any method.
///
/// Its lock is held while a bucket's is taken: so no thread can register a memory, and die with a lock in it, between
/// the decision that the memory is gone and the forgetting.
#[derive(Debug)]
pub struct TrackedBuffers {
    registry: Mutex<KnownBuffers>,
    find_freed: FindFreed,
}

/// Finds out which of some ranges of addresses have certainly been freed.
pub type FindFreed = fn(Vec<Range<usize>>) -> Vec<Range<usize>>;

/// The state of a memory after one of its objects was lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Left {
    /// Other objects of it are known.
    Known,
    /// No object is known. A lock is abandoned, so `look` is to be called when the lost memory has been freed.
    Unknown,
    /// Nothing: the memory is forgotten.
    Nothing,
}

#[derive(Debug, Default)]
struct KnownBuffers {
    /// By first address. They do not overlap.
    memories: BTreeMap<usize, Memory>,
    /// Earlier memories at addresses that others have, by first address: their objects have not been collected yet.
    gone: FxHashMap<usize, Memory>,
    /// The memories of which no object is known and which have abandoned locks; the earliest first.
    left: VecDeque<usize>,
    /// The names that programs gave to words, for people, by the addresses of the words. They go with the memories.
    labels: BTreeMap<usize, Text>,
}

#[derive(Debug, Default)]
struct Memory {
    /// Bytes; 0 of one that is gone.
    length: usize,
    /// The number of its buffer objects, in all threads.
    objects: usize,
    /// The agents that have lost an object of it while it was not known to be gone.
    lost_by: FxHashSet<AgentId>,
    /// The last threads that have ended, and had objects of it; the latest first.
    ended: Vec<Arc<Ended>>,
}

#[derive(Debug)]
pub struct Ended {
    pub thread_id: u32,
    pub thread_name: Option<Arc<str>>,
    /// How it ended, by a number of the caller's.
    pub manner: u32,
    pub at: Timestamp,
}

impl Memory {
    fn addresses(&self, base: usize) -> Range<usize> {
        base..base.saturating_add(self.length)
    }
}

/// Distinguishes an agent from all others that exist.
pub type AgentId = usize;

impl TrackedBuffers {
    /// Makes an empty registry. `find_freed` finds those of the memories that have certainly been freed.
    #[must_use]
    pub fn new(find_freed: FindFreed) -> Self {
        Self { registry: Mutex::default(), find_freed }
    }

    /// Registers a buffer object of `length` bytes at `base` for the agent.
    pub fn register(&self, store: &WaiterListStore, agent: AgentId, base: usize, length: usize) {
        let registry = &mut *lock(&self.registry);
        if !registry.memories.contains_key(&base) {
            registry.forget_overlapped(store, base, length);
            let memory = registry.gone.remove(&base).unwrap_or_default();
            registry.memories.insert(base, memory);
        }
        let memory = registry.memories.entry(base).or_default();
        let had_lost = memory.lost_by.remove(&agent);
        if memory.objects == 0 && memory.length > 0 {
            if had_lost {
                registry.forget(store, base);
            }
            registry.left.retain(|&each| each != base);
        }
        let memory = registry.memories.entry(base).or_default();
        memory.objects += 1;
        memory.length = memory.length.max(length);
    }

    /// Forgets so many of the agent's buffer objects, which have been collected.
    pub fn lose(&self, store: &WaiterListStore, agent: AgentId, base: usize, objects: usize) -> Left {
        let mut registry = lock(&self.registry);
        let left = registry.subtract(store, base, objects);
        if let Some(memory) = registry.get_mut(base) {
            memory.lost_by.insert(agent);
        }
        left
    }

    /// Ends the agent, which has `objects` buffer objects at `base`. Its holds there have been abandoned before.
    pub fn end(
        &self,
        store: &WaiterListStore,
        agent: AgentId,
        base: usize,
        objects: usize,
        ended: &Arc<Ended>,
    ) -> Left {
        let mut registry = lock(&self.registry);
        if let Some(memory) = registry.get_mut(base) {
            // Otherwise it has used an earlier memory here.
            let has_used = memory.lost_by.remove(&agent) || objects > 0;
            if has_used && memory.length > 0 {
                memory.ended.truncate(MOST_ENDED - 1);
                memory.ended.insert(0, Arc::clone(ended));
            }
        }
        registry.subtract(store, base, objects)
    }

    /// Returns the last users of the location's memory that have ended; the latest first.
    pub fn ended(&self, location: Location) -> Vec<Arc<Ended>> {
        let registry = lock(&self.registry);
        let before = registry.memories.range(..=location.address()).next_back();
        let memory = before.filter(|(base, memory)| memory.addresses(**base).contains(&location.address()));
        memory.map(|(_, memory)| memory.ended.clone()).unwrap_or_default()
    }

    /// Names the word at `location`, instead of its former name.
    pub fn set_label(&self, location: Location, label: Text) {
        lock(&self.registry).labels.insert(location.address(), label);
    }

    pub fn label(&self, location: Location) -> Option<Text> {
        lock(&self.registry).labels.get(&location.address()).cloned()
    }

    /// Looks which memories without a known object have been freed.
    pub fn look(&self, store: &WaiterListStore) {
        let mut registry = lock(&self.registry);
        let left = registry.left.iter().map(|base| registry.memories[base].addresses(*base)).collect();
        for freed in (self.find_freed)(left) {
            registry.forget(store, freed.start);
        }
    }
}

impl KnownBuffers {
    fn get_mut(&mut self, base: usize) -> Option<&mut Memory> {
        self.memories.get_mut(&base).or_else(|| self.gone.get_mut(&base))
    }

    fn subtract(&mut self, store: &WaiterListStore, base: usize, objects: usize) -> Left {
        let Some(memory) = self.get_mut(base) else { return Left::Nothing };
        memory.objects -= objects;
        if memory.objects > 0 {
            return Left::Known;
        }
        let addresses = memory.addresses(base);
        if self.gone.remove(&base).is_some() {
            shrink(&mut self.gone);
            return Left::Nothing;
        }
        if !store.any_abandoned_in(&addresses) {
            self.forget(store, base);
            return Left::Nothing;
        }
        if objects > 0 {
            self.left.push_back(base);
        }
        if self.left.len() > MOST_LEFT {
            self.forget(store, self.left[0]);
        }
        Left::Unknown
    }

    /// Forgets the memories that overlap these addresses: a new one is there, so they are gone.
    fn forget_overlapped(&mut self, store: &WaiterListStore, base: usize, length: usize) {
        let known = self.memories.range(..base.saturating_add(length)).rev();
        let overlapped = known.take_while(|&(&earlier, memory)| memory.addresses(earlier).end > base);
        for earlier in overlapped.map(|(&earlier, _)| earlier).collect::<Vec<_>>() {
            self.forget(store, earlier);
        }
    }

    /// Forgets the memory at `base`: it is gone, or the first of too many.
    fn forget(&mut self, store: &WaiterListStore, base: usize) {
        let Some(memory) = self.memories.remove(&base) else { return };
        let addresses = memory.addresses(base);
        if memory.objects == 0 {
            self.left.retain(|&each| each != base);
        } else {
            // They will be reported as collected.
            self.gone.insert(base, Memory { length: 0, ended: Vec::new(), ..memory });
        }
        store.forget_abandoned(&addresses);
        // Most memories have no labels, and one with many is rare.
        while let Some((&address, _)) = self.labels.range(addresses.clone()).next() {
            self.labels.remove(&address);
        }
    }
}
