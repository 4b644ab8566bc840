//! The thread: its duties take turns. Each sleeps until its own bell rings or its next moment has come.

use std::convert::Infallible;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;

use super::alarm::Alarm;
use super::timer::sleep_until;
use super::watch::Watch;
use super::word_poller::WordPoller;
use crate::clock::{Timestamp, now};
use crate::queue::Policy;
use crate::queue::store::WaiterListStore;

/// How long the service lets deadlines pass at most after it has timed promises out. Otherwise each of many deadlines
/// would cost a wake-up of this thread and one of the promise's.
const PAUSE: Duration = Duration::from_micros(100);

/// How long after a panic a duty begins again.
const RECOVERY: Duration = Duration::from_millis(10);

/// The service, as the threads that it serves see it.
#[derive(Debug)]
pub struct Service {
    runtime: Runtime,
    alarm: Alarm,
    /// Wakes the service because of a deadline.
    bell: Notify,
    word_poller: WordPoller,
}

/// Runs a duty, and again after each panic of it.
async fn perform<D: Future<Output = Infallible>>(duty: impl Fn() -> D) {
    loop {
        let mut running = pin!(duty());
        poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| running.as_mut().poll(context))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(never)) => match never {},
            Err(_) => Poll::Ready(()),
        })
        .await;
        tokio::time::sleep(RECOVERY).await;
    }
}

impl Service {
    /// Starts a service. `look` looks at the words of all lines; returns whether it has found one that was freed,
    /// `None` if there are no lines. `None` if the system gives no thread, or the thread lacks something.
    pub fn start<P>(
        store: &'static WaiterListStore<P>,
        look: impl Fn() -> Option<bool> + Send + 'static,
    ) -> Option<Arc<Self>>
    where
        P: Policy + Send,
        P::Claim: Send,
    {
        let runtime = Builder::new_current_thread().enable_all().build().ok()?;
        let (alarm, bell, word_poller) = Default::default();
        let service = Arc::new(Self { runtime, alarm, bell, word_poller });
        let served = Arc::clone(&service);
        let run = async move |service: &Self| {
            tokio::join!(perform(|| service.expire(store)), perform(|| service.word_poller.run(&look)))
        };
        let thread = std::thread::Builder::new().name("atomics-service".into());
        thread.spawn(move || served.runtime.block_on(run(&served))).ok()?;
        Some(service)
    }

    /// Times promises out, for ever.
    async fn expire<P: Policy>(&self, store: &WaiterListStore<P>) -> Infallible {
        let mut due = Timestamp::NEVER;
        loop {
            let pause = if due <= now() { PAUSE } else { Duration::ZERO };
            due = self.alarm.set(store).max(now().after(pause));
            sleep_until(due, &self.bell).await;
        }
    }

    /// Notes the deadline of a promise that has been appended.
    pub fn time_out(&self, deadline: Timestamp) {
        if self.alarm.is_later_than(deadline) {
            self.bell.notify_one();
        }
    }

    /// Notes a claim whose word may be freed without a call.
    pub fn look_at_words(&self) {
        self.word_poller.claim_has_joined();
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
