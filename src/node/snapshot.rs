//! What is held and awaited in this process, as `snapshot()` and the errors of deadlocks tell it.
//!
//! No thread is stopped. The waiters and the holders of a word are read in one critical section of its bucket, in which nothing that
//! is held there is released, and the robust lists are read twice: what is in both readings was held in between. So of each word the
//! entries are right for one moment. Not told: a lock that is passed between threads, without a waiter, just while the words are
//! collected; and what has been taken out of an outbox and is not in the robust list yet, a moment later.
//!
//! Since when a thread sleeps or a promise of a lock waits is noted when that begins. Since when a lock is held is only known as
//! far as [`crate::node::sightings`] says.

use std::collections::HashSet;
use std::fmt::Write;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, LazyLock};

use rustc_hash::FxBuildHasher;

use crate::clock::{Timestamp, now};
use crate::lock::Waiter;
use crate::lock::deadlock::is_kept_by;
use crate::lock::inspection::Waiting;
use crate::lock::request::Request;
use crate::node::pending::Purpose;
use crate::node::process::{NAMES, STORE};
use crate::node::registry::{Known, REGISTRY};
use crate::node::robust_table::Held;
use crate::node::sightings::{sight, sighted};
use crate::queue::location::Location;
use crate::queue::result::WaitResult;

/// What is told of it is 0 milliseconds.
const JUST_NOW: Timestamp = Timestamp::NEVER;

/// What a word is, as far as can be told from what is requested of it.
struct Described {
    kind: &'static str,
    mode: Option<&'static str>,
    amount: Option<u32>,
    name: Option<Box<[u16]>>,
}

/// The one place in which a word gets its kind and its name. `None` for a named lock that was stolen or released meanwhile.
fn describe(request: Option<Request>, purpose: Purpose) -> Option<Described> {
    let name = match request.and_then(Request::id) {
        Some(id) => Some(NAMES.name_of(id)?),
        None => None,
    };
    let (kind, mode, amount) = match (request, purpose) {
        (Some(Request::NamedShared(_)), _) => ("named", Some("shared"), None),
        (Some(Request::NamedExclusive(_)), _) => ("named", Some("exclusive"), None),
        (Some(Request::Lock), _) => ("AsyncLock", Some("exclusive"), None),
        (Some(Request::Shared), _) => ("RwLock", Some("shared"), None),
        (Some(Request::Exclusive), _) => ("RwLock", Some("exclusive"), None),
        (Some(Request::Permits(amount) | Request::Signals(amount)), _) => ("Semaphore", Some("permits"), Some(amount)),
        (None, Purpose::Plain) => ("wait", None, None),
        (None, Purpose::Condition) => ("Condition", None, None),
        (None, Purpose::Barrier) => ("Barrier", None, None),
        (None, Purpose::Latch) => ("Latch", None, None),
    };
    Some(Described { kind, mode, amount, name })
}

/// The number that stands for a word: the same in all threads, and no address.
pub(super) fn id(location: Location) -> u64 {
    static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    // What a JavaScript number holds.
    KEY.hash_one(location.address()) >> 11
}

/// What a thread holds or waits for.
pub(super) struct Entry {
    pub(super) location: Location,
    pub(super) request: Option<Request>,
    pub(super) purpose: Purpose,
    pub(super) thread_id: u32,
    pub(super) blocked: bool,
    /// Unknown for a promise of `Atomics.waitAsync` itself.
    pub(super) since: Option<Timestamp>,
}

impl Entry {
    /// The entry as JSON. `None` for a named lock that was stolen or released meanwhile. Called with no bucket locked.
    pub(super) fn json(&self, now: Timestamp) -> Option<String> {
        let Self { location, request, purpose, thread_id, blocked, since } = *self;
        let Described { kind, mode, amount, name } = describe(request, purpose)?;
        let mut json = format!("{{\"kind\":\"{kind}\"");
        let _ = mode.map(|mode| write!(json, ",\"mode\":\"{mode}\""));
        let _ = name.map(|name| write!(json, ",\"name\":{}", quoted(&name)));
        let _ = amount.map(|amount| write!(json, ",\"amount\":{amount}"));
        let _ =
            write!(json, ",\"id\":{},\"threadId\":{thread_id},\"blocked\":{blocked},\"milliseconds\":", id(location));
        let _ = match since {
            Some(since) => {
                let micros = now.duration_since(since).as_micros();
                // Not as a float: formatting those would be a fortieth of the library.
                write!(json, "{}.{:03}}}", micros / 1000, micros % 1000)
            }
            None => write!(json, "null}}"),
        };
        Some(json)
    }
}

/// A string of JSON.
fn quoted(text: &[u16]) -> String {
    let mut json = String::from('"');
    for character in char::decode_utf16(text.iter().copied()) {
        match character {
            Ok(character @ ('"' | '\\')) => json.extend(['\\', character]),
            Ok(control @ '\0'..='\x1f') => drop(write!(json, "\\u{:04x}", u32::from(control))),
            Ok(character) => json.push(character),
            Err(surrogate) => drop(write!(json, "\\u{:04x}", surrogate.unpaired_surrogate())),
        }
    }
    json.push('"');
    json
}

