//! The text of a snapshot, for people: rings, then each lock with its holders, and its waiters in line.
//!
//! ```text
//! 1 held, 2 awaited
//!
//! AsyncLock "accounts", id 4503599627370497
//!   held by  thread 2 "billing0"        exclusive  for at least 5.2 s
//!   blocks   thread 1                   exclusive  for 5.0 s
//!   awaited  by the main thread         exclusive  for 340 ms
//! ```
//!
//! Locks that somebody waits for come first, the longest wait before all others. If stalls are reported, the first
//! frames of the call that took something, or that waits, follow its line.

use std::fmt::Write;

use napi_derive::napi;
use rustc_hash::FxHashMap;

use crate::observe::sentences::{
    MOST_PLACES, Row, RowLink, duration, held_row, hold_duration, keeper_text, lock_of, mode_of, orphan_text,
    ring_rows, ring_text, thread_of, waiting_row,
};
use crate::observe::snapshot::Snapshot;

/// A result of `snapshot()`.
#[napi(object, object_to_js = false)]
pub struct Rows {
    /// The holds.
    pub held: Vec<Row>,
    /// The waits; of one lock, in the order of its line.
    pub waiting: Vec<Row>,
    /// Rings.
    pub cycles: Vec<Vec<RowLink>>,
}

/// Returns the text of a result of `snapshot()`.
#[napi(catch_unwind)]
pub fn format_snapshot(snapshot: Rows) -> String {
    let Rows { held, waiting, cycles } = snapshot;
    let mut text = format!("{} held, {} awaited\n", held.len(), waiting.len());
    for ring in &cycles {
        text.push('\n');
        text.push_str(&ring_text(ring));
    }
    for section in sections(&held, &waiting) {
        push_section(&mut text, &section);
    }
    text
}

/// Returns the text of a snapshot of this process.
#[cfg_attr(not(unix), expect(dead_code, reason = "only dumps need it"))]
pub(crate) fn text_of(snapshot: &Snapshot) -> String {
    format_snapshot(Rows {
        held: snapshot.held.iter().map(|entry| held_row(snapshot.now, entry)).collect(),
        waiting: snapshot.waiting.iter().map(|entry| waiting_row(snapshot.now, entry)).collect(),
        cycles: snapshot.rings.iter().map(|ring| ring_rows(snapshot, ring)).collect(),
    })
}

#[derive(Default)]
struct TableSection<'a> {
    held: Vec<&'a Row>,
    waiting: Vec<&'a Row>,
}

impl TableSection<'_> {
    fn longest_wait(&self) -> f64 {
        self.waiting.iter().map(|row| row.milliseconds.unwrap_or(0.0)).fold(-1.0, f64::max)
    }
}

fn sections<'a>(held: &'a [Row], waiting: &'a [Row]) -> Vec<TableSection<'a>> {
    let mut sections: Vec<TableSection> = Vec::new();
    let mut index = FxHashMap::<_, _>::default();
    let both = held.iter().map(|row| (row, true)).chain(waiting.iter().map(|row| (row, false)));
    for (row, is_held) in both {
        let at = *index.entry((row.id.to_bits(), row.kind.as_str())).or_insert_with(|| {
            sections.push(TableSection::default());
            sections.len() - 1
        });
        let TableSection { held, waiting } = &mut sections[at];
        if is_held { held } else { waiting }.push(row);
    }
    sections.sort_by(|a, b| b.longest_wait().total_cmp(&a.longest_wait()));
    sections
}

struct TableLine<'a> {
    verb: &'static str,
    thread: String,
    mode: String,
    duration: String,
    row: &'a Row,
}

impl<'a> TableLine<'a> {
    fn of_hold(row: &'a Row) -> Self {
        let thread = thread_of(row) + if row.blocked { " (blocked)" } else { "" };
        Self { verb: "held by", thread, mode: mode_of(row), duration: hold_duration("", row), row }
    }

    fn of_wait(row: &'a Row) -> Self {
        let verb = if row.blocked { "blocks" } else { "awaited by" };
        Self { verb, thread: thread_of(row), mode: mode_of(row), duration: duration("for ", row.milliseconds), row }
    }
}

fn push_section(text: &mut String, TableSection { held, waiting }: &TableSection) {
    let lines = held.iter().map(|row| TableLine::of_hold(row)).chain(waiting.iter().map(|row| TableLine::of_wait(row)));
    let lines: Vec<_> = lines.collect();
    let Some(first) = lines.first() else { return };
    _ = writeln!(text, "\n{}, id {}", lock_of(first.row), first.row.id);
    let width = |column: for<'a> fn(&'a TableLine<'a>) -> &'a str| {
        lines.iter().map(|line| column(line).chars().count()).max().unwrap_or(0)
    };
    let (verbs, threads, modes) = (width(|line| line.verb), width(|line| &line.thread), width(|line| &line.mode));
    for TableLine { verb, thread, mode, duration, row } in &lines {
        let line = format!("  {verb:verbs$}  {thread:threads$}  {mode:modes$}  {duration}");
        _ = writeln!(text, "{}", line.trim_end());
        for place in row.taken.iter().chain(&row.called).flat_map(|stack| stack.lines()).take(MOST_PLACES) {
            _ = writeln!(text, "      {}", place.trim());
        }
        for more in orphan_text(row).into_iter().chain(keeper_text(row)) {
            _ = writeln!(text, "      {more}");
        }
    }
}
