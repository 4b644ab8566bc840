//! The process's holds and waits, for `snapshot()` and the errors of deadlocks.
//!
//! No thread is stopped. All robust lists are read once. Then each bucket is looked at in its critical section, in
//! which nothing that was held there, or is awaited there, is released: its waiters, what has been granted to them,
//! and, once more, the lists. So of each word the entries are right for one moment. Not reported: a lock that is passed
//! between threads, without a waiter, just while the lists are read; and what has been taken out of an outbox and is
//! not in the robust list yet, a moment later.
//!
//! A ring counts only if a second look finds all of its entries again: different buckets are read one after the other.
//! If all were there from one look to the other, there was a moment between the two at which they were a ring.
//!
//! A thread that falls asleep, and a promise of a lock that begins to wait, note the time. Since when a lock is held is
//! only known as far as [`crate::held::holders`] says.

use std::collections::{HashMap, HashSet};
use std::fmt::{self, Write};
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::{Arc, LazyLock};

use rustc_hash::FxBuildHasher;

use crate::agent::pending::{Noted, PLAIN, PURPOSE_BITS, Within};
use crate::held::holders::{held_since, sight};
use crate::observe::json;
use crate::observe::stacks::{NONE, StackId};
use crate::observe::taken::Taken;
use crate::process::globals::{MEMORIES, NAMES, STORE};
use crate::process::registry::{Known, REGISTRY};
use waitasync_core::clock::{Timestamp, now};
use waitasync_core::lock::Waiter;
use waitasync_core::lock::names::Text;
use waitasync_core::lock::request::{AWAITS_NOTIFICATION, Request, pack};
use waitasync_core::lock::rings::{Has, Link, Seen, confirmed, rings};
use waitasync_core::lock::wait_for_graph::is_kept_by;
use waitasync_core::queue::location::Location;
use waitasync_core::queue::result::WaitResult;
use waitasync_core::queue::waiter::Listed;

type Locations = HashSet<Location, FxBuildHasher>;

/// The number that stands for a word: the same in all threads, and no address.
pub(crate) fn id(location: Location) -> u64 {
    static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    // What a JavaScript number holds.
    (KEY.hash_one(location.address()) >> 11).max(1)
}

/// Microseconds of the process's clock.
const fn micros(moment: Timestamp) -> u64 {
    moment.as_nanos() / 1000
}

/// A hold or a wait of a thread.
pub(crate) struct Entry {
    pub(crate) location: Location,
    pub(crate) request: Option<Request>,
    /// See [`crate::agent::pending::Noted`].
    pub(crate) purpose: u32,
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
    /// The first word of its thing. A lease, and a wait for a queue's events, are at another word of the queue.
    pub(crate) fn place(&self) -> Location {
        match self.request {
            Some(Request::Lease(words)) => self.location.words_before(words),
            Some(_) => self.location,
            None => self.location.words_before(self.purpose >> PURPOSE_BITS),
        }
    }

    pub(crate) fn with_taken(self, taken: Option<Taken>) -> Self {
        let (call, is_orphaned) = taken.map_or((NONE, false), |taken| (taken.call, taken.is_orphaned));
        Self { call, is_orphaned, ..self }
    }

    fn seen(&self) -> Seen {
        let Self { location, request, thread_id, blocked, .. } = *self;
        Seen { location, thread: thread_id, request, blocked }
    }

    /// Returns a key: the same in two looks if the entry was there throughout.
    pub(crate) fn key(&self) -> impl Eq + Hash + use<> {
        let Self { location, request, thread_id, blocked, since, serial, .. } = *self;
        (location, request.map(Request::packed), thread_id, blocked, since, serial)
    }

    /// Whether it is known since when it lasts. Of a wait that has just joined its line, that is noted a moment later: then its key changes, and
    /// a ring with it would be reported as two.
    fn has_begun(&self) -> bool {
        self.since != JUST_BEGUN
    }

