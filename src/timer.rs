//! The thread that times promises out.
//!
//! One per process, started by the first wait with a time-out, asleep in tokio's timer until the earliest deadline. It
//! belongs to no environment and ends with the process; the deadlines themselves lie in the buckets, so a wait that is
//! settled before its time-out leaves nothing behind here.

use std::sync::{LazyLock, OnceLock};

use tokio::sync::Notify;

use crate::alarm::Alarm;
use crate::clock::{Timestamp, instant};
use crate::store::WaiterListStore;

static ALARM: LazyLock<Alarm> = LazyLock::new(Alarm::default);
static RING: Notify = Notify::const_new();

/// Starts the thread if it does not run yet. False if the system gives no thread; the next call tries again.
pub fn start(store: &'static WaiterListStore) -> bool {
    static STARTED: OnceLock<()> = OnceLock::new();
    static STARTING: std::sync::Mutex<()> = std::sync::Mutex::new(());
    if STARTED.get().is_some() {
        return true;
    }
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_time().build() else { return false };
    let _guard = STARTING.lock();
    STARTED.get().is_some()
        || std::thread::Builder::new()
            .name("atomics-timer".into())
            .spawn(move || runtime.block_on(run(store)))
            .is_ok_and(|_| STARTED.set(()).is_ok())
}

/// A promise with this deadline has been lined up.
pub fn watch(deadline: Timestamp) {
    if ALARM.is_later_than(deadline) {
        RING.notify_one();
    }
}

async fn run(store: &'static WaiterListStore) {
    loop {
        match instant(ALARM.set(store)) {
            None => RING.notified().await,
            Some(moment) => tokio::select! {
                () = RING.notified() => {}
                () = tokio::time::sleep_until(moment.into()) => {}
            },
        }
    }
}
