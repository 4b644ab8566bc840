//! The process locks of one environment, in files and in memory.
//!
//! Its grants, and the answers to its requests.

use std::cell::{Cell, OnceCell, RefCell};
use std::io::Result;
use std::sync::Arc;
use std::time::Duration;

use rustc_hash::FxHashMap;

use super::lock_file::Asked;
use super::mailbox::{Answer, Lock, Mailbox, Queue};
use super::waiting::{self, Request};
use waitasync_core::lock::Outbox;

/// What JavaScript gets of a grant: its number, its token, whether the last holder died, and which permit it is.
pub(crate) type Granted = (i64, u64, bool, Option<u32>);

/// Nothing is allocated before it is used.
#[derive(Default)]
pub(crate) struct Files {
    grants: RefCell<FxHashMap<i64, Box<dyn Lock>>>,
    last: Cell<i64>,
    mailbox: OnceCell<Arc<Mailbox>>,
}

impl Files {
    fn mailbox(&self, outbox: &Arc<Outbox>) -> Arc<Mailbox> {
        Arc::clone(self.mailbox.get_or_init(|| Arc::new(Mailbox::new(Arc::clone(outbox)))))
    }

    /// Returns a new number for a grant or a request: not 0. JavaScript counts further than any program does.
    fn next_number(&self) -> i64 {
        self.last.update(|last| last + 1);
        self.last.get()
    }

    /// Whether JavaScript is to ask for answers.
    pub(crate) fn has_answers(&self) -> bool {
        self.mailbox.get().is_some_and(|mailbox| mailbox.has_answers())
    }

    /// Whether requests are under way: they hold the event loop.
    pub(crate) fn awaits_answers(&self) -> bool {
        self.mailbox.get().is_some_and(|mailbox| mailbox.has_requests())
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

    /// Begins a request that waits in a line. Returns its number, and where it is answered.
    pub(crate) fn wait_in(&self, outbox: &Arc<Outbox>, queue: Box<dyn Queue>) -> (i64, Arc<Mailbox>) {
        let (number, mailbox) = (self.next_number(), self.mailbox(outbox));
        mailbox.expect(number, Some(queue));
        (number, mailbox)
    }

    /// Takes back a request that has got into no line.
    pub(crate) fn forget(&self, number: i64) {
        self.mailbox.get().map(|mailbox| mailbox.forget(number));
    }

    /// Lets another thread wait for a name, or try once. Returns the number of the request.
    pub(crate) fn request(&self, outbox: &Arc<Outbox>, asked: &Asked, is_attempt: bool) -> Result<i64> {
        let asked = asked.clone();
        if is_attempt {
            let granted = |grant| Answer::Granted(Box::new(grant));
            return Ok(self.run(outbox, move || Ok(asked.take(true)?.map_or(Answer::Plain(false), granted))));
        }
        let (number, mailbox) = self.wait_in(outbox, Box::new(asked.name.clone()));
        waiting::enqueue(Request { number, mailbox, asked }).inspect_err(|_| self.forget(number))?;
        Ok(number)
    }

    /// Lets another thread do something. Returns the number of the request.
    fn run(&self, outbox: &Arc<Outbox>, job: impl FnOnce() -> Result<Answer> + Send + 'static) -> i64 {
        let (number, mailbox) = (self.next_number(), self.mailbox(outbox));
        mailbox.expect(number, None);
        waiting::run(move || mailbox.answer(number, job().unwrap_or_else(Answer::Failed)));
        number
    }

    /// Withdraws a request. What it has been granted is given back.
    pub(crate) fn abort(&self, number: i64) {
        if let Some(mailbox) = self.mailbox.get()
            && let Some(queue) = mailbox.forget(number)
        {
            queue.dequeue(number, mailbox);
        }
    }

    pub(crate) fn next(&self) -> Option<(i64, Answer)> {
        self.mailbox.get()?.next()
    }

    /// Blocks for so many milliseconds, or until the request is answered: for all of them, if there is no such request.
    pub(crate) fn wait(&self, outbox: &Arc<Outbox>, number: i64, milliseconds: u32) -> Option<Answer> {
        self.mailbox(outbox).wait(number, Duration::from_millis(milliseconds.into()))
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
    pub(crate) fn release_later(&self, outbox: &Arc<Outbox>, number: i64, died: bool) -> Option<i64> {
        let mut grants = self.grants.borrow_mut();
        if died || !grants.get(&number)?.is_durable() {
            return None;
        }
        let grant = grants.remove(&number)?;
        drop(grants);
        Some(self.run(outbox, move || grant.release(died).map(Answer::Plain)))
    }

    /// Ends with the environment: what it awaits is withdrawn, and its holders count as dead.
    pub(crate) fn end(&self) {
        if let Some(mailbox) = self.mailbox.get() {
            for (number, queue) in mailbox.close() {
                queue.dequeue(number, mailbox);
            }
        }
        self.grants.take();
    }
}
