//! Looks for long waits, and gives each report to its thread.
//!
//! A thread of its own looks: all holds and waits of the process are read, which takes seconds if there are very many,
//! and a thread that waits may be blocked or busy. A promise's report is for its thread, whose agent is rung. That of a
//! blocked thread is written to the standard error; the main thread publishes it, since the blocked one can call no
//! listener.
//!
//! Whoever should read the standard error may stand still, and a thread that writes then waits for ever. So a thread
//! with something to report only leaves its text to a thread that writes.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use std::{io, process, thread};

use napi::bindgen_prelude::Env;
use napi::{JsString, Result};
use napi_derive::napi;

use crate::agent::Agent;
use crate::globals::{PROCESS, STALL_VARIABLE};
use waitasync_core::held::Registered;
use waitasync_core::held::stacks::{self, StackId};
use waitasync_core::json;
use waitasync_core::observe::reports::{Reported, Reports};
use waitasync_core::sync::{contained, lock};

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
            leave_report(format!("(node:{}) [{STALL_VARIABLE}] Warning: {text}\n", process::id()));
        }
        give(if wait.blocked { MAIN } else { wait.thread_id }, json, wait.blocked);
    });
}

/// Returns the number of a stack: one line for each frame, the innermost first.
#[napi(catch_unwind)]
#[allow(clippy::needless_pass_by_value, reason = "Node-API gives a string of its own")]
pub fn stack_number(text: String) -> StackId {
    stacks::number_of(&text)
}

/// Returns true to the process's first caller with this subject.
#[napi(catch_unwind)]
pub fn is_first(subject: String) -> bool {
    static TOLD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    lock(&TOLD).insert(subject)
}

// ——— Reports that no thread has taken yet ———

/// Each with its thread.
static REPORTS: Mutex<VecDeque<(u32, String)>> = Mutex::new(VecDeque::new());

/// So many reports of blocked threads are kept while the main thread is busy, and so many texts to be written.
const MOST: usize = 100;

/// Leaves a report for a thread, and rings it. It may be left out if it has been written already.
fn give(thread_id: u32, json: String, is_written: bool) {
    let is_it = |agent: &Registered| agent.known.thread_id == thread_id;
    let Some(outbox) = PROCESS.registry.find(is_it, |agent| Arc::clone(&agent.known.outbox)) else { return };
    let mut reports = lock(&REPORTS);
    if !is_written || reports.iter().filter(|(id, _)| *id == thread_id).count() < MOST {
        reports.push_back((thread_id, json));
    }
    drop(reports);
    outbox.ring();
}

pub(crate) fn are_for(thread_id: u32) -> bool {
    PROCESS.stall_after.is_some() && lock(&REPORTS).iter().any(|(id, _)| *id == thread_id)
}

/// Returns the next report for this thread as JSON: see `write` in core/src/observe/reports.rs. Undefined if there is
/// none, or if no string can hold the names in it.
#[napi(catch_unwind)]
pub fn next_report(env: &Env) -> Result<Option<JsString<'_>>> {
    let thread_id = Agent::of(env.raw())?.thread_id;
    let mut reports = lock(&REPORTS);
    let index = reports.iter().position(|(id, _)| *id == thread_id);
    let next = index.and_then(|index| reports.remove(index));
    Ok(next.and_then(|(_, json)| env.create_string(json).ok()))
}

pub(crate) fn forget(thread_id: u32) {
    lock(&REPORTS).retain(|(id, _)| *id != thread_id);
}

// ——— The standard error ———

/// How many texts were dropped since that was written.
static DROPPED: AtomicU64 = AtomicU64::new(0);

/// Leaves a text to be written. Does not wait. Functions in it may have any names.
#[napi(catch_unwind)]
#[allow(clippy::needless_pass_by_value, reason = "napi gives strings by value only")]
pub fn leave_report(text: String) {
    static WRITER: Mutex<Option<SyncSender<String>>> = Mutex::new(None);
    let mut writer = lock(&WRITER);
    if writer.is_none() {
        let (sender, texts) = sync_channel(MOST);
        let thread = thread::Builder::new().name("atomics-stderr".into()).spawn(move || write_all(&texts));
        // Without a thread, the next text has another try.
        *writer = thread.is_ok().then_some(sender);
    }
    let is_left = |writer: &SyncSender<_>| writer.try_send(json::shown(&text)).is_ok();
    if !writer.as_ref().is_some_and(is_left) {
        DROPPED.fetch_add(1, Ordering::Relaxed);
    }
}

/// Writes the texts. Behind all of them comes the number of those that were dropped.
fn write_all(texts: &Receiver<String>) {
    loop {
        let text = texts.try_recv().or_else(|_| match DROPPED.swap(0, Ordering::Relaxed) {
            0 => texts.recv(),
            dropped => Ok(format!(
                "(node:{}) [{STALL_VARIABLE}] Warning: {dropped} reports of blocked threads were dropped, since nobody read \
                 the standard error.\n",
                process::id()
            )),
        });
        let Ok(text) = text else { return };
        write(text.as_bytes());
    }
}

/// Writes a text as one piece, if it can be written.
pub(crate) fn write(mut bytes: &[u8]) {
    static WRITING: Mutex<()> = Mutex::new(());
    let _writing = lock(&WRITING);
    while !bytes.is_empty() {
        match write_some(bytes) {
            Ok(written @ 1..) => bytes = &bytes[written..],
            Err(error) if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => {}
            _ => return,
        }
    }
}

/// Writes a part, or waits until there is room: Node may have made it non-blocking. It needs no lock of Rust's
/// `stderr`, for which others would wait.
#[cfg(unix)]
fn write_some(bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: bytes that are there during the call.
    let written = unsafe { libc::write(libc::STDERR_FILENO, bytes.as_ptr().cast(), bytes.len()) };
    usize::try_from(written).map_err(|_| {
        let error = io::Error::last_os_error();
        if error.kind() == io::ErrorKind::WouldBlock {
            let mut room = libc::pollfd { fd: libc::STDERR_FILENO, events: libc::POLLOUT, revents: 0 };
            // SAFETY: one live record.
            unsafe { libc::poll(&raw mut room, 1, -1) };
        }
        error
    })
}

#[cfg(not(unix))]
fn write_some(bytes: &[u8]) -> io::Result<usize> {
    io::Write::write(&mut io::stderr(), bytes)
}
