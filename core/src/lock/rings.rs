//! Rings: threads that wait for one another, among what is held and awaited at one moment.
//!
//! | a claim for | waits for |
//! |---|---|
//! | a lock, exclusive access | each holder |
//! | a share | the writer, and the nearest writer ahead of it in the line |
//! | permits | nothing: any thread may add permits |
//! | permits of a limit | each holder of so many that what is requested does not fit beside them, and the nearest claim ahead of it |
//!
//! These are the rules of [`super::wait_for_graph`]; but here promises count, and claims that have a timeout. A blocked
//! thread waits for what it blocks for only: its promises cannot go on before. Any other thread waits for what each of
//! its promises waits for, except for what it holds itself: another task of it may release that. Of some promises it is
//! known which tasks they keep waiting: [`super::task_rings`].
//!
//! Each thread that is on a ring is on one of those that are returned, and none is returned twice: rings of blocked
//! threads come first, then those through tasks, and a ring is looked for only through a thread that is on no earlier
//! one of several threads. So there are no more of these rings than threads, and the work is that of one breadth-first
//! search for each thread that both holds and waits.

use std::collections::HashSet;
use std::hash::Hash;

use rustc_hash::FxBuildHasher;

use super::request::{Mode, Request};
pub use super::ring::{Has, Link, Seen};
use super::ring::{Map, Turns, from_smallest, links};
use super::task_rings::task_rings;
use super::wait_for_graph::{beside_own, is_kept_by};
use crate::queue::location::Location;

/// A wait `waits_for`, because the node `to` has that. Past places of a line an edge has only one of the two.
#[derive(Clone, Copy)]
struct Edge {
    waits_for: Option<usize>,
    has: Option<Has>,
    to: usize,
}

/// A thread; or a claim ahead in a line, which waits for what it requests, whatever else its thread waits for; or a
/// place in the line for permits: what is behind it waits for that claim, and for those ahead of that.
struct Node {
    blocked: bool,
    edges: Vec<Edge>,
    is_on_ring: bool,
}

struct ThreadGraph<'a> {
    held: &'a [Seen],
    waiting: &'a [Seen],
    nodes: Vec<Node>,
    /// The nodes of the threads that hold something.
    threads: Map<u32, usize>,
    /// The nodes of claims ahead in a line.
    claims: Map<usize, usize>,
    /// The holds of a word: the first entry of each thread, and the sum of its holds.
    holders: Map<Location, Vec<(usize, Request)>>,
    /// The nodes of places in lines for permits, by their claims.
    places: Map<usize, usize>,
}

impl<'a> ThreadGraph<'a> {
    fn new(held: &'a [Seen], waiting: &'a [Seen]) -> Self {
        let (nodes, threads, claims, holders, places) = Default::default();
        let mut graph = Self { held, waiting, nodes, threads, claims, holders, places };
        graph.add_threads();
        graph.add_edges();
        graph
    }

    fn add_node(&mut self, blocked: bool) -> usize {
        self.nodes.push(Node { blocked, edges: Vec::new(), is_on_ring: false });
        self.nodes.len() - 1
    }

    fn add_threads(&mut self) {
        for (index, hold) in self.held.iter().enumerate() {
            if !self.threads.contains_key(&hold.thread) {
                let node = self.add_node(false);
                self.threads.insert(hold.thread, node);
            }
            let Some(request) = hold.request else { continue };
            // A thread's entries of a word are next to each other.
            let list = self.holders.entry(hold.location).or_default();
            match list.last_mut().filter(|(last, _)| self.held[*last].thread == hold.thread) {
                Some((_, all)) => *all = all.and(request).unwrap_or(*all),
                None => list.push((index, request)),
            }
        }
        for claim in self.waiting.iter().filter(|claim| claim.blocked) {
            if let Some(&node) = self.threads.get(&claim.thread) {
                self.nodes[node].blocked = true;
            }
        }
    }

    fn add_edges(&mut self) {
        let mut turns = Turns::default();
        // Further claims of a thread that request the same wait for the same holders.
        let mut seen = HashSet::<_, FxBuildHasher>::default();
        for (index, claim) in self.waiting.iter().enumerate() {
            let Some(request) = claim.wanted() else { continue };
            let is_for_permits = request.mode().is_none();
            let ahead = turns.next(self.waiting, index, |thread| is_for_permits || thread != claim.thread);
            if is_for_permits {
                self.add_place(index, ahead);
            }
            // No thread waits for a thread that holds nothing.
            let Some(&node) = self.threads.get(&claim.thread) else { continue };
            if self.nodes[node].blocked != claim.blocked {
                continue;
            }
            if seen.insert((claim.thread, extent(request), claim.location)) {
                self.add_holders(node, index);
            }
            self.add_ahead(node, index, ahead);
        }
    }

    /// Adds a place in a line for permits, and its claim. It waits behind the place of the claim ahead.
    fn add_place(&mut self, index: usize, ahead: Option<usize>) {
        let (claim, place) = (self.claim_node(index), self.add_node(true));
        self.nodes[place].edges.push(Edge { waits_for: None, has: Some(Has::Awaited(index)), to: claim });
        if let Some(ahead) = ahead {
            self.nodes[place].edges.push(Edge { waits_for: None, has: None, to: self.places[&ahead] });
        }
        self.add_ahead(claim, index, ahead);
        self.places.insert(index, place);
    }

