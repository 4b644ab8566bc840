//! The wait-for graph of the threads of this process: [`crate::lock::deadlock`] has the rules.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, LazyLock};

use rustc_hash::FxBuildHasher;

use crate::clock::now;
use crate::lock::deadlock::{Blocked, Keeper, Link, Obstacle, WaitForGraph, is_kept_by};
use crate::lock::request::Request;
use crate::node::holders::sighted;
use crate::node::json;
use crate::node::process::STORE;
use crate::node::registry::{Known, REGISTRY};
use crate::node::robust_table::Held;
use crate::node::snapshot::{JUST_BEGUN, entry};
use crate::queue::location::Location;
use crate::queue::parker::BlockedThread;

static GRAPH: LazyLock<WaitForGraph> = LazyLock::new(WaitForGraph::default);

/// Publishes a thread, the calling one, that holds something and is about to sleep; or returns the cycle that this would close, as JSON
/// for `cycleOf` in `lib/locks/held/request.js`.
pub(super) fn block(blocked: &Blocked) -> Option<String> {
    // What any thread may give keeps nobody waiting.
    if !is_kept_by(blocked.request, Request::Exclusive) {
        return None;
    }
    let cycle = GRAPH.block(blocked, |locations| {
        let holders = Holders::read(|location| locations.contains(&location));
        move |blocked: &Blocked| holders.keepers(blocked)
    });
    cycle.map(|links| described(&links))
}

/// A thread that was published, the calling one, is about to go on.
pub(super) fn leave(thread: &Arc<BlockedThread>) {
    GRAPH.leave(thread);
}

/// Who holds what, at some locations. What is on its way to a promise counts as held.
struct Holders {
    known: Vec<Known>,
    /// The numbers of the agents that hold anything, anywhere.
    all: HashSet<u64, FxBuildHasher>,
    held: HashMap<Location, Vec<(usize, Request)>, FxBuildHasher>,
}

impl Holders {
    fn read(concerns: impl Fn(Location) -> bool) -> Self {
        let (known, in_lists) = REGISTRY.held(&concerns);
        let mut all = REGISTRY.holding();
        let mut held: HashMap<_, Vec<_>, _> = HashMap::default();
        for (agent, Held { location, request, .. }) in in_lists {
            held.entry(location).or_default().push((agent, request));
        }
        for (agent, each) in known.iter().enumerate() {
            for (location, request) in each.outbox.grants() {
                all.insert(each.number);
                if concerns(location) {
                    held.entry(location).or_default().push((agent, request));
                }
            }
        }
        Self { known, all, held }
    }

    /// Whether a thread holds anything.
    fn holds(&self, thread: &Arc<BlockedThread>) -> bool {
        let agent = self.known.iter().find(|agent| Arc::ptr_eq(&agent.blocked_thread, thread));
        agent.is_some_and(|agent| self.all.contains(&agent.number))
    }

    /// Which threads keep a blocked one waiting.
    fn keepers(&self, blocked: &Blocked) -> Vec<Keeper> {
        let &Blocked { location, request, .. } = blocked;
        let keepers = STORE.while_waiting(blocked, |granted, ahead, is_left| {
            let held = self.held.get(&location).into_iter().flatten();
            let held = held.map(|&(agent, held)| (&self.known[agent], held));
            let granted = self.known.iter().filter(|agent| granted.is_some_and(|waiter| agent.is(waiter)));
            let all = held.chain(granted.map(|agent| (agent, Request::Lock)));
            let holders = all.filter(|&(_, held)| is_kept_by(request, held) && is_left(held));
            let holders = holders.map(|(agent, held)| Keeper {
                thread: Arc::clone(&agent.blocked_thread),
                obstacle: Obstacle::Holds(held),
                holds: true,
                claim: None,
            });
            let ahead = ahead.map(|claim| Keeper {
                thread: Arc::clone(&claim.thread),
                obstacle: Obstacle::IsAhead(claim.request),
                holds: self.holds(&claim.thread),
                claim: Some(claim),
            });
            holders.chain(ahead).collect()
        });
        keepers.unwrap_or_default()
    }
}

/// The links of a cycle, each with what its thread holds and what it waits for: pairs of entries.
fn described(links: &[Link]) -> String {
    let (known, held) = REGISTRY.held(|location| links.iter().any(|link| link.blocked.location == location));
    let now = now();
    let pair = |(Link { blocked, obstacle }, before): (&Link, &Link)| {
        let wanted = before.blocked.location;
        let index = known.iter().position(|agent| Arc::ptr_eq(&agent.blocked_thread, &blocked.thread))?;
        let agent = &known[index];
        let since = agent.notes.sleep().map(|sleep| sleep.since);
        let holds = match *obstacle {
            Obstacle::Holds(request) => {
                let is_it = |&&(holder, held): &&(usize, Held)| holder == index && held.location == wanted;
                let held = held.iter().find(is_it).and_then(|(_, held)| sighted(agent, held));
                entry(agent, wanted, request, held.or(JUST_BEGUN))
            }
            Obstacle::IsAhead(request) => entry(agent, wanted, request, since),
        };
        let waits_for = entry(agent, blocked.location, blocked.request, since);
        Some((holds.named()?, waits_for.named()?))
    };
    // What a thread has is what the one before it in the cycle waits for.
    let before = links.last().into_iter().chain(links);
    let written = json::text(|text| {
        json::array(text, links.iter().zip(before).filter_map(pair), |text, (holds, waits_for)| {
            json::array(text, [holds, waits_for], |text, entry| entry.write(text, now))
        })
    });
    // Their names are too long: the cycle is reported without its threads.
    written.unwrap_or_else(|| "[]".to_owned())
}
