//! The answers to the requests of an environment, on their way there.

use std::collections::VecDeque;
use std::io::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use rustc_hash::FxHashMap;

use super::lock_file::{Grant, Name};
use waitasync_core::lock::Outbox;
use waitasync_core::sync::lock;

/// The answer to a request.
pub(super) enum Answer {
    Granted(Grant),
    /// An attempt was in vain.
    Taken,
    /// A lock was given back: whether it was held until then.
    Released(bool),
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

/// The state of a request until its answer is delivered.
enum Request {
    /// In the line of this name.
    Waits(Name),
    /// A job does it.
    Runs,
    Answered,
}

#[derive(Default)]
struct Contents {
    requests: FxHashMap<i64, Request>,
    answers: VecDeque<(i64, Answer)>,
}

impl Contents {
    fn is_answered(&self, request: i64) -> bool {
        matches!(self.requests.get(&request), Some(Request::Answered))
    }

    fn take_answer(&mut self, request: i64) -> Option<Answer> {
        let index = self.answers.iter().position(|(id, _)| *id == request)?;
        self.answers.remove(index).map(|(_, answer)| answer)
    }
}

pub(super) struct Mailbox {
    contents: Mutex<Contents>,
    /// Signalled at each answer, for a thread that blocks.
    answered: Condvar,
    /// Whether there are answers: changed under the lock of the contents.
    has_answers: AtomicBool,
    /// Whose agent looks here after a ring.
    outbox: Arc<Outbox>,
}

impl Mailbox {
    pub(super) fn new(outbox: Arc<Outbox>) -> Self {
        Self { contents: Mutex::default(), answered: Condvar::new(), has_answers: AtomicBool::new(false), outbox }
    }

    /// Begins a request: one that waits in the line of a name, or one that a job does.
    pub(super) fn expect(&self, request: i64, name: Option<Name>) {
        lock(&self.contents).requests.insert(request, name.map_or(Request::Runs, Request::Waits));
    }

    pub(super) fn has_requests(&self) -> bool {
        !lock(&self.contents).requests.is_empty()
    }

    /// Whether a request needs an answer.
    pub(super) fn expects(&self, request: i64) -> bool {
        matches!(lock(&self.contents).requests.get(&request), Some(Request::Waits(_) | Request::Runs))
    }

    pub(super) fn has_answers(&self) -> bool {
        self.has_answers.load(Ordering::Acquire)
    }

    pub(super) fn ring(&self) {
        self.outbox.ring();
    }

    /// Puts an answer in. If nobody expects it any more, what it has is given back.
    pub(super) fn answer(&self, request: i64, answer: Answer) {
        let mut contents = lock(&self.contents);
        let Some(waits @ (Request::Waits(_) | Request::Runs)) = contents.requests.get_mut(&request) else {
            drop(contents);
            return answer.return_unused();
        };
        *waits = Request::Answered;
        contents.answers.push_back((request, answer));
        self.has_answers.store(true, Ordering::Release);
        drop(contents);
        self.answered.notify_all();
        self.ring();
    }

    pub(super) fn next(&self) -> Option<(i64, Answer)> {
        let mut contents = lock(&self.contents);
        let next = contents.answers.pop_front();
        if let Some((request, _)) = &next {
            contents.requests.remove(request);
        }
        self.has_answers.store(!contents.answers.is_empty(), Ordering::Release);
        next
    }

    /// Blocks for a while until a request is answered: for all of it, if there is no such request.
    pub(super) fn wait(&self, request: i64, time: Duration) -> Option<Answer> {
        let contents = lock(&self.contents);
        let (mut contents, _) = self
            .answered
            .wait_timeout_while(contents, time, |contents| !contents.is_answered(request))
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let answer = contents.take_answer(request)?;
        contents.requests.remove(&request);
        self.has_answers.store(!contents.answers.is_empty(), Ordering::Release);
        Some(answer)
    }

    /// Forgets a request. Returns the name in whose line it is, if it has no answer.
    pub(super) fn forget(&self, request: i64) -> Option<Name> {
        let mut contents = lock(&self.contents);
        let answer = match contents.requests.remove(&request)? {
            Request::Waits(name) => return Some(name),
            Request::Runs => None,
            Request::Answered => contents.take_answer(request),
        };
        drop(contents);
        if let Some(answer) = answer {
            answer.return_unused();
        }
        None
    }

    /// Ends all requests: returns those that wait, and gives back what nobody will get.
    pub(super) fn close(&self) -> Vec<(i64, Name)> {
        let Contents { requests, answers } = std::mem::take(&mut *lock(&self.contents));
        for (_, answer) in answers {
            answer.return_unused();
        }
        let waits = |(number, request)| if let Request::Waits(name) = request { Some((number, name)) } else { None };
        requests.into_iter().filter_map(waits).collect()
    }
}
