//! A sleep that ends on time: tokio's own counts whole milliseconds, and is late by one in the median.
//!
//! On Linux the runtime waits for a timer of the system's, which is a descriptor. On other systems tokio's sleep ends 2 ms early, and
//! the thread itself sleeps the rest.

#![cfg_attr(linux, allow(unsafe_code, reason = "timerfd_create(2)"))]

#[cfg(linux)]
mod of_the_system {
    use std::io;
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
    use std::ptr;
    use std::time::Duration;

    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    /// A timer of the system's.
    #[derive(Debug)]
    pub(crate) struct Timer(AsyncFd<OwnedFd>);

    impl Timer {
        /// A timer of the runtime that is entered.
        pub(crate) fn new() -> io::Result<Self> {
            // The clock of `std::time::Instant`.
            // SAFETY: no pointers; the result is a descriptor of our own, or -1.
            let timer = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC | libc::TFD_NONBLOCK) };
            if timer < 0 {
                return Err(io::Error::last_os_error());
            }
            // SAFETY: just opened, and not shared.
            let timer = unsafe { OwnedFd::from_raw_fd(timer) };
            // SAFETY: a descriptor that is owned, and always the same.
            Ok(Self(unsafe { AsyncFd::register_with_interest(timer, Interest::READABLE) }?))
        }

        /// Sleeps for so long, or less. Not for zero, which turns the timer off.
        pub(crate) async fn sleep(&self, duration: Duration) {
            // A duration that does not fit is longer than 290 years.
            let it_value = libc::timespec {
                tv_sec: duration.as_secs().try_into().unwrap_or(libc::time_t::MAX),
                tv_nsec: duration.subsec_nanos().cast_signed().into(),
            };
            let it_interval = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            let new = libc::itimerspec { it_interval, it_value };
            // SAFETY: `new` lives during the call; the former setting is not asked for.
            let status = unsafe { libc::timerfd_settime(self.0.as_raw_fd(), 0, &raw const new, ptr::null_mut()) };
            debug_assert_eq!(status, 0, "{new:?}");
            // The descriptor is never read: setting the timer anew makes it unreadable again, and its next expiry is an event
            // in any case. What expired before it was set anew may end one sleep too early.
            if let Ok(mut guard) = self.0.readable().await {
                guard.clear_ready();
            }
        }
    }
}

#[cfg(any(not(linux), test))]
#[cfg_attr(linux, allow(dead_code, reason = "only tested here"))]
mod in_two_steps {
    use std::io;
    use std::time::Duration;

    /// How much earlier tokio's sleep ends: more than it is late.
    const MARGIN: Duration = Duration::from_millis(2);

    /// The longest sleep during which the runtime does nothing else.
    const STEP: Duration = Duration::from_micros(500);

    /// tokio's timer, and the system's for the last milliseconds.
    #[derive(Debug)]
    pub(crate) struct Timer;

    impl Timer {
        /// A timer of the runtime that is entered.
        #[expect(clippy::unnecessary_wraps, reason = "as on Linux")]
        pub(crate) fn new() -> io::Result<Self> {
            Ok(Self)
        }

        /// Sleeps for so long, or less.
        pub(crate) async fn sleep(&self, duration: Duration) {
            match duration.checked_sub(MARGIN) {
                Some(most) => tokio::time::sleep(most).await,
                None => std::thread::sleep(duration.min(STEP)),
            }
        }
    }
}

#[cfg(not(linux))]
pub(crate) use in_two_steps::Timer;
#[cfg(linux)]
pub(crate) use of_the_system::Timer;

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    /// Sleeps for each of these durations, in as many steps as it takes, and gives how late it was, sorted.
    macro_rules! lateness {
        ($timer:ty) => {{
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let timer = <$timer>::new().unwrap();
                let mut lateness = Vec::new();
                for nth in 1..=60_u64 {
                    let end = Instant::now() + Duration::from_micros(nth * 170);
                    loop {
                        let left = end.saturating_duration_since(Instant::now());
                        if left.is_zero() {
                            break;
                        }
                        timer.sleep(left).await;
                    }
                    lateness.push(end.elapsed());
                }
                lateness.sort();
                lateness
            })
        }};
    }

    /// A timer that counts whole milliseconds is later than this in every round, whatever else the machine does.
    const BOUND: Duration = Duration::from_micros(700);
    /// On a busy machine any timer may be late, so one good round suffices.
    const ROUNDS: usize = 50;

    fn assert_precise(round: impl Fn() -> Vec<Duration>) {
        let mut medians = Vec::new();
        for _ in 0..ROUNDS {
            medians.push(round()[30]);
            if medians.last().is_some_and(|median| *median < BOUND) {
                return;
            }
        }
        panic!("late in every round, in the median by {medians:?}");
    }

    #[test]
    fn a_sleep_is_not_late_by_a_millisecond() {
        assert_precise(|| lateness!(super::Timer));
    }

    #[test]
    fn a_sleep_in_two_steps_is_not_either() {
        assert_precise(|| lateness!(super::in_two_steps::Timer));
    }
}
