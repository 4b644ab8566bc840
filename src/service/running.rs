//! The thread's loop: what it sleeps for, and what it does when it wakes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::task::yield_now;

use super::alarm::Alarm;
use super::rest::Rest;
use super::timer::sleep;
use super::watch::{Signals, Watch};
use crate::clock::{Timestamp, now};
use crate::queue::critical_section::Policy;
use crate::queue::store::WaiterListStore;

/// How long a claim may wait for a word that was freed without a call.
const CHECK: Duration = Duration::from_millis(50);

/// The looks at words rest when there have been no lines for so long. Threads that keep answering each other need not ring every time.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long the service lets deadlines pass at most after it has timed promises out. Otherwise each of many deadlines would cost a
/// wake-up of this thread and one of the promise's.
const PAUSE: Duration = Duration::from_micros(100);

/// How long after a panic it is tried again.
const RECOVERY: Duration = Duration::from_millis(10);

/// The service, as the threads that it serves see it.
#[derive(Debug)]
pub struct Service {
    runtime: Runtime,
    signals: Arc<Signals>,
    alarm: Alarm,
    checks: Rest,
}

/// The looks at the words of all lines.
struct Checks<'a, F> {
    rest: &'a Rest,
    /// Looks at the words. Returns whether there are any lines.
    check: F,
    next: Option<Timestamp>,
    /// For how long there have been no lines.
    idle: Duration,
}

impl<F: Fn() -> bool> Checks<'_, F> {
    /// Looks at the words if it is time to. Returns the moment of the next turn: never, while the service rests.
    fn turn(&mut self) -> Timestamp {
        if self.rest.lasts() {
            return Timestamp::NEVER;
        }
        let now = now();
        match self.next {
            Some(next) if next > now => return next,
            Some(_) => {
                self.next = None;
                self.idle = if (self.check)() { Duration::ZERO } else { self.idle + CHECK };
                if self.idle >= PATIENCE {
                    self.idle = Duration::ZERO;
                    if self.rest.begin(&self.check) {
                        return Timestamp::NEVER;
                    }
                }
            }
            None => {}
        }
        *self.next.insert(now.after(CHECK))
    }
}

fn unless_it_panics(turn: impl FnOnce() -> Timestamp) -> Timestamp {
    catch_unwind(AssertUnwindSafe(turn)).unwrap_or_else(|_| now().after(RECOVERY))
}

impl Service {
    /// Starts a service. `check` looks at the words of all lines, and returns whether there are any. `None` if the system gives no
    /// thread, or not what the thread needs.
    pub fn start<P>(store: &'static WaiterListStore<P>, check: impl Fn() -> bool + Send + 'static) -> Option<Arc<Self>>
    where
        P: Policy + Send,
        P::Claim: Send,
    {
        let runtime = Builder::new_current_thread().enable_all().build().ok()?;
        let service =
            Arc::new(Self { signals: Arc::default(), runtime, alarm: Alarm::default(), checks: Rest::default() });
        let served = Arc::clone(&service);
        let thread = std::thread::Builder::new().name("atomics-service".into());
        let run = move || {
            // Between the duties, looks at the clock can panic.
            while catch_unwind(AssertUnwindSafe(|| served.runtime.block_on(served.run(store, &check)))).is_err() {
                std::thread::sleep(RECOVERY);
            }
        };
        thread.spawn(run).ok()?;
        Some(service)
    }

    async fn run<P: Policy>(&self, store: &WaiterListStore<P>, check: impl Fn() -> bool) {
        let mut checks = Checks { rest: &self.checks, check, next: None, idle: Duration::ZERO };
        let bell = &self.signals.bell;
        let mut due = Timestamp::NEVER;
        loop {
            let pause = if due <= now() { PAUSE } else { Duration::ZERO };
            due = unless_it_panics(|| self.alarm.set(store)).max(now().after(pause));
            let delivered = unless_it_panics(|| {
                self.signals.deliver();
                Timestamp::NEVER
            });
            let next = due.min(unless_it_panics(|| checks.turn())).min(delivered);
            if next == Timestamp::NEVER {
                bell.notified().await;
                continue;
            }
            let left = next.duration_since(now());
            if left.is_zero() {
                // What the runtime waits for has its turn, too.
                yield_now().await;
                continue;
            }
            tokio::select! {
                () = bell.notified() => {}
                () = sleep(left) => {}
            }
        }
    }

    /// A promise with this deadline has been appended.
    pub fn time_out(&self, deadline: Timestamp) {
        if self.alarm.is_later_than(deadline) {
            self.signals.bell.notify_one();
        }
    }

    /// A claim has been appended.
    pub fn check_words(&self) {
        if self.checks.end() {
            self.signals.bell.notify_one();
        }
    }

    /// Watches the event loop of the calling thread, which has noted that it is blocked. Whether it is watched.
    pub(crate) fn watch(&self, watch: &Arc<Watch>) -> bool {
        watch.begin(&self.signals, self.runtime.handle())
    }
}
