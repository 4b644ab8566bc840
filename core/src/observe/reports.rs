//! Reports of waits that last too long: for which thing, who holds it, that thread's doing, or the cycle.
//!
//! A cycle has one report, and so have the waits at one place for one lock that are on none: of a thread's promises, or
//! of all blocked threads. A cycle counts once all of its holds and waits are older than the period. A wait that is due
//! earlier waits for that, for up to a period.
//!
//! Each call makes [`MOST`] reports of either kind at most, first one of each place: the other waits have theirs later.

use std::fmt::{self, Write};
use std::time::Duration;

use rustc_hash::{FxHashMap, FxHashSet};

use super::already_reported::{AlreadyReported, Key, Keys, hash};
use super::rows::{Row, Stack, write_cycle};
use super::sentences::{cycle_rows, cycle_text, is_for_message, may_be_pause, row};
use super::snapshot::Snapshot;
use super::survey::Entry;
use super::wait_report::WaitReport;
use crate::clock::{Timestamp, now};
use crate::held::{Process, StackId, stacks};
use crate::json;
use crate::lock::Mode;
use crate::lock::cycles::Link;
use crate::queue::Location;

/// How many cycles, and how many places, are reported in each call.
const MOST: usize = 10;

/// After how many periods a possible pause is a stall. `PATIENCE` in `lib/observe/stalls.js` is the same.
const PATIENCE: f64 = 10.0;

/// How many numbers JavaScript passes of each wait.
pub const NUMBERS: usize = 2;

/// A wait that is due, as JavaScript knows it.
#[derive(Clone, Copy)]
struct Due {
    /// Which of those that were asked about.
    number: usize,
    milliseconds: f64,
    /// The index of its entry.
    entry: usize,
}

/// Waits at one place for one lock.
struct SamePlace {
    /// Which place for a lock it is, of one call.
    rank: usize,
    first: Due,
    /// Which of those that were asked about are in it; and all entries of it. The first comes first.
    numbers: Vec<usize>,
    entries: Vec<usize>,
    key: Key,
}

/// Who keeps a wait waiting; and whether for longer than the period.
#[derive(Clone, Copy)]
struct Holder {
    key: Key,
    is_old: bool,
}

/// A report, by indices into a snapshot's lists.
struct Report {
    /// Which of the waits that were asked about are in it.
    waits: Vec<usize>,
    milliseconds: f64,
    text: String,
    entry: usize,
    /// How many waits are in its message beside this one. `None`: the waits for the lock have a message already.
    more: Option<usize>,
    holders: Vec<usize>,
    cycle: Option<usize>,
}

pub struct Reports<'a> {
    process: &'a Process,
    snapshot: Snapshot,
    period: Duration,
    /// The holds by the first words of their things.
    holds: FxHashMap<Location, Vec<usize>>,
    all: Vec<Report>,
    /// How many waits are to be reported later, since there are so many.
    more: usize,
    /// When there is more to report: that, or the next cycle that is old enough.
    later: Option<Duration>,
}

impl<'a> Reports<'a> {
    /// Makes the reports of a thread's waits. `waits`: of each [`NUMBERS`] numbers: the slot, or below 0 if the thread
    /// blocks; and its milliseconds.
    pub fn new(process: &'a Process, already: &AlreadyReported, thread_id: u32, waits: &[f64]) -> Self {
        let looked_at = now();
        let mut reports = Self::look(process, process.stall_after.unwrap_or_default());
        reports.add(already, looked_at, thread_id, waits);
        reports
    }

    /// Returns a text for each of a thread's waits: '' where another one's has it. They may have just begun.
    pub fn of_all(process: &Process, thread_id: u32, slots: &[u32]) -> Vec<String> {
        let waits: Vec<_> = slots.iter().flat_map(|&slot| [f64::from(slot), 0.0]).collect();
        let mut reports = Reports::look(process, Duration::ZERO);
        reports.add(&AlreadyReported::default(), Timestamp::NEVER, thread_id, &waits);
        let mut texts = vec![String::new(); slots.len()];
        for Report { waits, text, entry, cycle, .. } in reports.all {
            let stack = stacks::shown(reports.snapshot.waiting[entry].call).filter(|_| cycle.is_none());
            texts[waits[0]] = stack.map_or_else(|| text.clone(), |stack| format!("{text}\n{stack}"));
        }
        texts
    }

