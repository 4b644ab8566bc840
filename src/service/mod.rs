//! The one thread of the process that serves all others: it times promises out, ends the first slice of blocked threads, calls
//! them back when their event loops are signalled, and looks at the words of lines now and then.
//!
//! Started by the first thread that needs any of it. It belongs to no environment and ends with the process. Whoever needs it
//! for something new rings, unless it comes to that anyway; [`alarm`] and [`rest`] have the arguments why nobody waits in vain.
//!
//! # Duties
//! - **Deadlines** lie in the buckets. The service sleeps until the earliest of all; so a wait that is over before its time-out
//!   leaves nothing behind here.
//! - **Ticks.** A blocked thread comes back to JavaScript after a slice. Most waits are over before; but a limit for each of them
//!   would have the system set a timer and take it back again, which is a good tenth of what two threads on one core need to
//!   answer each other. So in its first slice a thread sleeps without a limit, and the service ticks, twice in a slice: a thread
//!   that was asleep at the last tick already, and has been since, comes back.
//! - **Looks.** A word may be freed without the line being told: by code that knows the bare word only and notifies the host's
//!   queue, or by a thread that is broken off (`vm` has time limits) between freeing the word and looking at its counter. So as
//!   long as there are lines, the service looks at their words now and then, and gives the first claims their try.
//! - **Watches** over event loops: see [`watch`].
//!
//! A duty that is in vain for a while rests until somebody rings for it. A panic in one of them ends that turn of it, not the
//! service.

pub mod alarm;
pub mod rest;
#[cfg(not(feature = "model"))]
mod timer;
#[cfg(not(feature = "model"))]
pub(crate) mod watch;

#[cfg(not(feature = "model"))]
pub use running::{Duties, Service};

#[cfg(not(feature = "model"))]
mod running {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
    use std::time::Duration;

    use tokio::runtime::{Builder, Runtime};
    use tokio::sync::Notify;
    use tokio::task::yield_now;

    use super::alarm::Alarm;
    use super::rest::Rest;
    use super::timer::Timer;
    use super::watch::Watch;
    use crate::clock::{Timestamp, now};
    use crate::lock::WaiterListStore;

    /// A slice takes two ticks at most, and more than one.
    const TICK: Duration = Duration::from_millis(15);

    /// How long a claim may wait for a word that was freed without its line being told.
    const LOOK: Duration = Duration::from_millis(50);

    /// A duty rests when it has been in vain for so long: threads that keep answering each other shall not have to ring again and
    /// again.
    const PATIENCE: Duration = Duration::from_secs(1);

    /// How long the service lets deadlines pass at most after it has timed promises out: where there are many, each would else cost
    /// a wake-up of this thread and one of the promise's.
    const PAUSE: Duration = Duration::from_micros(100);

    /// Milliseconds until a duty is tried again that has panicked.
    const RECOVERY_MILLISECONDS: f64 = 10.0;

    /// What the service does, beside timing out the promises of a store. Each says whether there was anybody to do it for.
    pub struct Duties {
        /// Passes a tick on to all threads, as [`crate::queue::parker::BlockedThread::tick`].
        pub tick: Box<dyn Fn() -> bool + Send>,
        /// Looks at the words of all lines, as [`WaiterListStore::look`].
        pub look: Box<dyn Fn() -> bool + Send>,
    }

    /// The service, as the threads see it that it serves.
    #[derive(Debug)]
    pub struct Service {
        runtime: Runtime,
        bell: Notify,
        alarm: Alarm,
        ticks: Rest,
        looks: Rest,
        /// The threads whose event loops have been signalled.
        signalled: Mutex<Vec<Arc<Watch>>>,
    }

