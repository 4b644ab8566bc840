//! Reads the holds and waits of all threads, and stops none.
//!
//! All robust lists are read once. Then each bucket is looked at in its critical section, in which nothing that was
//! held there, or is awaited there, is released: its waiters, the grants to them, and, once more, the lists. So of each
//! word the entries are right for one moment. Not reported: a lock that is passed between threads, without a waiter,
//! just while the lists are read; and a grant that has been taken out of an outbox and is not in the robust list yet, a
//! moment later.
//!
//! A thread that falls asleep, and a promise of a lock that begins to wait, note the time. Since when a lock is held is
//! only known as far as [`Process::held_since`] says.

use std::hash::Hash;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::clock::Timestamp;
use crate::held::{
    Held, Incoming, Known, NONE, Noted, PLAIN, Process, StackId, Taken, Undelivered, WAIT_KIND_BITS, Within,
};
use crate::lock::names::Text;
use crate::lock::tracked_buffers::Ended;
use crate::lock::{Hold, Mode, Request, Waiter};
use crate::queue::{Listed, Location};

type Locations = FxHashSet<Location>;

/// A hold of a thread, or what it waits for.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum What {
    Holds(Hold),
    Requests(Request),
    /// A notification of this wait kind: see [`Noted`].
    Awaits(u32),
}

impl What {
    /// Returns the hold, or what will be one.
    pub fn hold(self) -> Option<Hold> {
        match self {
            Self::Holds(hold) => Some(hold),
            Self::Requests(request) => Some(request.hold()),
            Self::Awaits(_) => None,
        }
    }

    pub fn wait_kind(self) -> Option<u32> {
        if let Self::Awaits(kind) = self { Some(kind) } else { None }
    }
}

pub struct Entry {
    pub location: Location,
    pub what: What,
    /// The name of its word: see [`Self::named`].
    pub name: Option<Text>,
    pub thread_id: u32,
    pub thread_name: Option<Arc<str>>,
    pub blocked: bool,
    /// Unknown for a promise of `Atomics.waitAsync` itself.
    pub since: Option<Timestamp>,
    /// Of a hold, unless it is 0.
    pub serial: u32,
    /// Of a claim.
    pub within: Within,
    /// That of a promise that waits.
    pub slot: Option<u32>,
    /// The stack of the call that took it, or that waits; if stalls are reported.
    pub call: StackId,
    /// Whether the hold's token has been collected, where that is known.
    pub is_orphaned: bool,
    /// The process for which it waits: it has the lock behind this name ([`Process::waits_elsewhere`]), or the word.
    pub holder_elsewhere: Option<Arc<str>>,
    /// Whether it is the hold of a callback of which it is known what it claims.
    pub in_task: bool,
    /// Who has used its memory, and ended.
    pub ended: Vec<Arc<Ended>>,
}

impl Entry {
    /// Returns the first word of its thing. A lease, and a wait for a queue's events, are at another word of the queue.
    pub fn place(&self) -> Location {
        match self.what {
            What::Holds(Hold::Lease(words)) => self.location.words_before(words),
            What::Awaits(wait_kind) => self.location.words_before(wait_kind >> WAIT_KIND_BITS),
            _ => self.location,
        }
    }

    pub fn mode(&self) -> Option<Mode> {
        self.what.hold()?.mode()
    }

    #[must_use]
    pub fn with_taken(self, taken: Option<Taken>) -> Self {
        let Some(Taken { call, is_orphaned, in_task, .. }) = taken else { return self };
        Self { call, is_orphaned, in_task, ..self }
    }

    /// Whether a user of the memory has ended since this began.
    pub fn has_lost_one(&self) -> bool {
        self.ended.first().zip(self.since).is_some_and(|(ended, since)| ended.at > since)
    }

    /// Returns a key: the same in two looks if the entry was there throughout.
    pub fn key(&self) -> impl Eq + Hash + use<> {
        let Self { location, what, thread_id, blocked, since, serial, in_task, .. } = *self;
        (location, what, thread_id, blocked, since, serial, in_task)
    }
}

/// A start in the future: its age is reported as 0 ms, in each of two looks at the same.
pub const JUST_BEGUN: Option<Timestamp> = Some(Timestamp::NEVER);

/// How often the robust lists are read for a bucket that has claims whose blockers are not found.
const MOST_READINGS: usize = 4;

