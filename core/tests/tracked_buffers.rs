//! Abandoned locks are forgotten with their memory: as far as the end of a memory can be known.

#![cfg(not(feature = "model"))]

mod fixtures;

use std::cell::Cell;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use fixtures::any_abandoned_near;
use fixtures::random::{Random, RngExt, SeedableRng};
use waitasync_core::clock::now;
use waitasync_core::lock::tracked_buffers::{AgentId, Ended, Left, MOST_ENDED, MOST_LEFT, TrackedBuffers};
use waitasync_core::lock::{Hold, LOCKED, WaiterListStore};
use waitasync_core::queue::{Location, WaitResult};

const BASE: usize = 0x10_0000;
const LENGTH: usize = 4096;

const MAIN: AgentId = 1;
const WORKER: AgentId = 2;
const OTHER: AgentId = 3;

thread_local! {
    /// Whether the memories of which no object is known have been freed.
    static FREED: Cell<bool> = const { Cell::new(false) };
}

fn find_freed(memories: Vec<Range<usize>>) -> Vec<Range<usize>> {
    if FREED.get() { memories } else { Vec::new() }
}

struct Process {
    store: WaiterListStore,
    tracked_buffers: TrackedBuffers,
}

fn ended(thread_id: u32) -> Arc<Ended> {
    Arc::new(Ended { thread_id, thread_name: None, manner: 0, at: now() })
}

impl Process {
    fn new() -> Self {
        FREED.set(false);
        Self { store: WaiterListStore::new(256, now), tracked_buffers: TrackedBuffers::new(find_freed) }
    }

    /// Where these agents have made a lock on a buffer object each.
    fn of(agents: &[AgentId]) -> Self {
        let process = Self::new();
        for &agent in agents {
            process.register(agent);
        }
        process
    }

    /// The agent makes a lock on another buffer object.
    fn register(&self, agent: AgentId) {
        self.tracked_buffers.register(&self.store, agent, BASE, LENGTH);
    }

    /// One of the agent's buffer objects is collected.
    fn lose(&self, agent: AgentId) -> Left {
        let left = self.tracked_buffers.lose(&self.store, agent, BASE, 1);
        assert!(left != Left::Nothing || !self.store.any_abandoned_in(&(BASE..BASE + LENGTH)));
        left
    }

    /// The agent, which has made locks on that many objects, ends without a lock.
    fn end(&self, agent: AgentId, objects: usize) -> Left {
        self.tracked_buffers.end(&self.store, agent, BASE, objects, &ended(0))
    }

    /// A thread dies holding the lock at this place of the memory.
    fn abandon(&self, offset: usize) {
        self.store.return_unused(
            Location::from_address(BASE + offset),
            Hold::Lock,
            WaitResult::AcquiredFromDead,
            &AtomicI32::new(LOCKED),
        );
    }

    fn die_holding(&self, agent: AgentId, objects: usize) -> Left {
        self.abandon(0);
        self.end(agent, objects)
    }

    /// It is looked which memories have been freed: all of which no object is known, or none.
    fn look(&self, freed: bool) {
        FREED.set(freed);
        self.tracked_buffers.look(&self.store);
    }

    /// Whether a thread that locks the lock at this offset sees a death.
    fn has_death_at(&self, offset: usize) -> bool {
        let location = Location::from_address(BASE + offset);
        let looks = any_abandoned_near(&self.store, location);
        let left = self.store.take_note_of_death(location, Hold::Lock, &AtomicI32::new(0));
        assert!(looks || !left, "it would not have asked");
        left
    }

    fn has_death(&self) -> bool {
        self.has_death_at(0)
    }

    fn assert_nothing_left(&self) {
        assert!(self.store.counters().iter().all(|counter| counter.load(Ordering::Relaxed) == 0));
    }
}

#[test]
fn all_locks_in_a_memory_are_forgotten_when_its_last_object_has_been_collected_and_it_has_been_freed() {
    let process = Process::of(&[MAIN, WORKER]);
    for offset in (0..LENGTH).step_by(4) {
        process.abandon(offset);
    }
    assert_eq!(process.end(WORKER, 1), Left::Known);
    process.abandon(LENGTH);
    assert_eq!(process.lose(MAIN), Left::Unknown);
    process.look(true);
    assert!((0..LENGTH).step_by(4).all(|offset| !process.has_death_at(offset)));
    assert!(process.has_death_at(LENGTH), "that is another memory's");
    process.assert_nothing_left();
}

/// Main makes the first lock, and keeps nothing. Another thread keeps the memory, and has made no lock in it.
#[test]
fn while_a_memory_has_not_been_freed_its_deaths_are_kept_although_its_last_object_has_been_collected() {
    let process = Process::of(&[MAIN, WORKER]);
    process.die_holding(WORKER, 1);
    assert_eq!(process.lose(MAIN), Left::Unknown);
    process.look(false);
    process.register(OTHER);
    process.look(true);
    assert!(process.has_death(), "an object is known again");
    process.assert_nothing_left();
}

