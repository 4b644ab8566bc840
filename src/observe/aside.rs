//! Work for a thread of its own, which may never end.
//!
//! A file system may hang. So one thread at a time does it: what hangs costs one thread, however often it is asked for,
//! and no other thread waits for it without a limit.

use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::Duration;

use waitasync_core::panics::contained;
use waitasync_core::sync::lock;

pub(crate) struct Aside {
    /// The thread's name.
    name: &'static str,
    work: fn(),
    state: Mutex<State>,
    advance: Condvar,
}

/// Requests are numbered from 1.
struct State {
    /// The last request.
    asked: u64,
    /// The last request after which the work was begun, and is over.
    done: u64,
    has_thread: bool,
}

impl Aside {
    pub(crate) const fn new(name: &'static str, work: fn()) -> Self {
        let state = Mutex::new(State { asked: 0, done: 0, has_thread: false });
        Self { name, work, state, advance: Condvar::new() }
    }

    /// Has the work done once more, and returns the request's number. `None`: the system gives no thread.
    pub(crate) fn ask(&'static self) -> Option<u64> {
        let mut state = lock(&self.state);
        state.asked += 1;
        if !state.has_thread {
            thread::Builder::new().name(self.name.into()).spawn(|| self.run()).ok()?;
            state.has_thread = true;
        }
        Some(state.asked)
    }

    fn run(&self) {
        let mut state = lock(&self.state);
        while state.done < state.asked {
            let asked = state.asked;
            drop(state);
            contained(self.work);
            state = lock(&self.state);
            state.done = asked;
            self.advance.notify_all();
        }
        state.has_thread = false;
    }

    /// Waits up to `limit` until a request has been done.
    ///
    /// Returns whether it has been done.
    pub(crate) fn wait(&self, request: u64, limit: Duration) -> bool {
        let (state, is_over) = (lock(&self.state), |state: &mut State| state.done < request);
        let result = self.advance.wait_timeout_while(state, limit, is_over);
        result.is_ok_and(|(_, timeout)| !timeout.timed_out())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

    use super::*;

    #[test]
    fn work_that_hangs_costs_one_thread_and_those_who_wait_no_more_than_their_limit() {
        static BEGUN: AtomicU32 = AtomicU32::new(0);
        static GOES_ON: AtomicBool = AtomicBool::new(false);
        static WORK: Aside = Aside::new("test", || {
            BEGUN.fetch_add(1, Ordering::SeqCst);
            while !GOES_ON.load(Ordering::SeqCst) {
                thread::yield_now();
            }
        });
        let mut last = 0;
        for _ in 0..100 {
            last = WORK.ask().unwrap();
        }
        assert!(!WORK.wait(last, Duration::from_millis(100)));
        assert_eq!(BEGUN.load(Ordering::SeqCst), 1);
        GOES_ON.store(true, Ordering::SeqCst);
        assert!(WORK.wait(last, Duration::from_secs(60)));
        // The first one had begun before the last was asked for.
        assert!(BEGUN.load(Ordering::SeqCst) <= 2);
        let next = WORK.ask().unwrap();
        assert!(WORK.wait(next, Duration::from_secs(60)));
        assert!((2..=3).contains(&BEGUN.load(Ordering::SeqCst)));
    }

    #[test]
    fn a_panic_ends_one_request() {
        static WORK: Aside = Aside::new("test", || panic!("once"));
        for _ in 0..2 {
            let request = WORK.ask().unwrap();
            assert!(WORK.wait(request, Duration::from_secs(60)));
        }
    }
}
