//! A process: its queue, its agents, and the memory of both.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

use super::elsewhere::Elsewhere;
use super::registry::{Known, Registry};
use super::robust_list::Held;
use crate::clock::{Timestamp, now};
use crate::lock::names::Names;
use crate::lock::tracked_buffers::{FindFreed, TrackedBuffers};
use crate::lock::wait_for_graph::WaitForGraph;
use crate::lock::{Hold, WaiterListStore};
use crate::queue::Location;
use crate::sync::lock;

/// How many of the threads that died lately are remembered.
const MOST_DEAD: usize = 256;

/// The state that the threads of a process share.
pub struct Process {
    pub store: WaiterListStore,
    pub tracked_buffers: TrackedBuffers,
    pub names: Names,
    pub registry: Registry,
    /// The holders that sleep without a timeout.
    pub graph: WaitForGraph,
    /// The threads that died holding a lock, the latest first: the lock, and their `threadId`.
    dead: Mutex<VecDeque<(Location, u32)>>,
    /// The waits for locks of other processes.
    pub elsewhere: Elsewhere,
    /// After how long a wait is reported, if waits are.
    pub stall_after: Option<Duration>,
}

impl Process {
    /// Makes one without agents. `find_freed`: as of [`TrackedBuffers::new`].
    ///
    /// The queue has 256 buckets: two threads that share nothing rarely meet, and reading the earliest deadlines of all
    /// of them takes less than a microsecond.
    pub fn new(find_freed: FindFreed, stall_after: Option<Duration>) -> Self {
        Self {
            store: WaiterListStore::new(256, now),
            tracked_buffers: TrackedBuffers::new(find_freed),
            names: Names::default(),
            registry: Registry::default(),
            graph: WaitForGraph::default(),
            dead: Mutex::default(),
            elsewhere: Elsewhere::default(),
            stall_after,
        }
    }

    /// Returns since when at least a hold lasts, if that is known. `in_line`: the answer of its word's line.
    ///
    /// A free lock is taken in JavaScript, which notes no time, unless stalls are reported. So without claims for it
    /// nothing is known.
    pub fn held_since(&self, agent: &Known, held: &Held, in_line: Option<Timestamp>) -> Option<Timestamp> {
        if let Some(taken) = agent.taken.get(held.serial) {
            return Some(taken.since);
        }
        // A thread that is releasing may have freed the word already, and the line hears of that later.
        let is_freed = || self.registry.thread_of(|agent| agent.robust_list.is_releasing(held.location)).is_some();
        in_line.filter(|_| !is_freed())
    }

    /// Notes the `threadId` of a thread that ends as a holder: those who see the death can ask for it.
    pub fn note_dead(&self, location: Location, hold: Hold, thread_id: u32) {
        if hold.is_exclusive() {
            let mut dead = lock(&self.dead);
            dead.truncate(MOST_DEAD - 1);
            dead.push_front((location, thread_id));
        }
    }

    /// Returns the `threadId` of the last dead holder, unless forgotten.
    pub fn last_dead(&self, location: Location) -> Option<u32> {
        lock(&self.dead).iter().find(|&&(at, _)| at == location).map(|&(_, thread_id)| thread_id)
    }
}
