//! Snapshots, cycles and their texts, of agents that play.

#![cfg(not(feature = "model"))]

mod fixtures;

use fixtures::players::{Player, process};
use waitasync_core::lock::{Hold, Request};
use waitasync_core::observe::{Snapshot, table};
use waitasync_core::queue::Location;

const WORDS: [Location; 2] = [Location::from_address(0x1000), Location::from_address(0x2000)];

/// Two threads, each with a lock that the other one waits for.
fn crossed(blocked: [bool; 2]) -> Snapshot {
    let process = process();
    let [mut one, mut other] = [1, 2].map(|thread_id| Player::new(&process, thread_id, 4));
    one.holds(WORDS[0], Hold::Lock);
    other.holds(WORDS[1], Hold::Lock);
    one.waits(WORDS[1], Request::Lock, blocked[0]);
    other.waits(WORDS[0], Request::Lock, blocked[1]);
    Snapshot::take(&process)
}

#[test]
fn a_snapshot_has_the_holds_the_waits_and_their_cycle() {
    for blocked in [[true, true], [true, false], [false, false]] {
        let snapshot = crossed(blocked);
        let mut held: Vec<_> = snapshot.held.iter().map(|entry| (entry.thread_id, entry.location)).collect();
        held.sort_unstable_by_key(|&(thread_id, _)| thread_id);
        assert_eq!(held, [(1, WORDS[0]), (2, WORDS[1])]);
        let mut waiting: Vec<_> = snapshot.waiting.iter().map(|entry| (entry.thread_id, entry.blocked)).collect();
        waiting.sort_unstable();
        assert_eq!(waiting, [(1, blocked[0]), (2, blocked[1])]);
        assert_eq!(snapshot.cycles.iter().map(Vec::len).collect::<Vec<_>>(), [2]);
        let text = table::text_of(&snapshot.rows());
        let certain = text.contains("These threads wait for one another:");
        let probable = text.contains("These threads probably wait for one another:");
        assert_eq!((certain, probable), (blocked == [true, true], blocked != [true, true]), "{text}");
        assert!(text.contains("held for at least") && text.contains("by thread 2"), "{text}");
    }
}

#[test]
fn threads_that_wait_for_one_holder_are_on_no_cycle() {
    let process = process();
    let [mut holder, mut one, mut other] = [0, 1, 2].map(|thread_id| Player::new(&process, thread_id, 4));
    holder.holds(WORDS[0], Hold::Lock);
    one.holds(WORDS[1], Hold::Lock);
    one.waits(WORDS[0], Request::Lock, true);
    other.waits(WORDS[0], Request::Lock, false);
    let snapshot = Snapshot::take(&process);
    assert_eq!((snapshot.held.len(), snapshot.waiting.len(), snapshot.cycles.len()), (2, 2, 0));
    assert_eq!(snapshot.waiting.iter().map(|entry| entry.thread_id).collect::<Vec<_>>(), [1, 2], "in their order");
}
