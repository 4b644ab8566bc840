//! The answers to the requests of an environment, on their way there.

use std::collections::VecDeque;
use std::io::{Error, Result};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use rustc_hash::FxHashMap;

use waitasync_core::lock::Outbox;
use waitasync_core::sync::lock;

/// A lock that an environment has. Dropped, it is that of a dead holder.
pub(crate) trait Lock: Send {
    /// Its token, and whether the last holder died.
    fn granted(&self) -> (u64, bool);

    /// Which permit it is, if it is one.
    fn permit(&self) -> Option<u32> {
        None
    }

    fn is_held(&self) -> Result<bool>;

    /// The time that is left, if its hold is limited.
    fn left(&self) -> Option<Duration> {
        None
    }

    /// Gives it back, and returns whether it was held until then. The next holder is told if this one `died`.
    fn release(self: Box<Self>, died: bool) -> Result<bool>;

    /// Whether the release waits for a disk.
    fn is_durable(&self) -> bool {
        false
    }

    /// Gives back a lock of which nobody knows.
    fn return_unused(self: Box<Self>) {
        let (_, died) = self.granted();
        // If that fails, the next holder sees a death.
        let _ = self.release(died);
    }
}

/// A line in which requests wait.
pub(crate) trait Queue: Send {
    fn dequeue(&self, number: i64, mailbox: &Arc<Mailbox>);
}

pub(crate) enum Answer {
    Granted(Box<dyn Lock>),
    /// Of a release, whether the lock was held until then; false of an attempt in vain.
    Plain(bool),
    Failed(Error),
}

impl Answer {
    /// Gives back what nobody gets.
    fn return_unused(self) {
        if let Self::Granted(grant) = self {
            grant.return_unused();
        }
    }
}

#[derive(Default)]
struct Contents {
    /// Those without an answer, and the line in which each waits; `None`: a job does it.
    requests: FxHashMap<i64, Option<Box<dyn Queue>>>,
    /// Those that are not delivered.
    answers: VecDeque<(i64, Answer)>,
}

impl Contents {
    fn take_answer(&mut self, request: i64) -> Option<Answer> {
        let index = self.answers.iter().position(|(id, _)| *id == request)?;
        self.answers.remove(index).map(|(_, answer)| answer)
    }
}

pub(crate) struct Mailbox {
    contents: Mutex<Contents>,
    /// Signalled at each answer, for a thread that blocks.
    answered: Condvar,
    /// Whose agent looks here after a ring.
    pub(super) outbox: Arc<Outbox>,
}

impl Mailbox {
    pub(super) fn new(outbox: Arc<Outbox>) -> Self {
        Self { contents: Mutex::default(), answered: Condvar::new(), outbox }
    }

    pub(super) fn expect(&self, request: i64, queue: Option<Box<dyn Queue>>) {
        lock(&self.contents).requests.insert(request, queue);
    }

    /// Whether there are requests, or answers that are not delivered.
    pub(crate) fn has_requests(&self) -> bool {
        let contents = lock(&self.contents);
        !contents.requests.is_empty() || !contents.answers.is_empty()
    }

    pub(crate) fn has_answers(&self) -> bool {
        !lock(&self.contents).answers.is_empty()
    }

    /// Puts an answer in. If nobody expects it any more, what it has is given back.
    pub(crate) fn answer(&self, request: i64, answer: Answer) {
        let mut contents = lock(&self.contents);
        if contents.requests.remove(&request).is_none() {
            drop(contents);
            return answer.return_unused();
        }
        contents.answers.push_back((request, answer));
        drop(contents);
        self.answered.notify_all();
        self.outbox.ring();
    }

    pub(crate) fn next(&self) -> Option<(i64, Answer)> {
        lock(&self.contents).answers.pop_front()
    }

    /// Blocks for a while until a request is answered: for all of it, if there is no such request.
    pub(crate) fn wait(&self, request: i64, time: Duration) -> Option<Answer> {
        let contents = lock(&self.contents);
        let is_open = |contents: &mut Contents| contents.answers.iter().all(|(id, _)| *id != request);
        let waited = self.answered.wait_timeout_while(contents, time, is_open);
        waited.unwrap_or_else(PoisonError::into_inner).0.take_answer(request)
    }

    /// Forgets a request. Returns the line in which it is, if it has no answer.
    pub(super) fn forget(&self, request: i64) -> Option<Box<dyn Queue>> {
        let mut contents = lock(&self.contents);
        if let Some(queue) = contents.requests.remove(&request) {
            return queue;
        }
        let answer = contents.take_answer(request);
        drop(contents);
        if let Some(answer) = answer {
            answer.return_unused();
        }
        None
    }

    /// Ends all requests: returns those that wait, and gives back what nobody will get.
    pub(super) fn close(&self) -> Vec<(i64, Box<dyn Queue>)> {
        let Contents { requests, answers } = std::mem::take(&mut *lock(&self.contents));
        for (_, answer) in answers {
            answer.return_unused();
        }
        requests.into_iter().filter_map(|(number, queue)| Some((number, queue?))).collect()
    }
}
