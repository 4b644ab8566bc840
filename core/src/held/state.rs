//! A process: its queue, its agents, and the memory of both.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustc_hash::{FxHashMap, FxHashSet};

use super::registry::{Known, Registered, Registry};
use super::robust_list::Held;
use crate::clock::{Timestamp, now};
use crate::lock::names::Names;
use crate::lock::tracked_buffers::{FindFreed, TrackedBuffers};
use crate::lock::wait_for_graph::{Blocked, CycleLink, WaitForGraph};
use crate::lock::{Hold, Waiter, WaiterListStore};
use crate::queue::{BlockedThread, Location};
use crate::sync::lock;

/// How many of the threads that died lately are remembered.
const MOST_DEAD: usize = 256;

type Owner = (Arc<BlockedThread>, Hold);
type Elsewhere = FxHashMap<(u32, Box<[u16]>), Arc<str>>;

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
    /// Who has the locks of other processes for which threads wait, by the thread and the lock in front.
    elsewhere: Mutex<Elsewhere>,
    /// After how long a wait is reported, if waits are.
    pub stall_after: Option<Duration>,
}

impl Process {
    /// Makes one without agents. `find_freed`: as of [`TrackedBuffers::new`].
    ///
    /// The queue has 256 buckets: two threads that share nothing rarely meet, and reading the earliest deadlines of all
    /// of them takes less than a microsecond.
    pub fn new(find_freed: FindFreed, stall_after: Option<Duration>) -> Self {
        let (store, tracked_buffers) = (WaiterListStore::new(256, now), TrackedBuffers::new(find_freed));
        let (names, registry, graph, dead, elsewhere) = Default::default();
        Self { store, tracked_buffers, names, registry, graph, dead, elsewhere, stall_after }
    }

    /// Returns since when at least a hold lasts, if that is known. `in_line`: the answer of its word's line.
    ///
    /// A free lock is taken in JavaScript, which notes no time, unless stalls are reported. So without claims for it
    /// nothing is known.
    pub fn held_since(&self, agent: &Known, held: &Held, in_line: Option<Timestamp>) -> Option<Timestamp> {
        if let Some(taken) = agent.notes.taken(held.serial) {
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

    pub fn last_dead(&self, location: Location) -> Option<u32> {
        lock(&self.dead).iter().find(|&&(at, _)| at == location).map(|&(_, thread_id)| thread_id)
    }

    /// Publishes that the calling thread, a holder, is about to sleep; or returns the cycle that this would close.
    pub fn block(&self, blocked: &Blocked) -> Option<Vec<CycleLink>> {
        // Permits that any thread may give keep nobody waiting; and the holder of a lock within a queue waits for nothing.
        if !blocked.request.waits_for_holders() || !blocked.request.is_visible() {
            return None;
        }
        self.graph.block(blocked, |waits| {
            let (known, held) = self.holders(waits);
            move |blocked: &Blocked| {
                let held = held.get(&blocked.location).map_or(&[][..], Vec::as_slice);
                let thread_of = |waiter: &Waiter| {
                    let agent = known.iter().find(|agent| agent.is(waiter))?;
                    Some(Arc::clone(&agent.blocked_thread))
                };
                self.store.blockers(blocked, held, thread_of, |thread| self.holds(thread))
            }
        })
    }

    /// Returns some threads' agents and holds, where they wait. A grant on its way to a promise counts as held.
    fn holders(&self, waits: &[&Blocked]) -> (Vec<Known>, FxHashMap<Location, Vec<Owner>>) {
        let locations: FxHashSet<_> = waits.iter().map(|wait| wait.location).collect();
        let threads: FxHashSet<_> = waits.iter().map(|wait| Arc::as_ptr(&wait.thread)).collect();
        let waits = |agent: &Known| threads.contains(&Arc::as_ptr(&agent.blocked_thread));
        let (known, in_lists) = self.registry.held(waits, |location| locations.contains(&location));
        let in_lists = in_lists.into_iter().map(|(agent, held)| (&known[agent], (held.location, held.hold)));
        let grants = known.iter().flat_map(|agent| {
            let owned = agent.grants().into_iter().filter(|(_, request)| request.is_owned());
            owned.map(move |(location, request)| (agent, (location, request.hold())))
        });
        let mut held: FxHashMap<_, Vec<Owner>> = FxHashMap::default();
        for (agent, (location, hold)) in in_lists.chain(grants) {
            let (thread, here) = (&agent.blocked_thread, held.entry(location).or_default());
            // Mostly a thread's entries follow one another.
            let before = here.last_mut().filter(|(other, _)| Arc::ptr_eq(other, thread));
            match before.map(|(_, before)| (before.and(hold), before)) {
                Some((Some(both), before)) => *before = both,
                _ => here.push((Arc::clone(thread), hold)),
            }
        }
        (known, held)
    }

    /// Whether a thread holds anything. A grant on its way to a promise counts as held.
    fn holds(&self, thread: &Arc<BlockedThread>) -> bool {
        let is_its = |agent: &Registered| Arc::ptr_eq(&agent.known.blocked_thread, thread);
        let found = self.registry.find(is_its, |agent| (agent.robust_list.count(), Arc::clone(&agent.known.outbox)));
        found.is_some_and(|(entries, outbox)| entries > 0 || outbox.granted() > 0)
    }

    /// Notes which process has the lock for which a thread waits. `None`: the wait is over.
    ///
    /// Meanwhile the thread has the named lock in front, for which the others of this process wait. So a snapshot's hold
    /// of that name says for whom its thread waits. `lib/processes/long-wait.js` tells it, of waits that last.
    pub fn waits_elsewhere(&self, thread_id: u32, name: &[u16], holder: Option<String>) {
        let key = (thread_id, name.into());
        let holders = &mut *lock(&self.elsewhere);
        match holder {
            Some(holder) => _ = holders.insert(key, holder.into()),
            None => _ = holders.remove(&key),
        }
    }

    /// Returns for whom a thread waits that has the name in front.
    pub fn holder_elsewhere(&self, thread_id: u32, name: &[u16]) -> Option<Arc<str>> {
        let holders = lock(&self.elsewhere);
        if holders.is_empty() { None } else { holders.get(&(thread_id, name.into())).cloned() }
    }

    /// Returns the name for which a thread waits, and who has it.
    pub fn awaited_elsewhere(&self, waiting: u32) -> Option<(Box<[u16]>, Arc<str>)> {
        let holders = lock(&self.elsewhere);
        let its = holders.iter().find(|((thread_id, _), _)| *thread_id == waiting);
        its.map(|((_, name), holder)| (name.clone(), Arc::clone(holder)))
    }

    pub fn end_waits_elsewhere(&self, ended: u32) {
        lock(&self.elsewhere).retain(|&(thread_id, _), _| thread_id != ended);
    }
}
