//! The rounds of the service: turns, interruptions that were lost, and looks at the files.
//!
//! There may be more lines than threads or descriptors. Then threads go round: those whose turn has lasted long enough
//! are interrupted, and take lines that have none. So each is in the system's line for its share of the time.
//!
//! A thread does not learn that somebody removes or replaces the file for whose lock it waits. Nor can it know that the
//! lock is free while another process has the gate, which may be suspended. So a thread looks at those that have waited
//! for a while: a lock that stays free for a moment is taken for the first request, past the gate. It sleeps by itself:
//! each of its looks would otherwise wake the service, too, which has nothing to do then.

use std::io::Result;
use std::thread::{Builder, sleep};
use std::time::{Duration, Instant};

use super::pool::STACK;
use super::{Line, Reason, Stage, Table, with_line, with_table};
use crate::file_locks::lock_file::{Name, Which};
use crate::file_locks::mailbox::Lock;
use crate::file_locks::system::{Identity, no_thread};
use crate::globals::service;
use waitasync_core::panics::contained;
use waitasync_core::service::Notify;

const ROUND: Duration = Duration::from_millis(50);
/// How long a turn lasts. Each of the first that end in vain doubles the next: the system's line may last longer.
#[cfg(not(test))]
const TURN: Duration = Duration::from_secs(1);
#[cfg(test)]
const TURN: Duration = Duration::from_millis(1);
const MOST_DOUBLED: u32 = 2;
/// How often files are looked at: those of threads that have been blocked for so long.
#[cfg(not(test))]
const LOOK: Duration = Duration::from_secs(1);
#[cfg(test)]
const LOOK: Duration = Duration::from_millis(20);
/// The pause of a service that nobody needs before its bell rings.
const REST: Duration = Duration::from_secs(3600);
/// So long a lock stays free if the process that has the gate is suspended.
const MOMENT: Duration = Duration::from_millis(2);

static BELL: Notify = Notify::const_new();

/// Lets the next round come soon.
pub(super) fn hurry() {
    BELL.notify_one();
}

/// Returns how long the next turn of a line lasts.
pub(super) fn turn(turns_in_vain: u32) -> Duration {
    TURN * (1 << turns_in_vain.min(MOST_DOUBLED))
}

/// What the service remembers between rounds.
#[derive(Default)]
pub(super) struct Rounds {
    is_running: bool,
    /// Whether a thread looks at the files.
    is_looking: bool,
}

impl Table {
    /// Lets the service go round as long as there are lines. Fails if the system gives no thread for it.
    pub(super) fn attend(&mut self) -> Result<()> {
        if !self.rounds.is_running {
            service().ok_or_else(no_thread)?.attend(&BELL, ROUND, || with_table(Self::go_round));
            self.rounds.is_running = true;
        }
        Ok(())
    }

    /// Returns the time until the next round; `None` if there are no lines any more.
    fn go_round(&mut self) -> Option<Duration> {
        let Self { lines, pool, .. } = self;
        pool.queue.retain(|name| {
            let is_wanted = lines.get(name).is_some_and(|line| !line.requests.is_empty());
            if !is_wanted {
                lines.remove(name);
            }
            is_wanted
        });
        let mut is_answer_missing = false;
        for line in lines.values() {
            if let Stage::Interrupted(sleeper, _) = &line.stage {
                sleeper.interrupt();
                is_answer_missing = true;
            }
        }
        let was_short = std::mem::take(&mut pool.is_short);
        let turns = pool.turns_to_end();
        pool.provide();
        self.end_turns(turns);
        self.look();
        self.rounds.is_running = !self.lines.is_empty();
        let is_soon = is_answer_missing || (!was_short && !self.pool.queue.is_empty());
        let may_rest = self.rounds.is_looking && !self.needs_round();
        let pause = if is_soon {
            ROUND
        } else if may_rest {
            REST
        } else {
            LOOK
        };
        self.rounds.is_running.then_some(pause)
    }

