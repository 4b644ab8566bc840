//! Cycles: threads that wait for one another, among the holds and waits of one moment.
//!
//! The rules are those of [`super::wait_for_graph`]. But here promises count, and claims that have a timeout; and of
//! those ahead in its line a claim waits for the nearest that keeps it waiting, which stands for the others. A blocked
//! thread waits only for the word that it blocks for: its promises cannot go on before. Any other thread waits for the
//! words that each of its promises waits for, except for its own holds: another task of it may release those. But the
//! hold of a callback waits only for the claims that were made within that: without any it is no link of a cycle.
//! Cycles of such holds and of blocked threads alone are found by [`super::task_cycles`].
//!
//! Each thread that is on a cycle is on one of those that are returned, and none is returned twice: cycles of blocked
//! threads come first, then those through tasks, and a cycle is looked for only through a thread that is on no earlier
//! one of several threads. So there are no more of these cycles than threads, and the work is that of one breadth-first
//! search for each thread that both holds and waits.

use std::collections::HashSet;
use std::collections::hash_map::Entry::{Occupied, Vacant};
use std::hash::Hash;

use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use super::cycle::{Edge, Graph, Turns};
pub use super::cycle::{Has, Link, SeenHold, SeenWait};
use super::task_cycles::task_cycles;
use super::wait_for_graph::{beside_own, is_kept_by};
use super::{Hold, Mode, Request};
use crate::queue::Location;

/// A node: a thread; a callback's hold; a claim, ahead in a line or of a callback, which waits for its own request,
/// whatever else its thread waits for; the callbacks' holds of a word that keep a request waiting; or a place in the
/// line for permits: the claims behind it wait for that claim, and for those ahead of that.
struct ThreadGraph<'a> {
    held: &'a [SeenHold],
    waiting: &'a [SeenWait],
    graph: Graph,
    /// By node, whether its thread is blocked; true of places.
    blocked: Vec<bool>,
    /// The nodes of the threads that hold something, but for callbacks' holds.
    threads: FxHashMap<u32, usize>,
    /// The nodes of callbacks' holds within which claims were made.
    tasks: FxHashMap<usize, usize>,
    /// The nodes of claims ahead in a line.
    claims: FxHashMap<usize, usize>,
    /// The threads' holds of a word: the first entry of each thread, and the sum of its holds.
    holders: FxHashMap<Location, Vec<(usize, Hold)>>,
    /// The callbacks' holds of a word that have nodes.
    of_tasks: FxHashMap<Location, Vec<usize>>,
    /// The nodes of those of them that keep a request of such an extent waiting.
    parts: FxHashMap<(Location, Extent), usize>,
    /// The nodes of places in lines for permits, by their claims.
    places: FxHashMap<usize, usize>,
}

impl<'a> ThreadGraph<'a> {
    fn new(held: &'a [SeenHold], waiting: &'a [SeenWait], within: &[(usize, usize)]) -> Self {
        let (graph, blocked, threads, tasks, claims) = Default::default();
        let (holders, of_tasks, parts, places) = Default::default();
        let mut graph =
            Self { held, waiting, graph, blocked, threads, tasks, claims, holders, of_tasks, parts, places };
        let blocking: FxHashSet<_> = waiting.iter().filter(|claim| claim.blocked).map(|claim| claim.thread).collect();
        graph.add_threads(&blocking);
        let within: Vec<_> = within.iter().filter(|&&(_, hold)| is_of_task(&held[hold], &blocking)).copied().collect();
        graph.add_tasks(&within);
        graph.add_edges(&within);
        graph
    }

    fn add_node(&mut self, blocked: bool) -> usize {
        self.blocked.push(blocked);
        self.graph.add_node()
    }

    fn add_edge(&mut self, from: usize, waits_for: Option<usize>, has: Option<Has>, to: usize) {
        self.graph.edges[from].push(Edge { waits_for, has, to });
    }

