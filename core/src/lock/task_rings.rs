//! Rings through tasks: a callback with a hold waits, probably, for the requests in its asynchronous context.
//!
//! | | is kept waiting by |
//! |---|---|
//! | what a callback holds | each claim that was made within the callback |
//! | what a blocked thread holds | the claim that it blocks for |
//! | a claim | what `rings.rs` says, but each hold counts for itself, also those of its own thread |
//!
//! A task's holds of which it requests more permits stay while it waits: they count together with its request.
//!
//! Each hold that is on a ring is in one group with all that it reaches and is reached from. Of each group rings are
//! looked for through one hold after the other that is on no earlier one, the shortest ones, but no more than [`MOST`]:
//! so the work is in proportion to what is held and awaited, however many tasks wait for each other. Each of these
//! rings has a link that is a promise: those without are found before.

use std::collections::HashSet;

use rustc_hash::FxBuildHasher;

use super::request::{Mode, Request};
use super::ring::{Has, Link, Map, Seen, Turns, from_smallest, links};
use super::wait_for_graph::is_kept_by;
use crate::queue::location::Location;

/// How many rings of a group are looked for.
const MOST: usize = 8;

/// A step of a search.
#[derive(Clone, Copy)]
struct Edge {
    /// The holder's or the claim's part that keeps the former waiting.
    has: Option<Has>,
    to: usize,
}

/// The part of a word's holds that a claim waits for.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Part {
    All,
    Exclusive,
    /// So many permits, or more.
    AtLeast(u32),
}

/// A hold, claim, thread, part of a word's holds, or place.
#[derive(Default)]
struct Node {
    edges: Vec<Edge>,
    /// The index of the claim that it is.
    claim: Option<usize>,
}

struct TaskGraph<'a> {
    held: &'a [Seen],
    waiting: &'a [Seen],
    nodes: Vec<Node>,
    /// The nodes of holds in whose callbacks claims were made.
    holds: Map<usize, usize>,
    /// The nodes of blocked threads.
    threads: Map<u32, usize>,
    parts: Map<(Location, Part), usize>,
    /// By word.
    holders: Map<Location, Vec<usize>>,
    /// By claim, those of the holds in whose callbacks it was made that are for permits of the same word.
    own: Map<usize, Vec<usize>>,
}

/// The rings through holds in whose callbacks claims were made. The arguments are those of `rings`.
pub(super) fn task_rings(held: &[Seen], waiting: &[Seen], within: &[(usize, usize)]) -> Vec<Vec<Link>> {
    let blocked: HashSet<u32, FxBuildHasher> =
        waiting.iter().filter(|claim| claim.blocked).map(|claim| claim.thread).collect();
    // The promises of a blocked thread cannot go on.
    let within: Vec<_> = within.iter().filter(|&&(claim, _)| !blocked.contains(&waiting[claim].thread)).collect();
    if within.is_empty() {
        return Vec::new();
    }
    let (nodes, holds, threads, parts, holders, own) = Default::default();
    let mut graph = TaskGraph { held, waiting, nodes, holds, threads, parts, holders, own };
    graph.add_keepers(&blocked);
    graph.add_claims(&within, &blocked);
    graph.search()
}

