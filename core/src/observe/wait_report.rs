//! The report of a wait that is on no cycle: its time, its lock, and the state of the holders.

use std::fmt::Write;

use super::distinct_frames::DistinctFrames;
use super::rows::Row;
use super::sentences::{
    ahead_text, duration, ended_text, held_row, holder_text, keeper_text, noun_of, thread_of, wait_text, waiting_row,
};
use super::snapshot::Snapshot;
use super::survey::Entry;
use crate::lock::Mode;

/// How many holders a report describes.
const MOST_HOLDERS: usize = 3;

/// Texts about the entries of a snapshot.
pub(super) struct WaitReport<'a>(pub(super) &'a Snapshot);

impl WaitReport<'_> {
    /// Returns the entry of the writer ahead of a share's claim.
    fn writer_ahead(&self, index: usize) -> Option<usize> {
        let wait = &self.0.waiting[index];
        if wait.mode() != Some(Mode::Shared) {
            return None;
        }
        let is_writer = |entry: &Entry| entry.location == wait.location && entry.mode() == Some(Mode::Exclusive);
        self.0.waiting[..index].iter().rposition(is_writer)
    }

    pub(super) fn wait_text(&self, index: usize, milliseconds: f64, more: usize, holders: &[usize]) -> String {
        let snapshot = self.0;
        let entry = &snapshot.waiting[index];
        let row = waiting_row(snapshot.now, entry);
        let (thread, noun, time) = (thread_of(&row), noun_of(&row), duration("for ", Some(milliseconds)));
        let mut text = if entry.blocked {
            format!("{} has been blocked {time} waiting for {noun}", capitalized(&thread))
        } else {
            format!("A promise of {thread} has been pending {time} waiting for {noun}")
        };
        if more > 0 {
            _ = write!(text, ", and {more} more");
        }
        let reported: Vec<_> = holders.iter().take(MOST_HOLDERS).map(|&holder| &snapshot.held[holder]).collect();
        let rows: Vec<_> = reported.iter().map(|holder| held_row(snapshot.now, holder)).collect();
        let frames = DistinctFrames::of_rows(rows.iter().chain([&row]));
        let mut keepers: Vec<_> = rows.iter().map(|row| self.holder_line(entry, row, &frames)).collect();
        if holders.len() > MOST_HOLDERS {
            keepers.push(format!("{} more", holders.len() - MOST_HOLDERS));
        }
        if keepers.is_empty() {
            keepers.extend(self.writer_ahead(index).map(|writer| self.writer_line(entry, writer, &frames)));
        }
        keepers.extend(row.ended.iter().flatten().map(ended_text));
        match keepers.as_slice() {
            [] if entry.mode().is_some() => text.push_str(", of which no holder is known."),
            [] => text.push('.'),
            _ => _ = write!(text, ":\n  {}", keepers.join("\n  ")),
        }
        text
    }

    fn holder_line(&self, wait: &Entry, holder: &Row, frames: &DistinctFrames) -> String {
        let doing = keeper_text(holder).unwrap_or_else(|| self.doing_of(wait, holder.thread_id as u32, frames));
        holder_text(holder, frames) + "; " + &doing
    }

    fn writer_line(&self, wait: &Entry, writer: usize, frames: &DistinctFrames) -> String {
        let writer = &self.0.waiting[writer];
        let doing = self.doing_of(wait, writer.thread_id, frames);
        ahead_text(&waiting_row(self.0.now, writer), frames) + "; " + &doing
    }

    /// Says in which way a thread keeps another one waiting.
    fn doing_of(&self, wait: &Entry, thread_id: u32, frames: &DistinctFrames) -> String {
        if thread_id == wait.thread_id {
            return "it is the same thread".to_owned();
        }
        let waits = self.0.waiting.iter().enumerate().filter(|(_, wait)| wait.thread_id == thread_id);
        let waits: Vec<_> = waits.collect();
        // A blocked thread waits for that alone.
        let Some(&(_, entry)) = waits.iter().find(|(_, entry)| entry.blocked).or(waits.first()) else {
            return "it waits for no lock of this package".to_owned();
        };
        let text = wait_text("it", &waiting_row(self.0.now, entry), frames);
        if entry.blocked || waits.len() == 1 { text } else { format!("{text}, and {} more", waits.len() - 1) }
    }
}

fn capitalized(text: &str) -> String {
    text[..1].to_uppercase() + &text[1..]
}
