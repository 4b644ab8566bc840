//! Reads the holds and waits of all threads, and stops none.
//!
//! All robust lists are read once. Then each bucket is looked at in its critical section, in which nothing that was
//! held there, or is awaited there, is released: its waiters, the grants to them, and, once more, the lists. So of each
//! word the entries are right for one moment. Not reported: a lock that is passed between threads, without a waiter,
//! just while the lists are read; and a grant that has been taken out of an outbox and is not in the robust list yet, a
//! moment later.
//!
//! A thread that falls asleep, and a promise of a lock that begins to wait, note the time. Since when a lock is held is
//! only known as far as [`crate::held::holders`] says.

use std::hash::Hash;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use crate::agent::{Noted, PLAIN, PURPOSE_BITS, Within};
use crate::held::{Held, held_since, sight};
use crate::observe::stacks::{NONE, StackId};
use crate::observe::taken::Taken;
use crate::process::{Known, REGISTRY, STORE};
use waitasync_core::clock::Timestamp;
use waitasync_core::lock::names::Text;
use waitasync_core::lock::wait_for_graph::is_kept_by;
use waitasync_core::lock::{Mode, Request, Waiter};
use waitasync_core::queue::{Listed, Location, WaitResult};

type Locations = FxHashSet<Location>;

/// A hold or a wait of a thread.
pub(crate) struct Entry {
    pub(crate) location: Location,
    pub(crate) request: Option<Request>,
    /// See [`crate::agent::Noted`].
    pub(crate) purpose: u32,
    /// The name of its word: see [`Self::named`].
    pub(crate) name: Option<Text>,
    pub(crate) thread_id: u32,
    pub(crate) thread_name: Option<Arc<str>>,
    pub(crate) blocked: bool,
    /// Unknown for a promise of `Atomics.waitAsync` itself.
    pub(crate) since: Option<Timestamp>,
    /// Of a hold, unless it is 0.
    pub(crate) serial: u32,
    /// Of a claim.
    pub(crate) within: Within,
    /// That of a promise that waits.
    pub(crate) slot: Option<u32>,
    /// The stack of the call that took it, or that waits; if stalls are reported.
    pub(crate) call: StackId,
    /// Whether the hold's token has been collected, where that is known.
    pub(crate) is_orphaned: bool,
}

impl Entry {
    /// Returns the first word of its thing. A lease, and a wait for a queue's events, are at another word of the queue.
    pub(crate) fn place(&self) -> Location {
        match self.request {
            Some(Request::Lease(words)) => self.location.words_before(words),
            Some(_) => self.location,
            None => self.location.words_before(self.purpose >> PURPOSE_BITS),
        }
    }

    pub(crate) fn mode(&self) -> Option<Mode> {
        self.request?.mode()
    }

    pub(crate) fn with_taken(self, taken: Option<Taken>) -> Self {
        let (call, is_orphaned) = taken.map_or((NONE, false), |taken| (taken.call, taken.is_orphaned));
        Self { call, is_orphaned, ..self }
    }

    /// Returns a key: the same in two looks if the entry was there throughout.
    pub(crate) fn key(&self) -> impl Eq + Hash + use<> {
        let Self { location, request, thread_id, blocked, since, serial, .. } = *self;
        (location, request.map(Request::packed), thread_id, blocked, since, serial)
    }
}

/// A start in the future: its age is reported as 0 ms, in each of two looks at the same.
pub(crate) const JUST_BEGUN: Option<Timestamp> = Some(Timestamp::NEVER);

/// How often the robust lists are read for a bucket that has claims whose keepers are not found.
const MOST_READINGS: usize = 4;

pub(crate) fn read() -> (Vec<Entry>, Vec<Entry>) {
    let (known, in_lists) = REGISTRY.held(|_| true, |_| true);
    sight(&known, &in_lists);
    // Where something may be on its way to its holder.
    let given = known.iter().flat_map(|agent| {
        let grants = agent.outbox.grants().into_iter().map(|(_, (location, _))| location);
        grants.chain(agent.notes.sleep().map(|sleep| sleep.location))
    });
    let locations = STORE.by_bucket(in_lists.iter().map(|(_, held)| held.location).chain(given));
    let (mut held, mut waiting) = (Vec::new(), Vec::new());
    for (bucket, locations) in locations.iter().enumerate() {
        look(bucket, &known, locations, &mut held, &mut waiting);
    }
    (held, waiting)
}

