//! The threads that wait for locks: one for each name and mode, blocked in the call of the operating system.
//!
//! A blocked thread needs no processor, and the system wakes it at once. It cannot be interrupted: if its requests are
//! aborted it stays, and serves those that come later. What it gets then, it gives back; and an abort gives back its
//! gate, so that nobody waits behind it.
//!
//! Nor does it learn that somebody removes the file for whose lock it waits, or puts another one in its place. So one
//! thread looks at the paths of those that have been blocked for a while. A line whose file has gone gets another
//! thread; the former one leaves once the removed file's holder ends (invariant 2).
//!
//! There are `MOST_THREADS` at most. Names beyond that, or that have no thread because none can be started, are swept:
//! one thread tries them now and then. As soon as a thread is free it takes the swept name that has waited longest.

mod sweep;

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Error, Result};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{Builder, sleep};
use std::time::Duration;

use rustc_hash::FxHashMap;

use super::lock_file::{Locked, Name, Which};
use super::mailbox::{Answer, Mailbox};
use super::system::{Identity, is_passing, unlock};
use waitasync_core::panics::contained;
use waitasync_core::sync::lock;

#[cfg(not(test))]
const MOST_THREADS: usize = 1024;
#[cfg(test)]
const MOST_THREADS: usize = 2;
const STACK: usize = 256 << 10;
/// A thread without work ends after this time.
const IDLE: Duration = Duration::from_secs(10);
/// How often the files of blocked threads are looked at.
#[cfg(not(test))]
const LOOK: Duration = Duration::from_secs(5);
#[cfg(test)]
const LOOK: Duration = Duration::from_millis(20);
/// After so long a thread tries again that has found no descriptor or no memory.
const LATER: Duration = Duration::from_millis(20);

/// Stands for the thread of a line that has none.
const NOBODY: u64 = 0;

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
    /// The number of the thread that serves it, as `Table::last` gives them, or `NOBODY`.
    server: u64,
    /// The file for whose lock that thread is blocked.
    blocked: Option<(Which, Identity)>,
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
    is_looking: bool,
    /// The number that was given last to a thread that serves a line.
    last: u64,
}

static TABLE: Mutex<Option<Table>> = Mutex::new(None);
static WORK: Condvar = Condvar::new();

fn with_table<T>(body: impl FnOnce(&mut Table) -> T) -> T {
    body(lock(&TABLE).get_or_insert_default())
}

/// Changes a line, if this thread serves it.
fn with_line(name: &Name, server: u64, change: impl FnOnce(&mut Line)) {
    with_table(|table| table.line_of(name, server).map_or((), change));
}

