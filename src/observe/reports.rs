//! Reports of waits that last too long: for which thing, who holds it, that thread's doing, or the ring.
//!
//! **One ring, one report**, whichever of its threads finds it first. [`REPORTED`] has the rings that have been
//! reported. A thread looks at all holds and waits, and then, in one critical section, enters its ring and forgets the
//! rings that were reported before it looked and were not there any more. All waits of a thread for one lock are on the
//! ring of one of them.
//!
//! A blocked thread can call no listener: its reports are kept for the main thread, which is rung.

use std::collections::VecDeque;
use std::fmt::{self, Write};
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::observe::json;
use crate::observe::sentences::{
    ahead_text, duration, held_row, holder_text, keeper_text, noun_of, ring_rows, ring_text, thread_of, wait_text,
    waiting_row,
};
use crate::observe::snapshot::{Snapshot, write_link};
use crate::observe::survey::Entry;
use crate::process::REGISTRY;
use waitasync_core::clock::{Timestamp, now};
use waitasync_core::lock::Mode;
use waitasync_core::lock::rings::Link;
use waitasync_core::queue::Location;
use waitasync_core::sync::lock;

/// How many rings, and how many waits that are on none, are reported one by one in each call.
const MOST: usize = 5;

/// How many holders a report describes.
const MOST_HOLDERS: usize = 3;

/// The main thread's `threadId`.
const MAIN: u32 = 0;

/// The rings that have been reported, by their numbers, each with when that was.
static REPORTED: LazyLock<Mutex<FxHashMap<u64, Timestamp>>> = LazyLock::new(Mutex::default);

/// Whether a ring is reported for the first time. `all`: those that were there after `looked_at`.
fn is_first(ring: u64, all: &FxHashSet<u64>, looked_at: Timestamp) -> bool {
    let reported = &mut *lock(&REPORTED);
    reported.retain(|ring, reported_at| all.contains(ring) || *reported_at >= looked_at);
    let is_first = !reported.contains_key(&ring);
    if is_first {
        reported.insert(ring, now());
    }
    is_first
}

/// A report of one wait, by indices into a snapshot's lists.
struct Report {
    /// Which of the waits that were asked about it is.
    wait: usize,
    text: String,
    entry: usize,
    holders: Vec<usize>,
    ring: Option<usize>,
}

struct Reports {
    snapshot: Snapshot,
    all: Vec<Report>,
    /// How many more waits would have had one.
    more: usize,
}

impl Reports {
    /// Makes a report. `waits`: of each wait the slot, or below 0 if the thread blocks, and its milliseconds.
    fn new(thread_id: u32, waits: &[f64]) -> Self {
        let looked_at = now();
        let mut reports = Self { snapshot: Snapshot::take(), all: Vec::new(), more: 0 };
        let slots: FxHashMap<_, _> = reports.of_thread(thread_id).map(|(index, entry)| (entry.slot, index)).collect();
        let rings = reports.rings_of(thread_id);
        let numbers: Vec<_> = reports.snapshot.rings.iter().map(|ring| reports.number_of(ring)).collect();
        let all = numbers.iter().copied().collect();
        let mut told = FxHashSet::default();
        for (n, wait) in waits.chunks_exact(2).enumerate() {
            let slot = (wait[0] >= 0.0).then_some(wait[0] as u32);
            // Otherwise it is over.
            let Some(&index) = slots.get(&slot) else { continue };
            match rings.get(&aim(&reports.snapshot.waiting[index])) {
                Some(ring) if told.contains(ring) => {}
                Some(_) if reports.count(|report| report.ring.is_some()) >= MOST => reports.more += 1,
                Some(&ring) => {
                    told.insert(ring);
                    if is_first(numbers[ring], &all, looked_at) {
                        reports.add_ring(n, index, ring);
                    }
                }
                None if reports.count(|report| report.ring.is_none()) >= MOST => reports.more += 1,
                None => reports.add_wait(n, index, wait[1]),
            }
        }
        reports
    }

    /// Returns a number for a ring: the same in each look as long as its waits last.
    fn number_of(&self, ring: &[Link]) -> u64 {
        static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        let waits = ring.iter().map(|link| KEY.hash_one(self.snapshot.waiting[link.waits_for].key()));
        waits.fold(0, u64::wrapping_add)
    }

    fn count(&self, is_so: impl Fn(&Report) -> bool) -> usize {
        self.all.iter().filter(|report| is_so(report)).count()
    }

    fn of_thread(&self, thread_id: u32) -> impl Iterator<Item = (usize, &Entry)> {
        self.snapshot.waiting.iter().enumerate().filter(move |(_, entry)| entry.thread_id == thread_id)
    }

