//! The threads that wait for locks: one for each name and mode, blocked in the call of the operating system.
//!
//! A blocked thread needs no processor, and the system wakes it at once. It cannot be interrupted: if its requests are
//! aborted it stays, and serves those that come later. What it gets then, it gives back; and an abort gives back its
//! gate, so that nobody waits behind it.
//!
//! There are `MOST_THREADS` at most. Names beyond that, or that have no thread because none can be started, are swept:
//! one thread tries them now and then. As soon as a thread is free it takes the swept name that has waited longest.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Error, Result};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{Builder, sleep};
use std::time::Duration;

use rustc_hash::FxHashMap;

use super::lock_file::{Locked, Name};
use super::mailbox::{Answer, Mailbox};
use super::system::{is_passing, unlock};
use crate::environment::contained;
use waitasync_core::sync::lock;

#[cfg(not(test))]
const MOST_THREADS: usize = 1024;
#[cfg(test)]
const MOST_THREADS: usize = 2;
const STACK: usize = 256 << 10;
/// A thread without work ends after this time.
const IDLE: Duration = Duration::from_secs(10);
const SWEEP: Duration = Duration::from_millis(50);
/// After so long a thread tries again that has found no descriptor or no memory.
const LATER: Duration = Duration::from_millis(20);

/// A request in the line of a name.
pub(super) struct Request {
    pub(super) number: u32,
    pub(super) mailbox: Arc<Mailbox>,
    /// Of the requester, for the state.
    pub(super) description: String,
}

/// The requests for a name in a mode, in their order.
#[derive(Default)]
struct Line {
    requests: VecDeque<Request>,
    /// The gate that its thread has while it waits for the lock.
    gate: Option<Arc<File>>,
}

type Job = Box<dyn FnOnce() + Send>;

enum Work {
    Line(Name),
    Job(Job),
}

#[derive(Default)]
struct Table {
    /// Each line is awaited by a thread, or among the swept ones.
    lines: FxHashMap<Name, Line>,
    threads: usize,
    /// How many of them have no work.
    idle: usize,
    /// For idle threads.
    work: VecDeque<Work>,
    swept: VecDeque<Name>,
    is_sweeping: bool,
}

static TABLE: Mutex<Option<Table>> = Mutex::new(None);
static WORK: Condvar = Condvar::new();

fn with_table<T>(body: impl FnOnce(&mut Table) -> T) -> T {
    body(lock(&TABLE).get_or_insert_default())
}

/// Puts a request into the line of its name. Fails if no thread can be started.
pub(super) fn enqueue(name: Name, request: Request) -> Result<()> {
    with_table(|table| {
        if let Some(line) = table.lines.get_mut(&name) {
            line.requests.push_back(request);
            return Ok(());
        }
        let line = Line { requests: VecDeque::from([request]), gate: None };
        table.lines.insert(name.clone(), line);
        if !table.swept.is_empty() || !table.assign(Work::Line(name.clone()), MOST_THREADS) {
            if let Err(error) = table.sweep() {
                table.lines.remove(&name);
                return Err(error);
            }
            table.swept.push_back(name);
        }
        Ok(())
    })
}

/// Removes a request. If it was the last one, others may pass by the thread that waits.
pub(super) fn dequeue(name: &Name, number: u32, mailbox: &Arc<Mailbox>) {
    let gate = with_table(|table| {
        let line = table.lines.get_mut(name)?;
        line.requests.retain(|request| request.number != number || !Arc::ptr_eq(&request.mailbox, mailbox));
        if line.requests.is_empty() { line.gate.take() } else { None }
    });
    if let Some(gate) = gate {
        unlock(&gate);
    }
}

/// Runs a job in another thread: in this one if none can be started.
pub(super) fn run(job: impl FnOnce() + Send + 'static) {
    let mut job: Option<Job> = Some(Box::new(job));
    with_table(|table| table.assign_job(&mut job));
    if let Some(job) = job {
        job();
    }
}

impl Table {
    /// Gives work to an idle thread or a new one. False if there are `most` already.
    fn assign(&mut self, work: Work, most: usize) -> bool {
        if self.idle > self.work.len() {
            self.work.push_back(work);
            WORK.notify_one();
            return true;
        }
        self.threads < most && self.start(work)
    }

    fn assign_job(&mut self, job: &mut Option<Job>) {
        if self.idle > self.work.len() {
            self.work.extend(job.take().map(Work::Job));
            WORK.notify_one();
        } else if self.start_idle() {
            self.work.extend(job.take().map(Work::Job));
        }
    }

    fn start(&mut self, work: Work) -> bool {
        let is_started = self.start_idle();
        if is_started {
            self.work.push_back(work);
        }
        is_started
    }

    /// Starts a thread, which takes its work from this table.
    fn start_idle(&mut self) -> bool {
        let is_started = Builder::new().name("waitasync files".into()).stack_size(STACK).spawn(serve_all).is_ok();
        if is_started {
            self.threads += 1;
        }
        is_started
    }

