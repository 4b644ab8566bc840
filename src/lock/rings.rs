//! Rings: threads that wait for one another, among what is held and awaited at one moment.
//!
//! | a claim for | waits for |
//! |---|---|
//! | a lock, exclusive access | each holder |
//! | a share | the writer, and the nearest writer ahead of it in the line |
//! | permits | nothing: any thread may add permits |
//!
//! These are the rules of [`super::deadlock`]; but here promises count, and claims that have a time-out. A blocked thread waits for what
//! it blocks for only: its promises cannot go on before. Any other thread waits for what each of its promises waits for, except for what it
//! holds itself: another task of it may release that.
//!
//! Each thread that is on a ring is on one of those that are returned, and none is returned twice: rings of blocked threads come first,
//! and a ring is looked for only through a thread that is on no earlier one. So there are no more rings than threads, and the work is that
//! of one breadth-first search for each thread that both holds and waits.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use rustc_hash::FxBuildHasher;

use super::request::Mode;
use crate::queue::location::Location;

type Map<K, V> = HashMap<K, V, FxBuildHasher>;

/// What a thread holds or awaits.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// Of which word.
    pub location: Location,
    /// By its number.
    pub thread: u32,
    /// `None` for what is no lock.
    pub mode: Option<Mode>,
    /// Whether the thread is blocked, if it holds this; whether it blocks for this, if it awaits it.
    pub blocked: bool,
}

/// What a thread has that another one waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Has {
    /// It holds this.
    Held(usize),
    /// It awaits this, ahead in the line.
    Awaited(usize),
}

/// A thread of a ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// What the link before waits for; of the first one, the last.
    pub has: Has,
    /// The index of what the thread awaits.
    pub waits_for: usize,
}

/// `waits_for` is awaited, because the thread of the node `to` has that.
#[derive(Clone, Copy)]
struct Edge {
    waits_for: usize,
    has: Has,
    to: usize,
}

/// A thread; or a claim ahead in a line, which waits for what it requests, whatever else its thread waits for.
struct Node {
    blocked: bool,
    edges: Vec<Edge>,
    is_on_ring: bool,
}

struct Graph<'a> {
    held: &'a [Seen],
    waiting: &'a [Seen],
    nodes: Vec<Node>,
    /// The nodes of the threads that hold something.
    threads: Map<u32, usize>,
    /// The nodes of claims ahead in a line.
    claims: Map<usize, usize>,
    /// What is held of a word: an entry of each thread.
    holders: Map<Location, Vec<usize>>,
}

impl<'a> Graph<'a> {
    fn new(held: &'a [Seen], waiting: &'a [Seen]) -> Self {
        let (nodes, threads, claims, holders) = Default::default();
        let mut graph = Self { held, waiting, nodes, threads, claims, holders };
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
            // A thread's entries of a word are next to each other.
            let list = self.holders.entry(hold.location).or_default();
            if list.last().is_none_or(|&last| self.held[last].thread != hold.thread) {
                list.push(index);
            }
        }
        for claim in self.waiting.iter().filter(|claim| claim.blocked) {
            if let Some(&node) = self.threads.get(&claim.thread) {
                self.nodes[node].blocked = true;
            }
        }
    }

    fn add_edges(&mut self) {
        let mut writers = Map::default();
        // Further claims of a thread for the same word add nothing.
        let mut seen = HashSet::<_, FxBuildHasher>::default();
        for (index, claim) in self.waiting.iter().enumerate() {
            let writer = writers.get(&claim.location).copied();
            if claim.mode == Some(Mode::Exclusive) {
                writers.insert(claim.location, index);
            }
            let Some(mode) = claim.mode else { continue };
            // No thread waits for a thread that holds nothing.
            let Some(&node) = self.threads.get(&claim.thread) else { continue };
            if self.nodes[node].blocked != claim.blocked
                || !seen.insert((claim.thread, mode == Mode::Shared, claim.location))
            {
                continue;
            }
            self.add_holders(node, index);
            if mode == Mode::Shared
                && let Some(writer) = writer
            {
                self.add_writer(node, index, writer);
            }
        }
    }

    /// The node waits for those who hold what the claim wants.
    fn add_holders(&mut self, node: usize, index: usize) {
        let claim = self.waiting[index];
        for &hold in self.holders.get(&claim.location).into_iter().flatten() {
            let Seen { thread, mode, .. } = self.held[hold];
            if thread != claim.thread && (claim.mode == Some(Mode::Exclusive) || mode == Some(Mode::Exclusive)) {
                let edge = Edge { waits_for: index, has: Has::Held(hold), to: self.threads[&thread] };
                self.nodes[node].edges.push(edge);
            }
        }
    }

    /// The node waits for the writer ahead in the line of the claim.
    fn add_writer(&mut self, node: usize, index: usize, writer: usize) {
        if self.waiting[writer].thread == self.waiting[index].thread {
            return;
        }
        let to = self.claims.get(&writer).copied().unwrap_or_else(|| {
            let to = self.add_node(self.waiting[writer].blocked);
            self.claims.insert(writer, to);
            self.add_holders(to, writer);
            to
        });
        self.nodes[node].edges.push(Edge { waits_for: index, has: Has::Awaited(writer), to });
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
        let count = ring.len();
        let first = (0..count).min_by_key(|&n| self.waiting[ring[n].waits_for].thread).unwrap_or(0);
        let link = |n: usize| Link { has: ring[(n + count - 1) % count].has, waits_for: ring[n % count].waits_for };
        (first..first + count).map(link).collect()
    }
}