    /// Whether the service has something to do: also to leave, if there are no lines.
    fn needs_round(&self) -> bool {
        let is_interrupted = |line: &Line| matches!(line.stage, Stage::Interrupted(..));
        self.lines.is_empty() || !self.pool.queue.is_empty() || self.lines.values().any(is_interrupted)
    }

    /// Interrupts the threads whose turns ended first.
    fn end_turns(&mut self, count: usize) {
        let now = Instant::now();
        let is_over = |line: &&mut Line| line.turn_ends <= now && line.blocked().is_some();
        let mut blocked: Vec<&mut Line> = self.lines.values_mut().filter(is_over).collect();
        if (1..blocked.len()).contains(&count) {
            blocked.select_nth_unstable_by_key(count - 1, |line| line.turn_ends);
        }
        for line in blocked.into_iter().take(count) {
            line.interrupt(Reason::TurnOver);
        }
    }

    /// Starts the thread that looks at the files, if it is time.
    fn look(&mut self) {
        let Self { lines, rounds, .. } = self;
        if !rounds.is_looking && lines.values().any(has_waited_long) {
            let thread = Builder::new().name("waitasync files".into()).stack_size(STACK);
            rounds.is_looking = thread.spawn(look_while_lines_wait).is_ok();
        }
    }
}

fn has_waited_long(line: &Line) -> bool {
    line.blocked().is_some_and(|blocked| blocked.since.elapsed() >= LOOK)
}

/// The life of the thread that looks at the files.
fn look_while_lines_wait() {
    let goes_on = |table: &mut Table| {
        if table.needs_round() {
            hurry();
        }
        table.rounds.is_looking = !table.lines.is_empty();
        table.rounds.is_looking
    };
    while with_table(goes_on) {
        contained(look_at_files);
        sleep(LOOK);
    }
}

/// Looks at the files of threads that have been blocked for long.
fn look_at_files() {
    let mut blocked: Vec<(Name, Which, Identity)> = with_table(|table| {
        let one = |(name, line): (&Name, &Line)| {
            let blocked = line.blocked().filter(|_| has_waited_long(line))?;
            Some((name.clone(), blocked.which, blocked.file))
        };
        table.lines.iter().filter_map(one).collect()
    });
    blocked.retain(|(name, which, file)| {
        let is_replaced = matches!(name.leads_to(*which, *file), Ok(false));
        if is_replaced {
            interrupt_at(name, *file, Reason::FileReplaced);
        }
        !is_replaced && *which == Which::Gate
    });
    let token_of = |(name, ..): (Name, Which, Identity)| Some((name.token_if_free().ok()??, name));
    let free: Vec<(u64, Name)> = blocked.into_iter().filter_map(token_of).collect();
    if !free.is_empty() {
        sleep(MOMENT);
    }
    for (token, name) in free {
        contained(|| pass(&name, token));
    }
}

fn interrupt_at(name: &Name, file: Identity, reason: Reason) {
    with_line(name, |line| {
        if line.blocked().is_some_and(|blocked| blocked.file == file) {
            line.interrupt(reason);
        }
    });
}

/// Takes a free lock for the first in line, past the gate. It has to have this token still.
fn pass(name: &Name, token: u64) {
    let first = with_line(name, |line| line.requests.front().map(|first| (first.number, first.description.clone())));
    let Some((number, description)) = first.flatten() else { return };
    let Ok(Some(grant)) = name.take_free(&description, |now| now == token) else { return };
    let request = with_line(name, |line| {
        let is_first = line.requests.front().is_some_and(|first| first.number == number);
        let request = if is_first { line.requests.pop_front() } else { None };
        if line.requests.is_empty() {
            line.interrupt(Reason::NoRequest);
        }
        request
    });
    match request.flatten() {
        Some(request) => request.answer(grant),
        None => Box::new(grant).return_unused(),
    }
}