pub fn read(process: &Process) -> (Vec<Entry>, Vec<Entry>) {
    let (known, in_lists) = process.registry.held(|_| true, |_| true);
    let mut survey = Survey::of(process, &known);
    // Where something may be on its way to its holder.
    let incoming = survey.incoming.iter().flat_map(Incoming::locations);
    let slept_at = known.iter().filter_map(|agent| agent.notes.sleep()).map(|sleep| sleep.location);
    let held = in_lists.iter().map(|(_, held)| held.location);
    let locations = process.store.by_bucket(held.chain(incoming).chain(slept_at));
    for (bucket, locations) in locations.iter().enumerate() {
        survey.look(bucket, locations);
    }
    (survey.held, survey.waiting)
}

struct Survey<'a> {
    process: &'a Process,
    known: &'a [Known],
    /// Their indices, by the addresses of their outboxes and threads.
    indices: FxHashMap<usize, usize>,
    /// By agent.
    incoming: Vec<Incoming>,
    held: Vec<Entry>,
    waiting: Vec<Entry>,
}

/// The holds in a bucket: in robust lists, each with its agent's index, and on their way to those of known agents.
struct InBucket {
    holders: Vec<Known>,
    listed: Vec<(usize, Held)>,
    /// By the agent's index among the known ones.
    given: Vec<(usize, Undelivered)>,
}

impl<'a> Survey<'a> {
    fn of(process: &'a Process, known: &'a [Known]) -> Self {
        let addresses = |agent: &Known| [Arc::as_ptr(&agent.outbox).addr(), Arc::as_ptr(&agent.blocked_thread).addr()];
        let indices = known.iter().enumerate();
        let indices = indices.flat_map(|(index, agent)| addresses(agent).map(|address| (address, index))).collect();
        let mut incoming: Vec<_> = known.iter().map(|_| Incoming::default()).collect();
        for (incoming, agent) in incoming.iter_mut().zip(known) {
            incoming.read(&process.store, agent);
        }
        Self { process, known, indices, incoming, held: Vec::new(), waiting: Vec::new() }
    }

    fn index_of(&self, waiter: &Waiter) -> Option<usize> {
        let address = match waiter {
            Waiter::Thread(thread) => Arc::as_ptr(thread).addr(),
            Waiter::Agent(outbox, _) => Arc::as_ptr(outbox).addr(),
        };
        self.indices.get(&address).copied()
    }

    /// Adds a bucket's holds and waits, in its critical section. At `locations` something was held or granted.
    fn look(&mut self, bucket: usize, locations: &Locations) {
        let process = self.process;
        process.store.inspect(bucket, locations, |waiters, granted, since| {
            let awaited = waiters.iter().map(|&(location, _)| location);
            let granted_at = granted.iter().map(|&(location, _)| location);
            let concerns: Locations = locations.iter().copied().chain(awaited).chain(granted_at).collect();
            if concerns.is_empty() {
                return;
            }
            let InBucket { holders, listed, given } = self.holds(bucket, &concerns, waiters, granted);
            let first = self.held.len();
            self.held.extend(listed.iter().map(|(holder, hold)| {
                let holder = &holders[*holder];
                let since = process.held_since(holder, hold, since(hold.location)).or(JUST_BEGUN);
                let entry = entry(holder, hold.location, What::Holds(hold.hold), since)
                    .with_taken(holder.notes.taken(hold.serial));
                Entry { serial: hold.serial, ..entry }
            }));
            self.held.extend(given.into_iter().map(|(agent, given)| {
                let agent = &self.known[agent];
                // Its thread may be blocked for long.
                let since = since(given.location).or(JUST_BEGUN);
                Entry { call: given.call, ..entry(agent, given.location, What::Holds(given.hold), since) }
            }));
            self.add_granted(first, granted);
            // A thread's holds of a word are neighbours.
            self.held[first..].sort_by_key(|entry| entry.thread_id);
            self.add_waiting(waiters);
        });
    }

