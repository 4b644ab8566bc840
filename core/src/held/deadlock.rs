//! Which threads keep a blocked one waiting: [`crate::lock::wait_for_graph`] has the rules.

use rustc_hash::{FxHashMap, FxHashSet};

use super::registry::{Known, Registered};
use super::state::Process;
use crate::lock::wait_for_graph::{Blocked, Blocker, CycleLink};
use crate::lock::{Hold, Waiter};
use crate::queue::{BlockedThread, Location};
use crate::sync::Arc;

impl Process {
    /// Publishes that the calling thread, a holder, is about to sleep; or returns the cycle that this would close.
    pub fn block(&self, blocked: &Blocked) -> Option<Vec<CycleLink>> {
        // Permits that any thread may give keep nobody waiting; and the holder of a lock within a queue waits for nothing.
        if !blocked.request.waits_for_holders() || !blocked.request.is_visible() {
            return None;
        }
        self.graph.block(blocked, |waits| {
            let holders = Holders::read(self, waits);
            move |blocked: &Blocked| holders.blockers(self, blocked)
        })
    }

    /// Whether a thread holds anything. A grant on its way to a promise counts as held.
    fn holds(&self, thread: &Arc<BlockedThread>) -> bool {
        let is_its = |agent: &Registered| Arc::ptr_eq(&agent.known.blocked_thread, thread);
        let found = self.registry.find(is_its, |agent| (agent.robust_list.count(), Arc::clone(&agent.known.outbox)));
        found.is_some_and(|(entries, outbox)| entries > 0 || outbox.granted() > 0)
    }
}

/// The holds of some threads, at the locations of their waits. A grant on its way to a promise counts as held.
struct Holders {
    known: Vec<Known>,
    held: FxHashMap<Location, Vec<(Arc<BlockedThread>, Hold)>>,
}

impl Holders {
    fn read(process: &Process, waits: &[&Blocked]) -> Self {
        let locations: FxHashSet<_> = waits.iter().map(|wait| wait.location).collect();
        let threads: FxHashSet<_> = waits.iter().map(|wait| Arc::as_ptr(&wait.thread)).collect();
        let waits = |agent: &Known| threads.contains(&Arc::as_ptr(&agent.blocked_thread));
        let (known, in_lists) = process.registry.held(waits, |location| locations.contains(&location));
        let in_lists = in_lists.into_iter().map(|(agent, held)| (&known[agent], (held.location, held.hold)));
        let grants = known.iter().flat_map(|agent| {
            let owned = agent.grants().into_iter().filter(|(_, request)| request.is_owned());
            owned.map(move |(location, request)| (agent, (location, request.hold())))
        });
        let mut held: FxHashMap<_, Vec<(Arc<BlockedThread>, Hold)>> = FxHashMap::default();
        for (agent, (location, hold)) in in_lists.chain(grants) {
            let (thread, here) = (&agent.blocked_thread, held.entry(location).or_default());
            // Mostly a thread's entries follow one another.
            let before = here.last_mut().filter(|(other, _)| Arc::ptr_eq(other, thread));
            match before.map(|(_, before)| (before.and(hold), before)) {
                Some((Some(both), before)) => *before = both,
                _ => here.push((Arc::clone(thread), hold)),
            }
        }
        Self { known, held }
    }

    /// Returns which threads keep a blocked one waiting.
    fn blockers(&self, process: &Process, blocked: &Blocked) -> Vec<Blocker> {
        let held = self.held.get(&blocked.location).map_or(&[][..], Vec::as_slice);
        let thread_of = |waiter: &Waiter| {
            let agent = self.known.iter().find(|agent| agent.is(waiter))?;
            Some(Arc::clone(&agent.blocked_thread))
        };
        process.store.blockers(blocked, held, thread_of, |thread| process.holds(thread))
    }
}
