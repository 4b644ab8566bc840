//! Cycles through tasks: a callback with a hold waits, probably, for the requests in its asynchronous context.
//!
//! | | is kept waiting by |
//! |---|---|
//! | a callback's holds | each claim that was made within the callback |
//! | a blocked thread's holds | the claim that it blocks for |
//! | a claim | the same as in `cycles.rs`, but each hold counts for itself, also those of its own thread |
//!
//! A task's holds of which it requests more permits stay while it waits: they count together with its request.
//!
//! Each hold that is on a cycle is in one group with all that it reaches and is reached from. Of each group cycles are
//! looked for through one hold after the other that is on no earlier one, the shortest ones, but no more than [`MOST`]:
//! so the work is in proportion to the holds and waits, however many tasks wait for each other. Each of these cycles
//! has a link that is a promise: those without are found before.

use std::cmp::Reverse;
use std::iter;
use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};

use super::cycle::{Edge, Graph, Has, Link, SeenHold, SeenWait, Turns};
use super::wait_for_graph::{beside_own, is_kept_by};
use super::{Hold, Mode, Request};
use crate::queue::Location;

/// How many cycles of a group are looked for.
const MOST: usize = 8;

/// The part of a word's holds that keeps a claim waiting; not of permits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Part {
    All,
    Exclusive,
}

/// The holds of permits of a word whose tasks wait.
///
/// Each claim waits for those of at least so many permits, but for its own task's: so for a few ranges in their order.
/// They are the leaves of a tree, and a range is what some of its nodes reach: so claims and holds of a word cost their
/// sum, and not their product.
struct Permits {
    /// How many permits, the most first, and the index of the hold.
    holds: Vec<(u32, usize)>,
    /// By the index of the hold, its place among them.
    places: FxHashMap<usize, usize>,
    /// The first node. The tree's root is the next one; the children of the nth are the nodes 2n and 2n + 1.
    first: usize,
}

/// A node: a hold, claim, thread, part of a word's holds, or place in a line, as in `cycles.rs`.
struct TaskGraph<'a> {
    held: &'a [SeenHold],
    waiting: &'a [SeenWait],
    graph: Graph,
    /// By node, the index of the claim that it is.
    claims: Vec<Option<usize>>,
    /// The nodes of holds in whose callbacks claims were made.
    holds: FxHashMap<usize, usize>,
    /// The nodes of blocked threads.
    threads: FxHashMap<u32, usize>,
    parts: FxHashMap<(Location, Part), usize>,
    permits: FxHashMap<Location, Permits>,
    holders: FxHashMap<Location, Vec<usize>>,
    /// By claim, those of the holds in whose callbacks it was made that are for permits of the same word.
    own: FxHashMap<usize, Vec<usize>>,
}

/// Returns the cycles through holds in whose callbacks claims were made. The arguments are those of `cycles`.
pub(super) fn task_cycles(held: &[SeenHold], waiting: &[SeenWait], within: &[(usize, usize)]) -> Vec<Vec<Link>> {
    let blocked: FxHashSet<_> = waiting.iter().filter(|claim| claim.blocked).map(|claim| claim.thread).collect();
    // The promises of a blocked thread cannot go on.
    let within: Vec<_> = within.iter().filter(|&&(claim, _)| !blocked.contains(&waiting[claim].thread)).collect();
    if within.is_empty() {
        return Vec::new();
    }
    let (graph, claims, holds, threads, parts, permits, holders, own) = Default::default();
    let mut graph = TaskGraph { held, waiting, graph, claims, holds, threads, parts, permits, holders, own };
    graph.add_keepers(&blocked);
    graph.add_claims(&within, &blocked);
    graph.search()
}