    /// Reads grants and then robust lists; and again while a grant has been taken out of an outbox meanwhile, or a word
    /// that keeps claims waiting is not found: a thread that has taken a lock in JavaScript is about to list it.
    fn holds(
        &mut self,
        bucket: usize,
        concerns: &Locations,
        waiters: &[(Location, Listed<Request>)],
        granted: &[(Location, Waiter)],
    ) -> InBucket {
        let process = self.process;
        let is_kept = |request: Option<Request>| request.is_some_and(Request::waits_for_holders);
        let kept = waiters.iter().filter(|(_, listed)| is_kept(listed.claim)).map(|&(location, _)| location);
        let mut kept: Locations = kept.collect();
        for (location, _) in granted {
            kept.remove(location);
        }
        let mut readings = 1;
        loop {
            let agents = self.incoming.iter_mut().zip(self.known);
            let given: Vec<Vec<Undelivered>> = agents
                .map(|(incoming, agent)| {
                    let its = incoming.to(&process.store, agent, bucket).into_iter();
                    its.filter(|given| concerns.contains(&given.location)).collect()
                })
                .collect();
            let (holders, listed) = process
                .registry
                .held(|_| true, |location| process.store.index_of(location) == bucket && concerns.contains(&location));
            let mut on_their_way = Vec::new();
            let mut is_known = true;
            for (index, its) in given.into_iter().enumerate().filter(|(_, its)| !its.is_empty()) {
                let agent = &self.known[index];
                // Its entry has no number until the thread goes on.
                let is_listed = |location| {
                    let is_it = |&(holder, held): &(usize, Held)| {
                        let is_its = Arc::ptr_eq(&holders[holder].outbox, &agent.outbox);
                        held.location == location && held.serial == 0 && is_its
                    };
                    listed.iter().any(is_it)
                };
                is_known &= self.incoming[index].keep(agent, its, is_listed, |given| on_their_way.push((index, given)));
            }
            let found = listed.iter().map(|(_, held)| held.location);
            for location in found.chain(on_their_way.iter().map(|(_, given)| given.location)) {
                kept.remove(&location);
            }
            if readings == MOST_READINGS || (is_known && kept.is_empty()) {
                return InBucket { holders, listed, given: on_their_way };
            }
            readings += 1;
        }
    }

    /// Adds the locks that are on their way to a waiter. Those that are listed have reached it.
    fn add_granted(&mut self, first: usize, granted: &[(Location, Waiter)]) {
        if granted.is_empty() {
            return;
        }
        let here = &self.held[first..];
        let is_of_lock = |entry: &&Entry| entry.what.hold().is_some_and(Hold::is_of_lock);
        let held: Locations = here.iter().filter(is_of_lock).map(|hold| hold.location).collect();
        let unlisted = granted.iter().filter(|(location, _)| !held.contains(location));
        let new = unlisted.filter_map(|(location, waiter)| {
            let agent = &self.known[self.index_of(waiter)?];
            let call = noted_of(agent, waiter, *location).map_or(NONE, |(noted, _)| noted.call);
            Some(Entry { call, ..entry(agent, *location, What::Holds(Hold::Lock), JUST_BEGUN) })
        });
        let new: Vec<_> = new.collect();
        self.held.extend(new);
    }

    /// Adds the waits of known agents that users see.
    fn add_waiting(&mut self, waiters: &[(Location, Listed<Request>)]) {
        let visible = waiters.iter().filter(|(_, listed)| listed.claim.is_none_or(Request::is_visible));
        for (location, Listed { waiter, claim }) in visible {
            if let Some(agent) = self.index_of(waiter) {
                self.waiting.push(awaited_by(&self.known[agent], *location, waiter, *claim));
            }
        }
    }
}

pub fn entry(agent: &Known, location: Location, what: What, since: Option<Timestamp>) -> Entry {
    Entry {
        location,
        what,
        name: None,
        thread_id: agent.thread_id,
        thread_name: agent.thread_name.clone(),
        blocked: agent.notes.sleep().is_some(),
        since,
        serial: 0,
        within: Within::default(),
        slot: None,
        call: NONE,
        is_orphaned: false,
        holder_elsewhere: None,
        in_task: false,
        ended: Vec::new(),
    }
}

fn awaited_by(agent: &Known, location: Location, waiter: &Waiter, request: Option<Request>) -> Entry {
    let slot = match waiter {
        Waiter::Thread(_) => None,
        Waiter::Agent(_, slot) => Some(*slot),
    };
    let (blocked, noted) = (slot.is_none(), noted_of(agent, waiter, location));
    let (noted, within) = noted.unzip();
    // Without a note it is a thread or a claim that has just come, or a promise of `Atomics.waitAsync`.
    let just_begun = if blocked || request.is_some() { JUST_BEGUN } else { None };
    let since = noted.map(|noted| noted.since).or(just_begun);
    let wait_kind = noted.map_or(PLAIN, |noted| noted.wait_kind);
    let what = request.map_or(What::Awaits(wait_kind), What::Requests);
    let call = noted.map_or(NONE, |noted| noted.call);
    let within = within.unwrap_or_default();
    Entry { blocked, within, slot, call, ..entry(agent, location, what, since) }
}

fn noted_of(agent: &Known, waiter: &Waiter, location: Location) -> Option<(Noted, Within)> {
    match waiter {
        Waiter::Thread(_) => {
            let sleep = agent.notes.sleep().filter(|noted| noted.location == location)?;
            Some((sleep, Within::default()))
        }
        Waiter::Agent(_, slot) => agent.notes.get(*slot, location),
    }
}
