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

#[derive(Default)]
struct Contents {
    /// The requests without an answer; those that wait in line, with their name.
    pending: FxHashMap<u32, Option<Name>>,
    answers: VecDeque<(u32, Answer)>,
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

    pub(super) fn expect(&self, request: u32, name: Option<Name>) {
        lock(&self.contents).pending.insert(request, name);
    }

    pub(super) fn expects(&self, request: u32) -> bool {
        lock(&self.contents).pending.contains_key(&request)
    }

    pub(super) fn has_answers(&self) -> bool {
        self.has_answers.load(Ordering::Acquire)
    }

    /// Puts an answer in. If nobody expects it any more, what it has is given back.
    pub(super) fn answer(&self, request: u32, answer: Answer) {
        let mut contents = lock(&self.contents);
        if contents.pending.remove(&request).is_none() {
            drop(contents);
            return answer.return_unused();
        }
        contents.answers.push_back((request, answer));
        self.has_answers.store(true, Ordering::Release);
        drop(contents);
        self.answered.notify_all();
        self.outbox.ring();
    }

    pub(super) fn next(&self) -> Option<(u32, Answer)> {
        let mut contents = lock(&self.contents);
        let next = contents.answers.pop_front();
        self.has_answers.store(!contents.answers.is_empty(), Ordering::Release);
        next
    }

    /// Blocks for a while until a request is answered.
    pub(super) fn wait(&self, request: u32, time: Duration) -> Option<Answer> {
        let contents = lock(&self.contents);
        let is_open = |contents: &mut Contents| contents.pending.contains_key(&request);
        let (mut contents, _) = self
            .answered
            .wait_timeout_while(contents, time, is_open)
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let index = contents.answers.iter().position(|(id, _)| *id == request)?;
        let answer = contents.answers.remove(index).map(|(_, answer)| answer);
        self.has_answers.store(!contents.answers.is_empty(), Ordering::Release);
        answer
    }

    /// Forgets a request. Returns the name in whose line it is, if it has no answer.
    pub(super) fn forget(&self, request: u32) -> Option<Name> {
        let mut contents = lock(&self.contents);
        if let Some(name) = contents.pending.remove(&request) {
            return name;
        }
        let index = contents.answers.iter().position(|(id, _)| *id == request)?;
        let answer = contents.answers.remove(index);
        drop(contents);
        if let Some((_, answer)) = answer {
            answer.return_unused();
        }
        None
    }

    /// Ends all requests: returns those that wait, and gives back what nobody will get.
    pub(super) fn close(&self) -> Vec<(u32, Name)> {
        let Contents { pending, answers } = std::mem::take(&mut *lock(&self.contents));
        for (_, answer) in answers {
            answer.return_unused();
        }
        pending.into_iter().filter_map(|(request, name)| Some((request, name?))).collect()
    }
}
