//! The parts of cycles: holds, waits, links, and turns in a line; and the search for cycles in a graph.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Hold, Mode, Request};
use crate::queue::Location;

/// A thread's hold of a word.
#[derive(Clone, Copy, Debug)]
pub struct SeenHold {
    /// Of which word.
    pub location: Location,
    /// By its number.
    pub thread: u32,
    /// What it has.
    pub hold: Hold,
    /// Whether a callback holds this of which it is known what it claims.
    pub in_task: bool,
}

/// A thread's wait for a word.
#[derive(Clone, Copy, Debug)]
pub struct SeenWait {
    /// For which word.
    pub location: Location,
    /// By its number.
    pub thread: u32,
    /// `None` for a wait for a notification.
    pub request: Option<Request>,
    /// Whether the thread blocks for this.
    pub blocked: bool,
}

impl SeenWait {
    pub(super) fn wanted(&self) -> Option<Request> {
        self.request.filter(|request| request.waits_for_holders())
    }
}

/// A thread's hold or place that keeps another one waiting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Has {
    /// It holds this.
    Held(usize),
    /// It awaits this, ahead in the line.
    Awaited(usize),
}

/// A thread of a cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// The hold or place that the link before waits for; of the first one, the last.
    pub has: Has,
    /// The index of the thread's wait.
    pub waits_for: usize,
}

/// Finds which claims ahead keep one waiting. It is given a word's claims in the order of its line.
#[derive(Default)]
pub(super) struct Turns {
    /// By word, the nearest claim that keeps those behind it waiting; and the nearest of another thread than that one.
    last: FxHashMap<Location, (usize, Option<usize>)>,
}

impl Turns {
    /// Finds the nearest claim ahead that counts and keeps this one waiting.
    pub(super) fn next(&mut self, waiting: &[SeenWait], index: usize, counts: impl Fn(u32) -> bool) -> Option<usize> {
        let SeenWait { location, thread, .. } = waiting[index];
        let request = waiting[index].wanted()?;
        let last = self.last.get(&location).copied();
        let thread_of = |index: usize| waiting[index].thread;
        if request.mode() != Some(Mode::Shared) {
            let other =
                last.and_then(|(nearest, other)| if thread_of(nearest) == thread { other } else { Some(nearest) });
            self.last.insert(location, (index, other));
        }
        // Whoever is ahead of a writer waits for a holder for which the writer waits itself.
        let ahead = last.filter(|_| !request.is_exclusive());
        ahead
            .into_iter()
            .flat_map(|(nearest, other)| [Some(nearest), other])
            .flatten()
            .find(|&index| counts(thread_of(index)))
    }
}

/// An edge. Those of a cycle have, one after the other, each of its waits, and the hold that it waits for.
#[derive(Clone, Copy)]
pub(super) struct Edge {
    pub(super) waits_for: Option<usize>,
    pub(super) has: Option<Has>,
    pub(super) to: usize,
}

/// A directed graph, and the cycles that have been found in it.
#[derive(Default)]
pub(super) struct Graph {
    /// By node.
    pub(super) edges: Vec<Vec<Edge>>,
    pub(super) on_cycles: FxHashSet<usize>,
    /// By node, the latest search that reached it; from which node, and by which edge there.
    reached: Vec<(usize, usize, usize)>,
    searches: usize,
}

impl Graph {
    pub(super) fn add_node(&mut self) -> usize {
        self.edges.push(Vec::new());
        self.edges.len() - 1
    }

    /// Finds the shortest cycle through a node, past nodes that `may_pass`.
    pub(super) fn cycle_through(
        &mut self,
        start: usize,
        waiting: &[SeenWait],
        may_pass: impl Fn(usize) -> bool,
    ) -> Option<Vec<Link>> {
        self.searches += 1;
        self.reached.resize(self.edges.len(), Default::default());
        let mut order = vec![start];
        let mut next = 0;
        while let Some(&from) = order.get(next) {
            next += 1;
            for (n, edge) in self.edges[from].iter().enumerate() {
                if edge.to == start {
                    let cycle = self.path(start, from, *edge);
                    self.on_cycles.extend(cycle.iter().map(|edge| edge.to));
                    return Some(links(&cycle, waiting));
                }
                if self.reached[edge.to].0 != self.searches && may_pass(edge.to) {
                    self.reached[edge.to] = (self.searches, from, n);
                    order.push(edge.to);
                }
            }
        }
        None
    }

    /// Lists the search's edges up to `node`, and then `last`.
    fn path(&self, start: usize, mut node: usize, last: Edge) -> Vec<Edge> {
        let mut path = vec![last];
        while node != start {
            let (_, from, n) = self.reached[node];
            path.push(self.edges[from][n]);
            node = from;
        }
        path.reverse();
        path
    }
}

/// Returns the links of a cycle. It begins with the thread that has the smallest number.
fn links(cycle: &[Edge], waiting: &[SeenWait]) -> Vec<Link> {
    let has: Vec<_> = cycle.iter().filter_map(|edge| edge.has).collect();
    let has_before = has.last().into_iter().chain(&has);
    let waits_for = cycle.iter().filter_map(|edge| edge.waits_for);
    let mut links: Vec<_> = waits_for.zip(has_before).map(|(waits_for, &has)| Link { has, waits_for }).collect();
    let first = (0..links.len()).min_by_key(|&n| (waiting[links[n].waits_for].thread, links[n].waits_for));
    links.rotate_left(first.unwrap_or(0));
    links
}
