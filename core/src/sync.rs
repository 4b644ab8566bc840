//! The primitives the queue stands on: the standard library's, or loom's when a model is checked.

use std::panic::{AssertUnwindSafe, catch_unwind};

#[cfg(not(feature = "model"))]
mod primitives {
    #[allow(unused_imports, reason = "the records of mapped memory need all")]
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicU32, AtomicU64, Ordering, fence};
    pub(crate) use std::sync::{Arc, Mutex, MutexGuard};
    pub(crate) use std::thread::{Thread, current, park, park_timeout, yield_now};
}

#[cfg(feature = "model")]
mod primitives {
    use loom::sync::Notify;
    #[allow(unused_imports, reason = "as above")]
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicU32, AtomicU64, Ordering, fence};
    pub(crate) use loom::sync::{Arc, Mutex, MutexGuard};
    pub(crate) use loom::thread::yield_now;

    /// Stands for [`std::thread::Thread`]. With loom's own, a thread that is unparked while it waits for a mutex loses
    /// the token or enters the mutex. This one also wakes spuriously, as a thread may.
    #[derive(Clone, Debug)]
    pub(crate) struct Thread(Arc<Notify>);

    impl Thread {
        pub(crate) fn unpark(&self) {
            self.0.notify();
        }
    }

    loom::thread_local! {
        static CURRENT: Thread = Thread(Arc::new(Notify::new()));
    }

    pub(crate) fn current() -> Thread {
        CURRENT.with(Clone::clone)
    }

    pub(crate) fn park() {
        current().0.wait();
    }

    /// Parks the thread until it is unparked: a model has no clock.
    pub(crate) fn park_timeout(_: std::time::Duration) {
        park();
    }
}

pub(crate) use primitives::*;

/// Locks `mutex`, and ignores poisoning: a critical section of this crate only moves values between collections, and a
/// queue that refused to work would block every thread of the process. Code that may panic, such as looking at a word,
/// runs before a waiter is removed from its list or after its result has been recorded. Between the two only a broken
/// invariant panics, and then that one waiter is lost.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Runs `body`, and returns whether it came to its end. A panic of `body` stops here, since unwinding into Node would
/// end the process; it has been reported on the standard error, and concerns nothing else.
pub fn contained(body: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(body)).is_ok()
}
