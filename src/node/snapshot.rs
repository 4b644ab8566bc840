//! What is held and awaited in this process, as `snapshot()` and the errors of deadlocks tell it.
//!
//! No thread is stopped. All robust lists are read once. Then each bucket is looked at in its critical section, in which nothing that
//! is held there is released: its waiters, what has been granted to them, and which of the holds that were read there still are. So of
//! each word the entries are right for one moment. If the holder of a word that has waiters is not among them, another thread has
//! got it meanwhile: then the lists are read again for this bucket. Not reported: a lock that is passed between threads, without a waiter, just
//! while the lists are read; one that changes hands each time; and what has been taken out of an outbox and is not in the robust list yet,
//! a moment later. What is done in a critical section does not depend on how much threads hold elsewhere.
//!
//! A thread that falls asleep, and a promise of a lock that begins to wait, note the time. Since when a lock is held is only known as
//! far as [`crate::node::holders`] says.

use std::collections::HashSet;
use std::fmt::{self, Write};
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

use rustc_hash::FxBuildHasher;

use crate::clock::{Timestamp, now};
use crate::lock::Waiter;
use crate::lock::deadlock::is_kept_by;
use crate::lock::inspection::Waiting;
use crate::lock::names::Text;
use crate::lock::request::{AWAITS_NOTIFICATION, Request, pack};
use crate::node::holders::{sight, sighted};
use crate::node::json;
use crate::node::pending::PLAIN;
use crate::node::process::{MEMORIES, NAMES, STORE};
use crate::node::registry::{Known, REGISTRY};
use crate::node::robust_table::Held;
use crate::queue::location::Location;
use crate::queue::result::WaitResult;

/// The number that stands for a word: the same in all threads, and no address.
pub(super) fn id(location: Location) -> u64 {
    static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    // What a JavaScript number holds.
    (KEY.hash_one(location.address()) >> 11).max(1)
}

/// Microseconds of the process's clock.
const fn micros(moment: Timestamp) -> u64 {
    moment.as_nanos() / 1000
}

/// What a thread holds or waits for.
pub(super) struct Entry {
    pub(super) location: Location,
    pub(super) request: Option<Request>,
    /// See [`crate::node::pending::Noted`].
    pub(super) purpose: u32,
    pub(super) thread_id: u32,
    pub(super) blocked: bool,
    /// Unknown for a promise of `Atomics.waitAsync` itself.
    pub(super) since: Option<Timestamp>,
}

impl Entry {
    /// With its name, if it has one. `None` for a named lock that was stolen or released meanwhile. Called with no bucket locked.
    pub(super) fn named(self) -> Option<Named> {
        let name = match self.request.and_then(Request::id) {
            Some(id) => Some(NAMES.name_of(id)?),
            None => MEMORIES.label(self.location).map(|label| label.encode_utf16().collect()),
        };
        Some(Named(self, name))
    }
}

/// An entry, and the name of its word.
pub(super) struct Named(Entry, Option<Text>);

impl Named {
    /// The entry for `entryOf` in `lib/locks/held/request.js`, which has the words for its numbers.
    pub(super) fn write(&self, text: &mut json::Text, now: Timestamp) -> fmt::Result {
        let Self(Entry { location, request, purpose, thread_id, blocked, since }, name) = self;
        let request = request.map_or_else(|| pack(AWAITS_NOTIFICATION, *purpose), Request::packed);
        write!(text, "[{request},")?;
        match name {
            Some(name) => json::string(text, name)?,
            None => text.write_str("null")?,
        }
        write!(text, ",{},{thread_id},{blocked},", id(*location))?;
        match since {
            // Whole microseconds of both, so that their sum is the same in every snapshot.
            Some(since) => write!(text, "{}]", micros(now).saturating_sub(micros(*since))),
            None => text.write_str("null]"),
        }
    }
}

/// A start in the future: its age is reported as 0 ms, in each of two looks at the same.
const JUST_BEGUN: Option<Timestamp> = Some(Timestamp::NEVER);

/// How often a bucket is looked at whose words' holders are not found.
const MOST_LOOKS: usize = 4;

/// What is held and awaited in this process, as JSON; and when it was read. `None` if a string of JavaScript cannot hold the text.
pub(super) fn snapshot() -> Option<String> {
    let (known, held) = REGISTRY.held(|_| true);
    sight(&known, &held);
    // Where something may be on its way to its holder.
    let given = known.iter().flat_map(|agent| {
        let grants = agent.outbox.grants().into_iter().map(|(location, _)| location);
        grants.chain(agent.notes.sleep().map(|sleep| sleep.location))
    });
    let given = STORE.by_bucket(given.map(|location| (location, location)));
    let buckets = STORE.by_bucket(held.into_iter().map(|(agent, held)| (held.location, (agent, held))));
    let (mut all_held, mut all_waiting) = (Vec::new(), Vec::new());
    for (bucket, (candidates, mut given)) in buckets.into_iter().zip(given).enumerate() {
        let mut seen = look(bucket, &known, &candidates, &given);
        for _ in 1..MOST_LOOKS {
            let Some(awaited) = seen.take_if(|seen| !seen.unheld.is_empty()).map(|seen| seen.awaited) else { break };
            given.extend(candidates.iter().map(|(_, held)| held.location).chain(awaited));
            let concerns: HashSet<_, FxBuildHasher> = given.iter().copied().collect();
            let (known, candidates) = REGISTRY.held(|location| concerns.contains(&location));
            seen = look(bucket, &known, &candidates, &given);
        }
        if let Some(seen) = seen {
            all_held.extend(seen.held);
            all_waiting.extend(seen.waiting);
        }
    }
    let now = now();
    json::text(|text| {
        let array = |text: &mut json::Text, entries: Vec<Entry>| {
            json::array(text, entries.into_iter().filter_map(Entry::named), |text, entry| entry.write(text, now))
        };
        write!(text, "{{\"now\":{},\"held\":", micros(now))?;
        array(text, all_held)?;
        text.write_str(",\"waiting\":")?;
        array(text, all_waiting)?;
        text.write_char('}')
    })
}