impl TaskGraph<'_> {
    fn add_node(&mut self, claim: Option<usize>) -> usize {
        self.claims.push(claim);
        self.graph.add_node()
    }

    fn add_edge(&mut self, from: usize, has: Option<Has>, to: usize) {
        self.graph.edges[from].push(Edge { waits_for: self.claims[to], has, to });
    }

    fn add_keepers(&mut self, blocked: &FxHashSet<u32>) {
        for (index, hold) in self.held.iter().enumerate() {
            self.holders.entry(hold.location).or_default().push(index);
        }
        for &thread in blocked {
            let node = self.add_node(None);
            self.threads.insert(thread, node);
        }
    }

    fn add_claims(&mut self, within: &[&(usize, usize)], blocked: &FxHashSet<u32>) {
        let mut holds: FxHashMap<usize, Vec<usize>> = FxHashMap::default();
        for &&(claim, hold) in within {
            holds.entry(claim).or_default().push(hold);
            if !self.holds.contains_key(&hold) {
                let node = self.add_node(None);
                self.holds.insert(hold, node);
            }
            if matches!(self.waiting[claim].request, Some(Request::Limited { .. }))
                && self.waiting[claim].location == self.held[hold].location
            {
                self.own.entry(claim).or_default().push(hold);
            }
        }
        let mut turns = Turns::default();
        let (mut nodes, mut places): (FxHashMap<usize, usize>, FxHashMap<usize, usize>) = Default::default();
        for (index, claim) in self.waiting.iter().enumerate() {
            let Some(request) = claim.wanted() else { continue };
            let node = self.add_node(Some(index));
            nodes.insert(index, node);
            for hold in holds.remove(&index).into_iter().flatten() {
                self.add_edge(self.holds[&hold], None, node);
            }
            if claim.blocked && blocked.contains(&claim.thread) {
                self.add_edge(self.threads[&claim.thread], None, node);
            }
            let ahead = turns.next(self.waiting, index, |_| true);
            if request.mode().is_none() {
                let place = self.add_place(node, index, ahead.map(|ahead| places[&ahead]));
                places.insert(index, place);
            } else if let Some(ahead) = ahead {
                self.add_edge(node, Some(Has::Awaited(ahead)), nodes[&ahead]);
            }
            self.add_holders(node, index, request);
        }
    }

    fn add_place(&mut self, claim: usize, index: usize, ahead: Option<usize>) -> usize {
        let place = self.add_node(None);
        self.add_edge(place, Some(Has::Awaited(index)), claim);
        if let Some(ahead) = ahead {
            self.add_edge(claim, None, ahead);
            self.add_edge(place, None, ahead);
        }
        place
    }

    fn add_holders(&mut self, node: usize, index: usize, request: Request) {
        let location = self.waiting[index].location;
        let part = match request {
            Request::Limited { .. } => return self.add_holders_of_permits(node, index, request),
            _ if request.mode() == Some(Mode::Shared) => Part::Exclusive,
            _ => Part::All,
        };
        let known = self.parts.get(&(location, part)).copied();
        let to = known.unwrap_or_else(|| self.add_part(location, part, request));
        self.add_edge(node, None, to);
    }

    /// Adds a node for those who hold that part of a word; a claim with this request waits for them.
    fn add_part(&mut self, location: Location, part: Part, request: Request) -> usize {
        let node = self.add_node(None);
        self.parts.insert((location, part), node);
        for hold in self.holders.get(&location).cloned().unwrap_or_default() {
            if is_kept_by(request, self.held[hold].hold) {
                self.add_holder(node, hold);
            }
        }
        node
    }

    /// Adds the holders that a claim for permits waits for: others, and its own task if both cannot have enough.
    fn add_holders_of_permits(&mut self, node: usize, index: usize, request: Request) {
        let location = self.waiting[index].location;
        let own = self.own.remove(&index).unwrap_or_default();
        let beside = beside_own(request, own.iter().map(|&hold| self.held[hold].hold));
        let Request::Limited { amount, limit } = beside else { return };
        if amount > limit {
            for &hold in &own {
                self.add_holder(node, hold);
            }
        }
        if !self.permits.contains_key(&location) {
            self.add_permits(location);
        }
        let Permits { holds, places, first } = &self.permits[&location];
        let least = (limit + 1).saturating_sub(amount);
        let end = holds.partition_point(|&(held, _)| held >= least);
        let mut own: Vec<_> = own.iter().filter_map(|hold| places.get(hold).copied()).collect();
        own.sort_unstable();
        let (mut nodes, mut start) = (Vec::new(), 0);
        for place in own.into_iter().filter(|&place| place < end).chain([end]) {
            nodes.extend(nodes_of(start..place, holds.len()).map(|n| first + n));
            start = place + 1;
        }
        for to in nodes {
            self.add_edge(node, None, to);
        }
    }

    fn add_permits(&mut self, location: Location) {
        let amount = |hold: usize| match self.held[hold].hold {
            Hold::Limited(amount) => Some((amount, hold)),
            _ => None,
        };
        let here = self.holders.get(&location).into_iter().flatten().copied();
        let mut holds: Vec<_> = here.filter(|&hold| self.keeper(hold).is_some()).filter_map(amount).collect();
        holds.sort_unstable_by_key(|&(amount, hold)| (Reverse(amount), hold));
        let first = self.claims.len();
        for _ in 0..2 * holds.len() {
            self.add_node(None);
        }
        for n in 1..holds.len() {
            self.add_edge(first + n, None, first + 2 * n);
            self.add_edge(first + n, None, first + 2 * n + 1);
        }
        for (place, &(_, hold)) in holds.iter().enumerate() {
            self.add_holder(first + holds.len() + place, hold);
        }
        let places = holds.iter().enumerate().map(|(place, &(_, hold))| (hold, place)).collect();
        self.permits.insert(location, Permits { holds, places, first });
    }

    /// Returns the node of the hold, if it waits.
    fn keeper(&self, hold: usize) -> Option<usize> {
        self.threads.get(&self.held[hold].thread).or_else(|| self.holds.get(&hold)).copied()
    }

    /// Adds the hold if it waits.
    fn add_holder(&mut self, node: usize, hold: usize) {
        if let Some(keeper) = self.keeper(hold) {
            self.add_edge(node, Some(Has::Held(hold)), keeper);
        }
    }

    fn search(mut self) -> Vec<Vec<Link>> {
        let groups = groups(&self.graph.edges);
        let mut found = FxHashMap::<usize, usize>::default();
        let mut holds: Vec<_> = self.holds.values().copied().collect();
        holds.sort_unstable();
        let mut cycles = Vec::new();
        for node in holds {
            let count = found.entry(groups[node]).or_default();
            if self.graph.on_cycles.contains(&node) || *count >= MOST {
                continue;
            }
            let cycle = self.graph.cycle_through(node, self.waiting, |other| groups[other] == groups[node]);
            // Without a cycle it is alone in its group.
            *count = if cycle.is_some() { *count + 1 } else { MOST };
            cycles.extend(cycle);
        }
        cycles
    }
}

