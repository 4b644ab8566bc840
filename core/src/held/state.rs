//! A process: its queue, its agents, and the memory of both.

use std::time::Duration;

use super::elsewhere::Elsewhere;
use super::holders::Holders;
use super::registry::{Known, Registry};
use super::robust_list::Held;
use crate::clock::{Timestamp, now};
use crate::lock::WaiterListStore;
use crate::lock::names::Names;
use crate::lock::tracked_buffers::{FindFreed, TrackedBuffers};
use crate::lock::wait_for_graph::WaitForGraph;

/// The state that the threads of a process share.
pub struct Process {
    pub store: WaiterListStore,
    pub tracked_buffers: TrackedBuffers,
    pub names: Names,
    pub registry: Registry,
    /// The holders that sleep without a timeout.
    pub graph: WaitForGraph,
    pub holders: Holders,
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
            holders: Holders::default(),
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
}
