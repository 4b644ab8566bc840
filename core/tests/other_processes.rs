//! What a store asks of other processes: a wait that ends at once, while one of them notifies.

#![cfg(not(feature = "model"))]
#![allow(dead_code, unused_imports, reason = "the fixtures are for all tests")]

mod fixtures;

use std::sync::LazyLock;
use std::sync::atomic::{AtomicI32, AtomicU64};

use fixtures::{HERE, NEVER, agent, promise};
use waitasync_core::clock::now;
use waitasync_core::lock::WaiterListStore;
use waitasync_core::mapped::ProcessId;
use waitasync_core::mapped::words::{Peers, Record, SharedWord, Table};
use waitasync_core::queue::Location;
use waitasync_core::queue::other_processes::{OtherProcesses, SharedWaits, connect};

/// A process that has the word, by the index of its slot.
struct Process(usize);

static PROCESSES: [Process; 3] = [Process(0), Process(1), Process(2)];

impl Peers for Process {
    fn me(&self) -> ProcessId {
        ProcessId::new(self.0, 1).unwrap()
    }

    fn ring(&self, _: usize) {}

    fn pid(&self, _: usize) -> u32 {
        0
    }

    fn is_gone(&self, _: ProcessId) -> bool {
        false
    }

    fn now(&self) -> u64 {
        0
    }
}

struct Memory {
    news: [AtomicU64; 1],
    records: [Record; 1],
    word: AtomicI32,
}

static MEMORY: LazyLock<Memory> =
    LazyLock::new(|| Memory { news: Default::default(), records: Default::default(), word: AtomicI32::new(0) });

fn word_of(process: usize) -> SharedWord<'static> {
    let memory: &'static Memory = &MEMORY;
    let table = Table::of_parts(&memory.news, &memory.records);
    let index = table.find_or_make(0).unwrap();
    SharedWord { table, index, word: &memory.word, peers: &PROCESSES[process] }
}

/// Those that process 0 has beside it.
struct Others;

impl OtherProcesses for Others {
    fn share(&self, _: Location) -> bool {
        true
    }

    fn waits_at(&self, _: Location, _: bool) -> Option<Box<dyn SharedWaits>> {
        Some(Box::new(word_of(0)))
    }

    fn poll(&self, _: Location, _: bool) {}
}

#[test]
fn a_wait_that_finds_another_value_passes_on_the_notification_that_it_was_counted_for() {
    connect(&Others);
    let store = WaiterListStore::new(1, now);
    let read = || {
        assert_eq!(word_of(1).notify(1, &mut |_| 0), 1, "it is counted");
        word_of(2).enter();
        false
    };
    assert!(store.enqueue(HERE, promise(&agent(), 0), NEVER, read).is_none());
    assert!(word_of(2).take_notification());
    word_of(0).enter();
    assert!(!word_of(0).take_notification(), "it is passed on, not copied");
}
