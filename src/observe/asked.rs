//! Questions of threads about their long waits, and the answers: the reports.
//!
//! To make reports, all holds and waits of the process are read, which takes seconds if there are very many. So a thread
//! of its own does that for threads that go on: JavaScript asks, and fetches the answer in a later turn. A blocked thread
//! makes its report itself. It can call no listener: its reports are kept for the main thread, which is rung.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, Mutex};

use crate::observe::aside::Aside;
use crate::process::PROCESS;
use waitasync_core::observe::already_reported::AlreadyReported;
use waitasync_core::observe::reports::Reports;
use waitasync_core::sync::lock;

static REPORTED: LazyLock<AlreadyReported> = LazyLock::new(AlreadyReported::default);

/// The main thread's `threadId`.
pub(super) const MAIN: u32 = 0;

// ——— Threads that go on ———

/// A thread's question, by its number; once the reports are made, the answer.
struct Question {
    number: u32,
    thread_id: u32,
    waits: Vec<f64>,
    answer: Option<String>,
}

/// Those to which no thread has fetched the answer.
static QUESTIONS: Mutex<Vec<Question>> = Mutex::new(Vec::new());

static LOOKER: Aside = Aside::new("atomics-stalls", || while answer_next() {});

/// Answers a question. False: none is left.
fn answer_next() -> bool {
    let Some((number, thread_id, waits)) = next() else { return false };
    answer(number, &Reports::new(&PROCESS, &REPORTED, thread_id, &waits).json());
    true
}

fn next() -> Option<(u32, u32, Vec<f64>)> {
    let mut questions = lock(&QUESTIONS);
    let next = questions.iter_mut().find(|question| question.answer.is_none() && !question.waits.is_empty())?;
    Some((next.number, next.thread_id, std::mem::take(&mut next.waits)))
}

fn answer(number: u32, text: &str) {
    if let Some(question) = lock(&QUESTIONS).iter_mut().find(|question| question.number == number) {
        question.answer = Some(text.to_owned());
    }
}

/// Asks for reports of a thread's waits; returns the number of the question. `waits`: as of [`Reports::new`].
pub(crate) fn ask(thread_id: u32, waits: &[f64]) -> u32 {
    static NUMBERS: AtomicU32 = AtomicU32::new(1);
    let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
    lock(&QUESTIONS).push(Question { number, thread_id, waits: waits.to_vec(), answer: None });
    // The system may give no thread.
    if !LOOKER.ask() {
        answer_next();
    }
    number
}

/// Returns the answer to a question, once it is there. It is then forgotten.
pub(crate) fn fetch(number: u32) -> Option<String> {
    let mut questions = lock(&QUESTIONS);
    let index = questions.iter().position(|question| question.number == number && question.answer.is_some())?;
    questions.swap_remove(index).answer
}

/// Forgets the questions of a thread that ends.
pub(crate) fn forget(thread_id: u32) {
    lock(&QUESTIONS).retain(|question| question.thread_id != thread_id);
}

// ——— Threads that block ———

/// Reports of blocked threads that the main thread has still to publish.
static FOR_MAIN: Mutex<VecDeque<String>> = Mutex::new(VecDeque::new());

/// Whether there are any: kept here so that reading it takes no lock.
static ARE_FOR_MAIN: AtomicBool = AtomicBool::new(false);

/// As many are kept while the main thread is busy.
const MOST_FOR_MAIN: usize = 100;

/// Whether this thread publishes the reports of others, and there are such.
pub(crate) fn are_for(thread_id: u32) -> bool {
    thread_id == MAIN && ARE_FOR_MAIN.load(Ordering::Relaxed)
}

fn report_to_main(report: &str) {
    let Some(outbox) =
        PROCESS.registry.find(|agent| agent.known.thread_id == MAIN, |agent| Arc::clone(&agent.known.outbox))
    else {
        return;
    };
    let mut reports = lock(&FOR_MAIN);
    if reports.len() < MOST_FOR_MAIN {
        reports.push_back(report.to_owned());
        ARE_FOR_MAIN.store(true, Ordering::Relaxed);
    }
    drop(reports);
    outbox.ring();
}

/// Reports a blocked thread's wait as JSON, also to the main thread. `wait`: as of [`Reports::new`].
pub(crate) fn report_blocked(thread_id: u32, wait: &[f64]) -> String {
    let reports = Reports::new(&PROCESS, &REPORTED, thread_id, wait);
    let json = reports.json();
    if thread_id != MAIN && !reports.is_empty() {
        report_to_main(&json);
    }
    json
}

pub(crate) fn next_report() -> Option<String> {
    let mut reports = lock(&FOR_MAIN);
    let next = reports.pop_front();
    ARE_FOR_MAIN.store(!reports.is_empty(), Ordering::Relaxed);
    next
}
