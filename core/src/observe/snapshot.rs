//! The process's holds and waits, for `snapshot()` and the errors of deadlocks.
//!
//! A cycle counts only if a second look finds all of its entries again: different buckets are read one after the other.
//! If all were there from one look to the other, there was a moment between the two at which they were a cycle.
//!
//! A cycle in which a thread only awaits may be one by chance: another task of that thread goes on. If stalls are
//! reported, it counts only once all of its holds and waits are older than their period.

use std::hash::{BuildHasher, Hash, RandomState};
use std::mem;
use std::sync::LazyLock;
use std::time::Duration;

use rustc_hash::FxHashMap;

use super::survey::{Entry, JUST_BEGUN, What, read};
use crate::clock::{Timestamp, now};
use crate::held::Process;
use crate::lock::cycles::{Has, Link, SeenHold, SeenWait, confirmed, cycles};
use crate::lock::{Hold, Request};
use crate::mapped::words::holder_text;
use crate::queue::Location;

pub fn hash(value: impl Hash) -> u64 {
    static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    KEY.hash_one(value)
}

/// Returns the number that stands for a word: the same in all threads, and no address.
pub fn id(location: Location) -> u64 {
    // So that a JavaScript number holds it.
    (hash(location.address()) >> 11).max(1)
}

impl Entry {
    fn seen_hold(&self) -> Option<SeenHold> {
        let Self { location, what, thread_id: thread, in_task, .. } = *self;
        Some(SeenHold { location, thread, hold: what.hold()?, in_task })
    }

    fn seen_wait(&self) -> SeenWait {
        let Self { location, what, thread_id: thread, blocked, .. } = *self;
        let request = if let What::Requests(request) = what { Some(request) } else { None };
        SeenWait { location, thread, request, blocked }
    }

    /// Adds its name. `None` for a named lock that is gone meanwhile. Called with no bucket locked.
    pub fn named(self, process: &Process) -> Option<Self> {
        let name = match self.what.hold().and_then(Hold::id) {
            Some(id) => Some(process.names.name_of(id)?),
            None => process.tracked_buffers.label(self.place()),
        };
        Some(Self { name, ..self })
    }

    /// Adds who else is concerned: the process that has the awaited word, or for which a holder of this name waits; and
    /// who has used the memory, and ended: to a wait that any thread may end, since a lock's holders are known. Called
    /// with no bucket locked.
    fn with_others(self, process: &Process) -> Self {
        let holder_elsewhere = match (self.what, &self.name) {
            (What::Holds(Hold::Named(..)), Some(name)) => process.holder_elsewhere(self.thread_id, name),
            (What::Requests(_), _) => holder_text(self.location).map(Into::into),
            _ => None,
        };
        let is_owed = matches!(self.what, What::Awaits(_) | What::Requests(Request::Signals(_)));
        let ended = if is_owed { process.tracked_buffers.ended(self.location) } else { Vec::new() };
        Self { holder_elsewhere, ended, ..self }
    }
}

pub struct Snapshot {
    pub now: Timestamp,
    pub held: Vec<Entry>,
    pub waiting: Vec<Entry>,
    pub cycles: Vec<Vec<Link>>,
}

impl Snapshot {
    /// Reads the holds and waits, and the cycles that count.
    pub fn take(process: &Process) -> Self {
        let mut snapshot = Self::with_all_cycles(process);
        let mut cycles = mem::take(&mut snapshot.cycles);
        cycles.retain(|cycle| {
            cycle.iter().all(|link| snapshot.waiting[link.waits_for].blocked)
                || process.stall_after.is_none_or(|period| snapshot.age_of(cycle) >= period)
        });
        Self { cycles, ..snapshot }
    }

    /// Returns for how long all entries of a cycle have been there.
    pub fn age_of(&self, cycle: &[Link]) -> Duration {
        let ages = cycle.iter().flat_map(|link| {
            let (has, waits_for) = self.entries(link);
            [has, waits_for].map(|entry| self.age(entry))
        });
        ages.min().unwrap_or_default()
    }

    /// Returns for how long an entry has been there; 0: unknown.
    pub fn age(&self, entry: &Entry) -> Duration {
        entry.since.map(|since| self.now.duration_since(since)).unwrap_or_default()
    }

    /// Reads the holds and waits, and all cycles.
    pub fn with_all_cycles(process: &Process) -> Self {
        let complete = |entries: Vec<Entry>| {
            let named = entries.into_iter().filter_map(|entry| entry.named(process));
            named.map(|entry| entry.with_others(process)).collect()
        };
        let (held, waiting) = read(process);
        let (held, waiting) = (complete(held), complete(waiting));
        let mut snapshot = Self { now: now(), held, waiting, cycles: Vec::new() };
        let held: Vec<_> = snapshot.held.iter().filter_map(Entry::seen_hold).collect();
        let waiting: Vec<_> = snapshot.waiting.iter().map(Entry::seen_wait).collect();
        let cycles = cycles(&held, &waiting, &snapshot.within());
        if !cycles.is_empty() {
            let keys = |entries: &[Entry]| entries.iter().map(Entry::key).collect::<Vec<_>>();
            let (held, mut waiting) = read(process);
            // The beginning of a wait that has just joined its line is noted a moment later: its key changes, and a
            // cycle of it would be reported twice.
            waiting.retain(|wait| wait.since != JUST_BEGUN);
            let again = [held, waiting].map(|entries| entries.iter().map(Entry::key).collect());
            snapshot.cycles = confirmed(cycles, [&keys(&snapshot.held), &keys(&snapshot.waiting)], &again);
        }
        snapshot
    }

    /// Pairs each claim made in a callback with that callback's hold.
    fn within(&self) -> Vec<(usize, usize)> {
        let key = |entry: &Entry, serial| (entry.thread_id, serial);
        let holds = self.held.iter().enumerate().map(|(index, hold)| (key(hold, hold.serial), index));
        let holds: FxHashMap<_, _> = holds.collect();
        let claims = self.waiting.iter().enumerate();
        let holds_of = |(index, claim): (usize, &Entry)| {
            let holds = claim.within.iter().filter_map(|&serial| holds.get(&key(claim, serial)).copied());
            holds.map(|hold| (index, hold)).collect::<Vec<_>>()
        };
        claims.flat_map(holds_of).collect()
    }

    /// Returns a link's entries: the thread's hold, or its place ahead in the line; and its wait.
    pub fn entries(&self, &Link { has, waits_for }: &Link) -> (&Entry, &Entry) {
        let has = match has {
            Has::Held(index) => &self.held[index],
            Has::Awaited(index) => &self.waiting[index],
        };
        (has, &self.waiting[waits_for])
    }
}
