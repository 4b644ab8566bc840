//! Tests of the threads that wait, of gates and of mailboxes.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::{MOST_THREADS, Request, dequeue, enqueue, with_table};
use crate::processes::lock_file::{Folder, Grant, Name, Which};
use crate::processes::mailbox::{Answer, Mailbox};
use crate::processes::system::Mode;
use waitasync_core::lock::Outbox;
use waitasync_core::sync::lock;

/// The threads are those of the process: one test at a time.
static ONE: Mutex<()> = Mutex::new(());

/// A folder that is removed at the end.
struct Scratch(Arc<Folder>, #[allow(dead_code, reason = "it is dropped")] MutexGuard<'static, ()>);

impl Scratch {
    fn new(what: &str) -> Self {
        let path = PathBuf::from(format!("{}/files-{}-{what}", std::env::temp_dir().display(), std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(Arc::new(Folder { path, is_durable: false }), lock(&ONE))
    }

    fn name(&self, key: &str, mode: Mode) -> Name {
        Name { folder: Arc::clone(&self.0), key: key.into(), mode }
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

fn ask(name: &Name, number: u32, mailbox: &Arc<Mailbox>) {
    mailbox.expect(number, Some(name.clone()));
    enqueue(name, Request { number, mailbox: Arc::clone(mailbox), description: "{}".into() }).unwrap();
}

fn granted(mailbox: &Mailbox, number: u32) -> Grant {
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

#[test]
fn names_that_have_no_thread_are_swept_and_get_one_before_new_names() {
    let scratch = Scratch::new("swept");
    let names: Vec<_> = (0..6).map(|n| scratch.name(&n.to_string(), Mode::Exclusive)).collect();
    let mut held: Vec<_> = names.iter().map(|name| name.take("{}").unwrap()).collect();
    let mailbox = mailbox();
    for (name, number) in names.iter().zip(0..) {
        ask(name, number, &mailbox);
    }
    let swept = || with_table(|table| table.swept.len());
    until(|| swept() == names.len() - MOST_THREADS);
    assert!(with_table(|table| table.threads <= MOST_THREADS));

    // The sweeper finds a lock that is free, although all threads are blocked.
    held[5] = None;
    drop(granted(&mailbox, 5));
    // A thread that is free takes the name that has waited longest; a new one waits behind it.
    ask(&names[5], 6, &mailbox);
    drop(granted(&mailbox, 6));
    held[0].take().unwrap().release(false).unwrap();
    assert!(!granted(&mailbox, 0).owner_died);
    until(|| with_table(|table| names[2..5].iter().any(|name| table.lines[name].blocked.is_some())));

    // A request that is withdrawn leaves nothing.
    dequeue(&names[4], 4, &mailbox);
    mailbox.forget(4);
    until(|| swept() <= 1);
    drop(held);
    for number in 1..4 {
        assert!(granted(&mailbox, number).owner_died);
    }
    until(|| with_table(|table| table.lines.is_empty() && table.swept.is_empty()));
    assert!(names[4].take("{}").unwrap().is_some());
}

#[test]
fn a_gate_keeps_newcomers_out_and_an_aborted_wait_opens_it() {
    let scratch = Scratch::new("gate");
    let (writer, reader) = (scratch.name("a", Mode::Exclusive), scratch.name("a", Mode::Shared));
    let reading = reader.take("{}").unwrap().unwrap();
    let mailbox = mailbox();
    ask(&writer, 1, &mailbox);
    // Two readers may share, but not after the writer has come.
    until(|| reader.attempt("{}").unwrap().is_none());
    mailbox.forget(1);
    dequeue(&writer, 1, &mailbox);
    until(|| reader.attempt("{}").unwrap().is_some());
    // The thread is still there, and serves the next request.
    ask(&writer, 2, &mailbox);
    drop(reading);
    assert!(granted(&mailbox, 2).token > 0);
}

#[test]
fn a_wait_for_a_removed_file_goes_on_with_the_new_one_although_the_old_holder_does_not_end() {
    let scratch = Scratch::new("removed");
    let name = scratch.name("a", Mode::Exclusive);
    let mailbox = mailbox();
    let held = name.take("{}").unwrap().unwrap();
    ask(&name, 1, &mailbox);
    let blocked = || with_table(|table| Some(table.lines.get(&name)?.blocked?.0));
    until(|| blocked() == Some(Which::Lock));
    std::fs::remove_file(scratch.0.path.join("a.lock")).unwrap();
    let next = granted(&mailbox, 1);
    assert!(next.token > held.token && !held.release(false).unwrap());

    // So it is with the gate: the thread that waits for the lock has it.
    ask(&name, 2, &mailbox);
    until(|| blocked() == Some(Which::Lock));
    let second = scratch.name("a", Mode::Shared);
    ask(&second, 3, &mailbox);
    until(|| with_table(|table| table.lines[&second].blocked.is_some()));
    std::fs::remove_file(scratch.0.path.join("a.gate")).unwrap();
    next.release(false).unwrap();
    drop(granted(&mailbox, 2));
    drop(granted(&mailbox, 3));
    until(|| with_table(|table| table.lines.is_empty() && table.swept.is_empty()));
}

#[test]
fn an_answer_that_nobody_expects_is_given_back_without_a_mark() {
    let scratch = Scratch::new("unused");
    let name = scratch.name("a", Mode::Exclusive);
    let mailbox = mailbox();
    // The request was withdrawn while its thread granted it.
    mailbox.answer(1, Answer::Granted(name.take("{}").unwrap().unwrap()));
    for is_closed in [false, true] {
        let held = name.take("{}").unwrap().unwrap();
        assert!(!held.owner_died);
        ask(&name, 1, &mailbox);
        held.release(false).unwrap();
        if is_closed {
            until(|| mailbox.has_answers());
            mailbox.close();
        } else {
            mailbox.forget(1);
            dequeue(&name, 1, &mailbox);
        }
        let mut next = None;
        until(|| {
            next = name.take("{}").unwrap();
            next.is_some()
        });
        let next = next.unwrap();
        assert!(!next.owner_died);
        next.release(false).unwrap();
    }
}
