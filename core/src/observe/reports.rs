//! Reports of waits that last too long: for which thing, who holds it, that thread's doing, or the cycle.
//!
//! A cycle has one report, and so have the waits at one place for one lock that are on none: of a thread's promises, or
//! of all blocked threads. A cycle counts once all of its holds and waits are older than the period. A wait that is due
//! earlier waits for that, for up to a period.
//!
//! Each look makes [`MOST`] reports of either kind at most, first one of each place: the other waits have theirs later.
//! A wait is reported again, once it has lasted twice as long, if its cycle or its longest holder is another one. So
//! holders that come and go make few reports; and none unless the longest holder is older than the period.

use std::fmt::{self, Write};
use std::hash::Hash;
use std::iter;
use std::time::Duration;

use rustc_hash::{FxHashMap, FxHashSet};

use super::rows::{cycle_rows, is_for_message, may_be_pause, shown_row, write_cycle};
use super::sentences::cycle_text;
use super::snapshot::{Snapshot, hash};
use super::survey::Entry;
use crate::clock::{Timestamp, now};
use crate::held::{PLAIN, Process, StackId, stacks};
use crate::json;
use crate::lock::Mode;
use crate::lock::cycles::Link;
use crate::queue::Location;

/// How many cycles, and how many places, are reported in each look.
const MOST: usize = 10;

/// After how many periods a possible pause is a stall. And after how many a wait that is not seen is forgotten: it may
/// be between two of its steps.
const PATIENCE: u32 = 10;

/// What a wait was reported with: its cycle, or its longest holder.
type Key = u64;

/// By the hashes of the cycles and waits that were reported: the keys, since when, and when it was there last.
#[derive(Default)]
pub struct Reported(FxHashMap<u64, (Key, Timestamp, Timestamp)>);

impl Reported {
    fn get(&self, hash: u64) -> Option<(Key, Timestamp)> {
        self.0.get(&hash).map(|&(key, noted, _)| (key, noted))
    }

    /// Notes what is reported. The same again is as old as before.
    fn note(&mut self, hash: u64, key: Key) {
        if self.get(hash).is_none_or(|(known, _)| known != key) {
            self.0.insert(hash, (key, now(), now()));
        }
    }

    fn forget(&mut self, all: &FxHashSet<u64>, moment: Timestamp, after: Duration) {
        self.0.retain(|hash, (.., seen)| {
            if all.contains(hash) {
                *seen = moment;
            }
            moment.duration_since(*seen) <= after
        });
    }
}

/// Waits at one place for one lock.
struct SamePlace {
    /// Which place for a lock it is, of one call.
    rank: usize,
    entries: Vec<usize>,
    key: Key,
}

/// A report, by indices into a snapshot's lists.
struct Report {
    text: String,
    /// The wait whose thread gets it.
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
}

impl<'a> Reports<'a> {
    pub fn new(process: &'a Process, reported: &mut Reported, period: Duration) -> Self {
        let mut reports = Self::look(process, period);
        let mut due: Vec<_> = (0..reports.snapshot.waiting.len()).filter(|&wait| reports.is_stall(wait)).collect();
        due.sort_by_key(|&wait| reports.snapshot.waiting[wait].since);
        reported.forget(&reports.all_hashes(), reports.snapshot.now, PATIENCE * period);
        reports.add(reported, &due);
        reports
    }

    /// Returns a text for each of a thread's waits: '' where another one's has it. They may have just begun.
    pub fn of_all(process: &Process, thread_id: u32, slots: &[u32]) -> Vec<String> {
        let mut reports = Reports::look(process, Duration::ZERO);
        let index_of = |wait: &Entry| {
            let is_its = |&slot: &u32| wait.thread_id == thread_id && wait.slot == Some(slot);
            slots.iter().position(is_its)
        };
        let waiting = &reports.snapshot.waiting;
        let mut due: Vec<_> = (0..waiting.len()).filter(|&wait| index_of(&waiting[wait]).is_some()).collect();
        due.sort_by_key(|&wait| index_of(&waiting[wait]));
        reports.add(&mut Reported::default(), &due);
        let mut texts = vec![String::new(); slots.len()];
        for report in &reports.all {
            let index = index_of(&reports.snapshot.waiting[report.entry]).expect("the reports are of these waits");
            texts[index] = reports.text_with_stack(report);
        }
        texts
    }

    fn look(process: &'a Process, period: Duration) -> Self {
        let snapshot = Snapshot::with_all_cycles(process);
        let mut holds: FxHashMap<_, Vec<_>> = FxHashMap::default();
        for (index, hold) in snapshot.held.iter().enumerate() {
            holds.entry(hold.place()).or_default().push(index);
        }
        Self { process, snapshot, period, holds, all: Vec::new() }
    }

    fn add(&mut self, reported: &mut Reported, due: &[usize]) {
        let alone = self.add_cycles(reported, due);
        let places = self.places(reported, &alone);
        self.add_places(reported, places);
    }

