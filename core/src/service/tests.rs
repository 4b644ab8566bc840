//! The service, run for real.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::running::Service;
use super::word_poller::{LONGEST, SHORTEST, WordPoller};
use crate::clock::{Timestamp, now};
use crate::lock::{Claimed, Mail, Outbox, Request, Waiter, WaiterListStore};
use crate::queue::{Location, WaitResult};

const HERE: Location = Location::from_address(0x1000);

/// The clock is tokio's, which goes on only while all sleep.
#[tokio::test(start_paused = true)]
async fn looks_become_rare_and_stop_without_lines_but_a_claim_that_joins_is_looked_at_soon() {
    // To which tokio rounds up.
    const TICK: Duration = Duration::from_millis(1);
    let (looks, begin, moments) =
        (WordPoller::default(), Cell::new(tokio::time::Instant::now()), RefCell::new(Vec::new()));
    let has_lines = Cell::new(false);
    let look = || {
        moments.borrow_mut().push(tokio::time::Instant::now());
        has_lines.get().then_some(false)
    };
    let claims = async {
        for nth in 1..=2 {
            looks.claim_has_joined();
            tokio::time::sleep(Duration::from_secs(60)).await;
            assert_eq!(moments.borrow().len(), 1 + nth, "one look at the beginning, one for each claim");
        }
        has_lines.set(true);
        moments.borrow_mut().clear();
        begin.set(tokio::time::Instant::now());
        looks.claim_has_joined();
        tokio::time::sleep(Duration::from_secs(60)).await;
        let count = moments.borrow().len();
        while moments.borrow().len() == count {
            tokio::time::sleep(TICK).await;
        }
        // It is a second until the next one.
        looks.claim_has_joined();
        tokio::time::sleep(SHORTEST + TICK).await;
        count
    };
    let count = tokio::select! {
        count = claims => count,
        never = looks.run(look) => match never {},
    };
    let moments = moments.into_inner();
    for (waited, delay) in moments.windows(2).map(|two| (two[0] - begin.get(), two[1] - two[0])) {
        assert!(delay <= SHORTEST.max(waited / 8).min(LONGEST) + TICK, "{delay:?} after {waited:?}");
    }
    assert!(count < 100, "{count} looks in a minute");
    assert_eq!(moments.len(), count + 2, "the claim that has joined last is not looked at");
}

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
        store.check_words(|_| &WORD)
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