/// The edges by which the search has come to `node`, and then `last`.
fn path_to(last: Edge, mut node: usize, reached: &Map<usize, Option<(usize, Edge)>>) -> Vec<Edge> {
    let mut path = vec![last];
    while let Some((from, edge)) = reached[&node] {
        path.push(edge);
        node = from;
    }
    path.reverse();
    path
}

/// The rings among what is held and what is awaited. What a thread holds of one word is in neighbouring entries, and the claims of a word
/// are in the order of its line.
pub fn rings(held: &[Seen], waiting: &[Seen]) -> Vec<Vec<Link>> {
    let mut graph = Graph::new(held, waiting);
    let mut rings = Vec::new();
    let mut threads: Vec<_> = graph.threads.values().copied().collect();
    threads.sort_unstable();
    for all_blocked in [true, false] {
        for &node in &threads {
            let Node { blocked, is_on_ring, .. } = graph.nodes[node];
            if is_on_ring || (all_blocked && !blocked) {
                continue;
            }
            if let Some(ring) = graph.ring_through(node, all_blocked) {
                for edge in &ring {
                    graph.nodes[edge.to].is_on_ring = true;
                }
                rings.push(graph.links(&ring));
            }
        }
    }
    rings
}

/// The rings of a first look of which a second one has all entries, too. `first` and `again`: keys of what is held and of what is awaited; a
/// key is the same in both if the entry was there from one to the other.
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn seen(thread: u32, word: usize, mode: Mode, blocked: bool) -> Seen {
        Seen { location: Location::from_address(4 * word), thread, mode: Some(mode), blocked }
    }

    fn threads(waiting: &[Seen], rings: &[Vec<Link>]) -> Vec<Vec<u32>> {
        rings.iter().map(|ring| ring.iter().map(|link| waiting[link.waits_for].thread).collect()).collect()
    }

    #[test]
    fn rings_of_blocked_threads_come_first_also_where_the_same_threads_are_on_others() {
        use Mode::Exclusive;
        let held = [seen(0, 10, Exclusive, false), seen(1, 11, Exclusive, true), seen(2, 12, Exclusive, true)];
        let waiting = [(0, 11, false), (1, 12, true), (2, 10, true), (2, 11, true)];
        let waiting = waiting.map(|(thread, word, blocked)| seen(thread, word, Exclusive, blocked));
        assert_eq!(threads(&waiting, &rings(&held, &waiting)), [vec![1, 2], vec![0, 1, 2]]);
    }

    #[test]
    fn a_reader_waits_for_the_nearest_writer_ahead_and_not_for_one_behind_it() {
        use Mode::{Exclusive, Shared};
        let held = [seen(1, 10, Shared, true), seen(2, 11, Exclusive, true)];
        let behind = [seen(1, 10, Shared, true), seen(2, 10, Exclusive, true)];
        assert!(rings(&held, &behind).is_empty());
        let ahead = [seen(2, 10, Exclusive, true), seen(1, 10, Shared, true)];
        let found = rings(&held, &ahead);
        assert_eq!(threads(&ahead, &found), [[1, 2]]);
        assert_eq!(found[0][1].has, Has::Awaited(0));
    }

    #[test]
    fn a_ring_counts_only_if_a_second_look_finds_each_of_its_entries_again() {
        let ring = vec![Link { has: Has::Held(0), waits_for: 0 }, Link { has: Has::Awaited(1), waits_for: 1 }];
        let count = |held: &[&str], waiting: &[&str]| {
            let again = [held, waiting].map(|keys| keys.iter().copied().collect());
            confirmed(vec![ring.clone()], [&["a"], &["b", "c"]], &again).len()
        };
        assert_eq!(count(&["x", "a"], &["c", "b"]), 1);
        assert_eq!(count(&["b", "c"], &["b", "c"]), 0);
        assert_eq!(count(&["a"], &["b"]), 0);
        assert_eq!(count(&["a"], &["a", "c"]), 0);
    }

    /// What thread `a` waits for of thread `b`, by the definition. There are no shares behind writers.
    fn waits_for(held: &[Seen], waiting: &[Seen], a: u32, b: u32) -> bool {
        let blocks = waiting.iter().any(|claim| claim.thread == a && claim.blocked);
        let claims =
            waiting.iter().filter(|claim| claim.thread == a && claim.blocked == blocks && claim.mode.is_some());
        let mut words = claims.map(|claim| claim.location);
        a != b && words.any(|word| held.iter().any(|hold| hold.thread == b && hold.location == word))
    }

    const THREADS: u32 = 5;

    fn claims() -> impl Strategy<Value = Vec<Seen>> {
        let claim = (0..THREADS, 0..5_usize, prop::bool::weighted(0.9));
        (vec(claim, 0..8), vec(any::<bool>(), THREADS as usize)).prop_map(|(claims, blocks)| {
            let mut has_blocked = [false; THREADS as usize];
            let claims = claims.into_iter().map(|(thread, word, is_lock)| {
                let blocked = blocks[thread as usize] && !std::mem::replace(&mut has_blocked[thread as usize], true);
                let mode = is_lock.then_some(Mode::Exclusive);
                Seen { mode, ..seen(thread, word, Mode::Exclusive, blocked) }
            });
            claims.collect()
        })
    }

    fn holds() -> impl Strategy<Value = Vec<Seen>> {
        vec((0..THREADS, 0..5_usize), 0..8).prop_map(|mut holds| {
            holds.sort_unstable();
            holds.into_iter().map(|(thread, word)| seen(thread, word, Mode::Shared, false)).collect()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]
        #[test]
        fn each_thread_that_is_on_a_ring_is_on_one_that_is_returned_and_each_of_these_is_one(held in holds(), waiting in claims()) {
            let edge = |a, b| waits_for(&held, &waiting, a, b);
            let mut reach: Vec<Vec<bool>> = (0..THREADS).map(|a| (0..THREADS).map(|b| edge(a, b)).collect()).collect();
            for (k, a, b) in (0..THREADS as usize).flat_map(|k| (0..25).map(move |ab| (k, ab / 5, ab % 5))) {
                reach[a][b] |= reach[a][k] && reach[k][b];
            }
            let found = rings(&held, &waiting);
            let names = threads(&waiting, &found);
            for (ring, threads) in found.iter().zip(&names) {
                for (n, link) in ring.iter().enumerate() {
                    let next = ring[(n + 1) % ring.len()];
                    let Has::Held(next_hold) = next.has else { panic!("no writer is ahead here") };
                    let Has::Held(hold) = link.has else { panic!("no writer is ahead here") };
                    prop_assert_eq!(held[hold].thread, threads[n]);
                    prop_assert_eq!(held[next_hold].location, waiting[link.waits_for].location);
                    prop_assert!(edge(threads[n], threads[(n + 1) % ring.len()]));
                }
                prop_assert_eq!(threads.iter().min(), threads.first());
                prop_assert_eq!(threads.iter().collect::<BTreeSet<_>>().len(), threads.len());
            }
            prop_assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
            let on_rings: BTreeSet<u32> = names.into_iter().flatten().collect();
            let expected: BTreeSet<u32> = (0..THREADS).filter(|&a| reach[a as usize][a as usize]).collect();
            prop_assert_eq!(on_rings, expected);
        }
    }
}