#[test]
fn what_only_a_dead_thread_had_is_forgotten_when_it_has_been_freed() {
    let process = Process::of(&[WORKER]);
    assert_eq!(process.die_holding(WORKER, 1), Left::Unknown);
    process.look(true);
    process.register(OTHER);
    assert!(!process.has_death());
    process.assert_nothing_left();
}

#[test]
fn where_no_lock_is_abandoned_nothing_is_looked_for() {
    let process = Process::of(&[WORKER]);
    assert_eq!(process.end(WORKER, 1), Left::Nothing);
    process.register(MAIN);
    assert_eq!(process.lose(MAIN), Left::Nothing);
}

#[test]
fn a_memory_that_overlaps_others_shows_that_they_are_gone() {
    for (offset, length) in [(-64, 128), (64, LENGTH), (-64, 2 * LENGTH), (64, 64)] {
        for has_ended in [true, false] {
            let process = Process::of(&[MAIN, WORKER]);
            process.abandon(0);
            process.abandon(LENGTH);
            process.end(WORKER, 1);
            if has_ended {
                process.end(MAIN, 1);
            }
            let base = BASE.strict_add_signed(offset);
            process.tracked_buffers.register(&process.store, OTHER, base, length);
            assert!(!process.has_death(), "{offset}");
            assert!(process.has_death_at(LENGTH), "that is another memory's");
            // News of the earlier memory does not concern the later one.
            process.abandon(64);
            if !has_ended {
                assert_eq!(process.tracked_buffers.lose(&process.store, MAIN, BASE, 1), Left::Nothing);
            }
            process.look(true);
            assert!(process.has_death_at(64) || offset == -64 && length == 128, "{offset}");
        }
    }
}

#[test]
fn objects_of_an_earlier_memory_that_overlaps_are_not_taken_for_those_of_a_later_one_at_its_address() {
    let process = Process::of(&[MAIN]);
    process.tracked_buffers.register(&process.store, OTHER, BASE - 64, LENGTH);
    process.register(WORKER);
    process.abandon(0);
    assert_eq!(process.lose(MAIN), Left::Known, "that was the earlier one's");
    assert_eq!(process.lose(WORKER), Left::Unknown);
    assert!(process.has_death());
}

#[test]
fn a_memory_that_adjoins_another_one_does_not_overlap_it() {
    let process = Process::of(&[MAIN]);
    process.abandon(0);
    process.abandon(LENGTH - 4);
    process.tracked_buffers.register(&process.store, OTHER, BASE + LENGTH, LENGTH);
    process.tracked_buffers.register(&process.store, OTHER, BASE - LENGTH, LENGTH);
    assert!(process.has_death() && process.has_death_at(LENGTH - 4));
}

#[test]
fn of_memories_of_which_no_object_is_known_the_last_ones_are_remembered() {
    let process = Process::new();
    for place in 0..=MOST_LEFT {
        process.tracked_buffers.register(&process.store, WORKER, BASE + place * LENGTH, LENGTH);
        process.abandon(place * LENGTH);
        assert_eq!(
            process.tracked_buffers.end(&process.store, WORKER, BASE + place * LENGTH, 1, &ended(0)),
            Left::Unknown
        );
    }
    let left: Vec<_> = (0..=MOST_LEFT).filter(|place| process.has_death_at(place * LENGTH)).collect();
    assert_eq!(left, (1..=MOST_LEFT).collect::<Vec<_>>());
    process.assert_nothing_left();
}

#[test]
fn as_long_as_one_object_is_there_nothing_is_forgotten() {
    let process = Process::of(&[MAIN, MAIN, MAIN, WORKER, OTHER]);
    process.lose(MAIN);
    process.die_holding(WORKER, 1);
    process.lose(MAIN);
    process.lose(OTHER);
    assert!(process.has_death());
    process.assert_nothing_left();
}

/// Main has a buffer but no lock, and hands it to one worker after the other.
#[test]
fn a_restarted_worker_sees_a_death_although_no_other_thread_has_made_a_lock() {
    let process = Process::of(&[WORKER]);
    process.die_holding(WORKER, 1);
    process.register(OTHER);
    assert!(process.has_death());
    process.die_holding(OTHER, 1);
    process.register(WORKER);
    // One that ends without having asked leaves it to the next.
    process.end(WORKER, 1);
    process.register(MAIN);
    assert!(process.has_death());
}

/// Main's object is collected while a worker keeps the memory, which is freed when that worker dies.
#[test]
fn a_thread_that_has_lost_its_object_and_has_one_at_that_address_again_has_a_new_memory() {
    let process = Process::of(&[MAIN, WORKER]);
    process.lose(MAIN);
    process.die_holding(WORKER, 1);
    process.register(MAIN);
    assert!(!process.has_death());
    process.assert_nothing_left();
}

