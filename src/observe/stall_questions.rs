//! Questions of threads about their long waits, and the answers: the reports.
//!
//! To make reports, all holds and waits of the process are read, which takes seconds if there are very many. So a thread
//! of its own does that for threads that go on: JavaScript asks, and its agent is rung when the answer is there. A blocked
//! thread makes its report itself. It can call no listener: the main thread gets its reports, too.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, Mutex};

use crate::globals::PROCESS;
use crate::observe::background::Background;
use waitasync_core::observe::already_reported::AlreadyReported;
use waitasync_core::observe::reports::Reports;
use waitasync_core::sync::lock;

static REPORTED: LazyLock<AlreadyReported> = LazyLock::new(AlreadyReported::default);

/// The main thread's `threadId`.
pub(super) const MAIN: u32 = 0;

// ——— Questions ———

/// A thread's question, by its number.
struct Question {
    number: u32,
    thread_id: u32,
    waits: Vec<f64>,
}

static QUESTIONS: Mutex<VecDeque<Question>> = Mutex::new(VecDeque::new());

static LOOKER: Background = Background::new("atomics-stalls", || while answer_next() {});

/// Answers a question. False: none is left.
fn answer_next() -> bool {
    let Some(Question { number, thread_id, waits }) = lock(&QUESTIONS).pop_front() else { return false };
    send(thread_id, number, &Reports::new(&PROCESS, &REPORTED, thread_id, &waits).json());
    true
}

/// Asks for reports of a thread's waits; returns the number of the question. `waits`: as of [`Reports::new`].
pub(crate) fn ask(thread_id: u32, waits: &[f64]) -> u32 {
    static NUMBERS: AtomicU32 = AtomicU32::new(1);
    let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
    lock(&QUESTIONS).push_back(Question { number, thread_id, waits: waits.to_vec() });
    // The system may give no thread.
    if !LOOKER.ask() {
        answer_next();
    }
    number
}

/// Reports a blocked thread's wait as JSON, also to the main thread. `wait`: as of [`Reports::new`].
pub(crate) fn report_blocked(thread_id: u32, wait: &[f64]) -> String {
    let reports = Reports::new(&PROCESS, &REPORTED, thread_id, wait);
    let json = reports.json();
    if thread_id != MAIN && !reports.is_empty() {
        send(MAIN, UNASKED, &json);
    }
    json
}

// ——— Answers ———

/// In the place of a question's number: a blocked thread's reports.
const UNASKED: u32 = 0;

/// The answers that no thread has taken yet, each with its thread.
static ANSWERS: Mutex<VecDeque<(u32, String)>> = Mutex::new(VecDeque::new());

/// Whether there are any: kept here so that reading it takes no lock.
static ARE_THERE: AtomicBool = AtomicBool::new(false);

/// So many answers are kept for the main thread while it is busy.
const MOST_FOR_MAIN: usize = 100;

/// Leaves an answer for a thread, and rings it.
fn send(thread_id: u32, number: u32, json: &str) {
    let outbox_of =
        |id| PROCESS.registry.find(|agent| agent.known.thread_id == id, |agent| Arc::clone(&agent.known.outbox));
    let Some(outbox) = outbox_of(thread_id) else { return };
    let mut answers = lock(&ANSWERS);
    if number != UNASKED || answers.iter().filter(|(id, _)| *id == MAIN).count() < MOST_FOR_MAIN {
        answers.push_back((thread_id, format!("[{number},{json}]")));
        ARE_THERE.store(true, Ordering::Relaxed);
    }
    drop(answers);
    outbox.ring();
}

/// Whether there is an answer for this thread.
pub(crate) fn are_for(thread_id: u32) -> bool {
    ARE_THERE.load(Ordering::Relaxed) && lock(&ANSWERS).iter().any(|(id, _)| *id == thread_id)
}

/// Returns a thread's next answer as JSON: the number of its question, or 0, and the reports.
pub(crate) fn next(thread_id: u32) -> Option<String> {
    let mut answers = lock(&ANSWERS);
    let index = answers.iter().position(|(id, _)| *id == thread_id)?;
    let (_, next) = answers.remove(index)?;
    ARE_THERE.store(!answers.is_empty(), Ordering::Relaxed);
    Some(next)
}

/// Forgets the questions and answers of a thread that ends.
pub(crate) fn forget(thread_id: u32) {
    lock(&QUESTIONS).retain(|question| question.thread_id != thread_id);
    lock(&ANSWERS).retain(|(id, _)| *id != thread_id);
}
