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

use super::already_reported::{AlreadyReported, Key, hash, key_of};
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
pub const NUMBERS: usize = 3;

/// A wait that is due, as JavaScript knows it.
#[derive(Clone, Copy)]
struct Due {
    /// Which of those that were asked about.
    number: usize,
    milliseconds: f64,
    /// What it was reported with last.
    reported: Key,
    /// The index of its entry.
    entry: usize,
}

/// Waits at one place for one lock.
struct Crowd {
    first: Due,
    /// Which of those that were asked about are in it, the first included.
    members: Vec<usize>,
    /// How many more waits there are.
    more: usize,
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
    /// Which of the waits that were asked about it is.
    wait: usize,
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
    looked_at: Timestamp,
    period: Duration,
    /// The holds by the first words of their things.
    holds: FxHashMap<Location, Vec<usize>>,
    all: Vec<Report>,
    /// The new keys of waits that were asked about.
    keys: Vec<(usize, Key)>,
    /// How many waits are to be reported later, since there are so many.
    more: usize,
    /// When the next cycle is old enough.
    later: Option<Duration>,
}

impl<'a> Reports<'a> {
    /// Makes the reports of a thread's waits. `waits`: of each [`NUMBERS`] numbers: the slot, or below 0 if the thread
    /// blocks; its milliseconds; and its last key.
    pub fn new(process: &'a Process, reported: &AlreadyReported, thread_id: u32, waits: &[f64]) -> Self {
        Self::of_waits(process, process.stall_after.unwrap_or_default(), reported, thread_id, waits)
    }

    /// Returns a text for each of a thread's waits, however long they have lasted: '' where another one's text has it.
    pub fn of_all(process: &Process, thread_id: u32, slots: &[u32]) -> Vec<String> {
        let waits: Vec<_> = slots.iter().flat_map(|&slot| [f64::from(slot), 0.0, 0.0]).collect();
        let reports = Reports::of_waits(process, Duration::ZERO, &AlreadyReported::default(), thread_id, &waits);
        let mut texts = vec![String::new(); slots.len()];
        for Report { wait, text, entry, cycle, .. } in reports.all {
            let call = reports.snapshot.waiting[entry].call;
            let stack = stacks::shown(call).filter(|_| cycle.is_none());
            texts[wait] = stack.map_or_else(|| text.clone(), |stack| format!("{text}\n{stack}"));
        }
        texts
    }

    fn of_waits(
        process: &'a Process,
        period: Duration,
        reported: &AlreadyReported,
        thread_id: u32,
        waits: &[f64],
    ) -> Self {
        let mut reports = Self::look(process, period);
        let slots: FxHashMap<_, _> = reports.of_thread(thread_id).map(|(index, entry)| (entry.slot, index)).collect();
        let due: Vec<_> = waits
            .chunks_exact(NUMBERS)
            .enumerate()
            .filter_map(|(number, wait)| {
                let slot = (wait[0] >= 0.0).then_some(wait[0] as u32);
                // Otherwise it is over.
                slots.get(&slot).map(|&entry| {
                    // JavaScript has looked earlier; but it knows of the steps before the one that waits.
                    let age = 1e3 * reports.snapshot.age(&reports.snapshot.waiting[entry]).as_secs_f64();
                    Due { number, milliseconds: wait[1].max(age), reported: wait[2] as u32, entry }
                })
            })
            .filter(|due| reports.is_stall(due))
            .collect();
        let alone = reports.add_cycles(reported, thread_id, &due);
        let crowds = match alone.as_slice() {
            [due] if reports.entry(due).blocked => reports.crowd_of_blocked(reported, *due).into_iter().collect(),
            _ => reports.crowds(&alone),
        };
        reports.add_crowds(crowds);
        reports
    }

