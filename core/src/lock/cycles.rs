//! Cycles: threads, or tasks, that wait for one another. Those among the holds and waits of one moment are looked for.
//!
//! The rules are those of [`super::wait_for_graph`]. But here promises count, and claims that have a timeout; and of those
//! ahead in its line a claim waits for the nearest that keeps it waiting, which stands for the others. (For permits it
//! waits for each of them.)
//!
//! # Threads
//! A blocked thread waits only for the word that it blocks for: its promises cannot go on before. Any other thread
//! waits for the words that each of its promises waits for, except for its own holds: another task of it may release
//! those. But the hold of a callback waits only for the claims that were made within that: without any it is no link of
//! a cycle.
//!
//! # Tasks
//! A callback with a hold waits, probably, for the requests in its asynchronous context:
//!
//! | | is kept waiting by |
//! |---|---|
//! | a callback's holds | each claim that was made within the callback |
//! | a blocked thread's holds | the claim that it blocks for |
//! | a claim | the same as that of a thread, but each hold counts for itself, also those of its own thread |
//!
//! A task's holds of which it requests more permits stay while it waits: they count together with its request.
//!
//! # Which are returned
//! Each thread that is on a cycle is on one of those that are returned, and none is returned twice: cycles of blocked
//! threads come first, then those through tasks, and a cycle is looked for only through a thread that is on no earlier
//! one of several threads. So there are no more of these cycles than threads, and the work is that of one breadth-first
//! search for each thread that both holds and waits.
//!
//! Those through tasks are only probable, and looked for if stalls are reported. A search goes [`LONGEST`] steps, all
//! searches together [`MOST_STEPS`], and a claim is on [`MOST_CYCLES`] at most: so however many tasks wait for each
//! other, the work has a bound. Each of these cycles has a link that is a promise: those without are found before.
//!
//! What a claim waits for is looked up when a search comes there. Of the callbacks that hold a word, the first [`MOST`]
//! count: so that costs the same however many there are.

use std::collections::{HashSet, VecDeque};
use std::hash::Hash;

use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use super::wait_for_graph::{beside_own, is_behind, is_kept_by};
use super::{Hold, Mode, Request};
use crate::queue::Location;

/// How many callbacks that hold a word count.
const MOST: usize = 256;

/// On how many cycles of tasks a claim is.
const MOST_CYCLES: usize = 8;

/// How many claims a search for a cycle of tasks reaches; and how many all searches do.
const LONGEST: usize = 1_000;
const MOST_STEPS: usize = 200_000;

/// Finds the cycles among holds and waits. A thread's holds of one word are neighbours, and the claims of a word are in
/// the order of its line. `within`: pairs of a claim and of a hold in whose callback it was made.
pub fn cycles(held: &[SeenHold], waiting: &[SeenWait], within: &[(usize, usize)]) -> Vec<Vec<Link>> {
    let mut graph = Graph::new(View::Threads, held, waiting, within);
    let mut cycles = thread_cycles(&mut graph, |claim| waiting[claim].blocked);
    let of_tasks = if within.is_empty() { Vec::new() } else { task_cycles(held, waiting, within) };
    for cycle in &of_tasks {
        // If it has one thread, others may go through that, too.
        let threads: FxHashSet<_> = cycle.iter().map(|link| waiting[link.waits_for].thread).collect();
        graph.on_cycles.extend(threads.iter().filter(|_| threads.len() > 1).map(|&thread| Node::Thread(thread)));
    }
    cycles.extend(of_tasks);
    cycles.extend(thread_cycles(&mut graph, |_| true));
    cycles
}

/// Finds a cycle for each thread on any. It passes claims that it `may_pass`.
fn thread_cycles(graph: &mut Graph<'_>, may_pass: impl Fn(usize) -> bool) -> Vec<Vec<Link>> {
    let mut unlimited = usize::MAX;
    let holders = graph.holders().into_iter();
    holders.filter_map(|thread| graph.cycle_through(thread, &mut unlimited, &may_pass)).collect()
}

/// Finds cycles through holds in whose callbacks claims were made.
fn task_cycles(held: &[SeenHold], waiting: &[SeenWait], within: &[(usize, usize)]) -> Vec<Vec<Link>> {
    let mut graph = Graph::new(View::Tasks, held, waiting, within);
    let mut counts = FxHashMap::<usize, usize>::default();
    let mut left = MOST_STEPS;
    let mut cycles = Vec::new();
    for node in graph.holders() {
        let most = left.min(LONGEST);
        let mut steps = most;
        let cycle = graph.cycle_through(node, &mut steps, |_| true);
        left -= most - steps;
        let is_there = |cycle: &Vec<Link>| cycle.iter().all(|link| counts.get(&link.waits_for) < Some(&MOST_CYCLES));
        let Some(cycle) = cycle.filter(is_there) else { continue };
        for link in &cycle {
            *counts.entry(link.waits_for).or_default() += 1;
        }
        cycles.push(cycle);
    }
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

#[derive(Clone, Copy, Debug)]
pub struct SeenHold {
    pub location: Location,
    /// By its number.
    pub thread: u32,
    pub hold: Hold,
    /// Whether a callback holds this of which it is known what it claims.
    pub in_task: bool,
}

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

/// Who holds something.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Node {
    Thread(u32),
    /// The callback with this hold.
    Task(usize),
}

/// Which holds go on together.
#[derive(Clone, Copy, PartialEq, Eq)]
enum View {
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
struct Graph<'a> {
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
    on_cycles: FxHashSet<Node>,
}

