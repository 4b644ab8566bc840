//! Cycles in a graph whose nodes wait for one another: [`super::graph_builder`] lists these.

use std::collections::VecDeque;

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Hold, Request};
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

/// An edge. Of those from one claim to the next, one has the hold or place for which the first claim waits.
#[derive(Clone, Copy)]
pub(super) struct Edge {
    pub(super) has: Option<Has>,
    pub(super) to: usize,
}

/// A graph, and the cycles that have been found in it.
#[derive(Default)]
pub(super) struct Graph<'a> {
    pub(super) waiting: &'a [SeenWait],
    /// By node. The first ones are the claims, the next ones their places.
    pub(super) edges: Vec<Vec<Edge>>,
    /// The nodes of threads.
    pub(super) threads: FxHashMap<u32, usize>,
    /// The nodes of callbacks' holds.
    pub(super) tasks: FxHashMap<usize, usize>,
    pub(super) on_cycles: FxHashSet<usize>,
    /// By node, the latest search that reached it; from which node, and by which edge there.
    reached: Vec<(usize, usize, usize)>,
    searches: usize,
}

impl SeenWait {
    pub(super) fn wanted(&self) -> Option<Request> {
        self.request.filter(|request| request.waits_for_holders())
    }
}

impl<'a> Graph<'a> {
    /// Makes the nodes of claims and of their places, without edges.
    pub(super) fn of_claims(waiting: &'a [SeenWait]) -> Self {
        Self { waiting, edges: vec![Vec::new(); 2 * waiting.len()], ..Self::default() }
    }

    /// Finds the shortest cycle through a node, past nodes that `may_pass`.
    pub(super) fn cycle_through(&mut self, start: usize, may_pass: impl Fn(usize) -> bool) -> Option<Vec<Link>> {
        self.searches += 1;
        self.reached.resize(self.edges.len(), Default::default());
        // A step to nobody's hold or place makes a cycle no longer.
        let (mut path, mut further) = (vec![(start, 0)], VecDeque::new());
        loop {
            let step = match path.last_mut() {
                Some((from, n)) if *n < self.edges[*from].len() => {
                    *n += 1;
                    let (step, edge) = ((*from, *n - 1), self.edges[*from][*n - 1]);
                    if edge.to == start {
                        return Some(self.found(start, step));
                    }
                    if edge.has.is_some() {
                        further.push_back(step);
                        continue;
                    }
                    step
                }
                Some(_) => {
                    path.pop();
                    continue;
                }
                None => further.pop_front()?,
            };
            let to = self.edges[step.0][step.1].to;
            if self.reached[to].0 != self.searches && may_pass(to) {
                self.reached[to] = (self.searches, step.0, step.1);
                path.push((to, 0));
            }
        }
    }

    /// Returns the cycle that the last step closes. It begins with the thread that has the smallest number.
    fn found(&mut self, start: usize, last: (usize, usize)) -> Vec<Link> {
        let mut steps = vec![last];
        let (mut node, _) = last;
        while node != start {
            let (_, from, n) = self.reached[node];
            steps.push((from, n));
            node = from;
        }
        let steps: Vec<_> = steps.into_iter().rev().map(|(from, n)| self.edges[from][n]).collect();
        self.on_cycles.extend(steps.iter().map(|step| step.to));
        let has: Vec<_> = steps.iter().filter_map(|step| step.has).collect();
        let has_before = has.last().into_iter().chain(&has);
        let waits_for = steps.iter().map(|step| step.to).filter(|&node| node < self.waiting.len());
        let mut links: Vec<_> = waits_for.zip(has_before).map(|(waits_for, &has)| Link { has, waits_for }).collect();
        let first = (0..links.len()).min_by_key(|&n| (self.waiting[links[n].waits_for].thread, links[n].waits_for));
        links.rotate_left(first.unwrap_or(0));
        links
    }

    /// Finds the strongly connected component of each node, by Tarjan's algorithm. It is known by one of its nodes.
    pub(super) fn groups(&self) -> Vec<usize> {
        const NONE: usize = usize::MAX;
        let mut groups = vec![NONE; self.edges.len()];
        // The order in which nodes are found, and the first of those that a node reaches.
        let (mut numbers, mut firsts) = (groups.clone(), groups.clone());
        let (mut count, mut ungrouped) = (0, Vec::new());
        for root in 0..self.edges.len() {
            let mut path = if numbers[root] == NONE { vec![(root, 0)] } else { Vec::new() };
            while let Some(&mut (node, ref mut next)) = path.last_mut() {
                if numbers[node] == NONE {
                    (numbers[node], firsts[node]) = (count, count);
                    count += 1;
                    ungrouped.push(node);
                }
                match self.edges[node].get(*next).map(|edge| edge.to) {
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
}
