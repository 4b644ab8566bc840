//! Looks for long waits, and gives each report to its thread.
//!
//! A thread of its own looks: all holds and waits of the process are read, which takes seconds if there are very many,
//! and a thread that waits may be blocked or busy. A promise's report is for its thread, whose agent is rung. That of a
//! blocked thread is written to the standard error; the main thread publishes it, since the blocked one can call no
//! listener.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use std::{process, thread};

use napi_derive::napi;

use crate::globals::{PROCESS, STALL_VARIABLE};
use crate::observe::standard_error;
use waitasync_core::observe::reports::{Reported, Reports};
use waitasync_core::panics::contained;
use waitasync_core::sync::lock;

/// The main thread's `threadId`.
pub(super) const MAIN: u32 = 0;

/// How many looks there are in a period; and the least pause between two, or so many times as long as the last took.
const LOOKS: u32 = 4;
const LEAST: Duration = Duration::from_millis(1);
const PAUSE: u32 = 4;

/// Begins to report stalls, if that is asked for.
#[napi(catch_unwind)]
pub fn report_stalls() {
    static LOOKS_ALREADY: Mutex<bool> = Mutex::new(false);
    let mut looks = lock(&LOOKS_ALREADY);
    if let (false, Some(period)) = (*looks, PROCESS.stall_after) {
        // If the system gives no thread now, the next agent tries again.
        *looks = thread::Builder::new().name("atomics-stalls".into()).spawn(move || look_on(period)).is_ok();
    }
}

fn look_on(period: Duration) {
    let mut reported = Reported::default();
    let mut pause = Duration::ZERO;
    loop {
        thread::sleep(pause.max(period / LOOKS).max(LEAST));
        let began = Instant::now();
        contained(|| look(&mut reported, period));
        pause = began.elapsed() * PAUSE;
    }
}

fn look(reported: &mut Reported, period: Duration) {
    Reports::new(&PROCESS, reported, period).each(|wait, text, json| {
        if wait.blocked {
            standard_error::leave(&format!("(node:{}) [{STALL_VARIABLE}] Warning: {text}\n", process::id()));
        }
        give(if wait.blocked { MAIN } else { wait.thread_id }, json, wait.blocked);
    });
}

// ——— Reports that no thread has taken yet ———

/// Each with its thread.
static REPORTS: Mutex<VecDeque<(u32, String)>> = Mutex::new(VecDeque::new());

/// Whether there are any: kept here so that reading it takes no lock.
static ARE_THERE: AtomicBool = AtomicBool::new(false);

/// So many of those of blocked threads are kept while the main thread is busy.
const MOST: usize = 100;

/// Leaves a report for a thread, and rings it. It may be left out if it has been written already.
fn give(thread_id: u32, json: String, is_written: bool) {
    let outbox_of =
        |id| PROCESS.registry.find(|agent| agent.known.thread_id == id, |agent| Arc::clone(&agent.known.outbox));
    let Some(outbox) = outbox_of(thread_id) else { return };
    let mut reports = lock(&REPORTS);
    if !is_written || reports.iter().filter(|(id, _)| *id == thread_id).count() < MOST {
        reports.push_back((thread_id, json));
        ARE_THERE.store(true, Ordering::Relaxed);
    }
    drop(reports);
    outbox.ring();
}

/// Whether there is a report for this thread.
pub(crate) fn are_for(thread_id: u32) -> bool {
    ARE_THERE.load(Ordering::Relaxed) && lock(&REPORTS).iter().any(|(id, _)| *id == thread_id)
}

/// Returns a thread's next report as JSON: see `write` in core/src/observe/reports.rs.
pub(crate) fn next(thread_id: u32) -> Option<String> {
    let mut reports = lock(&REPORTS);
    let index = reports.iter().position(|(id, _)| *id == thread_id)?;
    let (_, next) = reports.remove(index)?;
    ARE_THERE.store(!reports.is_empty(), Ordering::Relaxed);
    Some(next)
}

/// Forgets the reports for a thread that ends.
pub(crate) fn forget(thread_id: u32) {
    lock(&REPORTS).retain(|(id, _)| *id != thread_id);
}
