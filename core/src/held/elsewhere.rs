//! Waits for locks that other processes have: who keeps a thread of this one waiting.
//!
//! Meanwhile the thread has the named lock in front, for which the others of this process wait. So a snapshot's hold of
//! that name says for whom its thread waits. `lib/processes/long-wait.js` tells it, of waits that last.

use std::sync::{Arc, Mutex};

use rustc_hash::FxHashMap;

use crate::sync::lock;

type ByWait = FxHashMap<(u32, Box<[u16]>), Arc<str>>;

/// Holders, by the waiting thread and the name in front.
#[derive(Default)]
pub struct Elsewhere(Mutex<ByWait>);

impl Elsewhere {
    /// Notes who has the lock for which a thread waits. `None`: the wait is over. `name`: of the lock in front.
    pub fn note(&self, thread_id: u32, name: &[u16], holder: Option<String>) {
        let key = (thread_id, name.into());
        let holders = &mut *lock(&self.0);
        match holder {
            Some(holder) => _ = holders.insert(key, holder.into()),
            None => _ = holders.remove(&key),
        }
    }

    /// Returns who has the lock for which a thread waits.
    pub fn holder_of(&self, thread_id: u32, name: &[u16]) -> Option<Arc<str>> {
        let holders = lock(&self.0);
        if holders.is_empty() { None } else { holders.get(&(thread_id, name.into())).cloned() }
    }

    /// Returns the name for which a thread waits, and who has it.
    pub fn awaited_by(&self, waiting: u32) -> Option<(Box<[u16]>, Arc<str>)> {
        let holders = lock(&self.0);
        let its = holders.iter().find(|((thread_id, _), _)| *thread_id == waiting);
        its.map(|((_, name), holder)| (name.clone(), Arc::clone(holder)))
    }

    /// Forgets the waits of a thread that has ended.
    pub fn end_thread(&self, ended: u32) {
        lock(&self.0).retain(|&(thread_id, _), _| thread_id != ended);
    }
}
