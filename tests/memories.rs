//! Abandoned locks are forgotten with their memory, as far as the end of a memory can be known.

#![cfg(not(feature = "model"))]

mod word;

use atomics_waitasync::clock::now;
use atomics_waitasync::lock::WaiterListStore;
use atomics_waitasync::lock::memories::{AgentId, Memories};
use atomics_waitasync::lock::request::Request;
use atomics_waitasync::lock::word::LOCKED;
use atomics_waitasync::queue::location::Location;
use word::LocalWord;

const BASE: usize = 0x10_0000;
const LENGTH: usize = 4096;

const MAIN: AgentId = 1;
const WORKER: AgentId = 2;
const OTHER: AgentId = 3;

struct Process {
    store: WaiterListStore,
    memories: Memories,
}

impl Process {
    fn new() -> Self {
        Self { store: WaiterListStore::new(256, now), memories: Memories::default() }
    }

    /// The agent makes a lock on another buffer object.
    fn register(&self, agent: AgentId) {
        self.memories.register(&self.store, agent, BASE, LENGTH);
    }

    /// One of the agent's buffer objects is collected.
    fn lose(&self, agent: AgentId) {
        let others_have_some = !self.memories.lose(&self.store, agent, BASE);
        assert!(others_have_some || !self.store.any_abandoned_in(&(BASE..BASE + LENGTH)));
    }

    /// The agent, which has made locks on that many objects, ends without a lock.
    fn end(&self, agent: AgentId, objects: usize) {
        self.memories.end(&self.store, agent, BASE, objects);
    }

    /// A thread dies holding the lock at this place of the memory.
    fn abandon(&self, offset: usize) {
        let word = LocalWord::default();
        word.store(LOCKED);
        self.store.abandon(Location::from_address(BASE + offset), Request::Lock, &word);
    }

    fn die_holding(&self, agent: AgentId, objects: usize) {
        self.abandon(0);
        self.end(agent, objects);
    }

    /// Whether a thread that locks the lock at this offset is told of a death.
    fn is_told_at(&self, offset: usize) -> bool {
        let location = Location::from_address(BASE + offset);
        let looks = self.store.any_abandoned_near(location);
        let told = self.store.inherit(location, Request::Lock);
        assert!(looks || !told, "it would not have asked");
        told
    }

    fn is_told(&self) -> bool {
        self.is_told_at(0)
    }

    fn assert_nothing_left(&self) {
        assert!(self.store.counters().iter().all(|counter| counter.load(std::sync::atomic::Ordering::Relaxed) == 0));
    }
}

#[test]
fn all_locks_in_a_memory_are_forgotten_when_its_last_object_has_been_collected() {
    let process = Process::new();
    process.register(MAIN);
    process.register(WORKER);
    for offset in (0..LENGTH).step_by(4) {
        process.abandon(offset);
    }
    process.end(WORKER, 1);
    process.abandon(LENGTH);
    process.lose(MAIN);
    assert!((0..LENGTH).step_by(4).all(|offset| !process.is_told_at(offset)));
    assert!(process.is_told_at(LENGTH), "that is another memory's");
    process.assert_nothing_left();
}

#[test]
fn as_long_as_one_object_is_there_nothing_is_forgotten() {
    let process = Process::new();
    for _ in 0..3 {
        process.register(MAIN);
    }
    process.register(WORKER);
    process.register(OTHER);
    process.lose(MAIN);
    process.die_holding(WORKER, 1);
    process.lose(MAIN);
    process.lose(OTHER);
    assert!(process.is_told());
    process.assert_nothing_left();
}

/// Main has a buffer but no lock, and hands it to one worker after the other.
#[test]
fn a_restarted_worker_is_told_although_no_other_thread_has_made_a_lock() {
    let process = Process::new();
    process.register(WORKER);
    process.die_holding(WORKER, 1);
    process.register(OTHER);
    assert!(process.is_told());
    process.die_holding(OTHER, 1);
    process.register(WORKER);
    // One that ends without having asked leaves it to the next.
    process.end(WORKER, 1);
    process.register(MAIN);
    assert!(process.is_told());
}

/// Main's object is collected while a worker keeps the memory, which is freed when that worker dies.
#[test]
fn a_thread_that_has_lost_its_object_and_has_one_at_that_address_again_has_a_new_memory() {
    let process = Process::new();
    process.register(MAIN);
    process.register(WORKER);
    process.lose(MAIN);
    process.die_holding(WORKER, 1);
    process.register(MAIN);
    assert!(!process.is_told());
    process.assert_nothing_left();
}

/// The same, but the memory is still there: main has been sent it once more.
#[test]
fn a_thread_that_has_lost_its_object_and_gets_another_one_of_the_same_memory_is_told() {
    let process = Process::new();
    process.register(MAIN);
    process.register(WORKER);
    process.register(OTHER);
    process.lose(MAIN);
    process.die_holding(WORKER, 1);
    process.register(MAIN);
    process.end(OTHER, 1);
    assert!(process.is_told());
}

#[test]
fn the_lost_objects_of_an_ended_thread_say_nothing_about_another_thread() {
    let process = Process::new();
    process.register(OTHER);
    process.register(WORKER);
    process.lose(OTHER);
    process.end(OTHER, 0);
    process.die_holding(WORKER, 1);
    // A new agent may be told apart from others by the same number.
    process.register(OTHER);
    assert!(process.is_told());
}