    /// Whether a wait has lasted for too long. One that may be a pause has more time, unless a thread that might have
    /// ended it is gone. The program's own `Atomics.wait` and `waitAsync` have any time.
    fn is_stall(&self, wait: usize) -> bool {
        let (entry, age) = (&self.snapshot.waiting[wait], self.age(wait));
        let is_over = age >= self.period && entry.what.wait_kind() != Some(PLAIN);
        is_over && (!may_be_pause(entry) || age >= PATIENCE * self.period || entry.has_lost_one())
    }

    /// Whether a wait on no cycle is to be reported. One that may be a pause is reported once.
    fn is_news(&self, wait: usize, (holder, is_old): (Key, bool), reported: &Reported) -> bool {
        let entry = &self.snapshot.waiting[wait];
        reported.get(self.hash_of(wait)).is_none_or(|(key, noted)| {
            let is_due = entry.since.is_none_or(|since| self.age(wait) >= 2 * noted.duration_since(since));
            !may_be_pause(entry) && is_due && is_old && holder != key
        })
    }

    /// Returns the same for a wait in each look and step.
    fn hash_of(&self, wait: usize) -> u64 {
        let entry = &self.snapshot.waiting[wait];
        hash((entry.place(), entry.what.hold(), entry.thread_id, entry.blocked, entry.since))
    }

    fn age(&self, wait: usize) -> Duration {
        self.snapshot.age(&self.snapshot.waiting[wait])
    }

    // ——— Cycles ———

