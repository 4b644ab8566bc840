//! Tests of the threads that wait, of gates and of mailboxes.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::pool::MOST_JOBS;
use super::{Request, Stage, enqueue, run, with_line, with_table};
use crate::file_locks::Mode;
use crate::file_locks::lock_file::{Asked, Folder, Name, Which};
use crate::file_locks::mailbox::{Answer, Lock, Mailbox, Queue};
use waitasync_core::lock::Outbox;
use waitasync_core::sync::lock;

/// The threads are those of the process: one test at a time.
static ONE: Mutex<()> = Mutex::new(());

/// A folder that is removed at the end.
struct Scratch(Arc<Folder>, #[allow(dead_code, reason = "it is dropped")] MutexGuard<'static, ()>);

impl Scratch {
    fn new(what: &str) -> Self {
        let path = PathBuf::from(format!("{}/files-{}-{what}", std::env::temp_dir().display(), std::process::id()));
        Self(Arc::new(Folder::new(path, false, true).unwrap()), lock(&ONE))
    }

    fn name(&self, key: &str, mode: Mode) -> Name {
        Name::new(Arc::clone(&self.0), key, mode)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0.path).unwrap();
    }
}

fn mailbox() -> Arc<Mailbox> {
    Arc::new(Mailbox::new(Arc::new(Outbox::new(Box::new(|| {})))))
}

fn ask(name: &Name, number: i64, mailbox: &Arc<Mailbox>) {
    mailbox.expect(number, Some(Box::new(name.clone())));
    let asked = Asked { name: name.clone(), description: "{}".into(), max_hold: None };
    enqueue(Request { number, mailbox: Arc::clone(mailbox), asked }).unwrap();
}

fn granted(mailbox: &Mailbox, number: i64) -> Box<dyn Lock> {
    match mailbox.wait(number, Duration::from_secs(20)) {
        Some(Answer::Granted(grant)) => grant,
        _ => panic!("no grant for {number}"),
    }
}

fn until(mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(20), "it does not come");
        sleep(Duration::from_millis(1));
    }
}

fn waits_for(name: &Name) -> Option<Which> {
    with_line(name, |line| line.blocked().map(|blocked| blocked.which)).flatten()
}

fn nothing_is_left() -> bool {
    with_table(|table| table.lines.is_empty() && table.pool.queue.is_empty())
}

#[test]
fn jobs_at_once_have_a_bounded_number_of_threads_and_all_are_done() {
    let _one = lock(&ONE);
    let (begun, done) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let goes_on = Arc::new(AtomicBool::new(false));
    for _ in 0..10 * MOST_JOBS {
        let (begun, done, goes_on) = (Arc::clone(&begun), Arc::clone(&done), Arc::clone(&goes_on));
        run(move || {
            begun.fetch_add(1, Ordering::SeqCst);
            until(|| goes_on.load(Ordering::SeqCst));
            done.fetch_add(1, Ordering::SeqCst);
        });
    }
    until(|| begun.load(Ordering::SeqCst) == MOST_JOBS);
    assert!(with_table(|table| table.pool.threads()) <= MOST_JOBS);
    sleep(Duration::from_millis(50));
    assert_eq!(begun.load(Ordering::SeqCst), MOST_JOBS);
    goes_on.store(true, Ordering::SeqCst);
    until(|| done.load(Ordering::SeqCst) == 10 * MOST_JOBS);
}

#[test]
fn an_interruption_that_came_too_early_is_repeated() {
    let scratch = Scratch::new("repeated");
    let name = scratch.name("a", Mode::Exclusive);
    let held = name.take("{}").unwrap().unwrap();
    let mailbox = mailbox();
    ask(&name, 1, &mailbox);
    until(|| waits_for(&name) == Some(Which::Lock));
    mailbox.forget(1);
    // As if the signal had been sent, and lost.
    with_line(&name, |line| {
        line.requests.clear();
        let sleeper = line.blocked().unwrap().sleeper.clone();
        line.stage = Stage::Interrupted { sleeper, is_turn_over: false };
    });
    until(nothing_is_left);
    drop(held);
}

#[test]
fn a_signal_of_somebody_else_ends_no_wait() {
    let scratch = Scratch::new("stray");
    let (writer, reader) = (scratch.name("a", Mode::Exclusive), scratch.name("a", Mode::Shared));
    let held = writer.take("{}").unwrap().unwrap();
    let mailbox = mailbox();
    ask(&writer, 1, &mailbox);
    until(|| waits_for(&writer) == Some(Which::Lock));
    ask(&reader, 2, &mailbox);
    for _ in 0..100 {
        with_line(&writer, |line| line.blocked().unwrap().sleeper.interrupt());
        sleep(Duration::from_micros(100));
        assert!(!mailbox.has_answers() && waits_for(&writer) == Some(Which::Lock));
    }
    Box::new(held).release(false).unwrap();
    drop(granted(&mailbox, 1));
    drop(granted(&mailbox, 2));
    until(nothing_is_left);
}

#[test]
fn a_wait_for_a_removed_gate_goes_on_with_the_new_one_although_the_old_holder_does_not_end() {
    let scratch = Scratch::new("removed");
    let (first, second) = (scratch.name("a", Mode::Exclusive), scratch.name("a", Mode::Shared));
    let mailbox = mailbox();
    let held = first.take("{}").unwrap().unwrap();
    // The thread that waits for the lock has the gate.
    for (name, number, which) in [(&first, 1, Which::Lock), (&second, 2, Which::Gate)] {
        ask(name, number, &mailbox);
        until(|| waits_for(name) == Some(which));
    }
    std::fs::remove_file(scratch.0.path.join("a.gate")).unwrap();
    until(|| waits_for(&second) == Some(Which::Lock));
    Box::new(held).release(false).unwrap();
    drop(granted(&mailbox, 1));
    drop(granted(&mailbox, 2));
    until(nothing_is_left);
}

#[test]
fn an_answer_that_nobody_expects_is_given_back_without_a_mark() {
    let scratch = Scratch::new("unused");
    let name = scratch.name("a", Mode::Exclusive);
    let mailbox = mailbox();
    // The request was withdrawn while its thread granted it.
    mailbox.answer(1, Answer::Granted(Box::new(name.take("{}").unwrap().unwrap())));
    for is_closed in [false, true] {
        let held = name.take("{}").unwrap().unwrap();
        assert!(!held.owner_died);
        ask(&name, 1, &mailbox);
        Box::new(held).release(false).unwrap();
        if is_closed {
            until(|| mailbox.has_answers());
            mailbox.close();
        } else {
            mailbox.forget(1);
            name.dequeue(1, &mailbox);
        }
        let mut next = None;
        until(|| {
            next = name.take("{}").unwrap();
            next.is_some()
        });
        let next = next.unwrap();
        assert!(!next.owner_died);
        Box::new(next).release(false).unwrap();
    }
}