/// Adds a bucket's holds and waits, in its critical section. At `locations` something was held or granted.
fn look(bucket: usize, known: &[Known], locations: &[Location], held: &mut Vec<Entry>, waiting: &mut Vec<Entry>) {
    STORE.inspect(bucket, locations, |waiters, granted, since| {
        let awaited = waiters.iter().map(|&(location, _)| location);
        let granted_at = granted.iter().map(|&(location, _)| location);
        let concerns: Locations = locations.iter().copied().chain(awaited).chain(granted_at).collect();
        if concerns.is_empty() {
            return;
        }
        // Before the robust lists, in which a thread that has been woken then finds its grant.
        let given =
            known.iter().flat_map(|agent| undelivered_to(agent, granted).into_iter().map(move |given| (agent, given)));
        let given: Vec<_> = given.filter(|(_, given)| concerns.contains(&given.location)).collect();
        let claims = waiters.iter().filter_map(|(location, listed)| Some((*location, listed.claim?)));
        let kept: Locations =
            claims.filter(|(_, request)| request.waits_for_holders()).map(|(location, _)| location).collect();
        let found = given.iter().map(|(_, given)| given.location).collect();
        let (holders, in_lists) =
            listed(|location| STORE.index_of(location) == bucket && concerns.contains(&location), &kept, &found);

        // If another agent holds it now, it has been passed on meanwhile.
        let is_listed = |agent: &Known, given: Undelivered| {
            in_lists.iter().any(|(holder, other)| {
                other.location == given.location
                    && (holders[*holder].number == agent.number || is_kept_by(given.request, other.request))
            })
        };
        held.extend(in_lists.iter().map(|(holder, hold)| {
            let holder = &holders[*holder];
            let since = held_since(holder, hold, since(hold.location)).or(JUST_BEGUN);
            let entry = entry(holder, hold.location, hold.request, since).with_taken(holder.taken.get(hold.serial));
            Entry { serial: hold.serial, ..entry }
        }));
        let on_their_way = given.into_iter().filter(|&(agent, given)| !is_listed(agent, given));
        held.extend(on_their_way.map(|(agent, Undelivered { location, request, call })| Entry {
            call,
            ..entry(agent, location, request, JUST_BEGUN)
        }));
        add_waiting(known, waiters, waiting);
    });
}

/// Reads the robust lists, again while a `kept` location is not found.
///
/// A thread that has taken a lock in JavaScript is about to list it.
fn listed(
    concerns: impl Fn(Location) -> bool,
    kept: &Locations,
    found: &Locations,
) -> (Vec<Known>, Vec<(usize, Held)>) {
    let mut lists = (Vec::new(), Vec::new());
    for _ in 0..MOST_READINGS {
        lists = REGISTRY.held(|_| true, &concerns);
        let listed: Locations = lists.1.iter().map(|(_, held)| held.location).collect();
        if kept.iter().all(|location| listed.contains(location) || found.contains(location)) {
            break;
        }
    }
    lists
}

/// Adds the waits of known agents that users see.
fn add_waiting(known: &[Known], waiters: &[(Location, Listed<Request>)], waiting: &mut Vec<Entry>) {
    let mut last = 0;
    for (location, Listed { waiter, claim }) in
        waiters.iter().filter(|(_, listed)| listed.claim.is_none_or(Request::is_visible))
    {
        // Mostly it is the agent of the waiter before.
        if !known.get(last).is_some_and(|agent| agent.is(waiter)) {
            let Some(agent) = known.iter().position(|agent| agent.is(waiter)) else { continue };
            last = agent;
        }
        waiting.push(awaited_by(&known[last], *location, waiter, *claim));
    }
}

pub(crate) fn entry(agent: &Known, location: Location, request: Request, since: Option<Timestamp>) -> Entry {
    entry_of(agent, location, Some(request), since, agent.notes.sleep().is_some())
}

fn entry_of(
    agent: &Known,
    location: Location,
    request: Option<Request>,
    since: Option<Timestamp>,
    blocked: bool,
) -> Entry {
    Entry {
        location,
        request,
        purpose: PLAIN,
        name: None,
        thread_id: agent.thread_id,
        thread_name: agent.thread_name.clone(),
        blocked,
        since,
        serial: 0,
        within: Within::default(),
        slot: None,
        call: NONE,
        is_orphaned: false,
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
    let purpose = noted.map_or(PLAIN, |noted| noted.purpose);
    let call = noted.map_or(NONE, |noted| noted.call);
    let within = within.unwrap_or_default();
    Entry { purpose, within, slot, call, ..entry_of(agent, location, request, since, blocked) }
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

/// A grant that may not be in its agent's robust list yet.
#[derive(Clone, Copy)]
struct Undelivered {
    location: Location,
    request: Request,
    call: StackId,
}

fn undelivered_to(agent: &Known, granted: &[(Location, Waiter)]) -> Vec<Undelivered> {
    let call = |noted: Option<(Noted, Within)>| noted.map_or(NONE, |(noted, _)| noted.call);
    let by_mail = agent.outbox.grants().into_iter().map(|(slot, (location, request))| Undelivered {
        location,
        request,
        call: call(agent.notes.get(slot, location)),
    });
    let has_result = agent.blocked_thread.result().is_some_and(WaitResult::is_acquired);
    let slept_for = agent.notes.sleep().filter(|_| has_result);
    let slept_for = slept_for
        .and_then(|Noted { location, request, call, .. }| Some(Undelivered { location, request: request?, call }));
    let mut all: Vec<_> = by_mail.chain(slept_for).filter(|given| given.request.is_owned()).collect();
    // A lock that is handed over may be reported by both.
    for (location, waiter) in granted.iter().filter(|(_, waiter)| agent.is(waiter)) {
        if !all.iter().any(|given| given.location == *location && given.request.is_for_lock()) {
            let call = call(noted_of(agent, waiter, *location));
            all.push(Undelivered { location: *location, request: Request::Lock, call });
        }
    }
    all.retain(|given| given.request.is_visible());
    all
}
