//! The locks of one environment, in files and in memory: grants, requests.

use std::cell::{Cell, RefCell};
use std::io::Result;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::lock_file::Asked;
use super::mailbox::{Answer, Lock, Mailbox, Queue};
use super::waiting::{self, Request};
use waitasync_core::lock::Outbox;

/// What JavaScript gets of a grant: its number, its token, whether the last holder died, and which permit it is.
pub(crate) type Granted = (i64, u64, bool, Option<u32>);

pub(crate) struct Files {
    grants: RefCell<FxHashMap<i64, Box<dyn Lock>>>,
    last: Cell<i64>,
    pub(crate) mailbox: Arc<Mailbox>,
}

impl Files {
    pub(crate) fn new(outbox: Arc<Outbox>) -> Self {
        Self { grants: RefCell::default(), last: Cell::new(0), mailbox: Arc::new(Mailbox::new(outbox)) }
    }

    /// Returns a new number for a grant or a request: not 0. JavaScript counts further than any program does.
    fn next_number(&self) -> i64 {
        self.last.update(|last| last + 1);
        self.last.get()
    }

    /// Tries on this thread: as `attempt` of a user, or on the way into the line.
    pub(crate) fn take(&self, asked: &Asked, is_attempt: bool) -> Result<Option<Granted>> {
        Ok(asked.take(is_attempt)?.map(|grant| self.keep(Box::new(grant))))
    }

    pub(crate) fn keep(&self, lock: Box<dyn Lock>) -> Granted {
        let (number, permit, (token, owner_died)) = (self.next_number(), lock.permit(), lock.granted());
        self.grants.borrow_mut().insert(number, lock);
        (number, token, owner_died, permit)
    }

    /// Begins a request: one that waits in a line, or one that a job does. Returns its number, and where it is answered.
    pub(crate) fn begin(&self, queue: Option<Box<dyn Queue>>) -> (i64, Arc<Mailbox>) {
        let number = self.next_number();
        self.mailbox.expect(number, queue);
        (number, Arc::clone(&self.mailbox))
    }

    /// Lets another thread wait for a name, or try once. Returns the number of the request.
    pub(crate) fn request(&self, asked: &Asked, is_attempt: bool) -> Result<i64> {
        let asked = asked.clone();
        if is_attempt {
            let granted = |grant| Answer::Granted(Box::new(grant));
            return Ok(self.run(move || Ok(asked.take(true)?.map_or(Answer::Plain(false), granted))));
        }
        let (number, mailbox) = self.begin(Some(Box::new(asked.name.clone())));
        waiting::enqueue(Request { number, mailbox, asked }).inspect_err(|_| drop(self.mailbox.forget(number)))?;
        Ok(number)
    }

    /// Lets another thread do something. Returns the number of the request.
    fn run(&self, job: impl FnOnce() -> Result<Answer> + Send + 'static) -> i64 {
        let (number, mailbox) = self.begin(None);
        waiting::run(move || mailbox.answer(number, job().unwrap_or_else(Answer::Failed)));
        number
    }

    /// Withdraws a request. What it has been granted is given back.
    pub(crate) fn abort(&self, number: i64) {
        if let Some(queue) = self.mailbox.forget(number) {
            queue.dequeue(number, &self.mailbox);
        }
    }

    pub(crate) fn is_held(&self, number: i64) -> Result<bool> {
        self.grants.borrow().get(&number).map_or(Ok(false), |lock| lock.is_held())
    }

    /// Returns how many milliseconds a lock may still be held: infinitely many if that is not bounded.
    pub(crate) fn left(&self, number: i64) -> f64 {
        let grants = self.grants.borrow();
        grants.get(&number).map_or(0.0, |grant| grant.left().map_or(f64::INFINITY, |left| left.as_secs_f64() * 1e3))
    }

    /// Gives a lock back on this thread.
    pub(crate) fn release(&self, number: i64, died: bool) -> Result<bool> {
        let grant = self.grants.borrow_mut().remove(&number);
        grant.map_or(Ok(false), |grant| grant.release(died))
    }

    /// Gives a lock back in another thread. Returns the number of the request; `None` if there is nothing to flush, and
    /// `release` is as good.
    pub(crate) fn release_later(&self, number: i64, died: bool) -> Option<i64> {
        let mut grants = self.grants.borrow_mut();
        if died || !grants.get(&number)?.is_durable() {
            return None;
        }
        let grant = grants.remove(&number)?;
        drop(grants);
        Some(self.run(move || grant.release(died).map(Answer::Plain)))
    }

    /// Ends with the environment: what it awaits is withdrawn, and its holders count as dead.
    pub(crate) fn end(&self) {
        for (number, queue) in self.mailbox.close() {
            queue.dequeue(number, &self.mailbox);
        }
        self.grants.take();
    }
}