/// Puts a request into the line of its name. Fails if no thread can be started.
pub(super) fn enqueue(name: &Name, request: Request) -> Result<()> {
    with_table(|table| {
        if let Some(line) = table.lines.get_mut(name) {
            line.requests.push_back(request);
            return Ok(());
        }
        let line = Line { requests: VecDeque::from([request]), ..Line::default() };
        table.lines.insert(name.clone(), line);
        table.serve_or_sweep(name).inspect_err(|_| drop(table.lines.remove(name)))
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

    /// Gives a line to a thread, or to the sweeper. Fails if there is neither.
    fn serve_or_sweep(&mut self, name: &Name) -> Result<()> {
        if !self.swept.is_empty() || !self.assign(Work::Line(name.clone()), MOST_THREADS) {
            self.sweep()?;
            self.swept.push_back(name.clone());
        }
        Ok(())
    }

    /// Returns a line, if this thread serves it.
    fn line_of(&mut self, name: &Name, server: u64) -> Option<&mut Line> {
        self.lines.get_mut(name).filter(|line| line.server == server)
    }

    /// Starts the thread that looks at files. Without it, who waits for a removed one waits for its holder.
    fn look(&mut self) {
        if !self.is_looking {
            self.is_looking = Builder::new().name("waitasync look".into()).stack_size(STACK).spawn(look_at_all).is_ok();
        }
    }

    fn sweep(&mut self) -> Result<()> {
        if !self.is_sweeping {
            Builder::new().name("waitasync sweep".into()).stack_size(STACK).spawn(sweep::sweep_all)?;
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
    let server = with_table(|table| {
        table.last += 1;
        table.lines.get_mut(name).map_or(NOBODY, |line| {
            line.server = table.last;
            line.server
        })
    });
    while has_requests(name, server) {
        match wait(name, server) {
            Err(error) if is_passing(&error) => sleep(LATER),
            Err(error) => fail(name, server, &error),
            Ok(None) => {}
            Ok(Some(locked)) => match pop(name, server) {
                Some(request) => grant(name, request, locked),
                None => drop(locked),
            },
        }
    }
}

/// Whether a line that this thread serves has requests. Otherwise it is removed.
fn has_requests(name: &Name, server: u64) -> bool {
    with_table(|table| {
        let Some(line) = table.line_of(name, server) else { return false };
        let has_requests = !line.requests.is_empty();
        if !has_requests {
            table.lines.remove(name);
        }
        has_requests
    })
}

/// Waits for the lock of a name; in vain, if there is no request any more once it has the gate.
fn wait(name: &Name, server: u64) -> Result<Option<Locked>> {
    let gate = wait_for(name, server, Which::Gate)?;
    let is_wanted = with_table(|table| {
        let Some(line) = table.line_of(name, server).filter(|line| !line.requests.is_empty()) else { return false };
        line.gate = Some(gate.file());
        true
    });
    if !is_wanted {
        return Ok(None);
    }
    let locked = wait_for(name, server, Which::Lock);
    with_line(name, server, |line| line.gate = None);
    locked.map(Some)
}

/// Blocks for the lock of a file.
fn wait_for(name: &Name, server: u64, which: Which) -> Result<Locked> {
    let locked = name.wait(which, |identity| {
        with_table(|table| {
            let Some(line) = table.line_of(name, server) else { return };
            line.blocked = Some((which, identity));
            table.look();
        });
    });
    with_line(name, server, |line| line.blocked = None);
    locked
}

/// Looks at the files of blocked threads, until there are none.
fn look_at_all() {
    loop {
        sleep(LOOK);
        let blocked: Vec<_> = with_table(|table| {
            let blocked =
                table.lines.iter().filter_map(|(name, line)| Some((name.clone(), line.server, line.blocked?)));
            let blocked: Vec<_> = blocked.collect();
            table.is_looking = !blocked.is_empty();
            blocked
        });
        if blocked.is_empty() {
            return;
        }
        for (name, server, (which, identity)) in blocked {
            contained(|| {
                if matches!(name.leads_to(which, identity), Ok(false)) {
                    leave(&name, server, (which, identity));
                }
            });
        }
    }
}

/// Passes a line on whose thread a removed file blocks. That one opens the gate.
fn leave(name: &Name, server: u64, gone: (Which, Identity)) {
    let gate = with_table(|table| {
        let line = table.line_of(name, server).filter(|line| line.blocked == Some(gone))?;
        (line.server, line.blocked) = (NOBODY, None);
        let gate = line.gate.take();
        // Neither: it is tried again when the removed file's holder ends.
        if table.serve_or_sweep(name).is_err() {
            table.lines.get_mut(name)?.server = server;
        }
        gate
    });
    if let Some(gate) = &gate {
        unlock(gate);
    }
}

fn pop(name: &Name, server: u64) -> Option<Request> {
    with_table(|table| table.line_of(name, server)?.requests.pop_front())
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
fn fail(name: &Name, server: u64, error: &Error) {
    if let Some(request) = pop(name, server) {
        let copy = error.raw_os_error().map_or_else(|| Error::other(error.to_string()), Error::from_raw_os_error);
        request.mailbox.answer(request.number, Answer::Failed(copy));
    }
}

#[cfg(test)]
mod tests;