    fn add_threads(&mut self, blocking: &FxHashSet<u32>) {
        let mut sums: FxHashMap<(Location, u32), usize> = FxHashMap::default();
        for (index, hold) in self.held.iter().enumerate().filter(|(_, hold)| !is_of_task(hold, blocking)) {
            if !self.threads.contains_key(&hold.thread) {
                let node = self.add_node(blocking.contains(&hold.thread));
                self.threads.insert(hold.thread, node);
            }
            let list = self.holders.entry(hold.location).or_default();
            match sums.entry((hold.location, hold.thread)) {
                Occupied(place) => {
                    let (_, all) = &mut list[*place.get()];
                    *all = all.and(hold.hold).unwrap_or(*all);
                }
                Vacant(place) => {
                    place.insert(list.len());
                    list.push((index, hold.hold));
                }
            }
        }
    }

    fn add_tasks(&mut self, within: &[(usize, usize)]) {
        for &(_, hold) in within {
            if !self.tasks.contains_key(&hold) {
                let node = self.add_node(false);
                self.tasks.insert(hold, node);
                self.of_tasks.entry(self.held[hold].location).or_default().push(hold);
            }
        }
    }

    fn add_edges(&mut self, within: &[(usize, usize)]) {
        let mut holds: FxHashMap<usize, Vec<usize>> = FxHashMap::default();
        for &(claim, hold) in within {
            holds.entry(claim).or_default().push(hold);
        }
        let mut turns = Turns::default();
        // Further claims of a thread that request the same wait for the same holders.
        let mut seen = FxHashSet::default();
        for (index, claim) in self.waiting.iter().enumerate() {
            let Some(request) = claim.wanted() else { continue };
            let is_for_permits = request.mode().is_none();
            let ahead = turns.next(self.waiting, index, |thread| is_for_permits || thread != claim.thread);
            if is_for_permits {
                self.add_place(index, ahead);
            }
            self.add_claim_of_tasks(index, ahead.filter(|_| !is_for_permits), holds.get(&index));
            // No thread waits for a thread that holds nothing.
            let Some(&node) = self.threads.get(&claim.thread) else { continue };
            if self.blocked[node] != claim.blocked {
                continue;
            }
            if seen.insert((claim.thread, extent(request), claim.location)) {
                self.add_holders(node, index);
            }
            self.add_ahead(node, index, ahead);
        }
    }

    /// Adds a claim that was made within callbacks: their holds wait.
    fn add_claim_of_tasks(&mut self, index: usize, ahead: Option<usize>, holds: Option<&Vec<usize>>) {
        let Some(holds) = holds else { return };
        let claim = self.claim_node(index);
        self.add_ahead(claim, index, ahead);
        for hold in holds {
            self.add_edge(self.tasks[hold], None, None, claim);
        }
    }

    /// Adds a place in a line for permits, and its claim. It waits behind the place of the claim ahead.
    fn add_place(&mut self, index: usize, ahead: Option<usize>) {
        let (claim, place) = (self.claim_node(index), self.add_node(true));
        self.add_edge(place, None, Some(Has::Awaited(index)), claim);
        if let Some(ahead) = ahead {
            self.add_edge(place, None, None, self.places[&ahead]);
        }
        self.add_ahead(claim, index, ahead);
        self.places.insert(index, place);
    }

    fn add_ahead(&mut self, node: usize, index: usize, ahead: Option<usize>) {
        let Some(ahead) = ahead else { return };
        let (has, to) = match self.places.get(&ahead) {
            Some(&place) => (None, place),
            None => (Some(Has::Awaited(ahead)), self.claim_node(ahead)),
        };
        self.add_edge(node, Some(index), has, to);
    }

    fn add_holders(&mut self, node: usize, index: usize) {
        let claim = self.waiting[index];
        let Some(request) = claim.wanted() else { return };
        let holders = self.holders.get(&claim.location).map_or(&[][..], Vec::as_slice);
        let is_own = |hold: usize| self.held[hold].thread == claim.thread;
        let own = holders.iter().filter(|(hold, _)| claim.blocked && is_own(*hold)).map(|&(_, own)| own);
        let request = beside_own(request, own);
        for &(hold, all) in holders {
            if !is_own(hold) && is_kept_by(request, all) {
                let to = self.threads[&self.held[hold].thread];
                self.graph.edges[node].push(Edge { waits_for: Some(index), has: Some(Has::Held(hold)), to });
            }
        }
        if let Some(part) = self.part(claim.location, request) {
            self.add_edge(node, Some(index), None, part);
        }
    }

