//! A sleep that ends on time: tokio's own counts whole milliseconds, and is late by one in the median. So it ends 2 ms
//! early, and the thread itself sleeps the rest.

use std::thread;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::yield_now;

use crate::clock::{Timestamp, now};

/// How much earlier tokio's sleep ends: more than it is late.
const MARGIN: Duration = Duration::from_millis(2);

/// The longest sleep during which the runtime does nothing else.
const STEP: Duration = Duration::from_micros(500);

/// Sleeps until `moment`, or until the bell rings; or less.
pub(super) async fn sleep_until(moment: Timestamp, bell: &Notify) {
    if moment == Timestamp::NEVER {
        return bell.notified().await;
    }
    match moment.duration_since(now()) {
        // The other duties, and the waits of the runtime, have their turn, too.
        Duration::ZERO => yield_now().await,
        left => tokio::select! {
            () = bell.notified() => {}
            () = sleep(left) => {}
        },
    }
}

/// Sleeps for so long, or less.
async fn sleep(duration: Duration) {
    if let Some(most) = duration.checked_sub(MARGIN) {
        tokio::time::sleep(most).await;
    } else {
        thread::sleep(duration.min(STEP));
        // Deadlines may follow one another for long.
        yield_now().await;
    }
}
