//! Requests that wait for names, and the threads that serve them.
//!
//! The requests for a name in a mode are a line. One thread at a time serves it, blocked in the call of the operating
//! system: so it needs no processor, and the system wakes it at once. It waits for the gate, then for the lock.
//!
//! | stage of a line | | and then |
//! |---|---|---|
//! | `Queued` | has no thread, but a place in the queue | `Served`, once a thread takes it |
//! | `Served` | its thread opens files, grants, or sleeps while descriptors are lacking | `Blocked`; removed, without requests |
//! | `Blocked` | its thread waits for the gate or for the lock | `Served`, with that; `Interrupted` |
//! | `Interrupted` | its thread has been interrupted, and has not answered | `Served`; `Queued`, if its turn is over |
//!
//! A thread is interrupted when its line has no request any more, when its file is no longer at its path, and when it is
//! the turn of a line without a thread. It gives back what it has: so no line waits without its place, nor keeps a
//! place without a request. [`rounds`] is about turns, [`pool`] about threads.

mod pool;
mod rounds;

use std::collections::VecDeque;
use std::io::{Error, ErrorKind, Result};
use std::sync::{Arc, LazyLock, Mutex};
use std::thread::sleep;
use std::time::Instant;

use rustc_hash::FxHashMap;

use self::pool::Pool;
pub(super) use self::pool::run;
use self::rounds::{LOOK, ROUND};
use super::lock_file::{Asked, Grant, Locked, Name, Which};
use super::mailbox::{Answer, Lock, Mailbox, Queue};
use super::system::{Identity, Sleeper, is_passing, no_thread};
use waitasync_core::sync::lock;

/// A request in the line of a name.
pub(super) struct Request {
    pub(super) number: i64,
    pub(super) mailbox: Arc<Mailbox>,
    pub(super) asked: Asked,
}

impl Request {
    /// Whether it is this one: each environment has numbers of its own.
    fn is(&self, number: i64, mailbox: &Arc<Mailbox>) -> bool {
        self.number == number && Arc::ptr_eq(&self.mailbox, mailbox)
    }

    /// Answers it with a lock, whose time begins.
    fn answer(self, grant: Grant) {
        let grant = grant.limited(self.asked.max_hold);
        let answer = grant.map_or_else(Answer::Failed, |grant| Answer::Granted(Box::new(grant)));
        self.mailbox.answer(self.number, answer);
    }
}

/// Where a thread waits.
struct Blocked {
    sleeper: Sleeper,
    which: Which,
    file: Identity,
    /// Since when nobody has looked at the file.
    since: Instant,
}

enum Stage {
    Queued,
    Served,
    Blocked(Blocked),
    Interrupted {
        sleeper: Sleeper,
        /// Whether another line is to have its thread.
        is_turn_over: bool,
    },
}

/// The requests for a name in a mode, in their order.
struct Line {
    requests: VecDeque<Request>,
    stage: Stage,
    /// How many turns in a row have ended without a grant.
    turns_in_vain: u32,
    /// When its turn may end, if others wait for one.
    turn_ends: Instant,
}

impl Line {
    fn blocked(&self) -> Option<&Blocked> {
        if let Stage::Blocked(blocked) = &self.stage { Some(blocked) } else { None }
    }

    /// Interrupts its thread, if that is blocked. Returns whether it was.
    fn interrupt(&mut self, is_turn_over: bool) -> bool {
        let Some(Blocked { sleeper, .. }) = self.blocked() else { return false };
        sleeper.interrupt();
        self.stage = Stage::Interrupted { sleeper: sleeper.clone(), is_turn_over };
        true
    }
}

#[derive(Default)]
struct Table {
    lines: FxHashMap<Name, Line>,
    pool: Pool,
    /// Whether a thread goes round.
    is_attended: bool,
}

static TABLE: LazyLock<Mutex<Table>> = LazyLock::new(Mutex::default);

fn with_table<T>(body: impl FnOnce(&mut Table) -> T) -> T {
    body(&mut lock(&TABLE))
}

/// Changes a line. There is none only if its thread has removed it.
fn with_line<T>(name: &Name, body: impl FnOnce(&mut Line) -> T) -> Option<T> {
    with_table(|table| table.lines.get_mut(name).map(body))
}

/// Puts a request into the line of its name. Fails if the system gives no thread at all.
pub(super) fn enqueue(request: Request) -> Result<()> {
    let name = request.asked.name.clone();
    with_table(|table| {
        if let Some(line) = table.lines.get_mut(&name) {
            line.requests.push_back(request);
            return Ok(());
        }
        table.attend()?;
        if !table.pool.push(name.clone()) {
            return Err(no_thread());
        }
        let (requests, turn_ends) = (VecDeque::from([request]), Instant::now());
        let line = Line { requests, stage: Stage::Queued, turns_in_vain: 0, turn_ends };
        table.lines.insert(name, line);
        Ok(())
    })
}