    /// With its name, if it has one. `None` for a named lock that was stolen or released meanwhile. Called with no bucket locked.
    pub(crate) fn named(self) -> Option<Named> {
        let name = match self.request.and_then(Request::id) {
            Some(id) => Some(NAMES.name_of(id)?),
            None => MEMORIES.label(self.place()),
        };
        Some(Named(self, name))
    }
}

/// An entry, and the name of its word.
pub(crate) struct Named(pub(crate) Entry, pub(crate) Option<Text>);

impl Named {
    /// The entry for `entryOf` in `lib/locks/observe/entries.js`, which has the words for its numbers.
    pub(crate) fn write(&self, text: &mut json::Text, now: Timestamp) -> fmt::Result {
        let Self(entry, name) = self;
        let Entry { request, purpose, thread_id, thread_name, blocked, since, call, is_orphaned, .. } = entry;
        let request = request.map_or_else(|| pack(AWAITS_NOTIFICATION, *purpose), Request::packed);
        write!(text, "[{request},")?;
        match name {
            Some(name) => json::string(text, name)?,
            None => text.write_str("null")?,
        }
        write!(text, ",{},{thread_id},{blocked},", id(entry.place()))?;
        match since {
            // Whole microseconds of both, so that their sum is the same in every snapshot.
            Some(since) => write!(text, "{}", micros(now).saturating_sub(micros(*since)))?,
            None => text.write_str("null")?,
        }
        match thread_name {
            Some(name) => {
                text.write_char(',')?;
                json::string(text, &name.encode_utf16().collect::<Vec<_>>())?;
            }
            None if *call != NONE || *is_orphaned => text.write_str(",null")?,
            None => {}
        }
        match (*call, is_orphaned) {
            (NONE, false) => {}
            (call, false) => write!(text, ",{call}")?,
            (call, true) => write!(text, ",{call},1")?,
        }
        text.write_char(']')
    }
}

/// A start in the future: its age is reported as 0 ms, in each of two looks at the same.
pub(crate) const JUST_BEGUN: Option<Timestamp> = Some(Timestamp::NEVER);

/// How often the robust lists are read for a bucket that has claims whose keepers are not found.
const MOST_READINGS: usize = 4;

/// The holds and waits of this process.
pub(crate) struct Snapshot {
    pub(crate) now: Timestamp,
    pub(crate) held: Vec<Named>,
    pub(crate) waiting: Vec<Named>,
    pub(crate) rings: Vec<Vec<Link>>,
}

impl Snapshot {
    /// Stops no thread.
    pub(crate) fn take() -> Self {
        let (held, waiting) = read();
        let [held, waiting] = [held, waiting].map(|entries| entries.into_iter().filter_map(Entry::named).collect());
        let mut snapshot = Self { now: now(), held, waiting, rings: Vec::new() };
        let seen = |entries: &[Named]| entries.iter().map(|Named(entry, _)| entry.seen()).collect::<Vec<_>>();
        let rings = rings(&seen(&snapshot.held), &seen(&snapshot.waiting), &snapshot.within());
        if !rings.is_empty() {
            let keys = |entries: &[Named]| entries.iter().map(|Named(entry, _)| entry.key()).collect::<Vec<_>>();
            let (held, mut waiting) = read();
            waiting.retain(Entry::has_begun);
            let again = [held, waiting].map(|entries| entries.iter().map(Entry::key).collect());
            snapshot.rings = confirmed(rings, [&keys(&snapshot.held), &keys(&snapshot.waiting)], &again);
        }
        snapshot
    }

    /// Pairs each claim made in a callback with that callback's hold.
    fn within(&self) -> Vec<(usize, usize)> {
        if self.waiting.iter().all(|Named(claim, _)| claim.within.is_empty()) {
            return Vec::new();
        }
        let key = |entry: &Entry, serial| (entry.thread_id, serial);
        let holds = self.held.iter().enumerate().map(|(index, Named(hold, _))| (key(hold, hold.serial), index));
        let holds: HashMap<_, _, FxBuildHasher> = holds.collect();
        let claims = self.waiting.iter().enumerate();
        let holds_of = |(index, Named(claim, _)): (usize, &Named)| {
            let holds = claim.within.iter().filter_map(|&serial| holds.get(&key(claim, serial)).copied());
            holds.map(|hold| (index, hold)).collect::<Vec<_>>()
        };
        claims.flat_map(holds_of).collect()
    }

