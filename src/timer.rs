//! The thread that times promises out.
//!
//! One per process, started by the first wait with a time-out, asleep in tokio's timer until the earliest deadline. It
//! belongs to no environment and ends with the process; the deadlines themselves lie in the buckets, so a wait that is
//! settled before its time-out leaves nothing behind here.
//!
//! # Why no deadline is missed
//! `ARMED` holds the deadline the thread sleeps for. A registering thread stores its bucket's earliest deadline, then
//! reads `ARMED` and rings if its own is earlier. The timer thread stores `ARMED`, then reads the buckets again before it
//! sleeps. All four are `SeqCst`, so at least one of the two sees the other's store.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

use crate::clock::{Timestamp, instant};
use crate::store::WaiterListStore;

static ARMED: AtomicU64 = AtomicU64::new(u64::MAX);
static RING: Notify = Notify::const_new();

/// Starts the thread if it does not run yet. False if the system gives no thread; the next call tries again.
pub fn start(store: &'static WaiterListStore) -> bool {
    static STARTED: OnceLock<()> = OnceLock::new();
    if STARTED.get().is_some() {
        return true;
    }
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_time().build() else { return false };
    static STARTING: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _guard = STARTING.lock();
    STARTED.get().is_some()
        || std::thread::Builder::new()
            .name("atomics-timer".into())
            .spawn(move || runtime.block_on(run(store)))
            .is_ok_and(|_| STARTED.set(()).is_ok())
}

/// A promise with this deadline has been lined up.
pub fn watch(deadline: Timestamp) {
    if deadline.as_nanos() < ARMED.load(Ordering::SeqCst) {
        RING.notify_one();
    }
}

async fn run(store: &'static WaiterListStore) {
    loop {
        let next = store.expire();
        ARMED.store(next.as_nanos(), Ordering::SeqCst);
        if store.earliest_deadline() < next {
            continue;
        }
        match instant(next) {
            None => RING.notified().await,
            Some(moment) => tokio::select! {
                () = RING.notified() => {}
                () = tokio::time::sleep_until(moment.into()) => {}
            },
        }
    }
}
