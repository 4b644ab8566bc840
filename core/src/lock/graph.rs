//! Who waits for whom among the holds and waits of one moment.
//!
//! | node | waits for |
//! |---|---|
//! | a thread that holds something | its claims |
//! | a callback's hold | the claims that were made within that callback |
//! | a claim | the holders that keep it waiting; the nearest claim ahead that does, which stands for those ahead of it |
//! | a place in a line for permits, for those behind it | its claim; the place ahead |
//!
//! What a claim waits for is looked up when a search comes there. Of the callbacks that hold a word, the first [`MOST`]
//! count: so that costs the same however many there are.

use std::collections::VecDeque;

use rustc_hash::{FxHashMap, FxHashSet};

use super::obstacles::{beside_own, is_behind, is_kept_by};
use super::{Hold, Mode, Request};
use crate::queue::Location;

/// How many callbacks that hold a word count.
const MOST: usize = 256;

/// A thread's hold of a word.
#[derive(Clone, Copy, Debug)]
pub struct SeenHold {
    pub location: Location,
    /// By its number.
    pub thread: u32,
    pub hold: Hold,
    /// Whether a callback holds this of which it is known what it claims.
    pub in_task: bool,
}

/// A thread's wait for a word.
#[derive(Clone, Copy, Debug)]
pub struct SeenWait {
    pub location: Location,
    /// By its number.
    pub thread: u32,
    /// `None` for a wait for a notification.
    pub request: Option<Request>,
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

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// The hold or place that the link before waits for; of the first one, the last.
    pub has: Has,
    /// The index of the thread's wait.
    pub waits_for: usize,
}

/// Who waits for something.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Node {
    Thread(u32),
    /// The callback with this hold.
    Task(usize),
    Claim(usize),
    /// The place of this claim, for those behind it.
    Place(usize),
}

/// What a node waits for. On the way from a thread, task or place it may have nothing.
#[derive(Clone, Copy)]
struct Edge {
    has: Option<Has>,
    to: Node,
}

/// Which holds go on together.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum View {
    /// Those of a thread: a promise of it waits for other threads only. But callbacks are tasks.
    Threads,
    /// Those of a blocked thread. Any other hold is of a task, and waits only if claims were made within it.
    Tasks,
}

/// A hold; or the permits that a thread has of a word, by its first hold.
#[derive(Clone, Copy)]
struct Holder {
    index: usize,
    hold: Hold,
    node: Node,
}

/// A graph, and the cycles that have been found in it.
pub(super) struct Graph<'a> {
    held: &'a [SeenHold],
    waiting: &'a [SeenWait],
    view: View,
    blocking: FxHashSet<u32>,
    holders: FxHashMap<Location, Vec<Holder>>,
    /// By claim, the nearest one ahead that keeps it waiting.
    ahead: FxHashMap<usize, usize>,
    /// The claims of threads, and of tasks.
    claims: FxHashMap<Node, Vec<usize>>,
    /// By claim, the holds in whose callbacks it was made.
    within: FxHashMap<usize, Vec<usize>>,
    pub(super) on_cycles: FxHashSet<Node>,
}

impl<'a> Graph<'a> {
    /// Makes the graph. The arguments are those of `cycles`.
    pub(super) fn new(view: View, held: &'a [SeenHold], waiting: &'a [SeenWait], within: &[(usize, usize)]) -> Self {
        let blocking = waiting.iter().filter(|claim| claim.blocked).map(|claim| claim.thread).collect();
        let (holders, ahead, claims, within_of, on_cycles) = Default::default();
        let mut graph = Self { held, waiting, view, blocking, holders, ahead, claims, within: within_of, on_cycles };
        let waits_for_holders = |index: usize| waiting[index].request.filter(|request| request.waits_for_holders());
        // By word, the nearest claim that keeps others waiting; and the nearest of another thread than that one.
        let mut lines = FxHashMap::<Location, [Option<usize>; 2]>::default();
        for (index, &SeenWait { location, thread, blocked, .. }) in waiting.iter().enumerate() {
            let Some(request) = waits_for_holders(index) else { continue };
            if blocked == graph.blocking.contains(&thread) {
                graph.claims.entry(Node::Thread(thread)).or_default().push(index);
            }
            let last = lines.entry(location).or_default();
            let other = last.iter().copied().flatten().find(|&ahead| waiting[ahead].thread != thread);
            let nearest = if request.mode().is_none() || view == View::Tasks { last[0] } else { other };
            let keeps = |ahead: &usize| waiting[*ahead].request.is_some_and(|ahead| is_behind(request, ahead));
            graph.ahead.extend(nearest.filter(keeps).map(|ahead| (index, ahead)));
            if request.mode() != Some(Mode::Shared) {
                *last = [Some(index), other];
            }
        }
        for &(claim, hold) in within.iter().filter(|(claim, _)| waits_for_holders(*claim).is_some()) {
            if graph.is_of_task(hold) {
                graph.within.entry(claim).or_default().push(hold);
                graph.claims.entry(Node::Task(hold)).or_default().push(claim);
            }
        }
        for (index, &SeenHold { location, thread, hold, .. }) in held.iter().enumerate() {
            let is_of_task = graph.is_of_task(index);
            let node = if is_of_task { Node::Task(index) } else { Node::Thread(thread) };
            let here = graph.holders.entry(location).or_default();
            let counts = graph.claims.contains_key(&node) && !(is_of_task && here.len() >= MOST);
            let same = here.iter_mut().rev().take_while(|other| held[other.index].thread == thread);
            let same = same.into_iter().find(|other| view == View::Threads && other.node == node);
            match same {
                Some(sum) => sum.hold = sum.hold.and(hold).unwrap_or(sum.hold),
                None if counts => {
                    here.push(Holder { index, hold, node });
                }
                None => {}
            }
        }
        graph
    }

