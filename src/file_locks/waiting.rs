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
//! place without a request.
//!
//! There may be more lines than threads or descriptors. Then threads go round: those whose turn has lasted long enough
//! are interrupted, and take lines that have none. So each is in the system's line for its share of the time.
//!
//! A thread does not learn that somebody removes or replaces the file for whose lock it waits. Nor can it know that the
//! lock is free while another process has the gate, which may be suspended. So the thread that goes round looks at those
//! that have waited for a while: a lock that stays free for a moment is taken for the first request, past the gate. It
//! is no duty of the service, whose other ones a slow drive would delay.

mod pool;

use std::collections::VecDeque;
use std::io::{Error, ErrorKind, Result};
use std::sync::{Arc, Condvar, LazyLock, Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

pub(super) use self::pool::run;
use self::pool::{Pool, thread};
use super::lock_file::{Asked, Grant, Locked, Name, Which};
use super::mailbox::{Answer, Lock, Mailbox, Queue};
use super::system::Sleeper;
use super::{Identity, is_passing, no_thread};
use waitasync_core::sync::{contained, lock};

const ROUND: Duration = Duration::from_millis(50);
/// How long a turn lasts. Each of the first that end in vain doubles the next: the system's line may last longer.
const TURN: Duration = Duration::from_secs(1);
const MOST_DOUBLED: u32 = 2;
/// How often files are looked at: those of threads that have been blocked for so long.
#[cfg(not(test))]
const LOOK: Duration = Duration::from_secs(1);
#[cfg(test)]
const LOOK: Duration = Duration::from_millis(20);
/// So long a lock stays free if the process that has the gate is suspended.
const MOMENT: Duration = Duration::from_millis(2);

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
/// Lets the next round come soon.
static BELL: Condvar = Condvar::new();

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
            BELL.notify_one();
        }
    }
}

/// Serves a line while it has requests and its turn lasts.
fn serve(name: &Name) {
    with_line(name, |line| {
        line.turn_ends = Instant::now() + TURN * (1 << line.turns_in_vain.min(MOST_DOUBLED));
    });
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
            BELL.notify_one();
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
                return result.map(|()| Some(Locked(opened)));
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
    mailbox.outbox.ring();
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

/// The life of the thread that goes round.
fn go_round() {
    loop {
        let mut table = lock(&TABLE);
        let Some(pause) = table.go_round() else { return };
        let (table, waited) = BELL.wait_timeout(table, pause).unwrap_or_else(PoisonError::into_inner);
        drop(table);
        if !waited.timed_out() {
            sleep(ROUND);
        }
        contained(look_at_files);
    }
}

impl Table {
    /// Lets a thread go round as long as there are lines. Fails if the system gives none.
    fn attend(&mut self) -> Result<()> {
        if !self.is_attended {
            thread().spawn(go_round).map_err(|_| no_thread())?;
            self.is_attended = true;
        }
        Ok(())
    }

    /// Returns the time until the next round; `None` if there are no lines any more.
    fn go_round(&mut self) -> Option<Duration> {
        let Self { lines, pool, is_attended } = self;
        pool.queue.retain(|name| {
            let is_wanted = lines.get(name).is_some_and(|line| !line.requests.is_empty());
            if !is_wanted {
                lines.remove(name);
            }
            is_wanted
        });
        pool.provide();
        let mut in_need = pool.lines_in_need();
        let mut is_soon = in_need > 0;
        for line in lines.values_mut() {
            if let Stage::Interrupted { sleeper, .. } = &line.stage {
                sleeper.interrupt();
                is_soon = true;
            } else if in_need > 0 && line.turn_ends <= Instant::now() && line.interrupt(true) {
                in_need -= 1;
            }
        }
        *is_attended = !lines.is_empty();
        is_attended.then_some(if is_soon { ROUND } else { LOOK })
    }
}

/// Looks at the files of threads that have been blocked for long.
fn look_at_files() {
    let blocked: Vec<(Name, Which, Identity)> = with_table(|table| {
        let one = |(name, line): (&Name, &mut Line)| match &mut line.stage {
            Stage::Blocked(Blocked { since, which, file, .. }) if since.elapsed() >= LOOK => {
                *since = Instant::now();
                Some((name.clone(), *which, *file))
            }
            _ => None,
        };
        table.lines.iter_mut().filter_map(one).collect()
    });
    for (name, which, file) in blocked {
        if matches!(name.leads_to(which, file), Ok(false)) {
            with_line(&name, |line| {
                line.blocked().is_some_and(|blocked| blocked.file == file) && line.interrupt(false)
            });
        } else if which == Which::Gate
            && let Ok(Some(token)) = name.token_if_free()
        {
            sleep(MOMENT);
            // With the same token it has been free all the time.
            let _ = grant_first(&name, |description| name.take_free(description, |now| now == token));
        }
    }
}

#[cfg(test)]
mod tests;
