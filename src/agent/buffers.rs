//! The buffer objects on which a thread has made locks: notes of deaths in a memory end with that memory.

use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::sync::Arc;

use crate::globals::PROCESS;
use waitasync_core::lock::tracked_buffers::{AgentId, Ended, Left};
use waitasync_core::sync::contained;

thread_local! {
    /// Used where an agent of this thread has left memory with abandoned locks, of which no object is known.
    static LAST_LOOK: LastLook = const { LastLook };
}

struct LastLook;

impl Drop for LastLook {
    /// Looks for freed memories as the thread ends: the memory that only its environment had has been freed.
    fn drop(&mut self) {
        contained(|| PROCESS.tracked_buffers.look(&PROCESS.store));
    }
}

#[derive(Default)]
pub(crate) struct Buffers {
    /// Their numbers, by memory. 0 where all were collected while other agents had some of the same memory.
    by_memory: RefCell<FxHashMap<usize, usize>>,
}

impl Buffers {
    pub(crate) fn register(&self, agent: AgentId, base: usize, length: usize) {
        *self.by_memory.borrow_mut().entry(base).or_default() += 1;
        PROCESS.tracked_buffers.register(&PROCESS.store, agent, base, length);
    }

    /// Notes that objects of the memory at `base` have been collected. Returns whether the memories is to look for that
    /// memory once it may have been freed.
    pub(crate) fn lose(&self, agent: AgentId, base: usize, lost: usize) -> bool {
        let mut memories = self.by_memory.borrow_mut();
        let Some(objects) = memories.get_mut(&base) else { return false };
        let lost = lost.min(*objects);
        if lost == 0 {
            return false;
        }
        *objects -= lost;
        let were_last = *objects == 0;
        let left = PROCESS.tracked_buffers.lose(&PROCESS.store, agent, base, lost);
        // Otherwise the memories remembers until this agent's end that it has lost one.
        if left == Left::Nothing && were_last {
            memories.remove(&base);
        }
        left == Left::Unknown
    }

    /// Gives up all of them: the agent ends.
    pub(crate) fn end(&self, agent: AgentId, ended: Ended) {
        let ended = Arc::new(ended);
        for (base, objects) in self.by_memory.take() {
            contained(|| {
                if PROCESS.tracked_buffers.end(&PROCESS.store, agent, base, objects, &ended) == Left::Unknown {
                    // A thread that is being destroyed does not look any more.
                    let _ = LAST_LOOK.try_with(|_| {});
                }
            });
        }
    }
}
