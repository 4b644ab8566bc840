//! Ends the first slice of blocked threads.
//!
//! A blocked thread comes back to JavaScript after a slice. Most waits are over before; but a limit for each of them would have
//! the system set a timer and take it back again, which is a good tenth of what two threads on one core need to answer each
//! other. So in its first slice a thread sleeps without a limit, and one thread of the process ticks, twice in a slice: whoever
//! was asleep at the last tick already, and has been since, comes back. When nobody has slept in a first slice for a while the
//! ticker rests, until the next one to do so rings it.
//!
//! # Why nobody sleeps without a ticker
//! A thread notes that it is asleep, passes a `SeqCst` fence, then reads whether the ticker rests. The ticker notes that it
//! rests, passes a `SeqCst` fence, then looks at all threads once more. In the single order of the two fences one comes first:
//! if the thread's, the ticker sees it asleep and does not rest; if the ticker's, the thread sees it resting and rings.

use std::sync::OnceLock;
#[cfg(not(feature = "model"))]
use std::time::Duration;

use crate::parker::BlockedThread;
use crate::sync::{AtomicBool, Ordering, Thread, current, fence, park};

/// The ticker rests when nobody has been asleep for so long: threads that keep answering each other shall not have to ring it
/// again and again.
#[cfg(not(feature = "model"))]
const PATIENCE: Duration = Duration::from_secs(1);

/// The thread that ticks, as those see it who sleep.
#[derive(Debug)]
pub struct Ticker {
    rests: AtomicBool,
    /// Known before it rests for the first time.
    thread: OnceLock<Thread>,
}

impl Default for Ticker {
    fn default() -> Self {
        Self { rests: AtomicBool::new(false), thread: OnceLock::new() }
    }
}

impl Ticker {
    /// Starts a ticker that ends slices before they are longer than `slice`. `tick` passes a tick on to all threads, as
    /// [`BlockedThread::tick`], and says whether any was asleep. `None` if the system gives no thread for it.
    #[cfg(not(feature = "model"))]
    pub fn start(slice: Duration, tick: impl Fn() -> bool + Send + 'static) -> Option<&'static Self> {
        let ticker: &Self = Box::leak(Box::default());
        let thread = std::thread::Builder::new().name("atomics-ticker".into());
        thread.spawn(move || ticker.run(slice / 2, tick)).is_ok().then_some(ticker)
    }

    #[cfg(not(feature = "model"))]
    fn run(&self, interval: Duration, tick: impl Fn() -> bool) {
        let mut in_vain = Duration::ZERO;
        loop {
            std::thread::sleep(interval);
            in_vain = if tick() { Duration::ZERO } else { in_vain + interval };
            if in_vain >= PATIENCE {
                self.rest(&tick);
                in_vain = Duration::ZERO;
            }
        }
    }

    /// Rests until somebody is asleep. Called by the thread that ticks.
    pub fn rest(&self, tick: impl Fn() -> bool) {
        self.thread.get_or_init(current);
        self.rests.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if tick() {
            self.rests.store(false, Ordering::Relaxed);
        }
        while self.rests.load(Ordering::Relaxed) {
            park();
        }
    }

    /// Runs `sleep`, in which `thread`, the calling one, parks without a limit: when its slice is over, it comes back.
    pub fn watch_over<R>(&self, thread: &BlockedThread, sleep: impl FnOnce() -> R) -> R {
        thread.begin_slice();
        fence(Ordering::SeqCst);
        if self.rests.load(Ordering::Relaxed) {
            self.ring();
        }
        let result = sleep();
        thread.end_slice();
        result
    }

    #[cold]
    fn ring(&self) {
        if self.rests.swap(false, Ordering::Relaxed)
            && let Some(thread) = self.thread.get()
        {
            thread.unpark();
        }
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use std::sync::atomic::AtomicU32;
    use std::sync::{Arc, Mutex};
    use std::thread;

    use super::*;
    use crate::clock::{Timestamp, now};
    use crate::parker::Woken;

    const SLICE: Duration = Duration::from_millis(20);

    /// A ticker for the threads in a list, and how often it has ticked.
    struct Scene {
        ticker: &'static Ticker,
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
            Self { ticker: Ticker::start(SLICE, tick).unwrap(), threads, ticks }
        }

        fn this_thread(&self) -> Arc<BlockedThread> {
            let thread = Arc::new(BlockedThread::current());
            self.threads.lock().unwrap().push(Arc::clone(&thread));
            thread
        }

        /// Sleeps for a slice. How long that took.
        fn sleep(&self, thread: &BlockedThread) -> Duration {
            let begin = now();
            assert_eq!(self.ticker.watch_over(thread, || thread.park_until(Timestamp::NEVER)), Woken::TimeOver);
            now().duration_since(begin)
        }

        fn ticks(&self) -> u32 {
            self.ticks.load(Ordering::Relaxed)
        }

        /// Waits until the ticker rests. How often it has ticked.
        fn rested(&self) -> u32 {
            while !self.ticker.rests.load(Ordering::Relaxed) {
                thread::sleep(SLICE);
            }
            // It looks once more.
            thread::sleep(SLICE);
            self.ticks()
        }
    }

    #[test]
    fn a_slice_lasts_from_one_tick_to_the_next_at_least() {
        let scene = Scene::new();
        let thread = scene.this_thread();
        for _ in 0..5 {
            assert!(scene.sleep(&thread) >= SLICE / 2);
        }
    }

    #[test]
    fn who_falls_asleep_again_and_again_is_left_alone() {
        let thread = BlockedThread::current();
        for _ in 0..5 {
            thread.begin_slice();
            assert!(thread.tick());
            thread.end_slice();
            assert!(!thread.tick());
        }
        thread.begin_slice();
        assert!(thread.tick() && thread.tick());
        assert!(!thread.tick(), "it has been called, once");
        assert_eq!(thread.park_until(Timestamp::NEVER), Woken::TimeOver);
        thread.end_slice();
        // Nothing of it stays.
        assert_eq!(thread.park_until(now().after_millis(1.0)), Woken::TimeOver);
    }

    #[test]
    fn a_ticker_rests_when_nobody_sleeps_and_goes_on_for_who_does() {
        let scene = Scene::new();
        let thread = scene.this_thread();
        for _ in 0..2 {
            let at_rest = scene.rested();
            thread::sleep(5 * SLICE);
            assert_eq!(scene.ticks(), at_rest);
            scene.sleep(&thread);
        }
    }
}
