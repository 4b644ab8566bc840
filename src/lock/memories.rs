//! The memories in which threads of this process have made locks, and whether they still exist.
//!
//! Abandoned locks are remembered by address, and have to be forgotten when their memory is freed: otherwise the next lock at such
//! an address would be reported as abandoned. Node-API does not tell when memory is freed. But JavaScript can tell when a
//! `SharedArrayBuffer` object has been collected; a memory may have several of those, in several threads.
//!
//! # When a memory counts as gone
//! - The last known object of it has been collected.
//! - A thread makes a lock on a new object at its address, no other object is known, and an earlier object of that thread at this
//!   address has been collected. (Other threads kept the earlier memory, and have ended since.)
//!
//! The end of a thread does not count: its objects go, but another thread that has made no lock in the memory yet may keep it, and
//! hand it to a new worker, which is to be told of the death.

use std::collections::HashMap;
use std::ops::Range;

use rustc_hash::FxBuildHasher;

use super::labels::Labels;
use super::policy::WaiterListStore;
use crate::sync::{Mutex, lock};

/// The memories of a process, by their first addresses. Any thread may call any method.
///
/// Its lock is held while a bucket's is taken: so no thread can register a memory, and die with a lock in it, between the decision
/// that the memory is gone and the forgetting.
#[derive(Debug, Default)]
pub struct Memories {
    by_base: Mutex<HashMap<usize, Memory, FxBuildHasher>>,
    /// They go with the memories.
    pub labels: Labels,
}

#[derive(Debug, Default)]
struct Memory {
    /// Bytes.
    length: usize,
    /// The number of its buffer objects, in all threads.
    objects: usize,
    /// The agents that have lost an object of it while others were known.
    lost_by: Vec<AgentId>,
}

impl Memory {
    fn addresses(&self, base: usize) -> Range<usize> {
        base..base.saturating_add(self.length)
    }

    /// Forgets that the agent has lost an object. Whether it had.
    fn forget_loss(&mut self, agent: AgentId) -> bool {
        let place = self.lost_by.iter().position(|&other| other == agent);
        place.map(|place| self.lost_by.swap_remove(place)).is_some()
    }
}

/// Distinguishes an agent from all others that exist.
pub type AgentId = usize;

impl Memories {
    /// The agent makes a lock on a buffer object of `length` bytes at `base` for the first time.
    pub fn register(&self, store: &WaiterListStore, agent: AgentId, base: usize, length: usize) {
        let mut memories = lock(&self.by_base);
        let memory = memories.entry(base).or_default();
        if memory.forget_loss(agent) && memory.objects == 0 {
            store.forget_abandoned(&memory.addresses(base));
            self.labels.forget(&memory.addresses(base));
            *memory = Memory::default();
        }
        memory.objects += 1;
        memory.length = memory.length.max(length);
    }

    /// A buffer object that the agent had registered has been collected. Whether the memory is gone with it.
    pub fn lose(&self, store: &WaiterListStore, agent: AgentId, base: usize) -> bool {
        let mut memories = lock(&self.by_base);
        let Some(memory) = memories.get_mut(&base) else { return true };
        memory.objects -= 1;
        let is_gone = memory.objects == 0;
        if is_gone {
            store.forget_abandoned(&memory.addresses(base));
            self.labels.forget(&memory.addresses(base));
            memories.remove(&base);
        } else if !memory.lost_by.contains(&agent) {
            memory.lost_by.push(agent);
        }
        is_gone
    }

    /// The agent ends. It has `objects` buffer objects at `base` registered, perhaps none any more. What it held there has been
    /// abandoned before.
    pub fn end(&self, store: &WaiterListStore, agent: AgentId, base: usize, objects: usize) {
        let mut memories = lock(&self.by_base);
        let Some(memory) = memories.get_mut(&base) else { return };
        memory.forget_loss(agent);
        memory.objects -= objects;
        if memory.objects == 0 && !store.any_abandoned_in(&memory.addresses(base)) {
            self.labels.forget(&memory.addresses(base));
            memories.remove(&base);
        }
    }
}