/// Lists the nodes of a tree that reach just these leaves.
///
/// The tree has `count` leaves.
fn nodes_of(leaves: Range<usize>, count: usize) -> impl Iterator<Item = usize> {
    let (mut start, mut end) = (leaves.start + count, leaves.end.max(leaves.start) + count);
    iter::from_fn(move || {
        (start < end).then(|| {
            let nodes = [(start % 2 == 1).then_some(start), (end % 2 == 1).then(|| end - 1)];
            (start, end) = (start.div_ceil(2), end / 2);
            nodes.into_iter().flatten()
        })
    })
    .flatten()
}

/// Finds the strongly connected component of each node, by Tarjan's algorithm. It is known by one of its nodes.
fn groups(edges: &[Vec<Edge>]) -> Vec<usize> {
    const NONE: usize = usize::MAX;
    let mut groups = vec![NONE; edges.len()];
    // The order in which nodes are found, and the first of those that a node reaches.
    let (mut numbers, mut firsts) = (groups.clone(), groups.clone());
    let (mut count, mut ungrouped) = (0, Vec::new());
    for root in 0..edges.len() {
        let mut path = if numbers[root] == NONE { vec![(root, 0)] } else { Vec::new() };
        while let Some(&mut (node, ref mut next)) = path.last_mut() {
            if numbers[node] == NONE {
                (numbers[node], firsts[node]) = (count, count);
                count += 1;
                ungrouped.push(node);
            }
            match edges[node].get(*next).map(|edge| edge.to) {
                // Its edge is looked at again when the path is back here.
                Some(to) if numbers[to] == NONE => path.push((to, 0)),
                Some(to) => {
                    *next += 1;
                    if groups[to] == NONE {
                        firsts[node] = firsts[node].min(firsts[to]);
                    }
                }
                None => {
                    path.pop();
                    if firsts[node] == numbers[node] {
                        let members = ungrouped.iter().rposition(|&member| member == node).unwrap_or(0);
                        ungrouped.drain(members..).for_each(|member| groups[member] = node);
                    }
                }
            }
        }
    }
    groups
}
