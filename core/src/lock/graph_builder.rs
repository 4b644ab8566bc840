//! Builds a graph of the holds and waits of one moment.
//!
//! | node | its edges lead to |
//! |---|---|
//! | a thread that holds something | its claims |
//! | a callback's hold | the claims that were made within that callback |
//! | a claim | holders that keep it waiting; the nearest claim ahead that does, which stands for those ahead of it |
//! | a place in a line for permits, for those behind it | its claim; the place ahead |
//! | the holders of a word that have at least so much | some nodes of the word's tree |
//! | a node of that tree | two nodes; a leaf: the thread or the callback's hold |
//!
//! The holders of a word are sorted, those that have most first. So the ones that keep a request waiting are the first
//! ones, and one node stands for these, whoever requests so much. Where some of them are the claim's own, it has an
//! edge for each part of the tree between those. So holders and claims cost their sum, and not their product.

use std::cmp::Reverse;
use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};

use super::graph::{Edge, Graph, Has, SeenHold, SeenWait};
use super::obstacles::{beside_own, is_behind, least_weight, weight};
use super::{Hold, Mode, Request};
use crate::queue::Location;

/// Which holds go on together.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum View {
    /// Those of a thread: a promise of it waits for other threads only. But callbacks are tasks.
    Threads,
    /// Those of a blocked thread. Any other hold is of a task, and waits only if claims were made within it.
    Tasks,
}

/// A hold; or what a thread holds of a word, by its first hold.
#[derive(Clone, Copy)]
struct Holder {
    index: usize,
    hold: Hold,
    node: usize,
}

/// The holders of a word. They are the leaves of a tree: the children of its nth node are the ones 2n and 2n + 1.
struct Tree {
    /// Those that have most first: how much, the hold, and the node that it leads to.
    holders: Vec<(Reverse<u64>, usize, usize)>,
    /// The node before the root.
    base: usize,
    /// By number, the node of so many holders: the first ones.
    firsts: FxHashMap<usize, usize>,
}

struct Builder<'a> {
    held: &'a [SeenHold],
    view: View,
    graph: Graph<'a>,
    blocking: FxHashSet<u32>,
    holders: FxHashMap<Location, Vec<Holder>>,
    /// The places among those of what threads hold.
    sums: FxHashMap<(Location, u32), usize>,
    /// By claim, the holds in whose callbacks it was made.
    within: FxHashMap<usize, Vec<usize>>,
    /// By word, and whether it has a limit.
    trees: FxHashMap<(Location, bool), Tree>,
    /// By word, the nearest claim that keeps those behind it waiting; and the nearest of another thread than that one.
    lines: FxHashMap<Location, [Option<usize>; 2]>,
}

fn add_node(all: &mut Vec<Vec<Edge>>, edges: Vec<Edge>) -> usize {
    all.push(edges);
    all.len() - 1
}