    /// Whether a hold waits only for claims of its callback. A blocked thread goes on with none of its tasks.
    fn is_of_task(&self, hold: usize) -> bool {
        let SeenHold { thread, in_task, .. } = self.held[hold];
        (in_task || self.view == View::Tasks) && !self.blocking.contains(&thread)
    }

    /// Lists those that may be on cycles: threads, or tasks, that hold something and wait.
    pub(super) fn holders(&self) -> Vec<Node> {
        let is_sought = |node: &Node| matches!(node, Node::Task(_)) == (self.view == View::Tasks);
        let mut nodes: Vec<_> = self.holders.values().flatten().map(|holder| holder.node).filter(is_sought).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// Calls `visit` for all that a node waits for. `looked`: at the holders of which claims this search has looked.
    fn edges(&self, node: Node, looked: &mut FxHashSet<(Location, Request, u32)>, mut visit: impl FnMut(Edge)) {
        let index = match node {
            Node::Thread(_) | Node::Task(_) => {
                let claims = self.claims.get(&node).into_iter().flatten();
                return claims.for_each(|&claim| visit(Edge { has: None, to: Node::Claim(claim) }));
            }
            Node::Place(claim) => {
                visit(Edge { has: Some(Has::Awaited(claim)), to: Node::Claim(claim) });
                return self.ahead.get(&claim).into_iter().for_each(|&ahead| {
                    visit(Edge { has: None, to: Node::Place(ahead) });
                });
            }
            Node::Claim(index) => index,
        };
        let SeenWait { location, thread, request: Some(request), blocked } = self.waiting[index] else { return };
        let is_for_permits = request.mode().is_none();
        // A thread's own holds do not keep it waiting, nor do the permits of its task: they count with the request.
        let its = self.within.get(&index).filter(|_| is_for_permits);
        let is_own = |holder: &Holder| match self.view {
            View::Threads => holder.node == Node::Thread(thread),
            View::Tasks => its.is_some_and(|its| its.contains(&holder.index)),
        };
        if looked.insert((location, request, thread)) || its.is_some() {
            let holders = self.holders.get(&location).map_or(&[][..], Vec::as_slice);
            let stays = blocked || self.view == View::Tasks;
            let own = holders.iter().filter(|holder| stays && is_own(holder)).map(|holder| holder.hold);
            let beside = beside_own(request, own);
            // It can never have enough: then its own task is what it waits for, too.
            let waits_for_itself = self.view == View::Tasks && is_kept_by(beside, Hold::Limited(0));
            let others = holders.iter().filter(|holder| waits_for_itself || !is_own(holder));
            for &Holder { index, node: to, .. } in others.filter(|holder| is_kept_by(beside, holder.hold)) {
                visit(Edge { has: Some(Has::Held(index)), to });
            }
        }
        match self.ahead.get(&index) {
            Some(&ahead) if is_for_permits => visit(Edge { has: None, to: Node::Place(ahead) }),
            Some(&ahead) => visit(Edge { has: Some(Has::Awaited(ahead)), to: Node::Claim(ahead) }),
            None => {}
        }
    }

    /// Finds the shortest cycle through a node, in so many steps.
    ///
    /// It goes past nodes that `may_pass`.
    pub(super) fn cycle_through(
        &mut self,
        start: Node,
        steps: &mut usize,
        may_pass: impl Fn(Node) -> bool,
    ) -> Option<Vec<Link>> {
        // From where, and how, each node was reached first.
        let mut reached: FxHashMap<Node, (Node, Option<Has>)> = FxHashMap::default();
        let (mut looked, mut further) = (FxHashSet::default(), VecDeque::<(Node, Edge)>::new());
        let mut from = start;
        loop {
            *steps = steps.checked_sub(1)?;
            let mut last = None;
            self.edges(from, &mut looked, |edge| {
                if edge.to == start {
                    last = last.or(edge.has);
                } else if edge.has.is_some() {
                    further.push_back((from, edge));
                } else {
                    // A step to nobody's hold or place makes a cycle no longer.
                    further.push_front((from, edge));
                }
            });
            if last.is_some() {
                return Some(self.found(start, (from, last), &reached));
            }
            from = loop {
                let (before, Edge { has, to }) = further.pop_front()?;
                if !reached.contains_key(&to) && may_pass(to) {
                    reached.insert(to, (before, has));
                    break to;
                }
            };
        }
    }

    /// Returns the cycle that the last step closes. It begins with the thread that has the smallest number.
    fn found(
        &mut self,
        start: Node,
        last: (Node, Option<Has>),
        reached: &FxHashMap<Node, (Node, Option<Has>)>,
    ) -> Vec<Link> {
        let mut steps = vec![(start, last.1)];
        let (mut node, _) = last;
        while node != start {
            let (from, has) = reached[&node];
            steps.push((node, has));
            node = from;
        }
        steps.reverse();
        self.on_cycles.extend(steps.iter().map(|&(node, _)| node));
        let has: Vec<_> = steps.iter().filter_map(|&(_, has)| has).collect();
        let has_before = has.last().into_iter().chain(&has);
        let claims =
            steps.iter().filter_map(|&(node, _)| if let Node::Claim(claim) = node { Some(claim) } else { None });
        let mut links: Vec<_> = claims.zip(has_before).map(|(waits_for, &has)| Link { has, waits_for }).collect();
        let first = (0..links.len()).min_by_key(|&n| (self.waiting[links[n].waits_for].thread, links[n].waits_for));
        links.rotate_left(first.unwrap_or(0));
        links
    }
}