    fn rings_of(&self, thread_id: u32) -> FxHashMap<Aim, usize> {
        let rings = self.snapshot.rings.iter().enumerate();
        let links = rings.flat_map(|(index, ring)| ring.iter().map(move |link| (index, link)));
        let entries = links.map(|(index, link)| (&self.snapshot.waiting[link.waits_for], index));
        entries.filter(|(entry, _)| entry.thread_id == thread_id).map(|(entry, index)| (aim(entry), index)).collect()
    }

    fn add_ring(&mut self, wait: usize, entry: usize, index: usize) {
        let snapshot = &self.snapshot;
        let text = ring_text(&ring_rows(snapshot, &snapshot.rings[index]));
        let holders = self.holders_of(entry);
        self.all.push(Report { wait, text: text.trim_end().to_owned(), entry, holders, ring: Some(index) });
    }

    fn add_wait(&mut self, wait: usize, entry: usize, milliseconds: f64) {
        let holders = self.holders_of(entry);
        let text = self.wait_text(entry, milliseconds, &holders);
        self.all.push(Report { wait, text, entry, holders, ring: None });
    }

    /// Lists the holders for which a wait waits: one entry for each thread and call.
    fn holders_of(&self, index: usize) -> Vec<usize> {
        let wait = &self.snapshot.waiting[index];
        let place = wait.place();
        let held = self.snapshot.held.iter().enumerate();
        let keeps = |entry: &Entry| {
            let is_exclusive = entry.mode() == Some(Mode::Exclusive);
            entry.place() == place && (is_exclusive || wait.mode() != Some(Mode::Shared))
        };
        let mut seen = FxHashSet::default();
        let mut is_new = |entry: &Entry| seen.insert((entry.thread_id, entry.call));
        held.filter(|(_, entry)| keeps(entry) && is_new(entry)).map(|(index, _)| index).collect()
    }

    /// Returns the entry of the writer ahead of a share's claim.
    fn writer_ahead(&self, index: usize) -> Option<usize> {
        let wait = &self.snapshot.waiting[index];
        if wait.mode() != Some(Mode::Shared) {
            return None;
        }
        let is_writer = |entry: &Entry| entry.location == wait.location && entry.mode() == Some(Mode::Exclusive);
        self.snapshot.waiting[..index].iter().rposition(is_writer)
    }

    fn wait_text(&self, index: usize, milliseconds: f64, holders: &[usize]) -> String {
        let snapshot = &self.snapshot;
        let entry = &snapshot.waiting[index];
        let row = waiting_row(snapshot.now, &snapshot.waiting[index]);
        let (thread, noun, time) = (thread_of(&row), noun_of(&row), duration("for ", Some(milliseconds)));
        let mut text = if entry.blocked {
            format!("{} has been blocked {time}, and waits for {noun}", capitalized(&thread))
        } else {
            format!("A promise of {thread} has been pending {time}, and waits for {noun}")
        };
        let mut keepers: Vec<_> =
            holders.iter().take(MOST_HOLDERS).map(|&holder| self.holder_line(entry, holder)).collect();
        if holders.len() > MOST_HOLDERS {
            keepers.push(format!("{} more", holders.len() - MOST_HOLDERS));
        }
        if keepers.is_empty() {
            keepers.extend(self.writer_ahead(index).map(|writer| self.writer_line(entry, writer)));
        }
        match keepers.as_slice() {
            [] if entry.mode().is_some() => text.push_str(", of which no holder is known."),
            [] => text.push('.'),
            _ => _ = write!(text, ":\n  {}", keepers.join("\n  ")),
        }
        text
    }

    fn holder_line(&self, wait: &Entry, holder: usize) -> String {
        let holder = &self.snapshot.held[holder];
        let row = held_row(self.snapshot.now, holder);
        holder_text(&row) + "; " + &keeper_text(&row).unwrap_or_else(|| self.doing_of(wait, holder.thread_id))
    }

    fn writer_line(&self, wait: &Entry, writer: usize) -> String {
        let writer = &self.snapshot.waiting[writer];
        ahead_text(&waiting_row(self.snapshot.now, writer)) + "; " + &self.doing_of(wait, writer.thread_id)
    }