    /// The node waits for its turn behind the claim ahead.
    fn add_ahead(&mut self, node: usize, index: usize, ahead: Option<usize>) {
        let Some(ahead) = ahead else { return };
        let edge = match self.places.get(&ahead) {
            Some(&to) => Edge { waits_for: Some(index), has: None, to },
            None => Edge { waits_for: Some(index), has: Some(Has::Awaited(ahead)), to: self.claim_node(ahead) },
        };
        self.nodes[node].edges.push(edge);
    }

    /// Lets the node wait for the claim's holders.
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
                self.nodes[node].edges.push(Edge { waits_for: Some(index), has: Some(Has::Held(hold)), to });
            }
        }
    }

    /// The node of a claim ahead in a line.
    fn claim_node(&mut self, index: usize) -> usize {
        if let Some(&node) = self.claims.get(&index) {
            return node;
        }
        let node = self.add_node(self.waiting[index].blocked);
        self.claims.insert(index, node);
        self.add_holders(node, index);
        node
    }

    /// Adds rings until all threads on rings are covered. `all_blocked`: of blocked threads only.
    fn search(&mut self, all_blocked: bool, rings: &mut Vec<Vec<Link>>) {
        let mut threads: Vec<_> = self.threads.values().copied().collect();
        threads.sort_unstable();
        for node in threads {
            let Node { blocked, is_on_ring, .. } = self.nodes[node];
            if is_on_ring || (all_blocked && !blocked) {
                continue;
            }
            if let Some(ring) = self.ring_through(node, all_blocked) {
                for edge in &ring {
                    self.nodes[edge.to].is_on_ring = true;
                }
                rings.push(self.links(&ring));
            }
        }
    }

    /// Marks the threads of a ring found elsewhere. If it has one thread, others may go through that, too.
    fn note(&mut self, ring: &[Link]) {
        let threads: HashSet<_, FxBuildHasher> = ring.iter().map(|link| self.waiting[link.waits_for].thread).collect();
        for thread in threads.iter().filter(|_| threads.len() > 1) {
            if let Some(&node) = self.threads.get(thread) {
                self.nodes[node].is_on_ring = true;
            }
        }
    }

    /// The shortest ring through a node. `all_blocked`: of blocked threads only.
    fn ring_through(&self, start: usize, all_blocked: bool) -> Option<Vec<Edge>> {
        // By node: the edge by which the search came to it, and from where.
        let mut reached: Map<usize, Option<(usize, Edge)>> = Map::from_iter([(start, None)]);
        let mut order = vec![start];
        let mut next = 0;
        while let Some(&from) = order.get(next) {
            next += 1;
            for &edge in &self.nodes[from].edges {
                if edge.to == start {
                    return Some(path_to(edge, from, &reached));
                }
                if (!all_blocked || self.nodes[edge.to].blocked) && !reached.contains_key(&edge.to) {
                    reached.insert(edge.to, Some((from, edge)));
                    order.push(edge.to);
                }
            }
        }
        None
    }

    /// The links of a ring. It begins with the thread that has the smallest number.
    fn links(&self, ring: &[Edge]) -> Vec<Link> {
        let has: Vec<_> = ring.iter().filter_map(|edge| edge.has).collect();
        let waits_for = ring.iter().filter_map(|edge| edge.waits_for);
        from_smallest(links(&has, waits_for), self.waiting)
    }
}

/// How much is requested: the same for requests that the same holders keep waiting.
const fn extent(request: Request) -> (bool, u32, u32) {
    match request {
        Request::Limited { amount, limit } => (false, amount, limit),
        _ => (matches!(request.mode(), Some(Mode::Shared)), 0, 0),
    }
}

/// Lists the search's edges up to `node`, and then `last`.
fn path_to(last: Edge, mut node: usize, reached: &Map<usize, Option<(usize, Edge)>>) -> Vec<Edge> {
    let mut path = vec![last];
    while let Some((from, edge)) = reached[&node] {
        path.push(edge);
        node = from;
    }
    path.reverse();
    path
}

/// Finds the rings among holds and waits. A thread's holds of one word are neighbours, and the claims of a word are in
/// the order of its line. `within`: pairs of a claim and of a hold in whose callback it was made.
pub fn rings(held: &[Seen], waiting: &[Seen], within: &[(usize, usize)]) -> Vec<Vec<Link>> {
    let mut graph = ThreadGraph::new(held, waiting);
    let mut rings = Vec::new();
    graph.search(true, &mut rings);
    for ring in task_rings(held, waiting, within) {
        graph.note(&ring);
        rings.push(ring);
    }
    graph.search(false, &mut rings);
    rings
}

/// Keeps the rings that a second look finds whole. `first` and `again`: keys of holds and of waits; a key is the same
/// in both if the entry was there from one to the other.
pub fn confirmed<K: Eq + Hash>(
    rings: Vec<Vec<Link>>,
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
    rings.into_iter().filter(|ring| ring.iter().all(stands)).collect()
}