/// The same, but the memory is still there: main has been sent it once more.
#[test]
fn a_thread_that_has_lost_its_object_and_gets_another_one_of_the_same_memory_has_death() {
    let process = Process::of(&[MAIN, WORKER, OTHER]);
    process.lose(MAIN);
    process.die_holding(WORKER, 1);
    process.register(MAIN);
    process.end(OTHER, 1);
    assert!(process.has_death());
}

#[test]
fn the_lost_objects_of_an_ended_thread_say_nothing_about_another_thread() {
    let process = Process::of(&[OTHER, WORKER]);
    process.lose(OTHER);
    process.end(OTHER, 0);
    process.die_holding(WORKER, 1);
    // A new agent may be told apart from others by the same number.
    process.register(OTHER);
    assert!(process.has_death());
}

#[test]
fn the_last_name_of_a_word_stands_until_its_memory_is_gone() {
    let process = Process::new();
    let at = |offset| Location::from_address(BASE + offset);
    let label = |offset| process.tracked_buffers.label(at(offset)).map(|label| String::from_utf16(&label).unwrap());
    process.register(MAIN);
    for (offset, name) in [(0, "first"), (0, "last"), (LENGTH - 4, "of the same memory"), (LENGTH, "of the next")] {
        process.tracked_buffers.set_label(at(offset), name.encode_utf16().collect());
    }
    assert_eq!(label(0).as_deref(), Some("last"));
    assert_eq!(process.lose(MAIN), Left::Nothing);
    assert_eq!(label(0), None);
    assert_eq!(label(LENGTH - 4), None);
    assert_eq!(label(LENGTH).as_deref(), Some("of the next"));
}

#[test]
fn the_last_threads_that_had_objects_of_a_memory_and_ended_are_known_until_it_is_gone() {
    let process = Process::of(&[MAIN, OTHER]);
    let ended_at = |offset| {
        let ended = process.tracked_buffers.ended(Location::from_address(BASE + offset));
        ended.iter().map(|ended| ended.thread_id).collect::<Vec<_>>()
    };
    let end = |agent, objects, thread_id| {
        process.tracked_buffers.end(&process.store, agent, BASE, objects, &ended(thread_id));
    };
    for thread_id in 0..5 {
        process.register(WORKER);
        end(WORKER, 1, thread_id);
    }
    assert_eq!((ended_at(0), ended_at(LENGTH - 4), ended_at(LENGTH)), (vec![4, 3, 2], vec![4, 3, 2], vec![]));
    assert_eq!(MOST_ENDED, 3);
    // One that has lost its objects has used it, too.
    process.lose(OTHER);
    end(OTHER, 0, 5);
    assert_eq!(ended_at(0), [5, 4, 3]);
    // A later memory at the address has other users, though its thread had objects of the former one.
    process.register(OTHER);
    process.lose(OTHER);
    process.lose(MAIN);
    process.register(MAIN);
    end(OTHER, 0, 6);
    assert_eq!(ended_at(0), []);
    // So has one that begins elsewhere, and overlaps it; and one at the first address after that.
    process.register(WORKER);
    end(WORKER, 1, 7);
    assert_eq!(ended_at(0), [7]);
    process.tracked_buffers.register(&process.store, WORKER, BASE - 4, LENGTH);
    assert_eq!(ended_at(0), []);
    process.register(OTHER);
    assert_eq!(ended_at(0), []);
}

#[test]
fn of_all_abandoned_locks_those_at_some_addresses_are_found_and_forgotten() {
    // The longest ranges have more cache lines than there are buckets.
    const END: usize = 300 * 64;
    for seed in 0..20 {
        let (mut random, process, mut left) = (Random::seed_from_u64(seed), Process::new(), BTreeSet::new());
        for _ in 0..1000 {
            let offset = 4 * random.random_range(0..END / 4);
            let longest = [4, 64, 1000, END][random.random_range(0..4)];
            let range = offset..(offset + random.random_range(0..longest)).min(END);
            match random.random_range(0..6) {
                0..=2 => {
                    process.abandon(offset);
                    left.insert(offset);
                }
                3 => assert_eq!(process.has_death_at(offset), left.remove(&offset)),
                4 => {
                    process.store.forget_abandoned(&(BASE + range.start..BASE + range.end));
                    left.retain(|offset| !range.contains(offset));
                }
                _ => {
                    let any = process.store.any_abandoned_in(&(BASE + range.start..BASE + range.end));
                    assert_eq!(any, left.range(range.clone()).next().is_some(), "{range:?}");
                }
            }
        }
        let found: BTreeSet<_> = (0..END).step_by(4).filter(|&offset| process.has_death_at(offset)).collect();
        assert_eq!(found, left);
        process.assert_nothing_left();
    }
}