impl Queue for Name {
    /// Removes a request. Of the last one a place in the queue is left until its turn.
    fn dequeue(&self, number: i64, mailbox: &Arc<Mailbox>) {
        let is_interrupted = with_line(self, |line| {
            line.requests.retain(|request| !request.is(number, mailbox));
            line.requests.is_empty() && line.interrupt(false)
        });
        // The signal may have come too early.
        if is_interrupted == Some(true) {
            rounds::hurry();
        }
    }
}

/// Serves a line while it has requests and its turn lasts.
fn serve(name: &Name) {
    with_line(name, |line| line.turn_ends = Instant::now() + rounds::turn(line.turns_in_vain));
    let mut pause = ROUND;
    while goes_on(name) {
        match wait(name) {
            Ok(()) => {}
            Err(error) if is_passing(&error) => {
                sleep(pause);
                pause = LOOK.min(2 * pause);
            }
            Err(error) => {
                if let Some(request) = with_line(name, |line| line.requests.pop_front()).flatten() {
                    request.mailbox.answer(request.number, Answer::Failed(error));
                }
            }
        }
    }
}

/// Whether a line is served further. Otherwise it is removed, or put behind those that have no thread.
fn goes_on(name: &Name) -> bool {
    with_table(|table| {
        let Some(line) = table.lines.get_mut(name) else { return false };
        let goes_on = match line.stage {
            _ if line.requests.is_empty() => {
                table.lines.remove(name);
                return false;
            }
            Stage::Interrupted { is_turn_over: true, .. } => false,
            _ => true,
        };
        line.stage = if goes_on { Stage::Served } else { Stage::Queued };
        if !goes_on {
            line.turns_in_vain += 1;
            table.pool.push(name.clone());
            rounds::hurry();
        }
        goes_on
    })
}

/// Fails the requests of a line whose thread has panicked.
fn fail_all(name: &Name) {
    let line = with_table(|table| table.lines.remove(name));
    for request in line.into_iter().flat_map(|line| line.requests) {
        request.mailbox.answer(request.number, Answer::Failed(Error::other("the thread that waited has panicked")));
    }
}

/// Waits for the gate, with it for the lock, and grants that; or until its thread is interrupted.
fn wait(name: &Name) -> Result<()> {
    let Some(gate) = block(name, Which::Gate)? else { return Ok(()) };
    let Some(locked) = block(name, Which::Lock)? else { return Ok(()) };
    // To close it takes time.
    let _gate = gate.unlocked();
    grant_first(name, |description| name.grant(locked, description))
}

/// Blocks until a file is locked. None if its thread is interrupted.
fn block(name: &Name, which: Which) -> Result<Option<Locked>> {
    let opened = name.open_to_wait(which)?;
    let blocked = Blocked { sleeper: Sleeper::current(), which, file: opened.1, since: Instant::now() };
    // Who has withdrawn the last request meanwhile has found nobody to interrupt.
    let is_wanted = with_line(name, |line| {
        line.stage = Stage::Blocked(blocked);
        !line.requests.is_empty()
    });
    if is_wanted != Some(true) {
        return Ok(None);
    }
    loop {
        match name.wait(which, &opened) {
            // After the signal of somebody else it waits again, behind those that wait for the same.
            Err(error) if error.kind() == ErrorKind::Interrupted => {
                if with_line(name, |line| line.blocked().is_some()) != Some(true) {
                    return Ok(None);
                }
            }
            result => {
                with_line(name, |line| line.stage = Stage::Served);
                return result.map(|()| Some(Locked::new(opened)));
            }
        }
    }
}

/// Gives the lock that is taken to the first in line. Without a lock, that one waits in its place.
fn grant_first(name: &Name, take: impl FnOnce(&str) -> Result<Option<Grant>>) -> Result<()> {
    let copy = |first: &Request| (first.number, Arc::clone(&first.mailbox), first.asked.description.clone());
    let first = with_line(name, |line| line.requests.front().map(copy));
    let Some((number, mailbox, description)) = first.flatten() else { return Ok(()) };
    // The requester's loop wakes while the state is written.
    mailbox.ring();
    let Some(grant) = take(&description)? else { return Ok(()) };
    let request = with_line(name, |line| {
        line.turns_in_vain = 0;
        let is_first = line.requests.front().is_some_and(|first| first.is(number, &mailbox));
        let request = if is_first { line.requests.pop_front() } else { None };
        // If the lock was taken past the gate, its thread is blocked there.
        if line.requests.is_empty() {
            line.interrupt(false);
        }
        request
    });
    match request.flatten() {
        Some(request) => request.answer(grant),
        None => Box::new(grant).return_unused(),
    }
    Ok(())
}

#[cfg(test)]
mod tests;
