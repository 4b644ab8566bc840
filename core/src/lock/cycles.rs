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
//! Each hold of a task that is on a cycle is in one group with all that it reaches and is reached from. Of each group
//! cycles are looked for through one hold after the other that is on no earlier one, the shortest ones, but no more
//! than [`MOST`]: so the work is in proportion to the holds and waits, however many tasks wait for each other. Each of
//! these cycles has a link that is a promise: those without are found before.

use std::collections::HashSet;
use std::hash::Hash;

use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use super::graph::Graph;
pub use super::graph::{Has, Link, SeenHold, SeenWait};
use super::graph_builder::{View, graph};

/// How many cycles of a group of tasks are looked for.
const MOST: usize = 8;

/// Finds the cycles among holds and waits. A thread's holds of one word are neighbours, and the claims of a word are in
/// the order of its line. `within`: pairs of a claim and of a hold in whose callback it was made.
pub fn cycles(held: &[SeenHold], waiting: &[SeenWait], within: &[(usize, usize)]) -> Vec<Vec<Link>> {
    let mut graph = graph(View::Threads, held, waiting, within);
    let is_promise = |node: usize| waiting.get(node).is_some_and(|claim| !claim.blocked);
    let mut cycles = thread_cycles(&mut graph, |node| !is_promise(node));
    let of_tasks = if within.is_empty() { Vec::new() } else { task_cycles(held, waiting, within) };
    for cycle in &of_tasks {
        // If it has one thread, others may go through that, too.
        let threads: FxHashSet<_> = cycle.iter().map(|link| waiting[link.waits_for].thread).collect();
        let nodes = threads.iter().filter(|_| threads.len() > 1).filter_map(|thread| graph.threads.get(thread));
        graph.on_cycles.extend(nodes);
    }
    cycles.extend(of_tasks);
    cycles.extend(thread_cycles(&mut graph, |_| true));
    cycles
}

/// Finds a cycle for each thread on any, past nodes that `may_pass`.
fn thread_cycles(graph: &mut Graph, may_pass: impl Fn(usize) -> bool) -> Vec<Vec<Link>> {
    let mut threads: Vec<_> = graph.threads.values().copied().collect();
    threads.sort_unstable();
    let cycle = |node| if graph.on_cycles.contains(&node) { None } else { graph.cycle_through(node, &may_pass) };
    threads.into_iter().filter_map(cycle).collect()
}

/// Finds cycles through holds in whose callbacks claims were made.
fn task_cycles(held: &[SeenHold], waiting: &[SeenWait], within: &[(usize, usize)]) -> Vec<Vec<Link>> {
    let mut graph = graph(View::Tasks, held, waiting, within);
    let groups = graph.groups();
    let mut found = FxHashMap::<usize, usize>::default();
    let mut holds: Vec<_> = graph.tasks.values().copied().collect();
    holds.sort_unstable();
    let mut cycles = Vec::new();
    for node in holds {
        let count = found.entry(groups[node]).or_default();
        if graph.on_cycles.contains(&node) || *count >= MOST {
            continue;
        }
        let cycle = graph.cycle_through(node, |other| groups[other] == groups[node]);
        // Without a cycle it is alone in its group.
        *count = if cycle.is_some() { *count + 1 } else { MOST };
        cycles.extend(cycle);
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
