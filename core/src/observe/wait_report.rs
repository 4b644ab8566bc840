//! The report of a wait that is on no cycle: its time, its lock, and the state of the holders.

use std::fmt::Write;

use super::reports::Reports;
use super::rows::{Row, shown_row};
use super::sentences::{
    DistinctFrames, duration, elsewhere_text, ended_text, noun_of, obstacle_text, quoted, thread_of, wait_text,
};
use super::survey::Entry;
use crate::held::Registered;
use crate::lock::Mode;

/// How many holders a report describes.
const MOST_HOLDERS: usize = 3;

impl Reports<'_> {
    /// Returns the claim that keeps one without holders waiting: for a share a writer's; or the first in line, if its
    /// thread does not take what is free.
    fn claim_ahead(&self, index: usize) -> Option<usize> {
        let waiting = &self.snapshot.waiting;
        let mode = waiting[index].mode()?;
        let is_ahead = |entry: &Entry| entry.location == waiting[index].location && entry.mode().is_some();
        let is_writer = |entry: &Entry| is_ahead(entry) && entry.mode() == Some(Mode::Exclusive);
        let writer = waiting[..index].iter().rposition(is_writer).filter(|_| mode == Mode::Shared);
        let is_stuck = |index: &usize| self.is_stuck(waiting[*index].thread_id);
        writer.or_else(|| waiting[..index].iter().position(is_ahead).filter(is_stuck))
    }

    /// Whether a thread leaves its mail, or is blocked.
    fn is_stuck(&self, thread_id: u32) -> bool {
        let blocks = self.snapshot.waiting.iter().any(|wait| wait.thread_id == thread_id && wait.blocked);
        let of_thread = |id| move |agent: &Registered| agent.known.thread_id == id;
        let has_mail = |agent: &Registered| agent.known.outbox.has_mail();
        blocks || self.process.registry.find(of_thread(thread_id), has_mail).unwrap_or_default()
    }

    pub(super) fn wait_text(&self, index: usize, more: usize, holders: &[usize]) -> String {
        let snapshot = &self.snapshot;
        let entry = &snapshot.waiting[index];
        let row = shown_row(snapshot.now, entry);
        let (thread, noun, time) = (thread_of(&row), noun_of(&row), duration("for ", row.milliseconds));
        let mut text = if entry.blocked {
            format!("{}{} has been blocked {time} waiting for {noun}", thread[..1].to_uppercase(), &thread[1..])
        } else {
            format!("A promise of {thread} has been pending {time} waiting for {noun}")
        };
        if more > 0 {
            _ = write!(text, ", and {more} more");
        }
        let ahead = if holders.is_empty() { self.claim_ahead(index) } else { None };
        let obstacles = holders.iter().take(MOST_HOLDERS).map(|&holder| &snapshot.held[holder]);
        let obstacles = obstacles.chain(ahead.map(|claim| &snapshot.waiting[claim]));
        let rows: Vec<_> = obstacles.map(|obstacle| shown_row(snapshot.now, obstacle)).collect();
        let frames = DistinctFrames::of_rows(rows.iter().chain([&row]));
        let line = |row: &Row| {
            let elsewhere = elsewhere_text(row).filter(|_| row.is_hold);
            let doing = elsewhere.unwrap_or_else(|| self.doing_of(entry, row.thread_id as u32, &frames));
            obstacle_text(row, &frames) + "; " + &doing
        };
        let mut blockers: Vec<_> = rows.iter().map(line).collect();
        if holders.len() > MOST_HOLDERS {
            blockers.push(format!("{} more", holders.len() - MOST_HOLDERS));
        }
        blockers.extend(row.ended.iter().flatten().map(ended_text));
        match blockers.as_slice() {
            [] if entry.mode().is_some() => match &entry.holder_elsewhere {
                Some(process) => _ = write!(text, ", held by {process}."),
                None => text.push_str(", of which no holder is known."),
            },
            [] => text.push('.'),
            _ => _ = write!(text, ":\n  {}", blockers.join("\n  ")),
        }
        text
    }

    /// Says in which way a thread keeps another one waiting.
    fn doing_of(&self, wait: &Entry, thread_id: u32, frames: &DistinctFrames) -> String {
        if thread_id == wait.thread_id {
            return "it is the same thread".to_owned();
        }
        let waits = self.snapshot.waiting.iter().filter(|entry| entry.thread_id == thread_id);
        let waits: Vec<_> = waits.collect();
        let text = |entry| wait_text("it", &shown_row(self.snapshot.now, entry), frames);
        // A blocked thread waits for that alone.
        if let Some(blocked) = waits.iter().find(|entry| entry.blocked) {
            return text(blocked);
        }
        if self.is_stuck(thread_id) {
            return "it is busy, or blocked, for example in Node's Atomics.wait".to_owned();
        }
        let elsewhere = self.process.awaited_elsewhere(thread_id);
        match (waits.as_slice(), elsewhere) {
            (_, Some((name, holder))) => format!("it waits for {holder}, which has the lock {}", quoted(&name)),
            ([], None) => "it waits for no lock of this package".to_owned(),
            ([only], None) => text(only),
            ([first, ..], None) => format!("{}, and {} more", text(first), waits.len() - 1),
        }
    }
}