    fn look(process: &'a Process, period: Duration) -> Self {
        let looked_at = now();
        let snapshot = Snapshot::with_all_cycles(process);
        let mut holds: FxHashMap<_, Vec<_>> = FxHashMap::default();
        for (index, hold) in snapshot.held.iter().enumerate() {
            holds.entry(hold.place()).or_default().push(index);
        }
        let (all, keys, more, later) = Default::default();
        Self { process, snapshot, looked_at, period, holds, all, keys, more, later }
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

    /// Whether a wait on no cycle is to be reported. One that may be a pause is reported once.
    fn is_news(&self, due: &Due, holder: Holder, reported: Key) -> bool {
        reported == 0 || (!may_be_pause(self.entry(due)) && holder.is_old && holder.key != reported)
    }

    fn entry(&self, due: &Due) -> &Entry {
        &self.snapshot.waiting[due.entry]
    }

    fn of_thread(&self, thread_id: u32) -> impl Iterator<Item = (usize, &Entry)> {
        self.snapshot.waiting.iter().enumerate().filter(move |(_, entry)| entry.thread_id == thread_id)
    }

    // ——— Cycles ———

    /// Adds the cycles that count. Returns the waits that are on none, but for those that wait for their cycle.
    fn add_cycles(&mut self, already: &AlreadyReported, thread_id: u32, due: &[Due]) -> Vec<Due> {
        let cycles = self.cycles_of(thread_id);
        let numbers: Vec<_> = self.snapshot.cycles.iter().map(|cycle| self.number_of(cycle)).collect();
        let all = self.all_hashes();
        let ages: Vec<_> = self.snapshot.cycles.iter().map(|cycle| self.snapshot.age_of(cycle)).collect();
        let mut reported = FxHashMap::default();
        let mut alone = Vec::new();
        for due in due {
            let Some(&cycle) = cycles.get(&aim(self.entry(due))) else {
                alone.push(*due);
                continue;
            };
            let key = key_of(numbers[cycle]);
            if ages[cycle] < self.period {
                // Otherwise it would wait for others than those of the cycle, for which there was time.
                if due.reported != 0 || due.milliseconds < 2e3 * self.period.as_secs_f64() {
                    let left = self.period.saturating_sub(ages[cycle]);
                    self.later = Some(self.later.map_or(left, |later| later.min(left)));
                } else {
                    alone.push(*due);
                }
                continue;
            }
            if let Some(&report) = reported.get(&cycle) {
                let report: &mut Report = &mut self.all[report];
                report.more = report.more.map(|more| more + 1);
            } else if due.reported != key {
                if self.all.len() >= MOST {
                    self.more += 1;
                    continue;
                }
                if already.update(&all, self.looked_at, |keys| keys.note(numbers[cycle], key)) {
                    reported.insert(cycle, self.all.len());
                    self.add_cycle(due, cycle);
                }
            }
            self.keys.push((due.number, key));
        }
        alone
    }

    /// Returns the hashes of all that may have been reported: cycles, and the waits of blocked threads.
    fn all_hashes(&self) -> FxHashSet<u64> {
        let blocked = self.snapshot.waiting.iter().filter(|wait| wait.blocked).map(|wait| hash(wait.key()));
        self.snapshot.cycles.iter().map(|cycle| self.number_of(cycle)).chain(blocked).collect()
    }

    /// Returns a number for a cycle: the same in each look as long as its waits last.
    fn number_of(&self, cycle: &[Link]) -> u64 {
        let waits = cycle.iter().map(|link| hash(self.snapshot.waiting[link.waits_for].key()));
        waits.fold(0, u64::wrapping_add)
    }

    fn cycles_of(&self, thread_id: u32) -> FxHashMap<Aim, usize> {
        let cycles = self.snapshot.cycles.iter().enumerate();
        let links = cycles.flat_map(|(index, cycle)| cycle.iter().map(move |link| (index, link)));
        let entries = links.map(|(index, link)| (&self.snapshot.waiting[link.waits_for], index));
        entries.filter(|(entry, _)| entry.thread_id == thread_id).map(|(entry, index)| (aim(entry), index)).collect()
    }

    fn add_cycle(&mut self, due: &Due, index: usize) {
        let snapshot = &self.snapshot;
        let text = cycle_text(&cycle_rows(snapshot, &snapshot.cycles[index], Stack::shown)).trim_end().to_owned();
        let Due { number: wait, milliseconds, entry, .. } = *due;
        let holders = self.holders_of(entry);
        self.all.push(Report { wait, milliseconds, text, entry, more: Some(0), holders, cycle: Some(index) });
    }

    // ——— Waits on no cycle ———

    /// Groups the waits that are to be reported by lock and place.
    fn crowds(&self, alone: &[Due]) -> Vec<Crowd> {
        let mut holders: FxHashMap<Aim, Holder> = FxHashMap::default();
        let mut crowds: Vec<Crowd> = Vec::new();
        let mut known: FxHashMap<_, usize> = FxHashMap::default();
        for due in alone {
            let entry = self.entry(due);
            let holder = *holders.entry(aim(entry)).or_insert_with(|| self.longest_holder(due.entry));
            if !self.is_news(due, holder, due.reported) {
                continue;
            }
            let crowd = *known.entry(place_of(entry)).or_insert_with(|| {
                crowds.push(Crowd { first: *due, members: Vec::new(), more: 0, key: holder.key });
                crowds.len() - 1
            });
            crowds[crowd].members.push(due.number);
        }
        for crowd in &mut crowds {
            crowd.more = crowd.members.len() - 1;
        }
        crowds
    }

    /// Makes the crowd of the threads that block where this one does.
    ///
    /// None if this thread was reported.
    fn crowd_of_blocked(&self, already: &AlreadyReported, due: Due) -> Option<Crowd> {
        let entry = self.entry(&due);
        let holder = self.longest_holder(due.entry);
        let on_cycles: FxHashSet<_> = self.snapshot.cycles.iter().flatten().map(|link| link.waits_for).collect();
        let blocked = self.snapshot.waiting.iter().enumerate().filter(|(_, wait)| wait.blocked);
        let hashes: FxHashMap<_, _> = blocked.map(|(index, wait)| (index, hash(wait.key()))).collect();
        already.update(&self.all_hashes(), self.looked_at, |keys| {
            let own = hashes[&due.entry];
            if !self.is_news(&due, holder, keys.get(own)) {
                return None;
            }
            keys.note(own, holder.key);
            let is_there = |index: &usize| place_of(&self.snapshot.waiting[*index]) == place_of(entry);
            let others = hashes.iter().filter(|(index, _)| is_there(index) && !on_cycles.contains(index));
            let new = others.filter(|&(_, &hash)| keys.note(hash, holder.key));
            Some(Crowd { first: due, members: vec![due.number], more: new.count(), key: holder.key })
        })
    }

    /// Adds the reports: first one for each place, then the others in their order.
    fn add_crowds(&mut self, crowds: Vec<Crowd>) {
        let mut at_place: FxHashMap<StackId, usize> = FxHashMap::default();
        let mut ranked: Vec<_> = crowds
            .into_iter()
            .map(|crowd| {
                let rank = at_place.entry(self.entry(&crowd.first).call).or_default();
                *rank += 1;
                (*rank, crowd)
            })
            .collect();
        ranked.sort_by_key(|&(rank, _)| rank);
        // By lock, the report that has its message.
        let mut messages: FxHashMap<Location, usize> = FxHashMap::default();
        for (n, (_, crowd)) in ranked.into_iter().enumerate() {
            if n >= MOST {
                self.more += crowd.members.len();
                continue;
            }
            let Crowd { first, members, more, key } = crowd;
            let holders = self.holders_of(first.entry);
            let Due { number: wait, milliseconds, entry, .. } = first;
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
            self.all.push(Report { wait, milliseconds, text, entry, more, holders, cycle: None });
            self.keys.extend(members.into_iter().map(|member| (member, key)));
        }
    }

    /// Returns the one that has kept a wait waiting for longest. Without any it is the same.
    fn longest_holder(&self, index: usize) -> Holder {
        let holders = self.all_holders_of(index).map(|holder| &self.snapshot.held[holder]);
        let longest = holders.max_by_key(|holder| self.snapshot.age(holder));
        let id = longest.map(|hold| (hold.location, hold.thread_id, hold.serial, hold.is_orphaned));
        let is_old = longest.is_some_and(|hold| self.snapshot.age(hold) >= self.period);
        Holder { key: key_of(hash(id)), is_old }
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

    /// Writes the reports for `lib/observe/stalls.js`. Without the entries if no string could hold their names.
    pub fn json(&self) -> String {
        let whole = json::text(|text| self.write(text, true));
        whole.or_else(|| json::text(|text| self.write(text, false))).unwrap_or_default()
    }

    fn write(&self, text: &mut json::Text, has_entries: bool) -> fmt::Result {
        write!(text, "{{\"more\":{},\"keys\":", self.more)?;
        json::array(text, &self.keys, |text, (wait, key)| write!(text, "{wait},{key}"))?;
        if let Some(later) = self.later {
            write!(text, ",\"later\":{}", later.as_secs_f64() * 1e3)?;
        }
        text.write_str(",\"reports\":")?;
        json::array(text, &self.all, |text, report| self.write_report(text, report, has_entries))?;
        text.write_char('}')
    }

    fn write_report(&self, text: &mut json::Text, report: &Report, has_entries: bool) -> fmt::Result {
        write!(text, "{{\"wait\":{},\"text\":", report.wait)?;
        json::string(text, report.text.encode_utf16())?;
        let Snapshot { held, waiting, cycles, now } = &self.snapshot;
        if let Some(cycle) = report.cycle.filter(|_| has_entries) {
            text.write_str(",\"cycle\":")?;
            write_cycle(text, &cycle_rows(&self.snapshot, &cycles[cycle], Stack::number))?;
        } else if report.cycle.is_some() {
            text.write_str(",\"cycle\":[]")?;
        }
        if let Some(more) = report.more.filter(|_| has_entries) {
            write!(text, ",\"more\":{more},\"entry\":")?;
            let milliseconds = Some(report.milliseconds);
            Row { milliseconds, ..row(*now, &waiting[report.entry], false, Stack::number) }.write(text)?;
            text.write_str(",\"holders\":")?;
            json::array(text, &report.holders, |text, &holder| {
                row(*now, &held[holder], true, Stack::number).write(text)
            })?;
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