    /// Returns the node of the callbacks' holds that a request waits for.
    fn part(&mut self, location: Location, request: Request) -> Option<usize> {
        let holds = self.of_tasks.get(&location)?;
        let key = (location, extent(request));
        if !self.parts.contains_key(&key) {
            let holds = holds.clone();
            let node = self.add_node(true);
            self.parts.insert(key, node);
            for hold in holds {
                if is_kept_by(request, self.held[hold].hold) {
                    self.add_edge(node, None, Some(Has::Held(hold)), self.tasks[&hold]);
                }
            }
        }
        self.parts.get(&key).copied()
    }

    fn claim_node(&mut self, index: usize) -> usize {
        if let Some(&node) = self.claims.get(&index) {
            return node;
        }
        let node = self.add_node(self.waiting[index].blocked);
        self.claims.insert(index, node);
        self.add_holders(node, index);
        node
    }

    /// Adds cycles until all threads on cycles are covered. `all_blocked`: of blocked threads only.
    fn search(&mut self, all_blocked: bool, cycles: &mut Vec<Vec<Link>>) {
        let mut threads: Vec<_> = self.threads.values().copied().collect();
        threads.sort_unstable();
        for node in threads {
            let may_pass = |node: usize| !all_blocked || self.blocked[node];
            if may_pass(node) && !self.graph.on_cycles.contains(&node) {
                cycles.extend(self.graph.cycle_through(node, self.waiting, may_pass));
            }
        }
    }

    /// Marks the threads of a cycle found elsewhere. If it has one thread, others may go through that, too.
    fn note(&mut self, cycle: &[Link]) {
        let threads: FxHashSet<_> = cycle.iter().map(|link| self.waiting[link.waits_for].thread).collect();
        let nodes = threads.iter().filter(|_| threads.len() > 1).filter_map(|thread| self.threads.get(thread));
        self.graph.on_cycles.extend(nodes);
    }
}

/// Whether a hold waits only for a callback's claims. A blocked thread goes on with nothing.
fn is_of_task(hold: &SeenHold, blocking: &FxHashSet<u32>) -> bool {
    hold.in_task && !blocking.contains(&hold.thread)
}

type Extent = (bool, u32, u32);

/// Returns how much is requested: the same for requests that the same holders keep waiting.
const fn extent(request: Request) -> Extent {
    match request {
        Request::Limited { amount, limit } => (false, amount, limit),
        _ => (matches!(request.mode(), Some(Mode::Shared)), 0, 0),
    }
}

/// Finds the cycles among holds and waits. A thread's holds of one word are neighbours, and the claims of a word are in
/// the order of its line. `within`: pairs of a claim and of a hold in whose callback it was made.
pub fn cycles(held: &[SeenHold], waiting: &[SeenWait], within: &[(usize, usize)]) -> Vec<Vec<Link>> {
    let mut graph = ThreadGraph::new(held, waiting, within);
    let mut cycles = Vec::new();
    graph.search(true, &mut cycles);
    for cycle in task_cycles(held, waiting, within) {
        graph.note(&cycle);
        cycles.push(cycle);
    }
    graph.search(false, &mut cycles);
    cycles
}

/// Keeps the cycles that a second look finds whole. `first` and `again`: keys of holds and of waits; a key is the same
/// in both if the entry was there from one to the other.
pub fn confirmed<K: Eq + Hash>(
    cycles: Vec<Vec<Link>>,
    first: [&[K]; 2],
    again: &[HashSet<K, FxBuildHasher>; 2],
) -> Vec<Vec<Link>> {
    let ([held, waiting], [held_again, waiting_again]) = (first, again);
    let stands = |&Link { has, waits_for }: &Link| {
        let has = match has {
            Has::Held(index) => held_again.contains(&held[index]),
            Has::Awaited(index) => waiting_again.contains(&waiting[index]),
        };
        has && waiting_again.contains(&waiting[waits_for])
    };
    cycles.into_iter().filter(|cycle| cycle.iter().all(stands)).collect()
}
