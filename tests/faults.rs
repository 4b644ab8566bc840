//! The clock fails in the midst of operations of locks: what has been taken is given on all the same, and no line is forgotten.

#![cfg(not(feature = "model"))]

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use atomics_waitasync::clock::Timestamp;
use atomics_waitasync::lock::request::{LOCKED, Request, UNLOCKED, WRITING};
use atomics_waitasync::lock::{Claimed, Mail, Outbox, Waiter, WaiterListStore};
use atomics_waitasync::queue::location::Location;
use atomics_waitasync::queue::outbox::Settlement;
use atomics_waitasync::queue::result::WaitResult;
use atomics_waitasync::queue::store::Withdrawal;
use atomics_waitasync::queue::waiter_list::Ticket;

const HERE: Location = Location::from_address(0x1000);
/// Far away: but to know that, one has to look at the clock.
const FAR: Timestamp = Timestamp::from_nanos(1 << 60);

thread_local! {
    static FAILS: Cell<bool> = const { Cell::new(false) };
    static FAILED: Cell<bool> = const { Cell::new(false) };
}

fn clock() -> Timestamp {
    if FAILS.get() {
        FAILED.set(true);
        panic!("injected: the clock");
    }
    Timestamp::from_nanos(1)
}

fn without_clock<R>(operation: impl FnOnce() -> R) {
    FAILS.set(true);
    // Whether it says so does not matter here.
    let _ = catch_unwind(AssertUnwindSafe(operation));
    FAILS.set(false);
    assert!(FAILED.take(), "it has not looked at the clock");
}

struct Scene {
    store: WaiterListStore,
    word: AtomicI32,
    outbox: Arc<Outbox>,
}

impl Scene {
    /// With a word that holds `value`.
    fn new(value: i32) -> Self {
        let word = AtomicI32::default();
        word.store(value, Ordering::SeqCst);
        Self { store: WaiterListStore::new(1, clock), word, outbox: Arc::new(Outbox::new(Box::new(|| {}))) }
    }

    fn waiter(&self, slot: u32) -> Waiter {
        Waiter::Agent(Arc::clone(&self.outbox), slot)
    }

    fn join(&self, slot: u32, request: Request, deadline: Timestamp) -> Ticket {
        match self.store.claim(HERE, self.waiter(slot), request, deadline, &self.word) {
            Claimed::Pending(ticket) => ticket,
            Claimed::Now(result) => panic!("{result:?} of a word that does not grant it"),
        }
    }

    fn mail(&self) -> Mail {
        let mut mail = Mail::default();
        self.outbox.take(&mut mail);
        mail
    }

    /// The claim in slot 1, the only one, gets the lock.
    fn assert_next_gets(&self, ticket: Ticket, result: WaitResult) {
        assert_eq!(self.mail().retries, [1]);
        assert_eq!(self.word.load(Ordering::SeqCst), UNLOCKED);
        assert_eq!(self.store.retry(ticket, &self.waiter(1), &self.word), Some(result));
        assert_eq!(self.word.load(Ordering::SeqCst), LOCKED);
    }
}

#[test]
fn a_lock_that_is_released_is_free() {
    let scene = Scene::new(LOCKED);
    let ticket = scene.join(1, Request::Lock, FAR);
    without_clock(|| scene.store.release(HERE, Request::Lock, &scene.word));
    scene.assert_next_gets(ticket, WaitResult::Acquired);
}

#[test]
fn of_a_dead_holder_the_next_is_told() {
    let scene = Scene::new(LOCKED);
    let ticket = scene.join(1, Request::Lock, FAR);
    without_clock(|| scene.store.abandon(HERE, Request::Lock, &scene.word));
    scene.assert_next_gets(ticket, WaitResult::AcquiredFromDead);
}

#[test]
fn a_lock_that_is_freed_for_another_thread_is_free() {
    let scene = Scene::new(LOCKED);
    let ticket = scene.join(1, Request::Lock, FAR);
    without_clock(|| scene.store.free(HERE, &scene.word, |_| None::<()>));
    scene.assert_next_gets(ticket, WaitResult::Acquired);
}

#[test]
fn a_thread_that_waits_by_the_bare_word_is_woken_by_a_release() {
    let scene = Scene::new(LOCKED);
    scene.store.enqueue(HERE, Waiter::Agent(Arc::clone(&scene.outbox), 1), FAR, || true);
    without_clock(|| scene.store.release(HERE, Request::Lock, &scene.word));
    assert_eq!(scene.mail().settlements, [Settlement { slot: 1, result: WaitResult::Ok }]);
    assert_eq!(scene.word.load(Ordering::SeqCst), UNLOCKED);
}

#[test]
fn a_claim_that_gives_up_leaves_what_it_was_woken_for_to_the_next() {
    let scene = Scene::new(LOCKED);
    let first = scene.join(1, Request::Lock, Timestamp::NEVER);
    scene.store.enqueue(HERE, Waiter::Agent(Arc::clone(&scene.outbox), 2), FAR, || true);
    let _ = scene.store.release(HERE, Request::Lock, &scene.word);
    without_clock(|| scene.store.withdraw_agent(first, &scene.outbox, 1));
    assert_eq!(scene.mail().settlements, [Settlement { slot: 2, result: WaitResult::Ok }]);
}

#[test]
fn a_claim_of_a_strict_line_that_retries_has_what_it_takes_and_lets_the_next_in() {
    let scene = Scene::new(WRITING);
    let tickets = [(0, Timestamp::NEVER), (1, Timestamp::NEVER), (2, FAR)]
        .map(|(slot, deadline)| scene.join(slot, Request::Shared, deadline));
    // By that the next one is woken.
    assert_eq!(scene.store.withdraw_agent(tickets[0], &scene.outbox, 0), Withdrawal::Done);
    scene.word.store(UNLOCKED, Ordering::SeqCst);
    let taken = Cell::new(None);
    without_clock(|| taken.set(scene.store.retry(tickets[1], &scene.waiter(1), &scene.word)));
    assert_eq!(taken.get(), Some(WaitResult::Acquired));
    let granted: Vec<_> = scene.mail().settlements.iter().map(|settlement| settlement.slot).collect();
    assert_eq!(granted, [2]);
    assert_eq!(scene.word.load(Ordering::SeqCst), 2);
}
