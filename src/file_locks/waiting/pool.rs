//! The threads that serve lines and do jobs. Jobs wait for a disk.
//!
//! No line takes a thread from a job, so what releases locks goes on while all lines wait. Lines have half of the
//! descriptors at most: each that is awaited needs two.

use std::collections::VecDeque;
use std::sync::{Condvar, PoisonError};
use std::thread::Builder;
use std::time::Duration;

use super::{TABLE, fail_all, serve, with_table};
use crate::file_locks::lock_file::Name;
use crate::file_locks::system::most_descriptors;
use waitasync_core::panics::contained;
use waitasync_core::sync::lock;

/// The most threads that serve lines, and that do jobs.
#[cfg(not(test))]
pub(super) const MOST_LINES: usize = 992;
#[cfg(test)]
pub(super) const MOST_LINES: usize = 2;
pub(super) const MOST_JOBS: usize = 32;
/// In so many rounds each line has a turn, unless there are very many.
const SHARE: usize = 20;
pub(super) const STACK: usize = 256 << 10;
/// A thread without work ends after this time.
const IDLE: Duration = Duration::from_secs(10);

static WORK: Condvar = Condvar::new();

type Job = Box<dyn FnOnce() + Send>;

enum Work {
    Line(Name),
    Job(Job),
}

#[derive(Default)]
pub(super) struct Pool {
    pub(super) threads: usize,
    /// Those that have no work, or have just been started.
    idle: usize,
    lines_at_work: usize,
    jobs_at_work: usize,
    /// Lines without a thread, the next one first.
    pub(super) queue: VecDeque<Name>,
    jobs: VecDeque<Job>,
    /// Whether descriptors or memory were lacking: then lines wait for the next round.
    pub(super) is_short: bool,
}

/// Runs a job in another thread: in this one if none has time for it. All may be blocked, even for the lock that it
/// releases.
pub(in crate::file_locks) fn run(job: impl FnOnce() + Send + 'static) {
    let here = with_table(|table| {
        let pool = &mut table.pool;
        pool.push_job(job);
        if pool.has_nobody_for_jobs() { pool.jobs.pop_back() } else { None }
    });
    if let Some(job) = here {
        job();
    }
}

impl Pool {
    /// Has a job done as soon as there is a thread.
    pub(super) fn push_job(&mut self, job: impl FnOnce() + Send + 'static) {
        self.jobs.push_back(Box::new(job));
        self.provide();
    }

    /// Puts a new line before those that have had a turn. False if there is no thread at all.
    pub(super) fn push_new(&mut self, name: Name) -> bool {
        self.queue.push_front(name);
        self.provide();
        if self.threads == 0 {
            self.queue.pop_front();
        }
        self.threads > 0
    }

    /// Puts a line behind all others.
    pub(super) fn push_back(&mut self, name: Name) {
        self.queue.push_back(name);
        self.provide();
    }

    /// Wakes or starts threads for the work that can begin.
    pub(super) fn provide(&mut self) {
        let wanted = self.jobs_to_begin() + self.lines_to_begin();
        for _ in self.idle..wanted {
            if Builder::new().name("waitasync files".into()).stack_size(STACK).spawn(work).is_err() {
                break;
            }
            self.threads += 1;
            self.idle += 1;
        }
        for _ in 0..wanted.min(self.idle) {
            WORK.notify_one();
        }
    }

    fn has_nobody_for_jobs(&self) -> bool {
        self.idle == 0 && self.jobs_at_work == 0
    }

    fn jobs_to_begin(&self) -> usize {
        self.jobs.len().min(MOST_JOBS - self.jobs_at_work)
    }

    fn lines_to_begin(&self) -> usize {
        let room = MOST_LINES.min(most_descriptors() / 4).max(1).saturating_sub(self.lines_at_work);
        if self.is_short { 0 } else { self.queue.len().min(room) }
    }

    /// Counts the turns that are to end. So each line soon has one.
    pub(super) fn turns_to_end(&self) -> usize {
        if self.idle > 0 && self.lines_to_begin() > 0 {
            return 0;
        }
        let for_job = usize::from(!self.jobs.is_empty() && self.has_nobody_for_jobs());
        let most = (self.lines_at_work / SHARE).max(1);
        self.queue.len().div_ceil(SHARE).min(most).max(for_job)
    }

    fn begin(&mut self) -> Option<Work> {
        let is_job = self.jobs_to_begin() > 0;
        if !is_job && self.lines_to_begin() == 0 {
            return None;
        }
        self.idle -= 1;
        if is_job {
            self.jobs_at_work += 1;
            return self.jobs.pop_front().map(Work::Job);
        }
        self.lines_at_work += 1;
        self.queue.pop_front().map(Work::Line)
    }
}

/// The life of a thread.
fn work() {
    while let Some(work) = next() {
        let is_job = matches!(work, Work::Job(_));
        match work {
            Work::Line(name) if !contained(|| serve(&name)) => fail_all(&name),
            Work::Line(_) => {}
            Work::Job(job) => {
                contained(job);
            }
        }
        with_table(|table| {
            let pool = &mut table.pool;
            *(if is_job { &mut pool.jobs_at_work } else { &mut pool.lines_at_work }) -= 1;
            pool.idle += 1;
        });
    }
}

/// Waits for work, but not for long.
fn next() -> Option<Work> {
    let mut guard = lock(&TABLE);
    loop {
        let pool = &mut guard.get_or_insert_default().pool;
        if let Some(work) = pool.begin() {
            return Some(work);
        }
        let (woken, timeout) = WORK.wait_timeout(guard, IDLE).unwrap_or_else(PoisonError::into_inner);
        guard = woken;
        let pool = &mut guard.get_or_insert_default().pool;
        if timeout.timed_out() && pool.queue.is_empty() && pool.jobs.is_empty() {
            pool.idle -= 1;
            pool.threads -= 1;
            return None;
        }
    }
}