    /// Adds the cycles that count. Returns the waits that are on none, but for those that wait for their cycle.
    fn add_cycles(&mut self, reported: &mut Reported, due: &[usize]) -> Vec<usize> {
        let links = self.snapshot.cycles.iter().enumerate().flat_map(|(cycle, links)| iter::repeat(cycle).zip(links));
        let by_wait = links.map(|(cycle, link)| (aim(&self.snapshot.waiting[link.waits_for]), cycle));
        let cycles: FxHashMap<_, _> = by_wait.collect();
        let mut new = FxHashMap::default();
        let mut alone = Vec::new();
        for &entry in due {
            let Some(&cycle) = cycles.get(&aim(&self.snapshot.waiting[entry])) else {
                alone.push(entry);
                continue;
            };
            let links = &self.snapshot.cycles[cycle];
            let (wait, number) = (self.hash_of(entry), self.number_of(links));
            if self.snapshot.age_of(links) < self.period {
                // It waits for others than those of the cycle, for which there was time.
                if reported.get(wait).is_none() && self.age(entry) >= 2 * self.period {
                    alone.push(entry);
                }
                continue;
            }
            if let Some(&report) = new.get(&cycle) {
                let report: &mut Report = &mut self.all[report];
                let waits = &self.snapshot.waiting;
                let is_for_lock = waits[report.entry].location == waits[entry].location;
                report.more = report.more.map(|more| more + usize::from(is_for_lock));
            } else if reported.get(number).is_none() {
                if self.all.len() >= MOST {
                    continue;
                }
                reported.note(number, number);
                new.insert(cycle, self.all.len());
                self.add_cycle(entry, cycle);
            }
            reported.note(wait, number);
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

    /// Adds a cycle, for a promise on it if there is one: a blocked thread can publish nothing.
    fn add_cycle(&mut self, due: usize, index: usize) {
        let snapshot = &self.snapshot;
        let mut waits = iter::once(due).chain(snapshot.cycles[index].iter().map(|link| link.waits_for));
        let entry = waits.find(|&wait| !snapshot.waiting[wait].blocked).unwrap_or(due);
        let text = cycle_text(&cycle_rows(snapshot, &snapshot.cycles[index])).trim_end().to_owned();
        let holders = self.holders_of(entry);
        self.all.push(Report { text, entry, more: Some(0), holders, cycle: Some(index) });
    }

    // ——— Waits on no cycle ———

    /// Groups the waits that are to be reported by lock and place: those of promises, or all that block there.
    fn places(&self, reported: &Reported, alone: &[usize]) -> Vec<SamePlace> {
        let mut holders = FxHashMap::default();
        let mut places: Vec<SamePlace> = Vec::new();
        let mut known: FxHashMap<_, usize> = FxHashMap::default();
        let mut of_call: FxHashMap<StackId, usize> = FxHashMap::default();
        for &wait in alone {
            let entry = &self.snapshot.waiting[wait];
            let holder = *holders.entry(aim(entry)).or_insert_with(|| self.longest_holder(wait));
            if !self.is_news(wait, holder, reported) {
                continue;
            }
            let place = *known.entry(place_of(entry)).or_insert_with(|| {
                let rank = of_call.entry(entry.call).or_default();
                places.push(SamePlace { rank: *rank, entries: Vec::new(), key: holder.0 });
                *rank += 1;
                places.len() - 1
            });
            places[place].entries.push(wait);
        }
        // Further threads block at these places, also those that are not due.
        let on_cycles: FxHashSet<_> = self.snapshot.cycles.iter().flatten().map(|link| link.waits_for).collect();
        let waits = self.snapshot.waiting.iter().enumerate();
        for (index, wait) in waits.filter(|(index, wait)| wait.blocked && !on_cycles.contains(index)) {
            let Some(&place) = known.get(&place_of(wait)) else { continue };
            let SamePlace { entries, key, .. } = &mut places[place];
            let is_news = reported.get(self.hash_of(index)).is_none_or(|(known, _)| known != *key);
            if is_news && !entries.contains(&index) {
                entries.push(index);
            }
        }
        places
    }

    /// Adds the reports: first one for each place, then the others in their order.
    fn add_places(&mut self, reported: &mut Reported, mut places: Vec<SamePlace>) {
        places.sort_by_key(|place| place.rank);
        // By the thread that publishes it and the lock, the report that has its message.
        let mut messages: FxHashMap<_, usize> = FxHashMap::default();
        for SamePlace { entries, key, .. } in places.into_iter().take(MOST) {
            for &entry in &entries {
                reported.note(self.hash_of(entry), key);
            }
            let (entry, more) = (entries[0], entries.len() - 1);
            let holders = self.holders_of(entry);
            let text = self.snapshot.report_text(self.process, entry, more, &holders);
            let wait = &self.snapshot.waiting[entry];
            let lock = (promises_thread(wait), wait.place());
            let message = messages.get(&lock).copied();
            if let Some(report) = message {
                let report = &mut self.all[report];
                report.more = report.more.map(|others| others + more + 1);
            }
            messages.entry(lock).or_insert(self.all.len());
            self.all.push(Report { text, entry, more: message.is_none().then_some(more), holders, cycle: None });
        }
    }

    /// Returns the one that has kept a wait waiting for longest; and whether for longer than the period. Without any it
    /// is the same.
    fn longest_holder(&self, index: usize) -> (Key, bool) {
        let holders = self.all_holders_of(index).map(|holder| &self.snapshot.held[holder]);
        let longest = holders.max_by_key(|holder| self.snapshot.age(holder));
        let id = longest.map(|hold| (hold.location, hold.thread_id, hold.serial, hold.is_orphaned));
        let is_old = longest.is_some_and(|hold| self.snapshot.age(hold) >= self.period);
        (hash(id), is_old)
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

    // ——— Texts ———

    /// Calls a function for each report: with the wait whose thread gets it, its text, and its JSON for
    /// `lib/observe/stalls.js`.
    pub fn each(&self, mut give: impl FnMut(&Entry, String, String)) {
        for report in &self.all {
            let wait = &self.snapshot.waiting[report.entry];
            give(wait, self.text_with_stack(report), json::text(|text| self.write(text, report)));
        }
    }

    /// Returns a report's text. The links of a cycle have their places.
    fn text_with_stack(&self, report: &Report) -> String {
        let stack = stacks::shown(self.snapshot.waiting[report.entry].call).filter(|_| report.cycle.is_none());
        stack.map_or_else(|| report.text.clone(), |stack| format!("{}\n{stack}", report.text))
    }

    fn write(&self, text: &mut json::Text, report: &Report) -> fmt::Result {
        let Snapshot { held, waiting, cycles, now } = &self.snapshot;
        let wait = &waiting[report.entry];
        text.write_str("{\"text\":")?;
        json::string(text, report.text.encode_utf16())?;
        write!(text, ",\"place\":{}", wait.call)?;
        if let Some(slot) = wait.slot {
            write!(text, ",\"slot\":{slot}")?;
        }
        if let Some(cycle) = report.cycle {
            text.write_str(",\"cycle\":")?;
            write_cycle(text, &cycle_rows(&self.snapshot, &cycles[cycle]))?;
        }
        if let Some(more) = report.more {
            write!(text, ",\"more\":{more},\"entry\":")?;
            shown_row(*now, wait).write(text)?;
            text.write_str(",\"holders\":")?;
            json::array(text, &report.holders, |text, &holder| shown_row(*now, &held[holder]).write(text))?;
        }
        text.write_char('}')
    }
}

/// The thread of a promise. Those that block have one report.
fn promises_thread(wait: &Entry) -> Option<u32> {
    (!wait.blocked).then_some(wait.thread_id)
}

/// The aim of a claim, which others of its thread may share: the word, and whether a share of it is enough.
fn aim(entry: &Entry) -> (u32, Location, bool) {
    (entry.thread_id, entry.location, entry.mode() == Some(Mode::Shared))
}

/// The thing that is awaited, how, and where: the waits with the same have one report.
fn place_of(entry: &Entry) -> impl Eq + Hash + use<> {
    let how = (entry.mode() == Some(Mode::Shared), entry.what.wait_kind(), entry.call);
    (promises_thread(entry), entry.location, how)
}
