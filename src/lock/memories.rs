//! The memories in which threads of this process have made locks, as far as their buffer objects say whether they still exist.
//!
//! Why: which locks were abandoned is remembered by their addresses (`store`), and has to be forgotten when their memory is given
//! back, or the next lock at such an address would be said to have had a holder that died. Node-API does not tell when that is.
//! But JavaScript can tell when a `SharedArrayBuffer` object has been collected; a memory may have several of those, in
//! several threads.
//!
//! # When a memory is taken for gone
//! - The last object of it that is known here has been collected.
//! - Or a thread makes a lock on a new object at its address while no other object is known, and an earlier object of that thread at
//!   this address has been collected. (The memory of that one was kept by other threads then, which have ended since.)
//!
//! The end of a thread says nothing: its objects go, but the memory may be kept by a thread that has made no lock in it yet, and
//! that hands it to another worker, which is to be told of the death.

use std::collections::HashMap;
use std::ops::Range;

use rustc_hash::FxBuildHasher;

use super::policy::WaiterListStore;
use crate::sync::{Mutex, lock};

/// All memories of a process, by the addresses at which they begin. Any thread may call any method.
///
/// Its lock is taken before that of a bucket: so nothing can be abandoned anew in a memory between the decision that it is gone and
/// the forgetting by a thread that has registered it meanwhile.
#[derive(Debug, Default)]
pub struct Memories(Mutex<HashMap<usize, Memory, FxBuildHasher>>);

#[derive(Debug, Default)]
struct Memory {
    /// Bytes.
    length: usize,
    /// How many buffer objects of it are known, in all threads.
    objects: usize,
    /// The agents of which one has been collected while others were known.
    lost_by: Vec<AgentId>,
}

impl Memory {
    fn addresses(&self, base: usize) -> Range<usize> {
        base..base.saturating_add(self.length)
    }

    /// No longer counts the agent among those that have lost an object. Whether it was.
    fn forgive(&mut self, agent: AgentId) -> bool {
        let place = self.lost_by.iter().position(|&other| other == agent);
        place.map(|place| self.lost_by.swap_remove(place)).is_some()
    }
}

/// Tells an agent from all others that exist.
pub type AgentId = usize;

impl Memories {
    /// The agent makes a lock on a buffer object of `length` bytes at `base` for the first time.
    pub fn register(&self, store: &WaiterListStore, agent: AgentId, base: usize, length: usize) {
        let mut memories = lock(&self.0);
        let memory = memories.entry(base).or_default();
        if memory.forgive(agent) && memory.objects == 0 {
            store.forget_abandoned(&memory.addresses(base));
            *memory = Memory::default();
        }
        memory.objects += 1;
        memory.length = memory.length.max(length);
    }

    /// A buffer object that the agent had registered has been collected. Whether the memory is gone with it.
    pub fn lose(&self, store: &WaiterListStore, agent: AgentId, base: usize) -> bool {
        let mut memories = lock(&self.0);
        let Some(memory) = memories.get_mut(&base) else { return true };
        memory.objects -= 1;
        let is_gone = memory.objects == 0;
        if is_gone {
            store.forget_abandoned(&memory.addresses(base));
            memories.remove(&base);
        } else if !memory.lost_by.contains(&agent) {
            memory.lost_by.push(agent);
        }
        is_gone
    }

    /// The agent ends, of which so many buffer objects at `base` are registered, be it none any more. What it held there has been
    /// abandoned before.
    pub fn end(&self, store: &WaiterListStore, agent: AgentId, base: usize, objects: usize) {
        let mut memories = lock(&self.0);
        let Some(memory) = memories.get_mut(&base) else { return };
        memory.forgive(agent);
        memory.objects -= objects;
        if memory.objects == 0 && !store.any_abandoned_in(&memory.addresses(base)) {
            memories.remove(&base);
        }
    }
}