impl Builder<'_> {
    /// Whether a hold waits only for claims of its callback. A blocked thread goes on with none of its tasks.
    fn is_of_task(&self, hold: usize) -> bool {
        let SeenHold { thread, in_task, .. } = self.held[hold];
        (in_task || self.view == View::Tasks) && !self.blocking.contains(&thread)
    }

    fn add_keepers(&mut self, within: &[(usize, usize)]) {
        for &(claim, hold) in within {
            if self.is_of_task(hold) {
                self.within.entry(claim).or_default().push(hold);
                self.graph.tasks.entry(hold).or_insert_with(|| add_node(&mut self.graph.edges, Vec::new()));
            }
        }
        for (index, &SeenHold { location, thread, hold, .. }) in self.held.iter().enumerate() {
            let is_of_task = self.is_of_task(index);
            let node = if is_of_task {
                self.graph.tasks.get(&index).copied()
            } else {
                Some(*self.graph.threads.entry(thread).or_insert_with(|| add_node(&mut self.graph.edges, Vec::new())))
            };
            let Some(node) = node else { continue };
            let here = self.holders.entry(location).or_default();
            if self.view == View::Threads && !is_of_task {
                let place = *self.sums.entry((location, thread)).or_insert(here.len());
                if let Some(Holder { hold: sum, .. }) = here.get_mut(place) {
                    *sum = sum.and(hold).unwrap_or(*sum);
                    continue;
                }
            }
            here.push(Holder { index, hold, node });
        }
    }

    fn add_claims(&mut self) {
        for (index, claim) in self.graph.waiting.iter().enumerate() {
            let Some(request) = claim.wanted() else { continue };
            let counts = claim.blocked == self.blocking.contains(&claim.thread);
            let thread = self.graph.threads.get(&claim.thread).filter(|_| counts);
            let tasks = self.within.get(&index).into_iter().flatten().map(|hold| &self.graph.tasks[hold]);
            for &keeper in thread.into_iter().chain(tasks) {
                self.graph.edges[keeper].push(Edge { has: None, to: index });
            }
            self.add_holders(index, request);
            self.add_ahead(index, request);
        }
    }

    /// Returns the holds that go on only with this claim.
    fn own(&self, index: usize, request: Request) -> Vec<(usize, Hold)> {
        let SeenWait { location, thread, .. } = self.graph.waiting[index];
        match self.view {
            View::Threads => {
                let sum = self.sums.get(&(location, thread)).map(|&place| self.holders[&location][place]);
                sum.into_iter().map(|Holder { index, hold, .. }| (index, hold)).collect()
            }
            // Of anything but permits, it waits for itself.
            View::Tasks if request.mode().is_some() => Vec::new(),
            View::Tasks => {
                let within = self.within.get(&index).into_iter().flatten();
                let here = within.filter(|&&hold| self.held[hold].location == location);
                here.map(|&hold| (hold, self.held[hold].hold)).collect()
            }
        }
    }

    /// Adds the holders for which a claim waits: others; and its own task if it can never have enough beside itself.
    fn add_holders(&mut self, index: usize, request: Request) {
        let SeenWait { location, blocked, .. } = self.graph.waiting[index];
        let own = self.own(index, request);
        let stays = blocked || self.view == View::Tasks;
        let request = beside_own(request, own.iter().filter(|_| stays).map(|&(_, own)| own));
        let least = least_weight(request);
        let key = (location, request.mode().is_none());
        let mut tree = match self.trees.remove(&key) {
            Some(tree) => tree,
            None => self.add_tree(location, request),
        };
        let end = tree.holders.partition_point(|&(Reverse(weight), ..)| weight >= least);
        let waits_for_itself = least == 0 && self.view == View::Tasks;
        let place = |(index, own)| {
            let key = (Reverse(weight(own, request)?), index);
            tree.holders.binary_search_by_key(&key, |&(weight, index, _)| (weight, index)).ok()
        };
        let own = own.into_iter().filter(|_| !waits_for_itself);
        let mut own: Vec<_> = own.filter_map(place).filter(|&place| place < end).collect();
        own.sort_unstable();
        let mut start = 0;
        for place in own.into_iter().chain([end]) {
            if start == 0 && place > 1 {
                let to = tree.firsts.get(&place).copied();
                let to = to.unwrap_or_else(|| add_node(&mut self.graph.edges, tree.edges(0..place)));
                tree.firsts.insert(place, to);
                self.graph.edges[index].push(Edge { has: None, to });
            } else {
                self.graph.edges[index].extend(tree.edges(start..place));
            }
            start = place + 1;
        }
        self.trees.insert(key, tree);
    }

    /// Adds the holders of a word, as this request counts them.
    fn add_tree(&mut self, location: Location, request: Request) -> Tree {
        let here = self.holders.get(&location).into_iter().flatten();
        let weighed =
            here.filter_map(|holder| Some((Reverse(weight(holder.hold, request)?), holder.index, holder.node)));
        let mut holders: Vec<_> = weighed.collect();
        holders.sort_unstable();
        let tree = Tree { holders, base: self.graph.edges.len() - 1, firsts: FxHashMap::default() };
        self.graph.edges.extend((1..tree.holders.len()).map(|n| vec![tree.edge(2 * n), tree.edge(2 * n + 1)]));
        tree
    }

    /// Adds the claims ahead for which a claim waits. Called in the order of the line.
    fn add_ahead(&mut self, index: usize, request: Request) {
        let waiting = self.graph.waiting;
        let place_of = |claim: usize| waiting.len() + claim;
        let SeenWait { location, thread, .. } = waiting[index];
        let last = self.lines.entry(location).or_default();
        let all = *last;
        let other = all.into_iter().flatten().find(|&ahead| waiting[ahead].thread != thread);
        let is_for_permits = request.mode().is_none();
        let ahead = if is_for_permits || self.view == View::Tasks { all[0] } else { other };
        let keeps = |ahead: &usize| waiting[*ahead].request.is_some_and(|ahead| is_behind(request, ahead));
        let ahead = ahead.filter(keeps);
        if request.mode() != Some(Mode::Shared) {
            *last = [Some(index), other];
        }
        let ahead = ahead.map(|ahead| {
            let has = (!is_for_permits).then_some(Has::Awaited(ahead));
            Edge { has, to: if is_for_permits { place_of(ahead) } else { ahead } }
        });
        if is_for_permits {
            let itself = Edge { has: Some(Has::Awaited(index)), to: index };
            self.graph.edges[place_of(index)].extend([itself].into_iter().chain(ahead));
        }
        self.graph.edges[index].extend(ahead);
    }
}

impl Tree {
    /// Returns an edge to the nth node.
    fn edge(&self, n: usize) -> Edge {
        match n.checked_sub(self.holders.len()).map(|leaf| self.holders[leaf]) {
            Some((_, hold, to)) => Edge { has: Some(Has::Held(hold)), to },
            None => Edge { has: None, to: self.base + n },
        }
    }

    /// Lists edges that lead just to these holders, in their order.
    fn edges(&self, holders: Range<usize>) -> Vec<Edge> {
        let (mut start, mut end) = (holders.start + self.holders.len(), holders.end + self.holders.len());
        let (mut edges, mut last) = (Vec::new(), Vec::new());
        while start < end {
            edges.extend((start % 2 == 1).then(|| self.edge(start)));
            last.extend((end % 2 == 1).then(|| self.edge(end - 1)));
            (start, end) = (start.div_ceil(2), end / 2);
        }
        edges.extend(last.into_iter().rev());
        edges
    }
}

/// Builds the graph; the arguments are those of `cycles`.
pub(super) fn graph<'a>(
    view: View,
    held: &'a [SeenHold],
    waiting: &'a [SeenWait],
    within: &[(usize, usize)],
) -> Graph<'a> {
    let blocking = waiting.iter().filter(|claim| claim.blocked).map(|claim| claim.thread).collect();
    let (holders, sums, within_of, trees, lines) = Default::default();
    let graph = Graph::of_claims(waiting);
    let mut builder = Builder { held, view, graph, blocking, holders, sums, within: within_of, trees, lines };
    builder.add_keepers(within);
    builder.add_claims();
    builder.graph
}
