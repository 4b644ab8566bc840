//! The wait-for graph of the threads of this process: [`waitasync_core::lock::wait_for_graph`] has the rules.

use std::fmt::Write;
use std::sync::{Arc, LazyLock};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::held::{Held, held_since};
use crate::observe::json;
use crate::observe::sentences::{link_rows, ring_sentence};
use crate::observe::snapshot::{Entries, write_link};
use crate::observe::stacks::NONE;
use crate::observe::survey::{Entry, JUST_BEGUN, entry};
use crate::process::{Known, REGISTRY, Registered, STORE};
use waitasync_core::clock::{Timestamp, now};
use waitasync_core::lock::Request;
use waitasync_core::lock::wait_for_graph::{
    Blocked, CycleLink, Keeper, Obstacle, WaitForGraph, beside_own, is_kept_by, up_to_one_for_all,
};
use waitasync_core::queue::{BlockedThread, Location};

pub(crate) static GRAPH: LazyLock<WaitForGraph> = LazyLock::new(WaitForGraph::default);

/// Publishes that the calling thread, a holder, is about to sleep; or returns the cycle that this would close, as JSON
/// for `cycleOf` in `lib/locks/observe/entries.js`.
pub(crate) fn block(blocked: &Blocked) -> Option<String> {
    // Permits that any thread may give keep nobody waiting; and the holder of a lock within a queue waits for nothing.
    if !blocked.request.waits_for_holders() || !blocked.request.is_visible() {
        return None;
    }
    let cycle = GRAPH.block(blocked, |waits| {
        let holders = Holders::read(waits);
        move |blocked: &Blocked| holders.keepers(blocked)
    });
    cycle.map(|links| described(&links))
}

/// Whether a thread holds anything. A grant on its way to a promise counts as held.
fn holds(thread: &Arc<BlockedThread>) -> bool {
    let is_its = |agent: &Registered| Arc::ptr_eq(&agent.known.blocked_thread, thread);
    let found = REGISTRY.find(is_its, |agent| (agent.robust_list.len(), Arc::clone(&agent.known.outbox)));
    found.is_some_and(|(entries, outbox)| entries > 0 || outbox.granted() > 0)
}

/// The holds of some threads, at the locations of their waits. A grant on its way to a promise counts as held.
struct Holders {
    known: Vec<Known>,
    held: FxHashMap<Location, Vec<(usize, Request)>>,
}

impl Holders {
    fn read(waits: &[&Blocked]) -> Self {
        let locations: FxHashSet<_> = waits.iter().map(|wait| wait.location).collect();
        let threads: FxHashSet<_> = waits.iter().map(|wait| Arc::as_ptr(&wait.thread)).collect();
        let waits = |agent: &Known| threads.contains(&Arc::as_ptr(&agent.blocked_thread));
        let (known, in_lists) = REGISTRY.held(waits, |location| locations.contains(&location));
        let in_lists = in_lists.into_iter().map(|(agent, Held { location, request, .. })| (agent, (location, request)));
        let grants = known.iter().enumerate();
        let grants = grants.flat_map(|(agent, each)| each.outbox.grants().into_iter().map(move |grant| (agent, grant)));
        let mut held: FxHashMap<_, Vec<(usize, Request)>> = FxHashMap::default();
        for (agent, (location, request)) in in_lists.chain(grants) {
            let here = held.entry(location).or_default();
            // Mostly a thread's entries follow one another.
            match here.last_mut().filter(|(other, _)| *other == agent).map(|(_, before)| (before.and(request), before))
            {
                Some((Some(both), before)) => *before = both,
                _ => here.push((agent, request)),
            }
        }
        Self { known, held }
    }

    /// Returns which threads keep a blocked one waiting.
    fn keepers(&self, blocked: &Blocked) -> Vec<Keeper> {
        let &Blocked { location, request, .. } = blocked;
        let keepers = STORE.while_waiting(blocked, |granted, ahead, is_left| {
            let held = self.held.get(&location).into_iter().flatten();
            let held = held.map(|&(agent, held)| (&self.known[agent], held));
            let is_own = |agent: &Known| Arc::ptr_eq(&agent.blocked_thread, &blocked.thread);
            let own = held.clone().filter(|(agent, _)| is_own(agent)).map(|(_, own)| own);
            let beside_own = beside_own(request, own);
            let granted = self.known.iter().filter(|agent| granted.is_some_and(|waiter| agent.is(waiter)));
            let all = held.chain(granted.map(|agent| (agent, Request::Lock)));
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
                holds: holds(&claim.thread),
                claim: Some(claim),
            });
            holders.chain(up_to_one_for_all(ahead)).collect()
        });
        keepers.unwrap_or_default()
    }
}

/// Describes a cycle: its text, and of each link the hold, whether that is only a place ahead in the line, and the
/// wait.
fn described(links: &[CycleLink]) -> String {
    let is_linked = |agent: &Known| links.iter().any(|link| Arc::ptr_eq(&link.blocked.thread, &agent.blocked_thread));
    let (known, held) = REGISTRY.held(is_linked, |location| links.iter().any(|link| link.blocked.location == location));
    let now = now();
    let link = |(CycleLink { blocked, obstacle }, before): (&CycleLink, &CycleLink)| {
        let wanted = before.blocked.location;
        let index = known.iter().position(|agent| Arc::ptr_eq(&agent.blocked_thread, &blocked.thread))?;
        let agent = &known[index];
        // A thread whose claim has joined the line may not sleep yet.
        let sleep = agent.notes.sleep();
        let (since, call) = (sleep.map(|sleep| sleep.since).or(JUST_BEGUN), sleep.map_or(NONE, |sleep| sleep.call));
        let entry = |location, request, since| Entry { blocked: true, ..entry(agent, location, request, since) };
        let holds = match *obstacle {
            Obstacle::Holds(request) => {
                let is_it = |&&(holder, held): &&(usize, Held)| holder == index && held.location == wanted;
                let held = held.iter().find(is_it).map(|(_, held)| held);
                let since = held.and_then(|held| held_since(agent, held, STORE.held_since(wanted)));
                let taken = held.and_then(|held| agent.taken.get(held.serial));
                entry(wanted, request, since.or(JUST_BEGUN)).with_taken(taken)
            }
            Obstacle::IsAhead(request) => Entry { call, ..entry(wanted, request, since) },
        };
        let waits_for = Entry { call, ..entry(blocked.location, blocked.request, since) };
        Some((holds.named()?, matches!(obstacle, Obstacle::IsAhead(_)), waits_for.named()?))
    };
    // A thread has the lock or place that the one before it in the cycle waits for.
    let before = links.last().into_iter().chain(links);
    let links: Vec<_> = links.iter().zip(before).filter_map(link).collect();
    let links: Vec<Entries<'_>> = links.iter().map(|(has, is_ahead, waits_for)| (has, *is_ahead, waits_for)).collect();
    // Without its links if a string of JavaScript could not hold their names.
    written(&links, &links, now).or_else(|| written(&links, &[], now)).unwrap_or_default()
}

/// Writes a cycle for `cycleOf` in `lib/locks/observe/entries.js`.
fn written(all: &[Entries<'_>], links: &[Entries<'_>], now: Timestamp) -> Option<String> {
    let rows = all.iter().map(|&link| (link_rows(now, link), link.1));
    let sentence = ring_sentence(&rows.collect::<Vec<_>>());
    json::text(|text| {
        text.write_str("{\"text\":")?;
        json::string(text, sentence.encode_utf16())?;
        text.write_str(",\"links\":")?;
        json::array(text, links, |text, &link| write_link(text, link, now))?;
        text.write_char('}')
    })
}
