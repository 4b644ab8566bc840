//! The service, run for real.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use super::running::{Duties, Service};
use crate::clock::tests::fail_at;
use crate::clock::{Timestamp, now};
use crate::lock::request::Request;
use crate::lock::word::Word;
use crate::lock::{Claimed, Mail, Outbox, Waiter, WaiterListStore};
use crate::queue::location::Location;
use crate::queue::parker::{BlockedThread, Woken};
use crate::queue::result::WaitResult;

const HERE: Location = Location::from_address(0x1000);
/// Half a slice.
const TICK: Duration = Duration::from_millis(15);

/// A service, the threads that it ticks for, and how often it has ticked.
struct Scene {
    service: Arc<Service>,
    threads: Arc<Mutex<Vec<Arc<BlockedThread>>>>,
    ticks: Arc<AtomicU32>,
}

impl Scene {
    fn new() -> Self {
        let (threads, ticks) = (Arc::<Mutex<Vec<Arc<BlockedThread>>>>::default(), Arc::<AtomicU32>::default());
        let tick = {
            let (threads, ticks) = (Arc::clone(&threads), Arc::clone(&ticks));
            move || {
                ticks.fetch_add(1, Ordering::Relaxed);
                threads.lock().unwrap().iter().fold(false, |any, thread| thread.tick() | any)
            }
        };
        let store = Box::leak(Box::new(WaiterListStore::new(1, now)));
        let service = Service::start(store, Duties { tick: Box::new(tick), check_words: Box::new(|| false) }).unwrap();
        Self { service, threads, ticks }
    }

    fn this_thread(&self) -> Arc<BlockedThread> {
        let thread = Arc::new(BlockedThread::current());
        self.threads.lock().unwrap().push(Arc::clone(&thread));
        thread
    }

    /// Sleeps for a slice. How long that took.
    fn sleep(&self, thread: &BlockedThread) -> Duration {
        let begin = now();
        thread.begin_block();
        self.service.tick();
        assert_eq!(thread.park_until(Timestamp::NEVER), Woken::TimeOver);
        thread.end_block();
        now().duration_since(begin)
    }

    fn ticks(&self) -> u32 {
        self.ticks.load(Ordering::Relaxed)
    }

    /// Waits until nothing ticks any more. How often it has ticked.
    fn rested(&self) -> u32 {
        loop {
            let ticks = self.ticks();
            thread::sleep(20 * TICK);
            if self.ticks() == ticks {
                return ticks;
            }
        }
    }
}

#[test]
fn a_slice_lasts_from_one_tick_to_the_next_at_least() {
    let scene = Scene::new();
    let thread = scene.this_thread();
    for _ in 0..5 {
        assert!(scene.sleep(&thread) >= TICK);
    }
}

#[test]
fn a_thread_that_falls_asleep_again_and_again_is_not_interrupted() {
    let thread = BlockedThread::current();
    for _ in 0..5 {
        thread.begin_block();
        assert!(thread.tick());
        thread.end_block();
        assert!(!thread.tick());
    }
    thread.begin_block();
    assert!(thread.tick() && thread.tick());
    assert!(!thread.tick(), "it has been called, once");
    assert_eq!(thread.park_until(Timestamp::NEVER), Woken::TimeOver);
    // Nothing of it stays.
    assert_eq!(thread.park_until(now().after_millis(1.0)), Woken::TimeOver);
    assert!(thread.is_blocked());
    thread.end_block();
    assert!(!thread.is_blocked());
}

#[test]
fn ticks_stop_when_no_thread_sleeps_and_begin_again_for_the_next() {
    let scene = Scene::new();
    let thread = scene.this_thread();
    thread::sleep(5 * TICK);
    assert_eq!(scene.ticks(), 0, "nobody has slept yet");
    for _ in 0..2 {
        scene.sleep(&thread);
        let at_rest = scene.rested();
        thread::sleep(5 * TICK);
        assert_eq!(scene.ticks(), at_rest);
    }
}

/// A word of this process.
#[derive(Default)]
struct OwnWord(std::sync::atomic::AtomicI32);

impl OwnWord {
    fn store(&self, value: i32) {
        self.0.store(value, Ordering::SeqCst);
    }
}

