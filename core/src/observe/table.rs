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

use rustc_hash::FxHashMap;

use super::rows::{Row, Rows};
use super::sentences::{
    MOST_PLACES, cycle_text, duration, elsewhere_text, ended_text, frames_of, hold_prefix, lock_of, mode_of,
    orphan_text, stack_of, thread_of,
};

/// Returns the text of a result of `snapshot()`.
pub fn text_of(Rows { held, waiting, cycles }: &Rows) -> String {
    let mut text = format!("{} held, {} awaited\n", held.len(), waiting.len());
    for cycle in cycles {
        text.push('\n');
        text.push_str(&cycle_text(cycle));
    }
    for (section, others) in without_alike(sections(held, waiting)) {
        push_section(&mut text, &section, &others);
    }
    text
}

/// Up to so many locks whose lines differ only by their times are shown one by one.
const MOST_ALIKE: usize = 4;

/// How many names of other locks, or how many threads, are listed.
const MOST_LISTED: usize = 8;

/// The lines of a lock: first those of its holders.
struct TableSection<'a> {
    lines: Vec<TableLine<'a>>,
    longest_wait: f64,
}

impl TableSection<'_> {
    /// Returns what it has in common with sections that are alike.
    fn key(&self) -> (&str, Vec<(LineKey<'_>, usize)>) {
        (&self.lines[0].row.kind, self.lines.iter().map(|line| (line.key(), line.count)).collect())
    }
}

/// Makes the sections, the longest wait first.
fn sections<'a>(held: &'a [Row], waiting: &'a [Row]) -> Vec<TableSection<'a>> {
    let mut sections: Vec<TableSection> = Vec::new();
    let mut index = FxHashMap::<_, _>::default();
    let mut lines = FxHashMap::<_, usize>::default();
    for line in held.iter().chain(waiting).map(TableLine::new) {
        let row = line.row;
        let at = *index.entry((row.id.to_bits(), row.kind.as_str())).or_insert_with(|| {
            sections.push(TableSection { lines: Vec::new(), longest_wait: -1.0 });
            sections.len() - 1
        });
        let TableSection { lines: all, longest_wait } = &mut sections[at];
        if !row.is_hold {
            *longest_wait = longest_wait.max(row.milliseconds.unwrap_or(0.0));
        }
        match lines.entry((at, line.key())) {
            Slot::Occupied(first) => all[*first.get()].add(row),
            Slot::Vacant(new) => {
                new.insert(all.len());
                all.push(line);
            }
        }
    }
    sections.sort_by(|a, b| b.longest_wait.total_cmp(&a.longest_wait));
    sections
}

/// Leaves out sections that are alike, if there are many. Each that is left has the rows of the others.
fn without_alike(sections: Vec<TableSection<'_>>) -> Vec<(TableSection<'_>, Vec<&Row>)> {
    let mut firsts = FxHashMap::<_, Vec<usize>>::default();
    for (index, section) in sections.iter().enumerate() {
        firsts.entry(section.key()).or_default().push(index);
    }
    let mut others: Vec<Option<Vec<&Row>>> = sections.iter().map(|_| Some(Vec::new())).collect();
    for alike in firsts.into_values().filter(|alike| alike.len() > MOST_ALIKE) {
        let rows = alike[1..].iter().map(|&index| sections[index].lines[0].row).collect();
        for &index in &alike[1..] {
            others[index] = None;
        }
        others[alike[0]] = Some(rows);
    }
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
        (
            self.verb,
            thread_id.to_bits(),
            mode.as_deref(),
            amount.map(f64::to_bits),
            *collected == Some(true),
            stack_of(self.row),
        )
    }

    fn add(&mut self, row: &Row) {
        self.count += 1;
        for (time, better) in self.times.iter_mut().zip([f64::min as fn(f64, f64) -> f64, f64::max]) {
            *time = time.zip(row.milliseconds).map(|(one, other)| better(one, other));
        }
    }

    fn thread(&self) -> String {
        thread_of(self.row) + if self.row.is_hold && self.row.blocked { " (blocked)" } else { "" }
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

fn push_section(text: &mut String, section: &TableSection<'_>, others: &[&Row]) {
    let lines = section.lines.iter().map(|line| (line, line.thread(), mode_of(line.row)));
    let lines: Vec<_> = lines.collect();
    let Some((first, ..)) = lines.first() else { return };
    _ = writeln!(text, "\n{}, id {}", lock_of(first.row), first.row.id);
    push_others(text, others);
    let width = |of: fn(&(&TableLine<'_>, String, String)) -> usize| lines.iter().map(of).max().unwrap_or(0);
    let (verbs, all, modes) = (
        width(|(line, ..)| line.verb.len()),
        width(|(_, thread, _)| thread.chars().count()),
        width(|(.., mode)| mode.chars().count()),
    );
    for (line, thread, mode) in &lines {
        let written = format!("  {:verbs$}  {thread:all$}  {mode:modes$}  {}", line.verb, line.duration());
        _ = writeln!(text, "{}", written.trim_end());
        for place in frames_of(stack_of(line.row)).iter().take(MOST_PLACES) {
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

/// Writes how many locks are left out, and some of their names.
fn push_others(text: &mut String, others: &[&Row]) {
    if others.is_empty() {
        return;
    }
    let mut names: Vec<_> = others.iter().filter(|row| row.name.is_some()).map(|row| lock_of(row)).collect();
    names.dedup();
    let listed = names.len().min(MOST_LISTED);
    let more = if names.len() > listed { ", …" } else { "" };
    let colon = if names.is_empty() { "" } else { ": " };
    _ = writeln!(text, "  and {} more like it{colon}{}{more}", others.len(), names[..listed].join(", "));
}
