//! The thread's loop: what it sleeps for, and what it does when it wakes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::task::yield_now;

use super::alarm::Alarm;
use super::rest::Rest;
use super::timer::Timer;
use super::watch::{Signals, Watch};
use crate::clock::{Timestamp, now};
use crate::queue::critical_section::Policy;
use crate::queue::store::WaiterListStore;

/// A slice takes two ticks at most, and more than one.
const TICK: Duration = Duration::from_millis(15);

/// How long a claim may wait for a word that was freed without a call.
const CHECK: Duration = Duration::from_millis(50);

/// A duty rests when it has found nothing to do for so long. Threads that keep answering each other need not ring every time.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long the service lets deadlines pass at most after it has timed promises out. Otherwise each of many deadlines would cost a
/// wake-up of this thread and one of the promise's.
const PAUSE: Duration = Duration::from_micros(100);

/// How long after a panic it is tried again.
const RECOVERY: Duration = Duration::from_millis(10);

/// What the service does for others than promises. Each says whether there was anything to do.
pub struct Duties {
    /// Ticks for all threads: [`crate::queue::parker::BlockedThread::tick`].
    pub tick: Box<dyn Fn() -> bool + Send>,
    /// Looks at the words of all lines.
    pub check_words: Box<dyn Fn() -> bool + Send>,
}

/// The service, as the threads that it serves see it.
#[derive(Debug)]
pub struct Service {
    runtime: Runtime,
    signals: Arc<Signals>,
    alarm: Alarm,
    ticks: Rest,
    checks: Rest,
}

/// A duty that the service fulfils at intervals, unless it rests.
struct Round<'a> {
    rest: &'a Rest,
    interval: Duration,
    duty: &'a dyn Fn() -> bool,
    next: Option<Timestamp>,
    /// For how long there was nothing to do.
    idle: Duration,
}

impl<'a> Round<'a> {
    fn new(rest: &'a Rest, interval: Duration, duty: &'a dyn Fn() -> bool) -> Self {
        Self { rest, interval, duty, next: None, idle: Duration::ZERO }
    }

    /// Fulfils the duty if it is time. The moment of the next turn; never, while it rests.
    fn turn(&mut self) -> Timestamp {
        if self.rest.lasts() {
            return Timestamp::NEVER;
        }
        let now = now();
        match self.next {
            Some(next) if next > now => return next,
            Some(_) => {
                self.next = None;
                self.idle = if (self.duty)() { Duration::ZERO } else { self.idle + self.interval };
                if self.idle >= PATIENCE {
                    self.idle = Duration::ZERO;
                    if self.rest.begin(self.duty) {
                        return Timestamp::NEVER;
                    }
                }
            }
            None => {}
        }
        *self.next.insert(now.after(self.interval))
    }
}

fn unless_it_panics(turn: impl FnOnce() -> Timestamp) -> Timestamp {
    catch_unwind(AssertUnwindSafe(turn)).unwrap_or_else(|_| now().after(RECOVERY))
}

impl Service {
    /// Starts a service. `None` if the system gives no thread, or not what the thread needs.
    pub fn start<P>(store: &'static WaiterListStore<P>, duties: Duties) -> Option<Arc<Self>>
    where
        P: Policy + Send,
        P::Claim: Send,
        P::Grant: Send,
    {
        let mut builder = Builder::new_current_thread();
        #[cfg(linux)]
        builder.enable_io();
        #[cfg(not(linux))]
        builder.enable_time();
        let runtime = builder.build().ok()?;
        let timer = {
            let _entered = runtime.enter();
            Timer::new().ok()?
        };
        let service = Arc::new(Self {
            signals: Arc::new(Signals::new(runtime.handle().clone())),
            runtime,
            alarm: Alarm::default(),
            ticks: Rest::default(),
            checks: Rest::default(),
        });
        let served = Arc::clone(&service);
        let thread = std::thread::Builder::new().name("atomics-service".into());
        let run = move || {
            // Between the duties, looks at the clock can panic.
            while catch_unwind(AssertUnwindSafe(|| served.runtime.block_on(served.run(&timer, store, &duties))))
                .is_err()
            {
                std::thread::sleep(RECOVERY);
            }
        };
        thread.spawn(run).ok()?;
        Some(service)
    }

    async fn run<P: Policy>(&self, timer: &Timer, store: &WaiterListStore<P>, duties: &Duties) {
        let mut ticks = Round::new(&self.ticks, TICK, &*duties.tick);
        let mut checks = Round::new(&self.checks, CHECK, &*duties.check_words);
        let bell = self.signals.bell();
        let mut due = Timestamp::NEVER;
        loop {
            let pause = if due <= now() { PAUSE } else { Duration::ZERO };
            due = unless_it_panics(|| self.alarm.set(store)).max(now().after(pause));
            let next = due.min(unless_it_panics(|| ticks.turn())).min(unless_it_panics(|| checks.turn())).min(
                unless_it_panics(|| {
                    self.signals.deliver();
                    Timestamp::NEVER
                }),
            );
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
                () = timer.sleep(left) => {}
            }
        }
    }

    /// A promise with this deadline has been appended.
    pub fn time_out(&self, deadline: Timestamp) {
        if self.alarm.is_later_than(deadline) {
            self.signals.bell().notify_one();
        }
    }

    /// A thread has noted that it is in its first slice.
    pub fn tick(&self) {
        if self.ticks.end() {
            self.signals.bell().notify_one();
        }
    }

    /// A claim has been appended.
    pub fn check_words(&self) {
        if self.checks.end() {
            self.signals.bell().notify_one();
        }
    }

    /// Watches the event loop of the calling thread, which has noted that it is blocked. Whether it is watched.
    pub(crate) fn watch(&self, watch: &Arc<Watch>) -> bool {
        watch.begin(&self.signals)
    }
}
