//! Rings of threads, against their plain definition. Those through tasks: `task_rings.rs`.

#![cfg(not(feature = "model"))]

use std::collections::BTreeSet;

use proptest::collection::vec;
use proptest::prelude::*;
use waitasync_core::lock::request::{Mode, Request};
use waitasync_core::lock::rings::{self, Has, Link, Seen, confirmed};
use waitasync_core::queue::location::Location;

fn seen(thread: u32, word: usize, mode: Mode, blocked: bool) -> Seen {
    requested(thread, word, if mode == Mode::Shared { Request::Shared } else { Request::Exclusive }, blocked)
}

fn requested(thread: u32, word: usize, request: Request, blocked: bool) -> Seen {
    Seen { location: Location::from_address(4 * word), thread, request: Some(request), blocked }
}

fn rings(held: &[Seen], waiting: &[Seen]) -> Vec<Vec<Link>> {
    rings::rings(held, waiting, &[])
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

fn permits(thread: u32, word: usize, amount: u32, blocked: bool) -> Seen {
    requested(thread, word, Request::Limited { amount, limit: 4 }, blocked)
}

#[test]
fn permits_of_a_limit_keep_those_waiting_who_do_not_fit_beside_them() {
    let held = [permits(1, 10, 2, false), permits(2, 10, 1, true), permits(2, 10, 1, true), permits(3, 11, 4, false)];
    // What a blocked thread holds itself stays. That of another one may be released by another task.
    for (blocked, fits) in [(true, false), (false, true)] {
        let waiting = [permits(1, 10, 1, blocked), permits(2, 10, 1, true)];
        assert_eq!(rings(&held, &waiting).len(), usize::from(!fits));
    }
    let waiting = [permits(1, 10, 3, false), permits(2, 10, 1, true)];
    assert_eq!(threads(&waiting, &rings(&held, &waiting)), [[1, 2]]);
}

#[test]
fn a_claim_for_permits_waits_for_each_claim_ahead_of_it() {
    let held = [permits(1, 10, 1, false), permits(3, 11, 4, true)];
    // The one that is ahead of them all does not fit beside what the first thread holds.
    let mut waiting =
        vec![permits(2, 10, 4, true), permits(1, 10, 1, false), permits(3, 10, 1, true), permits(1, 11, 1, false)];
    let found = rings(&held, &waiting);
    assert_eq!(threads(&waiting, &found), [vec![1, 2], vec![1, 3, 2]]);
    assert_eq!(found[0].iter().map(|link| link.has).collect::<Vec<_>>(), [Has::Held(0), Has::Awaited(0)]);
    // The first of the line fits, and waits for nobody.
    waiting.swap(0, 2);
    assert!(rings(&held, &waiting).is_empty());
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
    let claims = waiting.iter().filter(|claim| claim.thread == a && claim.blocked == blocks && claim.request.is_some());
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
            let request = is_lock.then_some(Request::Lock);
            Seen { request, ..seen(thread, word, Mode::Exclusive, blocked) }
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
