//! The one thread of the process that serves all others.
//!
//! It starts when the first thread needs it, belongs to no environment, and ends with the process. A thread that needs
//! it for something new rings it; [`Alarm`] has the argument why no deadline is missed.
//!
//! # Duties
//! - **Deadlines** of promises: it sleeps until the earliest in the buckets.
//! - **Words of lines**, while there are claims. A word may be freed without a call: by code that knows only the
//!   bare word and notifies the host's queue, or by a thread that is interrupted (`vm` has time limits) between freeing
//!   the word and looking at its counter.
//! - **Event loops** of blocked threads: `watch`.
//! - Work of others that comes and goes: [`Service::attend`].
//!
//! A duty is an async function with a bell of its own. A panic of its work stops no other, and it begins again.
//!
//! # How soon a look at the words comes
//! A claim is looked at [`SHORTEST`] after it has joined. Then the time between two looks is an eighth of the time
//! since a claim joined last, or a look found something; from [`SHORTEST`] to [`LONGEST`]. So the looks delay no claim
//! by more than an eighth of its wait, or [`SHORTEST`], and a wait of a day costs a look a second.

pub mod watch;

use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
pub use tokio::sync::Notify;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::clock::{Timestamp, now};
use crate::queue::store::WaiterListStore;
use crate::queue::{Alarm, Policy};
use watch::Watch;

/// How long the service lets deadlines pass at most after it has timed promises out. Otherwise each of many deadlines
/// would cost a wake-up of this thread and one of the promise's.
const PAUSE: Duration = Duration::from_micros(100);

/// How long after a panic deadlines are looked at again.
const RECOVERY: Duration = Duration::from_millis(10);

/// How long a claim may wait at first for a word that was freed without a call.
const SHORTEST: Duration = Duration::from_millis(50);

/// The longest time between two looks at the words.
const LONGEST: Duration = Duration::from_secs(1);

/// The time between two looks where there are no lines: nothing needs the later one.
const REST: Duration = Duration::from_secs(86_400);

/// How much earlier tokio's sleep ends: more than it is late, as it counts whole milliseconds.
const MARGIN: Duration = Duration::from_millis(2);

/// The longest sleep during which the runtime does nothing else.
const STEP: Duration = Duration::from_micros(500);

/// The service, as the threads that it serves see it.
#[derive(Debug)]
pub struct Service {
    runtime: Runtime,
    alarm: Alarm,
    /// Wakes the service because of a deadline.
    deadlines: Notify,
    /// Wakes it because of a claim.
    claims: Notify,
}

impl Service {
    /// Starts a service. `look` looks at the words of all lines; returns whether it has found one that was freed,
    /// `None` if there are no lines. `None` if the system gives no thread, or the thread lacks something.
    pub fn start<P: Policy<Claim: Send> + Send>(
        store: &'static WaiterListStore<P>,
        look: impl Fn() -> Option<bool> + Send + 'static,
    ) -> Option<Arc<Self>> {
        let runtime = Builder::new_current_thread().enable_all().build().ok()?;
        let (alarm, deadlines, claims) = Default::default();
        let service = Arc::new(Self { runtime, alarm, deadlines, claims });
        let served = Arc::clone(&service);
        let run = async move |service: &Self| tokio::join!(service.expire(store), look_at_words(&service.claims, look));
        thread::Builder::new()
            .name("atomics-service".into())
            .spawn(move || served.runtime.block_on(run(&served)))
            .ok()?;
        Some(service)
    }

    /// Times promises out, for ever.
    async fn expire<P: Policy>(&self, store: &WaiterListStore<P>) -> Infallible {
        let mut due = Timestamp::NEVER;
        loop {
            let pause = if due <= now() { PAUSE } else { Duration::ZERO };
            let next = catch_unwind(AssertUnwindSafe(|| self.alarm.set(store)));
            due = next.map_or_else(|_| now().after(RECOVERY), |next| next.max(now().after(pause)));
            sleep_until_due(due, &self.deadlines).await;
        }
    }