impl Word for OwnWord {
    fn load(&self) -> i32 {
        self.0.load(Ordering::SeqCst)
    }

    fn compare_exchange(&self, current: i32, new: i32) -> bool {
        self.0.compare_exchange(current, new, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }
}

#[test]
fn a_panic_of_one_duty_ends_no_duty() {
    static LOOKS: AtomicU32 = AtomicU32::new(0);
    static CLOCK_PANICS: AtomicBool = AtomicBool::new(false);
    static CLOCK_HAS_PANICKED: AtomicU32 = AtomicU32::new(0);
    static RUNG: AtomicU64 = AtomicU64::new(0);
    static WORD: OwnWord = OwnWord(std::sync::atomic::AtomicI32::new(1));

    fn clock() -> Timestamp {
        if CLOCK_PANICS.load(Ordering::SeqCst) && thread::current().name() == Some("atomics-service") {
            CLOCK_HAS_PANICKED.fetch_add(1, Ordering::SeqCst);
            panic!("injected: the clock");
        }
        now()
    }

    let until = |condition: &dyn Fn() -> bool| {
        let begin = Instant::now();
        while !condition() {
            assert!(begin.elapsed() < Duration::from_secs(20), "in vain");
            thread::sleep(Duration::from_millis(1));
        }
    };
    let store: &'static WaiterListStore = Box::leak(Box::new(WaiterListStore::new(1, clock)));
    let look = || {
        assert!(LOOKS.fetch_add(1, Ordering::SeqCst) % 2 == 1, "injected: every other look");
        store.check_words(|_| &WORD)
    };
    let tick = || panic!("injected: each tick");
    let service = Service::start(store, Duties { tick: Box::new(tick), check_words: Box::new(look) }).unwrap();
    service.tick();

    let outbox = Arc::new(Outbox::new(Box::new(|| {
        RUNG.fetch_add(1, Ordering::SeqCst);
    })));
    CLOCK_PANICS.store(true, Ordering::SeqCst);
    let deadline = now().after_millis(5.0);
    store.enqueue_agent(HERE, &outbox, 7, deadline, || true).unwrap();
    service.time_out(deadline);
    until(&|| CLOCK_HAS_PANICKED.load(Ordering::SeqCst) > 1);
    CLOCK_PANICS.store(false, Ordering::SeqCst);
    until(&|| RUNG.load(Ordering::SeqCst) > 0);
    let mut mail = Mail::default();
    outbox.take(&mut mail);
    assert_eq!(mail.settlements[0].result, WaitResult::Due);

    // Freed, without a call.
    let party = Waiter::Agent(Arc::clone(&outbox), 8);
    let claimed = store.claim(HERE, party.clone(), Request::Lock, Timestamp::NEVER, &&WORD);
    let Claimed::Pending(ticket) = claimed else { panic!("{claimed:?} of a lock that is held") };
    service.check_words();
    WORD.store(0);
    until(&|| RUNG.load(Ordering::SeqCst) > 1);
    assert_eq!(store.retry(ticket, &party, &&WORD), Some(WaitResult::Acquired));
    assert!(LOOKS.load(Ordering::SeqCst) > 1);
}

#[test]
fn a_clock_that_fails_does_not_end_the_service() {
    for nth in 1..8 {
        let failing = Arc::new(AtomicU32::new(nth));
        let tick = {
            let failing = Arc::clone(&failing);
            move || {
                // This is the service's thread.
                let nth = failing.swap(0, Ordering::Relaxed);
                fail_at(nth);
                nth != 0
            }
        };
        let store = Box::leak(Box::new(WaiterListStore::new(1, now)));
        let service = Service::start(store, Duties { tick: Box::new(tick), check_words: Box::new(|| false) }).unwrap();
        service.tick();
        while failing.load(Ordering::Relaxed) != 0 {
            thread::sleep(Duration::from_millis(1));
        }
        let (rung, heard) = mpsc::channel();
        let outbox = Arc::new(Outbox::new(Box::new(move || rung.send(()).unwrap())));
        let deadline = now().after(TICK);
        store.enqueue_agent(HERE, &outbox, 1, deadline, || true);
        service.time_out(deadline);
        assert!(heard.recv_timeout(Duration::from_secs(5)).is_ok(), "look {nth}");
    }
}
