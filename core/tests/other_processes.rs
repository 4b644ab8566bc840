//! What a store asks of other processes: a wait that ends at once, while one of them notifies.

#![cfg(not(feature = "model"))]
#![allow(dead_code, unused_imports, reason = "the fixtures are for all tests")]

mod fixtures;

use std::sync::atomic::{AtomicUsize, Ordering};

use fixtures::{HERE, NEVER, agent, promise};
use waitasync_core::clock::now;
use waitasync_core::lock::WaiterListStore;
use waitasync_core::queue::Location;
use waitasync_core::queue::other_processes::{OtherProcesses, connect};

/// Another process, which notifies whoever is counted.
#[derive(Debug)]
struct Notifier {
    passed_on: AtomicUsize,
}

static NOTIFIER: Notifier = Notifier { passed_on: AtomicUsize::new(0) };

impl OtherProcesses for Notifier {
    fn holder(&self, _: Location) -> Option<u32> {
        None
    }

    fn share(&self, _: Location) -> bool {
        true
    }

    fn enter(&self, _: Location, _: bool) {}

    fn leave(&self, _: Location) -> bool {
        true
    }

    fn is_notified(&self, _: Location) -> bool {
        true
    }

    fn take_notification(&self, _: Location) -> bool {
        true
    }

    fn end_claims(&self, _: Location) {}

    fn notify(&self, _: Location, count: usize, here: &mut dyn FnMut(usize) -> usize) -> usize {
        here(count);
        self.passed_on.fetch_add(count, Ordering::SeqCst)
    }
}

#[test]
fn a_wait_that_finds_another_value_passes_on_the_notification_that_it_was_counted_for() {
    connect(&NOTIFIER);
    let store = WaiterListStore::new(1, now);
    assert!(store.enqueue(HERE, promise(&agent(), 0), NEVER, || false).is_none());
    assert_eq!(NOTIFIER.passed_on.load(Ordering::SeqCst), 1);
}