    fn sweep(&mut self) -> Result<()> {
        if !self.is_sweeping {
            Builder::new().name("waitasync sweep".into()).stack_size(STACK).spawn(sweep_all)?;
            self.is_sweeping = true;
        }
        Ok(())
    }

    fn next(&mut self) -> Option<Work> {
        self.work.pop_front().or_else(|| self.swept.pop_front().map(Work::Line))
    }
}

/// The life of a thread.
fn serve_all() {
    while let Some(work) = next_work() {
        contained(|| match work {
            Work::Line(name) => serve(&name),
            Work::Job(job) => job(),
        });
    }
}

/// Waits for work, but not for long.
fn next_work() -> Option<Work> {
    let mut guard = lock(&TABLE);
    loop {
        let table = guard.get_or_insert_default();
        if let Some(work) = table.next() {
            return Some(work);
        }
        table.idle += 1;
        let (woken, timeout) = WORK.wait_timeout(guard, IDLE).unwrap_or_else(PoisonError::into_inner);
        guard = woken;
        let table = guard.get_or_insert_default();
        table.idle -= 1;
        if timeout.timed_out() && table.work.is_empty() && table.swept.is_empty() {
            table.threads -= 1;
            return None;
        }
    }
}

/// Waits for a name as long as there are requests for it.
fn serve(name: &Name) {
    while has_requests(name) {
        match wait(name) {
            Err(error) if is_passing(&error) => sleep(LATER),
            Err(error) => fail(name, &error),
            Ok(None) => {}
            Ok(Some(locked)) => match pop(name) {
                Some(request) => grant(name, request, locked),
                None => drop(locked),
            },
        }
    }
}

/// Whether a line has requests. Otherwise it is removed.
fn has_requests(name: &Name) -> bool {
    with_table(|table| {
        let has_requests = table.lines.get(name).is_some_and(|line| !line.requests.is_empty());
        if !has_requests {
            table.lines.remove(name);
        }
        has_requests
    })
}

/// Waits for the lock of a name; in vain, if there is no request any more once it has the gate.
fn wait(name: &Name) -> Result<Option<Locked>> {
    let gate = name.wait_for_gate()?;
    let is_wanted = with_table(|table| {
        let Some(line) = table.lines.get_mut(name).filter(|line| !line.requests.is_empty()) else { return false };
        line.gate = Some(gate.file());
        true
    });
    if !is_wanted {
        return Ok(None);
    }
    let locked = name.wait();
    with_table(|table| {
        if let Some(line) = table.lines.get_mut(name) {
            line.gate = None;
        }
    });
    locked.map(Some)
}

fn pop(name: &Name) -> Option<Request> {
    with_table(|table| table.lines.get_mut(name)?.requests.pop_front())
}

/// Grants a locked file to a request. One that was replaced is no lock: the request waits again, in its place.
fn grant(name: &Name, request: Request, locked: Locked) {
    let answer = match name.grant(locked, &request.description) {
        Ok(Some(grant)) => Answer::Granted(grant),
        Ok(None) => return put_back(name, request),
        Err(error) if is_passing(&error) => return put_back(name, request),
        Err(error) => Answer::Failed(error),
    };
    request.mailbox.answer(request.number, answer);
}

fn put_back(name: &Name, request: Request) {
    if request.mailbox.expects(request.number) {
        with_table(|table| table.lines.entry(name.clone()).or_default().requests.push_front(request));
    }
}

/// Fails the first request of a line.
fn fail(name: &Name, error: &Error) {
    if let Some(request) = pop(name) {
        let copy = error.raw_os_error().map_or_else(|| Error::other(error.to_string()), Error::from_raw_os_error);
        request.mailbox.answer(request.number, Answer::Failed(copy));
    }
}

/// Tries the names that have no thread, until there are none.
fn sweep_all() {
    loop {
        sleep(SWEEP);
        let names = with_table(|table| {
            // Perhaps there may be more threads now. Those without work take swept names.
            let _ = (0..table.swept.len()).all(|_| table.threads < MOST_THREADS && table.start_idle());
            table.is_sweeping = !table.swept.is_empty();
            table.swept.len()
        });
        if names == 0 {
            return;
        }
        for _ in 0..names {
            contained(sweep_one);
        }
    }
}

fn sweep_one() {
    let Some(name) = with_table(|table| table.swept.pop_front()) else { return };
    if !has_requests(&name) {
        return;
    }
    let first = |table: &mut Table| Some(table.lines.get(&name)?.requests.front()?.description.clone());
    let description = with_table(first).unwrap_or_default();
    // The request stays in its line meanwhile: if it is aborted, the lock is given back.
    match name.take(&description) {
        Ok(Some(grant)) => match pop(&name) {
            Some(request) => request.mailbox.answer(request.number, Answer::Granted(grant)),
            None => grant.return_unused(),
        },
        Ok(None) => {}
        Err(error) if is_passing(&error) => {}
        Err(error) => fail(&name, &error),
    }
    if has_requests(&name) {
        with_table(|table| table.swept.push_back(name));
    }
}

#[cfg(test)]
mod tests;