    /// What the service does every so often, as long as it is not in vain.
    struct Round<'a> {
        rest: &'a Rest,
        interval: Duration,
        duty: Box<dyn Fn() -> bool + Send>,
        next: Option<Timestamp>,
        in_vain: Duration,
    }

    impl<'a> Round<'a> {
        fn new(rest: &'a Rest, interval: Duration, duty: Box<dyn Fn() -> bool + Send>) -> Self {
            Self { rest, interval, duty, next: None, in_vain: Duration::ZERO }
        }

        /// Does it if it is time to. When it will be; never, while it rests.
        fn turn(&mut self) -> Timestamp {
            if self.rest.lasts() {
                return Timestamp::NEVER;
            }
            let now = now();
            match self.next {
                Some(next) if next > now => return next,
                Some(_) => {
                    self.next = None;
                    self.in_vain = if (self.duty)() { Duration::ZERO } else { self.in_vain + self.interval };
                    if self.in_vain >= PATIENCE {
                        self.in_vain = Duration::ZERO;
                        if self.rest.begin(&self.duty) {
                            return Timestamp::NEVER;
                        }
                    }
                }
                None => {}
            }
            *self.next.insert(now.after(self.interval))
        }
    }

    /// A duty's turn, and when the next one is.
    fn unless_it_panics(turn: impl FnOnce() -> Timestamp) -> Timestamp {
        catch_unwind(AssertUnwindSafe(turn)).unwrap_or_else(|_| now().after_millis(RECOVERY_MILLISECONDS))
    }

    impl Service {
        /// Starts a service. `None` if the system gives no thread, or not what the thread needs.
        pub fn start(store: &'static WaiterListStore, duties: Duties) -> Option<Arc<Self>> {
            let mut builder = Builder::new_current_thread();
            #[cfg(target_os = "linux")]
            builder.enable_io();
            #[cfg(not(target_os = "linux"))]
            builder.enable_time();
            let runtime = builder.build().ok()?;
            let timer = {
                let _entered = runtime.enter();
                Timer::new().ok()?
            };
            let service = Arc::new(Self {
                runtime,
                bell: Notify::new(),
                alarm: Alarm::default(),
                ticks: Rest::default(),
                looks: Rest::default(),
                signalled: Mutex::default(),
            });
            let served = Arc::clone(&service);
            let thread = std::thread::Builder::new().name("atomics-service".into());
            thread.spawn(move || served.runtime.block_on(served.run(&timer, store, duties))).ok()?;
            Some(service)
        }

        async fn run(&self, timer: &Timer, store: &WaiterListStore, duties: Duties) {
            let mut ticks = Round::new(&self.ticks, TICK, duties.tick);
            let mut looks = Round::new(&self.looks, LOOK, duties.look);
            let mut due = Timestamp::NEVER;
            loop {
                let pause = if due <= now() { PAUSE } else { Duration::ZERO };
                due = unless_it_panics(|| self.alarm.set(store)).max(now().after(pause));
                let next = due
                    .min(unless_it_panics(|| ticks.turn()))
                    .min(unless_it_panics(|| looks.turn()))
                    .min(unless_it_panics(|| self.hear_signals()));
                if next == Timestamp::NEVER {
                    self.bell.notified().await;
                    continue;
                }
                let left = next.duration_since(now());
                if left.is_zero() {
                    // What the runtime waits for has its turn, too.
                    yield_now().await;
                    continue;
                }
                tokio::select! {
                    () = self.bell.notified() => {}
                    () = timer.sleep(left) => {}
                }
            }
        }

        /// A promise with this deadline has been lined up.
        pub fn time_out(&self, deadline: Timestamp) {
            if self.alarm.is_later_than(deadline) {
                self.bell.notify_one();
            }
        }

        /// A thread has noted that it is in its first slice.
        pub fn tick(&self) {
            if self.ticks.end() {
                self.bell.notify_one();
            }
        }

        /// A claim has been lined up.
        pub fn look(&self) {
            if self.looks.end() {
                self.bell.notify_one();
            }
        }

        /// The runtime, for who registers something with it.
        #[cfg(target_os = "linux")]
        pub(crate) fn enter(&self) -> tokio::runtime::EnterGuard<'_> {
            self.runtime.enter()
        }

        fn signalled(&self) -> MutexGuard<'_, Vec<Arc<Watch>>> {
            self.signalled.lock().unwrap_or_else(PoisonError::into_inner)
        }

        /// A thread's event loop has been signalled. Called by the runtime, on the service's own thread.
        #[cfg(target_os = "linux")]
        pub(crate) fn has_been_signalled(&self, watch: Arc<Watch>) {
            self.signalled().push(watch);
            self.bell.notify_one();
        }

        fn hear_signals(&self) -> Timestamp {
            let signalled = std::mem::take(&mut *self.signalled());
            for watch in signalled {
                watch.signalled();
            }
            Timestamp::NEVER
        }
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
    use std::sync::{Arc, Mutex};
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;
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
            let service = Service::start(store, Duties { tick: Box::new(tick), look: Box::new(|| false) }).unwrap();
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
    fn who_falls_asleep_again_and_again_is_left_alone() {
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
    fn nothing_ticks_when_nobody_sleeps_and_it_goes_on_for_who_does() {
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
    fn a_panic_of_one_duty_ends_neither_the_others_nor_that_one() {
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
        let service = Service::start(store, Duties { tick: Box::new(tick), look: Box::new(look) }).unwrap();
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

        // Freed, and nobody is told.
        let party = Waiter::Agent(Arc::clone(&outbox), 8);
        let claimed = store.claim(HERE, party.clone(), Request::Lock, Timestamp::NEVER, &&WORD);
        let Claimed::Pending(ticket) = claimed else { panic!("{claimed:?} of a lock that is held") };
        service.look();
        WORD.store(0);
        until(&|| RUNG.load(Ordering::SeqCst) > 1);
        assert_eq!(store.retry(ticket, &party, &&WORD), Some(WaitResult::Acquired));
        assert!(LOOKS.load(Ordering::SeqCst) > 1);
    }
}
