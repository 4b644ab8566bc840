//! Cycles: threads, or tasks, that wait for one another. Those among the holds and waits of one moment are looked for.
//!
//! The rules are those of [`super::obstacles`]. But here promises count, and claims that have a timeout; and of those
//! ahead in its line a claim waits for the nearest that keeps it waiting, which stands for the others.
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
//! searches together [`MOST_STEPS`], and a claim is on [`MOST`] cycles at most: so however many tasks wait for each
//! other, the work has a bound. Each of these cycles has a link that is a promise: those without are found before.

use std::collections::HashSet;
use std::hash::Hash;

use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use super::graph::{Graph, Node, View};
pub use super::graph::{Has, Link, SeenHold, SeenWait};

/// On how many cycles of tasks a claim is.
const MOST: usize = 8;

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

/// Finds a cycle for each thread on any, past claims that it `may_pass`.
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
        let is_there = |cycle: &Vec<Link>| cycle.iter().all(|link| counts.get(&link.waits_for) < Some(&MOST));
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
