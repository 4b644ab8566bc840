//! The text of a snapshot, for people: cycles, then each lock with its holders, and its waiters in line.
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
//!
//! A program may have 100 000 waiters. So lines of a lock that differ only by their times are one line with a count,
//! and of more than [`MOST_ALIKE`] locks with the same lines the first is shown.

use std::collections::hash_map::Entry as Slot;
use std::fmt::Write;
use std::mem;

use rustc_hash::FxHashMap;

use super::rows::{Row, Rows};
use super::sentences::{
    MOST_PLACES, cycle_text, duration, elsewhere_text, ended_text, frames_of, hold_prefix, lock_of, mode_of,
    orphan_text, thread_of,
};

pub fn text_of(Rows { held, waiting, cycles }: &Rows) -> String {
    let mut text = format!("{} held, {} awaited\n", held.len(), waiting.len());
    for cycle in cycles {
        text.push('\n');
        text.push_str(&cycle_text(cycle));
    }
    for (section, others) in without_alike(sections(held, waiting)) {
        push_section(&mut text, &section, others);
    }
    text
}

/// Up to so many locks whose lines differ only by their times are shown one by one.
const MOST_ALIKE: usize = 4;

/// The lines of a lock: first those of its holders.
type Section<'a> = Vec<TableLine<'a>>;

/// Makes the sections, the longest wait first.
fn sections<'a>(held: &'a [Row], waiting: &'a [Row]) -> Vec<Section<'a>> {
    let mut sections: Vec<Section> = Vec::new();
    let mut index = FxHashMap::<_, _>::default();
    let mut lines = FxHashMap::<_, usize>::default();
    for line in held.iter().chain(waiting).map(TableLine::new) {
        let row = line.row;
        let at = *index.entry((row.id.to_bits(), row.kind.as_str())).or_insert_with(|| {
            sections.push(Vec::new());
            sections.len() - 1
        });
        let all = &mut sections[at];
        match lines.entry((at, line.key())) {
            Slot::Occupied(first) => all[*first.get()].add(row),
            Slot::Vacant(new) => {
                new.insert(all.len());
                all.push(line);
            }
        }
    }
    let longest_wait = |section: &Section| {
        let waits = section.iter().filter(|line| !line.row.is_hold);
        waits.map(|line| line.times[1].unwrap_or_default()).fold(-1.0, f64::max)
    };
    sections.sort_by(|one, other| longest_wait(other).total_cmp(&longest_wait(one)));
    sections
}

/// Leaves out sections that are alike, if there are many. Each that is left has the number of the others.
fn without_alike(sections: Vec<Section<'_>>) -> Vec<(Section<'_>, usize)> {
    fn key<'a>(section: &Section<'a>) -> (&'a str, Vec<(LineKey<'a>, usize)>) {
        (&section[0].row.kind, section.iter().map(|line| (line.key(), line.count)).collect())
    }
    let mut counts = FxHashMap::<_, usize>::default();
    for section in &sections {
        *counts.entry(key(section)).or_default() += 1;
    }
    let others = sections.iter().map(|section| match counts.get_mut(&key(section)) {
        Some(count) if *count > MOST_ALIKE => Some(mem::take(count) - 1),
        Some(0) => None,
        _ => Some(0),
    });
    let others: Vec<_> = others.collect();
    sections.into_iter().zip(others).filter_map(|(section, others)| Some((section, others?))).collect()
}

/// What lines that are one line with a count have in common.
type LineKey<'a> = (&'static str, u64, Option<&'a str>, Option<u64>, bool, &'a str);

/// One row, or several that differ only by their times.
struct TableLine<'a> {
    verb: &'static str,
    row: &'a Row,
    count: usize,
    /// The shortest and the longest.
    times: [Option<f64>; 2],
}

impl<'a> TableLine<'a> {
    fn new(row: &'a Row) -> Self {
        let verb = match row {
            Row { is_hold: true, .. } => "held by",
            Row { blocked: true, .. } => "blocks",
            _ => "awaited by",
        };
        Self { verb, row, count: 1, times: [row.milliseconds; 2] }
    }

    fn key(&self) -> LineKey<'a> {
        let Row { thread_id, mode, amount, collected, .. } = self.row;
        (self.verb, thread_id.to_bits(), mode.as_deref(), amount.map(f64::to_bits), *collected, self.row.stack())
    }

    fn add(&mut self, row: &Row) {
        self.count += 1;
        for (time, better) in self.times.iter_mut().zip([f64::min as fn(f64, f64) -> f64, f64::max]) {
            *time = time.zip(row.milliseconds).map(|(one, other)| better(one, other));
        }
    }

    fn duration(&self) -> String {
        let prefix = if self.row.is_hold { hold_prefix(self.row) } else { "for " };
        let [least, most] = [duration(prefix, self.times[0]), duration("", self.times[1])];
        match self.count {
            1 => least,
            count if most.is_empty() || least.ends_with(&most) => format!("{least} ({count} times)"),
            count => format!("{least} to {most} ({count} times)"),
        }
    }
}

fn push_section(text: &mut String, section: &Section<'_>, others: usize) {
    let thread = |row: &Row| thread_of(row) + if row.is_hold && row.blocked { " (blocked)" } else { "" };
    let lines: Vec<_> = section.iter().map(|line| (line, thread(line.row), mode_of(line.row))).collect();
    let first = section[0].row;
    _ = writeln!(text, "\n{}, id {}", lock_of(first), first.id);
    if others > 0 {
        _ = writeln!(text, "  and {others} more like it");
    }
    let width = |of: fn(&(&TableLine<'_>, String, String)) -> usize| lines.iter().map(of).max().unwrap_or(0);
    let (verbs, all, modes) = (
        width(|(line, ..)| line.verb.len()),
        width(|(_, thread, _)| thread.chars().count()),
        width(|(.., mode)| mode.chars().count()),
    );
    for (line, thread, mode) in &lines {
        let written = format!("  {:verbs$}  {thread:all$}  {mode:modes$}  {}", line.verb, line.duration());
        _ = writeln!(text, "{}", written.trim_end());
        for place in frames_of(line.row.stack()).iter().take(MOST_PLACES) {
            _ = writeln!(text, "      {place}");
        }
        for more in orphan_text(line.row).into_iter().chain(elsewhere_text(line.row)) {
            _ = writeln!(text, "      {more}");
        }
    }
    // All waits are at one memory.
    for ended in lines.iter().find_map(|(line, ..)| line.row.ended.as_ref()).into_iter().flatten() {
        _ = writeln!(text, "  {}", ended_text(ended));
    }
}
