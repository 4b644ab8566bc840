//! Work for a thread of its own, which may never end: whoever should read the standard error may stand still.
//!
//! One thread at a time does it: what hangs costs one thread, however often it is asked for, and nobody waits for it.

use std::sync::Mutex;
use std::thread;

use waitasync_core::panics::contained;
use waitasync_core::sync::lock;

pub(crate) struct Background {
    /// The thread's name.
    name: &'static str,
    work: fn(),
    state: Mutex<State>,
}

struct State {
    /// Whether the work has been asked for since it last began.
    is_asked: bool,
    has_thread: bool,
}

impl Background {
    pub(crate) const fn new(name: &'static str, work: fn()) -> Self {
        Self { name, work, state: Mutex::new(State { is_asked: false, has_thread: false }) }
    }

    /// Has the work done once more. Returns false if the system gives no thread.
    pub(crate) fn ask(&'static self) -> bool {
        let mut state = lock(&self.state);
        state.is_asked = true;
        if !state.has_thread {
            state.has_thread = thread::Builder::new().name(self.name.into()).spawn(|| self.run()).is_ok();
        }
        state.has_thread
    }

    fn run(&self) {
        let mut state = lock(&self.state);
        while std::mem::take(&mut state.is_asked) {
            drop(state);
            contained(self.work);
            state = lock(&self.state);
        }
        state.has_thread = false;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn work_that_hangs_costs_one_thread_and_a_panic_ends_one_request() {
        static GATE: Mutex<()> = Mutex::new(());
        static BEGUN: AtomicU32 = AtomicU32::new(0);
        static WORK: Background = Background::new("test", || {
            BEGUN.fetch_add(1, Ordering::SeqCst);
            drop(lock(&GATE));
            panic!("each time");
        });
        let until_begun = |n| while BEGUN.load(Ordering::SeqCst) < n {};
        let gate = lock(&GATE);
        assert!(WORK.ask());
        until_begun(1);
        // The hundred are one.
        assert!((0..100).all(|_| WORK.ask()));
        assert_eq!(BEGUN.load(Ordering::SeqCst), 1);
        drop(gate);
        until_begun(2);
        assert!(WORK.ask());
        until_begun(3);
        assert_eq!(BEGUN.load(Ordering::SeqCst), 3);
    }
}
