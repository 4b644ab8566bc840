//! The wait for which an agent's thread blocks.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use crate::environment::event_loop::EventLoop;
use waitasync_core::clock::Timestamp;
use waitasync_core::lock::Request;
use waitasync_core::queue::{BlockedThread, Location, Ticket};
use waitasync_core::service::watch::Watch;
use waitasync_core::spinner::{BudgetedSpinner, Spinner};

/// Nanoseconds of spinning for a notification before a sleep: the time that a sleeping thread takes to answer.
const LONGEST_WAIT_SPIN: u32 = 100_000;

/// A thread that spins for notifications in vain does so once in so many waits: for 0.1 µs each, on average.
const LONGEST_WAIT_PAUSE: u32 = 1024;

/// Nanoseconds for which a thread spins for a lock before it joins the line: longer than most critical sections.
const LONGEST_LOCK_SPIN: u32 = 20_000;

/// A wait for which the thread blocks, or is about to.
#[derive(Clone, Copy)]
pub(crate) struct BlockingWait {
    pub(crate) ticket: Ticket,
    pub(crate) location: Location,
    pub(crate) deadline: Timestamp,
    /// Its request, if it is a claim.
    pub(crate) request: Option<Request>,
    /// Whether the notification of this wait goes to another waiter if the agent ends before it makes use of it.
    pub(crate) relayed: bool,
}

/// The blocking waits of an agent's thread, one at a time.
pub(crate) struct Blocking {
    pub(crate) thread: Arc<BlockedThread>,
    pub(crate) watch: Arc<Watch>,
    pub(crate) wait_spinner: Spinner,
    pub(crate) lock_spinner: BudgetedSpinner,
    pub(super) wait: Cell<Option<BlockingWait>>,
    /// Whether other threads know that it blocks without a timeout.
    pub(super) is_published: Cell<bool>,
    /// How many grants there were in the outbox when the sleeping thread last looked for a cycle.
    pub(super) grants_seen: Cell<usize>,
    /// The cycle that the thread's last claim would have closed, as JSON, until JavaScript asks for it.
    pub(crate) cycle: RefCell<Option<String>>,
}

impl Blocking {
    pub(crate) fn new(event_loop: EventLoop) -> Self {
        let thread = Arc::new(BlockedThread::current());
        Self {
            watch: event_loop.watch(&thread),
            thread,
            wait_spinner: Spinner::new(LONGEST_WAIT_SPIN, LONGEST_WAIT_PAUSE),
            lock_spinner: BudgetedSpinner::new(LONGEST_LOCK_SPIN),
            wait: Cell::default(),
            is_published: Cell::default(),
            grants_seen: Cell::default(),
            cycle: RefCell::default(),
        }
    }
}
