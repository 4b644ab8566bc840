//! The rounds of one thread: turns, interruptions that were lost, and looks at the files.
//!
//! There may be more lines than threads or descriptors. Then threads go round: those whose turn has lasted long enough
//! are interrupted, and take lines that have none. So each is in the system's line for its share of the time.
//!
//! A thread does not learn that somebody removes or replaces the file for whose lock it waits. Nor can it know that the
//! lock is free while another process has the gate, which may be suspended. So this one looks at those that have waited
//! for a while: a lock that stays free for a moment is taken for the first request, past the gate. It is no duty of the
//! service, whose other ones a slow drive would delay.

use std::sync::{Condvar, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::pool::thread;
use super::{Blocked, Line, Stage, TABLE, Table, grant_first, with_line, with_table};
use crate::file_locks::lock_file::{Name, Which};
use crate::file_locks::system::{Identity, no_thread};
use waitasync_core::panics::contained;
use waitasync_core::sync::lock;

pub(super) const ROUND: Duration = Duration::from_millis(50);
/// How long a turn lasts. Each of the first that end in vain doubles the next: the system's line may last longer.
const TURN: Duration = Duration::from_secs(1);
const MOST_DOUBLED: u32 = 2;
/// How often files are looked at: those of threads that have been blocked for so long.
#[cfg(not(test))]
pub(super) const LOOK: Duration = Duration::from_secs(1);
#[cfg(test)]
pub(super) const LOOK: Duration = Duration::from_millis(20);
/// So long a lock stays free if the process that has the gate is suspended.
const MOMENT: Duration = Duration::from_millis(2);

static BELL: Condvar = Condvar::new();

/// Lets the next round come soon.
pub(super) fn hurry() {
    BELL.notify_one();
}

/// Returns how long the next turn of a line lasts.
pub(super) fn turn(turns_in_vain: u32) -> Duration {
    TURN * (1 << turns_in_vain.min(MOST_DOUBLED))
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
    pub(super) fn attend(&mut self) -> std::io::Result<()> {
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