    /// For `snapshot` in `lib/locks/observe/snapshot.js`. `None` if a string of JavaScript cannot hold the text.
    pub(crate) fn json(&self) -> Option<String> {
        json::text(|text| {
            text.write_str("{\"held\":")?;
            json::array(text, &self.held, |text, entry| entry.write(text, self.now))?;
            text.write_str(",\"waiting\":")?;
            json::array(text, &self.waiting, |text, entry| entry.write(text, self.now))?;
            text.write_str(",\"cycles\":")?;
            json::array(text, &self.rings, |text, ring| json::array(text, ring, write_indices))?;
            text.write_char('}')
        })
    }
}

/// A link of a ring for `linkOf` in `lib/locks/observe/entries.js`: what the thread has, what it waits for, and whether it has only a place ahead
/// in the line.
pub(crate) fn write_link(
    text: &mut json::Text,
    (has, is_ahead, waits_for): (&Named, bool, &Named),
    now: Timestamp,
) -> fmt::Result {
    text.write_char('[')?;
    has.write(text, now)?;
    text.write_char(',')?;
    waits_for.write(text, now)?;
    write!(text, ",{is_ahead}]")
}

/// Two indices: of what the thread has, in the list of what is held, or, below 0, `!index` in the other; and of what it waits for.
fn write_indices(text: &mut json::Text, &Link { has, waits_for }: &Link) -> fmt::Result {
    match has {
        Has::Held(index) => write!(text, "[{index},{waits_for}]"),
        Has::Awaited(index) => write!(text, "[{},{waits_for}]", !index.cast_signed()),
    }
}

/// Reads the holds, and the waits.
fn read() -> (Vec<Entry>, Vec<Entry>) {
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
        // Before the robust lists, in which a thread that has been woken then finds what it was given.
        let given =
            known.iter().flat_map(|agent| undelivered_to(agent, granted).into_iter().map(move |given| (agent, given)));
        let given: Vec<_> = given.filter(|(_, given)| concerns.contains(&given.location)).collect();
        let claims = waiters.iter().filter_map(|(location, listed)| Some((*location, listed.claim?)));
        let kept: Locations =
            claims.filter(|(_, request)| request.waits_for_holders()).map(|(location, _)| location).collect();
        let (mut holders, mut in_lists) = (Vec::new(), Vec::new());
        for _ in 0..MOST_READINGS {
            (holders, in_lists) =
                REGISTRY.held(|_| true, |location| STORE.index_of(location) == bucket && concerns.contains(&location));
            let found = in_lists.iter().map(|(_, held)| held.location);
            let found: Locations = found.chain(given.iter().map(|(_, given)| given.location)).collect();
            // A thread that has taken a lock in JavaScript is about to list it.
            if kept.is_subset(&found) {
                break;
            }
        }

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

        let mut last = 0;
        for (location, Listed { waiter, claim }) in waiters.iter().filter(|(_, listed)| is_visible(listed.claim)) {
            // Mostly it is the agent of the waiter before.
            if !known.get(last).is_some_and(|agent| agent.is(waiter)) {
                let Some(agent) = known.iter().position(|agent| agent.is(waiter)) else { continue };
                last = agent;
            }
            waiting.push(awaited_by(&known[last], *location, waiter, *claim));
        }
    });
}

fn is_visible(claim: Option<Request>) -> bool {
    claim.is_none_or(Request::is_visible)
}

/// Makes the entry of a hold, or of a claim.
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

/// Returns the note on a wait at `location`, if there is one.
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