/// What is held and awaited in a bucket.
struct Seen {
    held: Vec<Entry>,
    waiting: Vec<Entry>,
    /// The locations that have claims.
    awaited: Vec<Location>,
    /// Those of `awaited` of which no holder was found, although there must be one.
    unheld: Vec<Location>,
}

/// Looks at a bucket, in its critical section. `candidates` were held when the robust lists were read, each by the agent with this
/// index; `given` are other locations of which something may be on its way to its holder. `None` if nothing is held or awaited there.
fn look(bucket: usize, known: &[Known], candidates: &[(usize, Held)], given: &[Location]) -> Option<Seen> {
    let numbered: Vec<_> = candidates.iter().map(|(agent, held)| (known[*agent].number, *held)).collect();
    let locations: Vec<_> = candidates.iter().map(|(_, held)| held.location).chain(given.iter().copied()).collect();
    STORE.inspect(bucket, &locations, |waiters, granted| {
        if locations.is_empty() && waiters.is_empty() && granted.is_empty() {
            return None;
        }
        // Before the robust lists, in which a thread that has been woken then finds what it was given.
        let concerns: HashSet<_, FxBuildHasher> = locations
            .iter()
            .copied()
            .chain(waiters.iter().map(|waiter| waiter.location))
            .chain(granted.iter().map(|&(location, _)| location))
            .collect();
        let given = known
            .iter()
            .enumerate()
            .flat_map(|(agent, each)| given_to(each, granted).into_iter().map(move |given| (agent, given)));
        let given: Vec<_> = given.filter(|(_, (location, _))| concerns.contains(location)).collect();
        let still = REGISTRY.still_held(&numbered);
        let in_lists: Vec<_> = candidates.iter().zip(still).filter_map(|(hold, still)| still.then_some(hold)).collect();

        let mut held: Vec<_> = in_lists
            .iter()
            .map(|(agent, hold)| {
                let agent = &known[*agent];
                entry(agent, hold.location, hold.request, sighted(agent, hold).or(JUST_BEGUN))
            })
            .collect();
        for &(agent, (location, request)) in &given {
            // If another agent holds it now, it has been passed on meanwhile.
            let has_it = |&&(holder, other): &&(usize, Held)| {
                other.location == location && (holder == agent || is_kept_by(request, other.request))
            };
            if !in_lists.iter().any(has_it) {
                held.push(entry(&known[agent], location, request, JUST_BEGUN));
            }
        }
        let claims = waiters.iter().filter_map(|waiter| Some((waiter.location, waiter.request?)));
        let awaited: Vec<_> = claims.clone().map(|(location, _)| location).collect();
        let is_held: HashSet<_, FxBuildHasher> = held.iter().map(|entry| entry.location).collect();
        let unheld = claims
            .filter(|(location, request)| is_kept_by(*request, Request::Exclusive) && !is_held.contains(location));
        let unheld = unheld.map(|(location, _)| location).collect();

        let mut waiting = Vec::new();
        let mut last = 0;
        for Waiting { location, waiter, request } in waiters {
            // Mostly it is the agent of the waiter before.
            if !known.get(last).is_some_and(|agent| agent.is(waiter)) {
                let Some(agent) = known.iter().position(|agent| agent.is(waiter)) else { continue };
                last = agent;
            }
            waiting.push(awaited_by(&known[last], *location, waiter, *request));
        }
        Some(Seen { held, waiting, awaited, unheld })
    })
}

/// What a thread holds, or waits for by a claim.
pub(super) fn entry(agent: &Known, location: Location, request: Request, since: Option<Timestamp>) -> Entry {
    Entry {
        location,
        request: Some(request),
        purpose: PLAIN,
        thread_id: agent.thread_id,
        blocked: agent.notes.sleep().is_some(),
        since,
    }
}

fn awaited_by(agent: &Known, location: Location, waiter: &Waiter, request: Option<Request>) -> Entry {
    let (blocked, noted) = match waiter {
        Waiter::Thread(_) => (true, agent.notes.sleep().filter(|noted| noted.location == location)),
        Waiter::Agent(_, slot) => (false, agent.notes.get(*slot, location)),
    };
    // Without a note it is a thread or a claim that has just come, or a promise of `Atomics.waitAsync`.
    let just_begun = if blocked || request.is_some() { JUST_BEGUN } else { None };
    let since = noted.map(|noted| noted.since).or(just_begun);
    let purpose = noted.map_or(PLAIN, |noted| noted.purpose);
    Entry { location, request, purpose, thread_id: agent.thread_id, blocked, since }
}

/// What an agent has been given that may not be in its robust list yet.
fn given_to(agent: &Known, granted: &[(Location, Waiter)]) -> Vec<(Location, Request)> {
    let by_mail = agent.outbox.grants();
    let has_result = agent.blocked_thread.result().is_some_and(WaitResult::is_acquired);
    let slept_for = agent.notes.sleep().filter(|_| has_result);
    let slept_for = slept_for.and_then(|sleep| Some((sleep.location, sleep.request?)));
    let mut all: Vec<_> = by_mail.into_iter().chain(slept_for).filter(|(_, request)| request.is_owned()).collect();
    // A lock that is handed over may be reported by both.
    for (location, _) in granted.iter().filter(|(_, waiter)| agent.is(waiter)) {
        if !all.contains(&(*location, Request::Lock)) {
            all.push((*location, Request::Lock));
        }
    }
    all
}
