//! The primitives the queue stands on: the standard library's, or loom's when a model is checked.

#[cfg(not(feature = "model"))]
mod primitives {
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicU64, Ordering, fence};
    pub(crate) use std::sync::{Arc, Mutex, MutexGuard};
    pub(crate) use std::thread::{Thread, current, park, park_timeout};
}

#[cfg(feature = "model")]
mod primitives {
    use loom::sync::Notify;
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicU64, Ordering, fence};
    pub(crate) use loom::sync::{Arc, Mutex, MutexGuard};

    /// Stands for [`std::thread::Thread`]. Not loom's own: there a thread that is unparked while it waits for a mutex
    /// loses the token or is let into the mutex. This one also wakes without reason now and then, as a thread may.
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

    /// A model has no clock: a thread parks until it is unparked.
    pub(crate) fn park_timeout(_: std::time::Duration) {
        park();
    }
}

pub(crate) use primitives::*;

/// Locks `mutex`. Poisoning is ignored: a critical section of this crate only moves values between collections, and a queue that
/// refused to work would take every thread of the process with it. What could panic, such as looking at a word, comes before a
/// waiter is taken out of its list or after its outcome has been recorded; between the two there is nothing but what would panic
/// because of a broken invariant, and then it is that one waiter which is lost.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
