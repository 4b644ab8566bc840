//! The primitives the queue stands on: the standard library's, or loom's when a model is checked.

#[cfg(not(feature = "model"))]
mod primitives {
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering, fence};
    pub(crate) use std::sync::{Arc, Mutex, MutexGuard};
    pub(crate) use std::thread::{Thread, current, park_timeout};
}

#[cfg(feature = "model")]
mod primitives {
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering, fence};
    pub(crate) use loom::sync::{Arc, Mutex, MutexGuard};
    pub(crate) use loom::thread::{Thread, current};

    /// A model has no clock: a thread parks until it is unparked.
    pub(crate) fn park_timeout(_: std::time::Duration) {
        loom::thread::park();
    }
}

pub(crate) use primitives::*;

/// Locks `mutex`. Poisoning is ignored: a critical section of this crate only moves values between collections and does
/// not panic half-way, and a queue that refused to work would take every thread of the process with it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
