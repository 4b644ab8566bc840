//! Requests that wait for names, and the threads that serve them.
//!
//! The requests for a name in a mode are a line. One thread at a time serves it, blocked in the call of the operating
//! system: so it needs no processor, and the system wakes it at once. It waits for the gate, then for the lock.
//!
//! | stage of a line | | and then |
//! |---|---|---|
//! | `Queued` | has no thread, but a place in the queue | `Served`, once a thread takes it |
//! | `Served` | its thread opens files, or grants | `Blocked`; `Queued`, if there is no descriptor; removed, without requests |
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
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use self::pool::Pool;
pub(super) use self::pool::run;
use self::rounds::Rounds;
use super::lock_file::{Grant, Locked, Name, Which};
use super::mailbox::{Answer, Mailbox, Queue};
use super::system::{Identity, Opened, Sleeper, is_passing, no_thread};
use waitasync_core::sync::lock;

/// A request in the line of a name.
pub(super) struct Request {
    pub(super) number: i64,
    pub(super) mailbox: Arc<Mailbox>,
    /// Of the requester, for the state.
    pub(super) description: String,
    pub(super) max_hold: Option<Duration>,
}

impl Request {
    /// Answers it with a lock, whose time begins.
    fn answer(self, grant: Grant) {
        let grant = grant.limited(self.max_hold);
        let answer = grant.map_or_else(Answer::Failed, |grant| Answer::Granted(Box::new(grant)));
        self.mailbox.answer(self.number, answer);
    }
}

/// Where a thread waits.
struct Blocked {
    sleeper: Sleeper,
    which: Which,
    file: Identity,
    since: Instant,
}

/// Why a thread is interrupted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reason {
    NoRequest,
    FileReplaced,
    TurnOver,
}

enum Stage {
    Queued,
    Served,
    Blocked(Blocked),
    Interrupted(Sleeper, Reason),
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
    fn interrupt(&mut self, reason: Reason) -> bool {
        let Some(Blocked { sleeper, .. }) = self.blocked() else { return false };
        sleeper.interrupt();
        self.stage = Stage::Interrupted(sleeper.clone(), reason);
        true
    }
}

#[derive(Default)]
struct Table {
    lines: FxHashMap<Name, Line>,
    pool: Pool,
    rounds: Rounds,
}

static TABLE: Mutex<Option<Table>> = Mutex::new(None);

fn with_table<T>(body: impl FnOnce(&mut Table) -> T) -> T {
    body(lock(&TABLE).get_or_insert_default())
}

/// Changes a line. There is none only if its thread has removed it.
fn with_line<T>(name: &Name, body: impl FnOnce(&mut Line) -> T) -> Option<T> {
    with_table(|table| table.lines.get_mut(name).map(body))
}

/// Puts a request into the line of its name. Fails if the system gives no thread at all.
pub(super) fn enqueue(name: &Name, request: Request) -> Result<()> {
    with_table(|table| {
        if let Some(line) = table.lines.get_mut(name) {
            line.requests.push_back(request);
            return Ok(());
        }
        table.attend()?;
        if !table.pool.push_new(name.clone()) {
            return Err(no_thread());
        }
        let (requests, turn_ends) = (VecDeque::from([request]), Instant::now());
        let line = Line { requests, stage: Stage::Queued, turns_in_vain: 0, turn_ends };
        table.lines.insert(name.clone(), line);
        Ok(())
    })
}

impl Queue for Name {
    /// Removes a request. Of the last one a place in the queue is left until its turn.
    fn dequeue(&self, number: i64, mailbox: &Arc<Mailbox>) {
        let is_interrupted = with_line(self, |line| {
            line.requests.retain(|request| request.number != number || !Arc::ptr_eq(&request.mailbox, mailbox));
            line.requests.is_empty() && line.interrupt(Reason::NoRequest)
        });
        // The signal may have come too early.
        if is_interrupted == Some(true) {
            rounds::hurry();
        }
    }
}

/// Waits for a name as long as there are requests for it.
fn serve(name: &Name) {
    with_line(name, |line| line.turn_ends = Instant::now() + rounds::turn(line.turns_in_vain));
    while has_requests(name) {
        let end = match wait(name) {
            Ok(Ok((_gate, locked))) => match pop(name) {
                Some(request) => grant(name, request, locked),
                None => None,
            },
            Ok(Err(Reason::TurnOver)) => Some(End::TurnOver),
            Ok(Err(_)) => None,
            Err(error) if is_passing(&error) => Some(End::Shortage),
            Err(error) => {
                fail(name, &error);
                None
            }
        };
        if let Some(end) = end {
            return queue(name, end);
        }
    }
}

