//! The service, run for real.

#![cfg(not(feature = "model"))]

mod fixtures;

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use fixtures::HERE;
use waitasync_core::clock::{Timestamp, now};
use waitasync_core::lock::{Claimed, Mail, Outbox, Request, Waiter, WaiterListStore};
use waitasync_core::queue::WaitResult;
use waitasync_core::service::Service;

fn until(condition: &dyn Fn() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < Duration::from_secs(20), "in vain");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_panic_of_one_duty_ends_no_duty() {
    static LOOKS: AtomicU32 = AtomicU32::new(0);
    static CLOCK_PANICS: AtomicBool = AtomicBool::new(false);
    static CLOCK_HAS_PANICKED: AtomicU32 = AtomicU32::new(0);
    static RUNG: AtomicU64 = AtomicU64::new(0);
    static WORD: AtomicI32 = AtomicI32::new(1);

    fn clock() -> Timestamp {
        if CLOCK_PANICS.load(Ordering::SeqCst) && thread::current().name() == Some("atomics-service") {
            CLOCK_HAS_PANICKED.fetch_add(1, Ordering::SeqCst);
            panic!("injected: the clock");
        }
        now()
    }

    let store: &'static WaiterListStore = Box::leak(Box::new(WaiterListStore::new(1, clock)));
    let look = || {
        assert!(LOOKS.fetch_add(1, Ordering::SeqCst) % 2 == 1, "injected: every other look");
        store.check_words(|_, look| look(&WORD))
    };
    let service = Service::start(store, look).unwrap();
    service.look_at_words();

    let outbox = Arc::new(Outbox::new(Box::new(|| {
        RUNG.fetch_add(1, Ordering::SeqCst);
    })));
    CLOCK_PANICS.store(true, Ordering::SeqCst);
    let deadline = now().after_millis(5.0);
    store.enqueue(HERE, Waiter::Agent(Arc::clone(&outbox), 7), deadline, || true).unwrap();
    service.time_out(deadline);
    until(&|| CLOCK_HAS_PANICKED.load(Ordering::SeqCst) > 1);
    CLOCK_PANICS.store(false, Ordering::SeqCst);
    until(&|| RUNG.load(Ordering::SeqCst) > 0);
    let mut mail = Mail::default();
    outbox.take(&mut mail);
    assert_eq!(mail.settlements[0].result, WaitResult::Due);

    // Freed, without a call.
    let party = Waiter::Agent(Arc::clone(&outbox), 8);
    let claimed = store.claim(HERE, party.clone(), Request::Lock, Timestamp::NEVER, &WORD);
    let Claimed::Pending(ticket) = claimed else { panic!("{claimed:?} of a lock that is held") };
    service.look_at_words();
    WORD.store(0, Ordering::SeqCst);
    until(&|| RUNG.load(Ordering::SeqCst) > 1);
    assert_eq!(store.retry(ticket, &party, &WORD), Some(WaitResult::Acquired));
    assert!(LOOKS.load(Ordering::SeqCst) > 1);
}

/// Returns the median lateness of 60 timeouts.
fn lateness(store: &WaiterListStore, service: &Service) -> Duration {
    let mut lateness = Vec::new();
    for nth in 1..=60_u32 {
        let rung = Arc::new(Mutex::new(None));
        let noted = Arc::clone(&rung);
        let outbox = Arc::new(Outbox::new(Box::new(move || *noted.lock().unwrap() = Some(now()))));
        let deadline = now().after(nth * Duration::from_micros(170));
        store.enqueue(HERE, Waiter::Agent(outbox, nth), deadline, || true).unwrap();
        service.time_out(deadline);
        until(&|| rung.lock().unwrap().is_some());
        lateness.push(rung.lock().unwrap().unwrap().duration_since(deadline));
    }
    lateness.sort();
    lateness[30]
}

#[test]
fn a_timeout_is_not_late_by_a_millisecond() {
    // A timer that counts whole milliseconds is later than this in every round, whatever else the machine does.
    const BOUND: Duration = Duration::from_micros(700);
    // On a busy machine any timer may be late, so one good round suffices.
    const ROUNDS: usize = 50;
    let store: &WaiterListStore = Box::leak(Box::new(WaiterListStore::new(1, now)));
    let service = Service::start(store, || None).unwrap();
    let medians: Vec<_> =
        (0..ROUNDS).map(|_| lateness(store, &service)).take_while(|median| *median >= BOUND).collect();
    assert!(medians.len() < ROUNDS, "late in every round, in the median by {medians:?}");
}