impl<'a> Graph<'a> {
    /// Makes the graph. The arguments are those of `cycles`.
    fn new(view: View, held: &'a [SeenHold], waiting: &'a [SeenWait], within: &[(usize, usize)]) -> Self {
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
            let node = graph.holder(index);
            let here = graph.holders.entry(location).or_default();
            let counts = graph.claims.contains_key(&node) && (node == Node::Thread(thread) || here.len() < MOST);
            let same = here.iter_mut().rev().take_while(|other| held[other.index].thread == thread);
            let same = same.into_iter().find(|other| view == View::Threads && other.node == node);
            match same {
                Some(sum) => sum.hold = sum.hold.and(hold).unwrap_or(sum.hold),
                None if counts => here.push(Holder { index, hold, node }),
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

    fn holder(&self, hold: usize) -> Node {
        if self.is_of_task(hold) { Node::Task(hold) } else { Node::Thread(self.held[hold].thread) }
    }

    /// Lists those that may be on cycles: threads, or tasks, that hold something and wait.
    fn holders(&self) -> Vec<Node> {
        let is_sought = |node: &Node| matches!(node, Node::Task(_)) == (self.view == View::Tasks);
        let mut nodes: Vec<_> = self.holders.values().flatten().map(|holder| holder.node).filter(is_sought).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// Lists the holders that keep a claim with this request waiting. `its`: the holds of its task that count with it.
    fn keepers(&self, claim: usize, request: Request, its: Option<&Vec<usize>>) -> impl Iterator<Item = &Holder> {
        let SeenWait { location, thread, blocked, .. } = self.waiting[claim];
        // A thread's own holds do not keep it waiting, nor do the permits of its task.
        let is_own = move |holder: &Holder| match self.view {
            View::Threads => holder.node == Node::Thread(thread),
            View::Tasks => its.is_some_and(|its| its.contains(&holder.index)),
        };
        let holders = self.holders.get(&location).map_or(&[][..], Vec::as_slice);
        let stays = blocked || self.view == View::Tasks;
        let own = holders.iter().filter(|holder| stays && is_own(holder)).map(|holder| holder.hold);
        let beside = beside_own(request, own);
        // It can never have enough: then its own task is what it waits for, too.
        let waits_for_itself = self.view == View::Tasks && is_kept_by(beside, Hold::Limited(0));
        let others = holders.iter().filter(move |holder| waits_for_itself || !is_own(holder));
        others.filter(move |holder| is_kept_by(beside, holder.hold))
    }

    /// Finds the shortest cycle through a holder that is on none yet.
    ///
    /// The cycle begins with the thread that has the smallest number.
    /// The search reaches so many claims at most, and only those that it `may_pass`.
    fn cycle_through(&mut self, start: Node, steps: &mut usize, may_pass: impl Fn(usize) -> bool) -> Option<Vec<Link>> {
        let is_new = !self.on_cycles.contains(&start);
        let search = Search { may_pass, steps, reached: FxHashMap::default(), further: VecDeque::new() };
        let mut links = is_new.then(|| search.run(self, start)).flatten()?;
        for link in &links {
            if let Has::Held(index) = link.has {
                self.on_cycles.insert(self.holder(index));
            }
        }
        let first = (0..links.len()).min_by_key(|&n| (self.waiting[links[n].waits_for].thread, links[n].waits_for));
        links.rotate_left(first.unwrap_or(0));
        Some(links)
    }
}

/// A breadth-first search among claims.
struct Search<'a, F> {
    may_pass: F,
    steps: &'a mut usize,
    /// By claim, the one from which it was reached, and that one's obstacle. The first ones have none.
    reached: FxHashMap<usize, Option<(usize, Has)>>,
    further: VecDeque<usize>,
}

impl<F: Fn(usize) -> bool> Search<'_, F> {
    fn reach(&mut self, claim: usize, from: Option<(usize, Has)>) {
        if *self.steps > 0 && (self.may_pass)(claim) && !self.reached.contains_key(&claim) {
            *self.steps -= 1;
            self.reached.insert(claim, from);
            self.further.push_back(claim);
        }
    }

    fn run(mut self, graph: &Graph<'_>, start: Node) -> Option<Vec<Link>> {
        // Whose claims have been reached; behind which claims all have been; for which claims holders were looked at.
        let (mut nodes, mut passed, mut looked) = (FxHashSet::default(), FxHashSet::default(), FxHashSet::default());
        graph.claims[&start].iter().for_each(|&claim| self.reach(claim, None));
        while let Some(claim) = self.further.pop_front() {
            let SeenWait { location, thread, request: Some(request), .. } = graph.waiting[claim] else { continue };
            let is_for_permits = request.mode().is_none();
            let its = graph.within.get(&claim).filter(|_| is_for_permits);
            if looked.insert((location, request, thread)) || its.is_some() {
                for &Holder { index, node, .. } in graph.keepers(claim, request, its) {
                    if node == start {
                        return Some(self.cycle(claim, Has::Held(index)));
                    }
                    if nodes.insert(node) {
                        let from = Some((claim, Has::Held(index)));
                        graph.claims[&node].iter().for_each(|&next| self.reach(next, from));
                    }
                }
            }
            let mut ahead = graph.ahead.get(&claim);
            while let Some(&next) = ahead {
                self.reach(next, Some((claim, Has::Awaited(next))));
                ahead = graph.ahead.get(&next).filter(|_| is_for_permits && *self.steps > 0 && passed.insert(next));
            }
        }
        None
    }

    /// Returns the cycle that the last claim closes.
    fn cycle(&self, last: usize, closing: Has) -> Vec<Link> {
        let before = |&waits_for: &usize| self.reached[&waits_for].map(|(before, _)| before);
        let claims = std::iter::successors(Some(last), before);
        let link = |waits_for| Link { has: self.reached[&waits_for].map_or(closing, |(_, has)| has), waits_for };
        let mut links: Vec<_> = claims.map(link).collect();
        links.reverse();
        links
    }
}
