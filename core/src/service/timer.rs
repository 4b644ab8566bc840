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

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    /// Returns the median lateness of 60 sleeps, each in many steps.
    fn lateness() -> Duration {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let mut lateness = Vec::new();
            for nth in 1..=60_u64 {
                let end = Instant::now() + Duration::from_micros(nth * 170);
                loop {
                    let left = end.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        break;
                    }
                    sleep(left).await;
                }
                lateness.push(end.elapsed());
            }
            lateness.sort();
            lateness[30]
        })
    }

    /// A timer that counts whole milliseconds is later than this in every round, whatever else the machine does.
    const BOUND: Duration = Duration::from_micros(700);
    /// On a busy machine any timer may be late, so one good round suffices.
    const ROUNDS: usize = 50;

    #[test]
    fn a_sleep_is_not_late_by_a_millisecond() {
        let medians: Vec<_> = (0..ROUNDS).map(|_| lateness()).take_while(|median| *median >= BOUND).collect();
        assert!(medians.len() < ROUNDS, "late in every round, in the median by {medians:?}");
    }
}
