//! What an agent's thread blocks for, for other threads to read.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::clock::Timestamp;
use crate::lock::request::Request;
use crate::node::pending::Purpose;
use crate::queue::location::Location;

/// What a thread sleeps for.
#[derive(Clone, Copy)]
pub(super) struct Sleep {
    pub(super) location: Location,
    pub(super) request: Option<Request>,
    pub(super) since: Timestamp,
}

/// What an agent's thread blocks for, as any thread may read it.
#[derive(Default)]
pub(super) struct Doing {
    purpose: AtomicU8,
    sleep: Mutex<Option<Sleep>>,
}

impl Doing {
    /// Notes what the thread's next wait for a notification is for; [`Purpose::Plain`] once that wait is over.
    pub(super) fn set_purpose(&self, purpose: Purpose) {
        self.purpose.store(purpose as u8, Ordering::Relaxed);
    }

    pub(super) fn purpose(&self) -> Purpose {
        Purpose::from_code(self.purpose.load(Ordering::Relaxed).into())
    }

    /// Notes what the thread is about to sleep for; `None` when it goes on.
    pub(super) fn set_sleep(&self, sleep: Option<Sleep>) {
        *self.sleep.lock().unwrap_or_else(PoisonError::into_inner) = sleep;
    }

    /// What the thread sleeps for, if it sleeps. It counts as sleeping until its robust list has what it was given.
    pub(super) fn sleep(&self) -> Option<Sleep> {
        *self.sleep.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
