//! Which threads keep a blocked one waiting: [`crate::lock::wait_for_graph`] has the rules.

use rustc_hash::{FxHashMap, FxHashSet};

use super::process::Process;
use super::registry::{Known, Registered};
use super::robust_table::Held;
use crate::lock::Hold;
use crate::lock::wait_for_graph::{Blocked, CycleLink, Keeper, Obstacle, beside_own, is_kept_by, up_to_one_for_all};
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
            move |blocked: &Blocked| holders.keepers(self, blocked)
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
    held: FxHashMap<Location, Vec<(usize, Hold)>>,
}

impl Holders {
    fn read(process: &Process, waits: &[&Blocked]) -> Self {
        let locations: FxHashSet<_> = waits.iter().map(|wait| wait.location).collect();
        let threads: FxHashSet<_> = waits.iter().map(|wait| Arc::as_ptr(&wait.thread)).collect();
        let waits = |agent: &Known| threads.contains(&Arc::as_ptr(&agent.blocked_thread));
        let (known, in_lists) = process.registry.held(waits, |location| locations.contains(&location));
        let in_lists = in_lists.into_iter().map(|(agent, Held { location, hold, .. })| (agent, (location, hold)));
        let grants = known.iter().enumerate().flat_map(|(agent, each)| {
            let owned = each.outbox.grants().into_iter().filter(|(_, request)| request.is_owned());
            owned.map(move |(location, request)| (agent, (location, request.hold())))
        });
        let mut held: FxHashMap<_, Vec<(usize, Hold)>> = FxHashMap::default();
        for (agent, (location, hold)) in in_lists.chain(grants) {
            let here = held.entry(location).or_default();
            // Mostly a thread's entries follow one another.
            match here.last_mut().filter(|(other, _)| *other == agent).map(|(_, before)| (before.and(hold), before)) {
                Some((Some(both), before)) => *before = both,
                _ => here.push((agent, hold)),
            }
        }
        Self { known, held }
    }

    /// Returns which threads keep a blocked one waiting.
    fn keepers(&self, process: &Process, blocked: &Blocked) -> Vec<Keeper> {
        let &Blocked { location, request, .. } = blocked;
        let keepers = process.store.while_waiting(blocked, |granted, ahead, is_left| {
            let held = self.held.get(&location).into_iter().flatten();
            let held = held.map(|&(agent, held)| (&self.known[agent], held));
            let is_own = |agent: &Known| Arc::ptr_eq(&agent.blocked_thread, &blocked.thread);
            let own = held.clone().filter(|(agent, _)| is_own(agent)).map(|(_, own)| own);
            let beside_own = beside_own(request, own);
            let granted = self.known.iter().filter(|agent| granted.is_some_and(|waiter| agent.is(waiter)));
            let all = held.chain(granted.map(|agent| (agent, Hold::Lock)));
            let wanted = |agent| if is_own(agent) { request } else { beside_own };
            let holders = all.filter(|&(agent, held)| is_kept_by(wanted(agent), held) && is_left(held));
            let holders = holders.map(|(agent, held)| Keeper {
                thread: Arc::clone(&agent.blocked_thread),
                obstacle: Obstacle::Holds(held),
                holds: true,
                claim: None,
            });
            let ahead = ahead.map(|claim| Keeper {
                thread: Arc::clone(&claim.thread),
                obstacle: Obstacle::IsAhead(claim.request),
                holds: process.holds(&claim.thread),
                claim: Some(claim),
            });
            holders.chain(up_to_one_for_all(ahead)).collect()
        });
        keepers.unwrap_or_default()
    }
}
