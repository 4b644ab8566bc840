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
use waitasync_core::sync::{contained, lock};

/// The most threads that serve lines, and that do jobs.
const MOST_LINES: usize = 992;
pub(super) const MOST_JOBS: usize = 32;
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
    /// Threads that have no work, or have just been started.
    idle: usize,
    lines_at_work: usize,
    jobs_at_work: usize,
    /// Lines without a thread, the next one first.
    pub(super) queue: VecDeque<Name>,
    jobs: VecDeque<Job>,
}

/// Makes a thread of file locks. Its stack is small: there may be many.
pub(super) fn thread() -> Builder {
    Builder::new().name("waitasync files".into()).stack_size(256 << 10)
}

/// Runs a job in another thread: in this one if none has time for it. All may be blocked, even for the lock that it
/// releases.
pub(in crate::file_locks) fn run(job: impl FnOnce() + Send + 'static) {
    let here = with_table(|table| {
        let pool = &mut table.pool;
        pool.jobs.push_back(Box::new(job));
        pool.provide();
        if pool.idle + pool.jobs_at_work == 0 { pool.jobs.pop_back() } else { None }
    });
    if let Some(job) = here {
        job();
    }
}

impl Pool {
    /// Puts a line behind all others. False, and not there, if there is no thread at all.
    pub(super) fn push(&mut self, name: Name) -> bool {
        self.queue.push_back(name);
        self.provide();
        let has_threads = self.threads() > 0;
        if !has_threads {
            self.queue.pop_back();
        }
        has_threads
    }

    pub(super) fn threads(&self) -> usize {
        self.idle + self.lines_at_work + self.jobs_at_work
    }

    /// Wakes or starts threads for the work that can begin.
    pub(super) fn provide(&mut self) {
        let wanted = self.jobs_to_begin() + self.lines_to_begin();
        for _ in self.idle..wanted {
            if thread().spawn(work).is_err() {
                break;
            }
            self.idle += 1;
        }
        for _ in 0..wanted.min(self.idle) {
            WORK.notify_one();
        }
    }

    fn jobs_to_begin(&self) -> usize {
        self.jobs.len().min(MOST_JOBS - self.jobs_at_work)
    }

    fn lines_to_begin(&self) -> usize {
        let room = MOST_LINES.min(most_descriptors() / 4).max(1).saturating_sub(self.lines_at_work);
        self.queue.len().min(room)
    }

    /// Counts the lines for which the turns of others have to end.
    pub(super) fn lines_in_need(&self) -> usize {
        self.queue.len() - self.lines_to_begin().min(self.idle)
    }

    fn begin(&mut self) -> Option<Work> {
        let work = if self.jobs_to_begin() > 0 {
            self.jobs_at_work += 1;
            self.jobs.pop_front().map(Work::Job)
        } else if self.lines_to_begin() > 0 {
            self.lines_at_work += 1;
            self.queue.pop_front().map(Work::Line)
        } else {
            None
        };
        self.idle -= usize::from(work.is_some());
        work
    }
}

/// The life of a thread. Without work it waits, but not for long.
fn work() {
    let mut is_late = false;
    let mut table = lock(&TABLE);
    loop {
        let Some(work) = table.pool.begin() else {
            if is_late {
                table.pool.idle -= 1;
                return;
            }
            let (woken, waited) = WORK.wait_timeout(table, IDLE).unwrap_or_else(PoisonError::into_inner);
            (table, is_late) = (woken, waited.timed_out());
            continue;
        };
        drop(table);
        let is_job = matches!(work, Work::Job(_));
        match work {
            Work::Line(name) if !contained(|| serve(&name)) => fail_all(&name),
            Work::Line(_) => {}
            Work::Job(job) => _ = contained(job),
        }
        (table, is_late) = (lock(&TABLE), false);
        let pool = &mut table.pool;
        *(if is_job { &mut pool.jobs_at_work } else { &mut pool.lines_at_work }) -= 1;
        pool.idle += 1;
    }
}