impl TaskGraph<'_> {
    fn add_node(&mut self, claim: Option<usize>) -> usize {
        self.nodes.push(Node { edges: Vec::new(), claim });
        self.nodes.len() - 1
    }

    fn add_edge(&mut self, from: usize, has: Option<Has>, to: usize) {
        self.nodes[from].edges.push(Edge { has, to });
    }

    fn add_keepers(&mut self, blocked: &HashSet<u32, FxBuildHasher>) {
        for (index, hold) in self.held.iter().enumerate() {
            self.holders.entry(hold.location).or_default().push(index);
        }
        for &thread in blocked {
            let node = self.add_node(None);
            self.threads.insert(thread, node);
        }
    }

    fn add_claims(&mut self, within: &[&(usize, usize)], blocked: &HashSet<u32, FxBuildHasher>) {
        let mut holds: Map<usize, Vec<usize>> = Map::default();
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
        let (mut nodes, mut places): (Map<usize, usize>, Map<usize, usize>) = Default::default();
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

    /// A place in a line for permits: what is behind it waits for that claim, and for those ahead of that.
    fn add_place(&mut self, claim: usize, index: usize, ahead: Option<usize>) -> usize {
        let place = self.add_node(None);
        self.add_edge(place, Some(Has::Awaited(index)), claim);
        if let Some(ahead) = ahead {
            self.add_edge(claim, None, ahead);
            self.add_edge(place, None, ahead);
        }
        place
    }

    /// Lets the claim with this node wait for its holders.
    fn add_holders(&mut self, node: usize, index: usize, request: Request) {
        let location = self.waiting[index].location;
        let part = match request {
            Request::Limited { .. } if self.own.contains_key(&index) => return self.add_others(node, index, request),
            Request::Limited { amount, limit } => Part::AtLeast((limit + 1).saturating_sub(amount)),
            _ if request.mode() == Some(Mode::Shared) => Part::Exclusive,
            _ => Part::All,
        };
        let known = self.parts.get(&(location, part)).copied();
        let to = known.unwrap_or_else(|| self.add_part(location, part, request));
        self.add_edge(node, None, to);
    }

    /// A node for those who hold that part of a word; a claim with this request waits for them.
    fn add_part(&mut self, location: Location, part: Part, request: Request) -> usize {
        let node = self.add_node(None);
        self.parts.insert((location, part), node);
        for hold in self.holders.get(&location).cloned().unwrap_or_default() {
            self.add_holder(node, hold, request);
        }
        node
    }

    /// Adds the others, for a task that holds permits of the word.
    fn add_others(&mut self, node: usize, index: usize, request: Request) {
        let own = self.own.remove(&index).unwrap_or_default();
        let beside = own
            .iter()
            .filter_map(|&hold| self.held[hold].request)
            .fold(request, |sum, own| sum.and(own).unwrap_or(sum));
        for hold in self.holders.get(&self.waiting[index].location).cloned().unwrap_or_default() {
            if !own.contains(&hold) {
                self.add_holder(node, hold, beside);
            } else if matches!(beside, Request::Limited { amount, limit } if amount > limit) {
                self.add_edge(node, Some(Has::Held(hold)), self.holds[&hold]);
            }
        }
    }

    /// Adds the hold if it keeps the request waiting and itself waits.
    fn add_holder(&mut self, node: usize, hold: usize, request: Request) {
        let keeper = self.threads.get(&self.held[hold].thread).or_else(|| self.holds.get(&hold));
        if let Some(&keeper) = keeper
            && self.held[hold].request.is_some_and(|other| is_kept_by(request, other))
        {
            self.add_edge(node, Some(Has::Held(hold)), keeper);
        }
    }

    /// The rings: of each group some.
    fn search(&self) -> Vec<Vec<Link>> {
        let groups = groups(&self.nodes);
        let mut found: Map<usize, usize> = Map::default();
        let mut is_on_ring = vec![false; self.nodes.len()];
        let mut holds: Vec<_> = self.holds.values().copied().collect();
        holds.sort_unstable();
        let mut search = Search { nodes: &self.nodes, groups: &groups, reached: vec![None; self.nodes.len()] };
        let mut rings = Vec::new();
        for node in holds {
            let count = found.entry(groups[node]).or_default();
            if is_on_ring[node] || *count >= MOST {
                continue;
            }
            if let Some(ring) = search.ring_through(node) {
                *count += 1;
                for edge in &ring {
                    is_on_ring[edge.to] = true;
                }
                rings.push(self.links(&ring));
            } else {
                // It is alone in its group.
                *count = MOST;
            }
        }
        rings
    }

    /// The links of a ring that begins at a hold.
    fn links(&self, ring: &[Edge]) -> Vec<Link> {
        let has: Vec<_> = ring.iter().filter_map(|edge| edge.has).collect();
        let claims = ring.iter().filter_map(|edge| self.nodes[edge.to].claim);
        from_smallest(links(&has, claims), self.waiting)
    }
}

/// Breadth-first searches within groups.
struct Search<'a> {
    nodes: &'a [Node],
    groups: &'a [usize],
    /// Where the latest search that reached a node came from: by which edge there; and where that search began.
    reached: Vec<Option<(usize, usize, usize)>>,
}

impl Search<'_> {
    /// The edges of the shortest ring through a node.
    fn ring_through(&mut self, start: usize) -> Option<Vec<Edge>> {
        let mut order = vec![start];
        let mut next = 0;
        while let Some(&from) = order.get(next) {
            next += 1;
            for (n, edge) in self.nodes[from].edges.iter().enumerate() {
                if edge.to == start {
                    return Some(self.path(start, from, *edge));
                }
                let is_new = !matches!(self.reached[edge.to], Some((.., root)) if root == start);
                if is_new && self.groups[edge.to] == self.groups[start] {
                    self.reached[edge.to] = Some((from, n, start));
                    order.push(edge.to);
                }
            }
        }
        None
    }

    /// Lists the search's edges up to `node`, and then `last`.
    fn path(&self, start: usize, mut node: usize, last: Edge) -> Vec<Edge> {
        let mut path = vec![last];
        while node != start
            && let Some((from, n, _)) = self.reached[node]
        {
            path.push(self.nodes[from].edges[n]);
            node = from;
        }
        path.reverse();
        path
    }
}

/// Numbers the strongly connected component of each node, by Tarjan's algorithm.
fn groups(nodes: &[Node]) -> Vec<usize> {
    const NONE: usize = usize::MAX;
    let mut groups = vec![NONE; nodes.len()];
    // The order in which nodes are found, and the first of those that a node reaches.
    let (mut numbers, mut firsts) = (vec![NONE; nodes.len()], vec![NONE; nodes.len()]);
    let (mut count, mut group_count) = (0, 0);
    let mut ungrouped = Vec::new();
    for root in 0..nodes.len() {
        let mut path = if numbers[root] == NONE { vec![(root, 0)] } else { Vec::new() };
        while let Some((node, next)) = path.last_mut() {
            let node = *node;
            if *next == 0 {
                (numbers[node], firsts[node]) = (count, count);
                count += 1;
                ungrouped.push(node);
            }
            let edge = nodes[node].edges.get(*next);
            *next += 1;
            match edge.map(|edge| edge.to) {
                Some(to) if numbers[to] == NONE => path.push((to, 0)),
                Some(to) if groups[to] == NONE => firsts[node] = firsts[node].min(firsts[to]),
                Some(_) => {}
                None => {
                    path.pop();
                    if let Some(&(parent, _)) = path.last() {
                        firsts[parent] = firsts[parent].min(firsts[node]);
                    }
                    if firsts[node] == numbers[node] {
                        while let Some(member) = ungrouped.pop() {
                            groups[member] = group_count;
                            if member == node {
                                break;
                            }
                        }
                        group_count += 1;
                    }
                }
            }
        }
    }
    groups
}
