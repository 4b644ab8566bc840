//! Rings processes, and looks after turns and limits until they are over: then the watcher comes.

use std::mem;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use waitasync_core::mapped::names::{Given, TURN_MILLISECONDS, World};
use waitasync_core::sync::lock;

use crate::mapped::{Mapping, now};

const NEVER: u64 = u64::MAX;

/// The clock, the bells of a file, and when to come again.
pub(crate) struct Bells {
    mapping: &'static Mapping,
    /// The turns that this process has given.
    given: Mutex<Vec<Given>>,
    /// When something is over next, in milliseconds.
    due: AtomicU64,
}

impl World for Bells {
    fn now(&self) -> u64 {
        now() / 1000
    }

    fn ring(&self, given: Given) {
        self.mapping.ring(given.index);
        self.look_after(given);
    }
}

impl Bells {
    pub(super) fn new(mapping: &'static Mapping) -> Self {
        Self { mapping, given: Mutex::default(), due: AtomicU64::new(NEVER) }
    }

    pub(super) fn look_after(&self, given: Given) {
        lock(&self.given).push(given);
        self.come(TURN_MILLISECONDS);
    }

    /// Lets the watcher come after so many milliseconds.
    pub(super) fn come(&self, milliseconds: u64) {
        let until = self.now() + milliseconds;
        if self.due.fetch_min(until, SeqCst) > until {
            Mapping::ring_own();
        }
    }

    /// Returns the turns that are looked after, if something is over. Then all limits are looked at, too.
    pub(super) fn due(&self) -> Option<Vec<Given>> {
        let until = self.due.load(SeqCst);
        let is_over = until <= self.now() && self.due.compare_exchange(until, NEVER, SeqCst, SeqCst).is_ok();
        is_over.then(|| mem::take(&mut *lock(&self.given)))
    }

    /// Returns for how long nothing else is over.
    pub(super) fn left(&self) -> Option<Duration> {
        let until = self.due.load(SeqCst);
        (until != NEVER).then(|| Duration::from_millis(until.saturating_sub(self.now())))
    }
}