/// What is held and awaited in this process, as JSON.
pub(super) fn snapshot() -> String {
    sight();
    let (known, held) = REGISTRY.held(|_| true);
    let given = known.iter().flat_map(|agent| {
        let grants = agent.outbox.grants().into_iter().map(|(location, _)| location);
        grants.chain(agent.doing.sleep().map(|sleep| sleep.location))
    });
    let buckets = STORE.by_bucket(held.iter().map(|(_, held)| held.location).chain(given));
    let (mut held, mut waiting) = (Vec::new(), Vec::new());
    for (bucket, locations) in buckets.iter().enumerate() {
        STORE.inspect(bucket, locations, |waiters, granted| {
            if !(locations.is_empty() && waiters.is_empty() && granted.is_empty()) {
                look(locations, waiters, granted, &mut held, &mut waiting);
            }
        });
    }
    let now = now();
    let list = |entries: &[Entry]| {
        let entries: Vec<_> = entries.iter().filter_map(|entry| entry.json(now)).collect();
        entries.join(",")
    };
    format!("{{\"held\":[{}],\"waiting\":[{}]}}", list(&held), list(&waiting))
}

/// Looks at the words of a bucket, in its critical section.
fn look(
    locations: &[Location],
    waiters: &[Waiting],
    granted: &[(Location, Waiter)],
    held: &mut Vec<Entry>,
    waiting: &mut Vec<Entry>,
) {
    let mut concerned: Vec<_> = locations.to_vec();
    concerned.extend(granted.iter().map(|(location, _)| *location));
    concerned.extend(waiters.iter().map(|waiter| waiter.location));
    concerned.sort_unstable();
    let concerns = |location: Location| concerned.binary_search(&location).is_ok();
    // Before the robust lists, in which a thread that has been woken then finds what it was given.
    let given: Vec<_> = REGISTRY.known().into_iter().flat_map(|agent| given_to(&agent, granted)).collect();
    let (known, in_lists) = read_lists(concerns);

    for (agent, hold) in &in_lists {
        let agent = &known[*agent];
        held.push(Entry { since: Some(sighted(&agent.outbox, hold).unwrap_or(JUST_NOW)), ..entry(agent, hold) });
    }
    for (thread_id, hold) in given.iter().filter(|(_, hold)| concerns(hold.location)) {
        let Some(agent) = known.iter().position(|agent| agent.thread_id == *thread_id) else { continue };
        // If another holds it now, it has been passed on meanwhile.
        let has_it = |&(holder, other): &(usize, Held)| {
            other.location == hold.location && (holder == agent || is_kept_by(hold.request, other.request))
        };
        if !in_lists.iter().any(has_it) {
            held.push(Entry { since: Some(JUST_NOW), ..entry(&known[agent], hold) });
        }
    }
    let mut last = 0;
    for Waiting { location, waiter, request } in waiters {
        // Mostly the agent of the waiter before it.
        if !known.get(last).is_some_and(|agent| agent.is(waiter)) {
            let Some(agent) = known.iter().position(|agent| agent.is(waiter)) else { continue };
            last = agent;
        }
        waiting.push(awaited(&known[last], *location, waiter, *request));
    }
}

fn entry(agent: &Known, held: &Held) -> Entry {
    Entry {
        location: held.location,
        request: Some(held.request),
        purpose: Purpose::Plain,
        thread_id: agent.thread_id,
        blocked: agent.doing.sleep().is_some(),
        since: None,
    }
}

fn awaited(agent: &Known, location: Location, waiter: &Waiter, request: Option<Request>) -> Entry {
    let (purpose, since) = match waiter {
        Waiter::Thread(_) => {
            let sleep = agent.doing.sleep().filter(|sleep| sleep.location == location);
            // It is about to sleep.
            (agent.doing.purpose(), Some(sleep.map_or(JUST_NOW, |sleep| sleep.since)))
        }
        Waiter::Agent(_, slot) => match agent.notes.get(*slot, location) {
            Some(noted) => (noted.purpose, Some(noted.since)),
            // A claim that has just come, or a promise of `Atomics.waitAsync`.
            None => (Purpose::Plain, request.map(|_| JUST_NOW)),
        },
    };
    let blocked = matches!(waiter, Waiter::Thread(_));
    Entry { location, request, purpose, thread_id: agent.thread_id, blocked, since }
}

/// What an agent has been given that may not be in its robust list yet.
fn given_to(agent: &Known, granted: &[(Location, Waiter)]) -> Vec<(u32, Held)> {
    let by_mail = agent.outbox.grants();
    let has_result = agent.blocked_thread.result().is_some_and(WaitResult::is_acquired);
    let slept_for = agent.doing.sleep().filter(|_| has_result);
    let slept_for = slept_for.and_then(|sleep| Some((sleep.location, sleep.request?)));
    let mut all: Vec<_> = by_mail.into_iter().chain(slept_for).filter(|(_, request)| request.is_owned()).collect();
    // A lock that is handed over may be told by both.
    for (location, _) in granted.iter().filter(|(_, waiter)| agent.is(waiter)) {
        if !all.contains(&(*location, Request::Lock)) {
            all.push((*location, Request::Lock));
        }
    }
    all.into_iter().map(|(location, request)| (agent.thread_id, Held { location, request, serial: 0 })).collect()
}

/// The entries of the robust lists at the locations that `concerns` names, read twice: what is in both readings was held in
/// between.
fn read_lists(concerns: impl Fn(Location) -> bool) -> (Vec<Known>, Vec<(usize, Held)>) {
    let key = |known: &[Known], &(agent, held): &(usize, Held)| {
        (Arc::as_ptr(&known[agent].outbox).addr(), held.location, held.request.to_code(), held.serial)
    };
    let (former, was_held) = REGISTRY.held(&concerns);
    let mut was_held: HashSet<_, FxBuildHasher> = was_held.iter().map(|hold| key(&former, hold)).collect();
    let (known, mut held) = REGISTRY.held(&concerns);
    // Once each: an entry that is moved may be read at both places.
    held.retain(|hold| was_held.remove(&key(&known, hold)));
    (known, held)
}