    /// Notes the deadline of a promise that has been appended.
    pub fn time_out(&self, deadline: Timestamp) {
        if self.alarm.is_later_than(deadline) {
            self.deadlines.notify_one();
        }
    }

    /// Notes a claim whose word may be freed without a call.
    pub fn look_at_words(&self) {
        self.claims.notify_one();
    }

    /// Calls `work` until it returns `None`: after the times that it returns, or `soon` after the bell has rung.
    pub fn attend(&self, bell: &'static Notify, soon: Duration, work: impl Fn() -> Option<Duration> + Send + 'static) {
        self.runtime.spawn(async move {
            let mut next = Some(soon);
            while let Some(pause) = next {
                if tokio::time::timeout(pause, bell.notified()).await.is_ok() {
                    tokio::time::sleep(soon).await;
                }
                next = catch_unwind(AssertUnwindSafe(&work)).unwrap_or(Some(soon));
            }
        });
    }

    /// Watches the event loop of the calling thread, noted as blocked. Returns whether it does.
    pub fn watch(&self, watch: &Arc<Watch>) -> bool {
        watch.begin(self.runtime.handle())
    }
}

/// Sleeps until a moment on time, until the bell rings, or less: of the last 2 ms the thread itself sleeps each step.
async fn sleep_until_due(moment: Timestamp, bell: &Notify) {
    if moment == Timestamp::NEVER {
        return bell.notified().await;
    }
    let left = moment.duration_since(now());
    if let Some(most) = left.checked_sub(MARGIN) {
        _ = tokio::time::timeout(most, bell.notified()).await;
    } else {
        thread::sleep(left.min(STEP));
        // The other duties, and the waits of the runtime, have their turn, too: deadlines may follow one another for long.
        yield_now().await;
    }
}

/// Looks at words for ever. `look` returns whether it has found one that was freed; `None` if there are no lines.
async fn look_at_words(bell: &Notify, look: impl Fn() -> Option<bool>) -> Infallible {
    let mut news = Instant::now();
    loop {
        let found = catch_unwind(AssertUnwindSafe(&look)).unwrap_or(Some(true));
        let now = Instant::now();
        if found == Some(true) {
            news = now;
        }
        let next = now + found.map_or(REST, |_| ((now - news) / 8).clamp(SHORTEST, LONGEST));
        if timeout_at(next, bell.notified()).await.is_ok() {
            news = Instant::now();
            sleep_until(next.min(news + SHORTEST)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    /// The clock is tokio's, which goes on only while all sleep. It rounds up to milliseconds.
    #[tokio::test(start_paused = true)]
    async fn looks_become_rare_and_stop_without_lines_but_a_claim_that_joins_is_looked_at_soon() {
        const MINUTE: Duration = Duration::from_secs(60);
        let (bell, looks, has_lines) = (Notify::new(), RefCell::new(Vec::new()), Cell::new(false));
        let look = || {
            looks.borrow_mut().push(Instant::now());
            has_lines.get().then_some(false)
        };
        let claims = async {
            bell.notify_one();
            tokio::time::sleep(MINUTE).await;
            assert_eq!(looks.borrow().len(), 2, "one at the beginning, and one for the claim");
            has_lines.set(true);
            let begin = Instant::now();
            bell.notify_one();
            tokio::time::sleep(MINUTE).await;
            let before = looks.take();
            assert!(before.len() < 100, "{} looks in a minute", before.len());
            for two in before[2..].windows(2) {
                let (waited, delay) = (two[0] - begin, two[1] - two[0]);
                assert!(delay <= SHORTEST.max(waited / 8).min(LONGEST) + STEP * 2, "{delay:?} after {waited:?}");
            }
            while looks.borrow().is_empty() {
                tokio::time::sleep(STEP).await;
            }
            bell.notify_one();
            tokio::time::sleep(SHORTEST + STEP * 4).await;
            assert_eq!(looks.borrow().len(), 2, "the claim that has joined last is not looked at");
        };
        tokio::select! {
            () = claims => {}
            never = look_at_words(&bell, look) => match never {},
        }
    }
}