/// Why a thread leaves a line that has requests.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    TurnOver,
    /// Descriptors or memory are lacking: the line waits for a later round.
    Shortage,
}

/// Puts a line behind those that have no thread.
fn queue(name: &Name, end: End) {
    with_table(|table| {
        if let Some(line) = table.lines.get_mut(name) {
            line.stage = Stage::Queued;
            line.turns_in_vain += u32::from(end == End::TurnOver);
            table.pool.is_short |= end == End::Shortage;
            table.pool.push_back(name.clone());
        }
    });
    if end == End::TurnOver {
        rounds::hurry();
    }
}

/// Fails the requests of a line whose thread has panicked.
fn fail_all(name: &Name) {
    let line = with_table(|table| table.lines.remove(name));
    for request in line.into_iter().flat_map(|line| line.requests) {
        request.mailbox.answer(request.number, Answer::Failed(Error::other("the thread that waited has panicked")));
    }
}

/// Whether a line has requests, and is served further. Otherwise it is removed.
fn has_requests(name: &Name) -> bool {
    with_table(|table| {
        let Some(line) = table.lines.get_mut(name) else { return false };
        line.stage = Stage::Served;
        let has_requests = !line.requests.is_empty();
        if !has_requests {
            table.lines.remove(name);
        }
        has_requests
    })
}

/// Waits for the gate, and with it for the lock. The gate is unlocked by then, but open: to close it takes time.
fn wait(name: &Name) -> Result<std::result::Result<(Opened, Locked), Reason>> {
    match block(name, Which::Gate)? {
        Ok(gate) => Ok(block(name, Which::Lock)?.map(|locked| (gate.unlocked(), locked))),
        Err(reason) => Ok(Err(reason)),
    }
}

/// Blocks until a file is locked, or its thread is interrupted.
fn block(name: &Name, which: Which) -> Result<std::result::Result<Locked, Reason>> {
    let opened = name.open_to_wait(which)?;
    let (sleeper, file) = (Sleeper::current(), opened.1);
    let blocked = Blocked { sleeper, which, file, since: Instant::now() };
    // Who has withdrawn the last request meanwhile has found nobody to interrupt.
    let is_wanted = with_line(name, |line| {
        line.stage = Stage::Blocked(blocked);
        !line.requests.is_empty()
    });
    if is_wanted != Some(true) {
        return Ok(Err(Reason::NoRequest));
    }
    loop {
        match name.wait(which, &opened) {
            // The signal of somebody else: it waits again, behind those that wait for the same.
            Err(error) if error.kind() == ErrorKind::Interrupted => match with_line(name, |line| match line.stage {
                Stage::Interrupted(_, reason) => Some(reason),
                _ => None,
            }) {
                Some(None) => {}
                reason => return Ok(Err(reason.flatten().unwrap_or(Reason::NoRequest))),
            },
            result => {
                let first = with_line(name, |line| {
                    line.stage = Stage::Served;
                    line.requests.front().map(|first| Arc::clone(&first.mailbox))
                });
                // The requester's loop wakes while the state is written.
                if let (Which::Lock, Ok(()), Some(Some(mailbox))) = (which, &result, first) {
                    mailbox.ring();
                }
                return result.map(|()| Ok(Locked::new(opened)));
            }
        }
    }
}

fn pop(name: &Name) -> Option<Request> {
    with_line(name, |line| line.requests.pop_front()).flatten()
}

/// Grants a locked file to a request. One that was replaced is no lock: the request waits again, in its place.
fn grant(name: &Name, request: Request, locked: Locked) -> Option<End> {
    let end = match name.grant(locked, &request.description) {
        Ok(Some(grant)) => {
            with_line(name, |line| line.turns_in_vain = 0);
            request.answer(grant);
            return None;
        }
        Ok(None) => None,
        Err(error) if is_passing(&error) => Some(End::Shortage),
        Err(error) => {
            request.mailbox.answer(request.number, Answer::Failed(error));
            return None;
        }
    };
    // It may be aborted at the same time: then `dequeue` finds it here, or it is not expected any more.
    with_line(name, |line| {
        if request.mailbox.expects(request.number) {
            line.requests.push_front(request);
        }
    });
    end
}

/// Fails the first request of a line.
fn fail(name: &Name, error: &Error) {
    if let Some(request) = pop(name) {
        let copy = error.raw_os_error().map_or_else(|| Error::other(error.to_string()), Error::from_raw_os_error);
        request.mailbox.answer(request.number, Answer::Failed(copy));
    }
}

#[cfg(test)]
mod tests;