    /// Says in which way a thread keeps another one waiting.
    fn doing_of(&self, wait: &Entry, thread_id: u32) -> String {
        if thread_id == wait.thread_id {
            return "it is the same thread".to_owned();
        }
        let waits: Vec<_> = self.of_thread(thread_id).collect();
        // A blocked thread waits for that alone.
        let Some(&(first, entry)) = waits.iter().find(|(_, entry)| entry.blocked).or(waits.first()) else {
            return "it waits for nothing".to_owned();
        };
        let text = wait_text("it", &waiting_row(self.snapshot.now, &self.snapshot.waiting[first]));
        if entry.blocked || waits.len() == 1 { text } else { format!("{text}, and {} more", waits.len() - 1) }
    }

    /// Writes the report for `lib/locks/observe/stalls.js`. Without the entries if no string could hold their names.
    fn json(&self) -> String {
        let whole = json::text(|text| self.write(text, true));
        whole.or_else(|| json::text(|text| self.write(text, false))).unwrap_or_default()
    }

    fn write(&self, text: &mut json::Text, has_entries: bool) -> fmt::Result {
        write!(text, "{{\"more\":{},\"reports\":", self.more)?;
        json::array(text, &self.all, |text, report| self.write_report(text, report, has_entries))?;
        text.write_char('}')
    }

    fn write_report(&self, text: &mut json::Text, report: &Report, has_entries: bool) -> fmt::Result {
        write!(text, "{{\"wait\":{},\"text\":", report.wait)?;
        json::string(text, report.text.encode_utf16())?;
        let Snapshot { held, waiting, rings, now } = &self.snapshot;
        if has_entries {
            text.write_str(",\"entry\":")?;
            waiting[report.entry].write(text, *now)?;
            text.write_str(",\"holders\":")?;
            json::array(text, &report.holders, |text, &holder| held[holder].write(text, *now))?;
            if let Some(ring) = report.ring {
                text.write_str(",\"cycle\":")?;
                json::array(text, &rings[ring], |text, link| write_link(text, self.snapshot.entries(link), *now))?;
            }
        }
        text.write_char('}')
    }
}

/// The aim of a claim, which others of its thread may share: the word, and whether a share of it is enough.
type Aim = (Location, bool);

fn aim(entry: &Entry) -> Aim {
    (entry.location, entry.mode() == Some(Mode::Shared))
}

fn capitalized(text: &str) -> String {
    text[..1].to_uppercase() + &text[1..]
}

/// Reports of blocked threads that the main thread has still to publish.
static FOR_MAIN: Mutex<VecDeque<String>> = Mutex::new(VecDeque::new());

/// Whether there are any: kept here so that reading it takes no lock.
static ARE_FOR_MAIN: AtomicBool = AtomicBool::new(false);

/// As many are kept while the main thread is busy.
const MOST_FOR_MAIN: usize = 100;

/// Whether this thread publishes the reports of others, and there are such.
pub(crate) fn are_for(thread_id: u32) -> bool {
    thread_id == MAIN && ARE_FOR_MAIN.load(Ordering::Relaxed)
}

fn tell_main(report: &str) {
    let Some(outbox) = REGISTRY.find(|agent| agent.known.thread_id == MAIN, |agent| Arc::clone(&agent.known.outbox))
    else {
        return;
    };
    let mut reports = lock(&FOR_MAIN);
    if reports.len() < MOST_FOR_MAIN {
        reports.push_back(report.to_owned());
        ARE_FOR_MAIN.store(true, Ordering::Relaxed);
    }
    drop(reports);
    outbox.ring();
}

/// Reports a thread's long waits as JSON; a blocked one's go to the main thread, too. `waits`: as of [`Reports::new`].
pub(crate) fn report(thread_id: u32, is_blocked: bool, waits: &[f64]) -> String {
    let reports = Reports::new(thread_id, waits);
    let json = reports.json();
    if is_blocked && thread_id != MAIN && !reports.all.is_empty() {
        tell_main(&json);
    }
    json
}

pub(crate) fn next_report() -> Option<String> {
    let mut reports = lock(&FOR_MAIN);
    let next = reports.pop_front();
    ARE_FOR_MAIN.store(!reports.is_empty(), Ordering::Relaxed);
    next
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_is_reported_once_until_a_later_look_finds_it_gone() {
        let (ring, other) = (1, 2);
        let here = FxHashSet::from_iter([ring, other]);
        let before = now();
        assert!(is_first(ring, &here, before));
        assert!(!is_first(ring, &here, now()));
        // A thread that had looked before the ring was there forgets nothing.
        assert!(is_first(other, &FxHashSet::from_iter([other]), before));
        assert!(!is_first(ring, &here, now()));
        assert!(!is_first(other, &FxHashSet::from_iter([other]), now()));
        assert!(is_first(ring, &here, now()));
    }
}