    fn add(&mut self, already: &AlreadyReported, looked_at: Timestamp, thread_id: u32, waits: &[f64]) {
        let waiting = self.snapshot.waiting.iter().enumerate();
        let its = waiting.filter(|(_, entry)| entry.thread_id == thread_id);
        let slots: FxHashMap<_, _> = its.map(|(index, entry)| (entry.slot, index)).collect();
        let due = waits.chunks_exact(NUMBERS).enumerate().filter_map(|(number, wait)| {
            let slot = (wait[0] >= 0.0).then_some(wait[0] as u32);
            // Otherwise it is over.
            let &entry = slots.get(&slot)?;
            // JavaScript has looked earlier; but it knows of the steps before the one that waits.
            let age = 1e3 * self.snapshot.age(&self.snapshot.waiting[entry]).as_secs_f64();
            Some(Due { number, milliseconds: wait[1].max(age), entry })
        });
        let due: Vec<_> = due.filter(|due| self.is_stall(due)).collect();
        already.update(&self.all_hashes(), looked_at, |keys| {
            let alone = self.add_cycles(keys, thread_id, &due);
            let places = self.places(keys, &alone);
            self.add_places(keys, places);
        });
    }

    fn look(process: &'a Process, period: Duration) -> Self {
        let snapshot = Snapshot::with_all_cycles(process);
        let mut holds: FxHashMap<_, Vec<_>> = FxHashMap::default();
        for (index, hold) in snapshot.held.iter().enumerate() {
            holds.entry(hold.place()).or_default().push(index);
        }
        Self { process, snapshot, period, holds, all: Vec::new(), more: 0, later: None }
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether a wait has lasted for too long. One that may be a pause has more time, unless a thread that might have
    /// ended it is gone.
    fn is_stall(&self, due: &Due) -> bool {
        let entry = self.entry(due);
        let time = 1e3 * self.period.as_secs_f64() * PATIENCE;
        !may_be_pause(entry) || due.milliseconds >= time || entry.has_lost_one()
    }

    /// Whether a wait on no cycle is to be reported. One that may be a pause is reported once; another one again, once
    /// it has lasted twice as long.
    fn is_news(&self, entry: usize, holder: Holder, keys: &Keys) -> bool {
        let wait = &self.snapshot.waiting[entry];
        keys.get(self.hash_of(entry)).is_none_or(|(reported, noted)| {
            let age = self.snapshot.age(wait);
            // JavaScript asks then, as it knows the times; and earlier for others.
            let is_due = wait.since.is_none_or(|since| 2 * age >= 3 * noted.duration_since(since));
            !may_be_pause(wait) && is_due && holder.is_old && holder.key != reported
        })
    }

    /// Sees to it that there is another look after this time.
    fn look_again(&mut self, after: Duration) {
        self.later = Some(self.later.map_or(after, |later| later.min(after)));
    }

    fn hash_of(&self, wait: usize) -> u64 {
        hash(self.snapshot.waiting[wait].key())
    }

    fn entry(&self, due: &Due) -> &Entry {
        &self.snapshot.waiting[due.entry]
    }

    // ——— Cycles ———

    /// Adds the cycles that count. Returns the waits that are on none, but for those that wait for their cycle.
    fn add_cycles(&mut self, keys: &mut Keys, thread_id: u32, due: &[Due]) -> Vec<Due> {
        let cycles = self.cycles_of(thread_id);
        let mut reported = FxHashMap::default();
        let mut alone = Vec::new();
        for due in due {
            let Some(&cycle) = cycles.get(&aim(self.entry(due))) else {
                alone.push(*due);
                continue;
            };
            let links = &self.snapshot.cycles[cycle];
            let (wait, number, age) = (self.hash_of(due.entry), self.number_of(links), self.snapshot.age_of(links));
            if age < self.period {
                // Otherwise it would wait for others than those of the cycle, for which there was time.
                if keys.get(wait).is_some() || due.milliseconds < 2e3 * self.period.as_secs_f64() {
                    self.look_again(self.period.saturating_sub(age));
                } else {
                    alone.push(*due);
                }
                continue;
            }
            if let Some(&report) = reported.get(&cycle) {
                let report: &mut Report = &mut self.all[report];
                report.more = report.more.map(|more| more + 1);
                report.waits.push(due.number);
            } else if keys.get(number).is_none() {
                if self.all.len() >= MOST {
                    self.more += 1;
                    self.look_again(self.period);
                    continue;
                }
                keys.note(number, number);
                reported.insert(cycle, self.all.len());
                self.add_cycle(due, cycle);
            }
            keys.note(wait, number);
        }
        alone
    }

    /// Returns the hashes of all that may have been reported: cycles, and waits.
    fn all_hashes(&self) -> FxHashSet<u64> {
        let waits = (0..self.snapshot.waiting.len()).map(|wait| self.hash_of(wait));
        self.snapshot.cycles.iter().map(|cycle| self.number_of(cycle)).chain(waits).collect()
    }

    /// Returns a number for a cycle: the same in each look as long as its waits last.
    fn number_of(&self, cycle: &[Link]) -> u64 {
        cycle.iter().map(|link| self.hash_of(link.waits_for)).fold(0, u64::wrapping_add)
    }

    fn cycles_of(&self, thread_id: u32) -> FxHashMap<Aim, usize> {
        let cycles = self.snapshot.cycles.iter().enumerate();
        let links = cycles.flat_map(|(index, cycle)| cycle.iter().map(move |link| (link.waits_for, index)));
        let waits = links.map(|(wait, index)| (&self.snapshot.waiting[wait], index));
        waits.filter(|(wait, _)| wait.thread_id == thread_id).map(|(wait, index)| (aim(wait), index)).collect()
    }

    fn add_cycle(&mut self, due: &Due, index: usize) {
        let snapshot = &self.snapshot;
        let text = cycle_text(&cycle_rows(snapshot, &snapshot.cycles[index], Stack::shown)).trim_end().to_owned();
        let Due { number, milliseconds, entry } = *due;
        let (waits, holders) = (vec![number], self.holders_of(entry));
        self.all.push(Report { waits, milliseconds, text, entry, more: Some(0), holders, cycle: Some(index) });
    }

    // ——— Waits on no cycle ———

    /// Groups the waits that are to be reported by lock and place: those of promises, or all that block there.
    fn places(&self, keys: &Keys, alone: &[Due]) -> Vec<SamePlace> {
        let mut holders: FxHashMap<Aim, Holder> = FxHashMap::default();
        let mut places: Vec<SamePlace> = Vec::new();
        let mut known: FxHashMap<_, usize> = FxHashMap::default();
        let mut of_call: FxHashMap<StackId, usize> = FxHashMap::default();
        for due in alone {
            let entry = self.entry(due);
            let holder = *holders.entry(aim(entry)).or_insert_with(|| self.longest_holder(due.entry));
            if !self.is_news(due.entry, holder, keys) {
                continue;
            }
            let place = *known.entry(place_of(entry)).or_insert_with(|| {
                let (rank, numbers, entries) = (of_call.entry(entry.call).or_default(), Vec::new(), Vec::new());
                places.push(SamePlace { rank: *rank, first: *due, numbers, entries, key: holder.key });
                *rank += 1;
                places.len() - 1
            });
            places[place].numbers.push(due.number);
            places[place].entries.push(due.entry);
        }
        for place in places.iter_mut().filter(|place| self.entry(&place.first).blocked) {
            place.entries.extend(self.others_blocked(&place.first, place.key, keys));
        }
        places
    }

    /// Lists other threads' waits that block here, and were not counted.
    fn others_blocked(&self, due: &Due, key: Key, keys: &Keys) -> Vec<usize> {
        let on_cycles: FxHashSet<_> = self.snapshot.cycles.iter().flatten().map(|link| link.waits_for).collect();
        let place = place_of(self.entry(due));
        let waits = self.snapshot.waiting.iter().enumerate();
        let there = waits.filter(|(index, wait)| wait.blocked && *index != due.entry && place_of(wait) == place);
        let others = there.map(|(index, _)| index).filter(|index| !on_cycles.contains(index));
        others.filter(|&index| keys.get(self.hash_of(index)).is_none_or(|(reported, _)| reported != key)).collect()
    }

    /// Adds the reports: first one for each place, then the others in their order.
    fn add_places(&mut self, keys: &mut Keys, mut places: Vec<SamePlace>) {
        places.sort_by_key(|place| place.rank);
        // By lock, the report that has its message.
        let mut messages: FxHashMap<Location, usize> = FxHashMap::default();
        for (n, SamePlace { first, numbers: waits, entries, key, .. }) in places.into_iter().enumerate() {
            if n >= MOST {
                self.more += waits.len();
                self.look_again(self.period);
                continue;
            }
            for &entry in &entries {
                keys.note(self.hash_of(entry), key);
            }
            let Due { milliseconds, entry, .. } = first;
            let (more, holders) = (entries.len() - 1, self.holders_of(entry));
            let report = WaitReport { snapshot: &self.snapshot, process: self.process };
            let text = report.wait_text(entry, milliseconds, more, &holders);
            let place = self.entry(&first).place();
            let message = messages.get(&place).copied();
            if let Some(report) = message {
                let report = &mut self.all[report];
                report.more = report.more.map(|others| others + more + 1);
            }
            messages.entry(place).or_insert(self.all.len());
            let more = message.is_none().then_some(more);
            self.all.push(Report { waits, milliseconds, text, entry, more, holders, cycle: None });
        }
    }

    /// Returns the one that has kept a wait waiting for longest. Without any it is the same.
    fn longest_holder(&self, index: usize) -> Holder {
        let holders = self.all_holders_of(index).map(|holder| &self.snapshot.held[holder]);
        let longest = holders.max_by_key(|holder| self.snapshot.age(holder));
        let id = longest.map(|hold| (hold.location, hold.thread_id, hold.serial, hold.is_orphaned));
        let is_old = longest.is_some_and(|hold| self.snapshot.age(hold) >= self.period);
        Holder { key: hash(id), is_old }
    }

    fn all_holders_of(&self, index: usize) -> impl Iterator<Item = usize> {
        let wait = &self.snapshot.waiting[index];
        let here = self.holds.get(&wait.place()).filter(|_| !is_for_message(wait)).into_iter().flatten().copied();
        here.filter(|&hold| {
            let is_exclusive = self.snapshot.held[hold].mode() == Some(Mode::Exclusive);
            is_exclusive || wait.mode() != Some(Mode::Shared)
        })
    }

    /// Lists the holders for which a wait waits: one entry for each thread and call.
    fn holders_of(&self, index: usize) -> Vec<usize> {
        let mut seen = FxHashSet::default();
        let mut is_new = |entry: &Entry| seen.insert((entry.thread_id, entry.call));
        self.all_holders_of(index).filter(|&hold| is_new(&self.snapshot.held[hold])).collect()
    }

    // ——— JSON ———

    /// Writes the reports for `lib/observe/stalls.js`.
    pub fn json(&self) -> String {
        json::text(|text| {
            write!(text, "{{\"more\":{}", self.more)?;
            if let Some(later) = self.later {
                write!(text, ",\"later\":{}", later.as_secs_f64() * 1e3)?;
            }
            text.write_str(",\"reports\":")?;
            json::array(text, &self.all, |text, report| self.write_report(text, report))?;
            text.write_char('}')
        })
    }

    fn write_report(&self, text: &mut json::Text, report: &Report) -> fmt::Result {
        text.write_str("{\"waits\":")?;
        json::array(text, &report.waits, |text, wait| write!(text, "{wait}"))?;
        text.write_str(",\"text\":")?;
        json::string(text, report.text.encode_utf16())?;
        let Snapshot { held, waiting, cycles, now } = &self.snapshot;
        if let Some(cycle) = report.cycle {
            text.write_str(",\"cycle\":")?;
            write_cycle(text, &cycle_rows(&self.snapshot, &cycles[cycle], Stack::number))?;
        }
        if let Some(more) = report.more {
            write!(text, ",\"more\":{more},\"entry\":")?;
            let milliseconds = Some(report.milliseconds);
            Row { milliseconds, ..row(*now, &waiting[report.entry], Stack::number) }.write(text)?;
            text.write_str(",\"holders\":")?;
            json::array(text, &report.holders, |text, &holder| row(*now, &held[holder], Stack::number).write(text))?;
        }
        text.write_char('}')
    }
}

/// The aim of a claim, which others of its thread may share: the word, and whether a share of it is enough.
type Aim = (Location, bool);

fn aim(entry: &Entry) -> Aim {
    (entry.location, entry.mode() == Some(Mode::Shared))
}

/// The thing that is awaited, how, and where: the waits with the same have one report.
fn place_of(entry: &Entry) -> (Aim, Option<u32>, StackId) {
    (aim(entry), entry.what.wait_kind(), entry.call)
}
