//! Grants on their way to the robust lists of their agents' threads.
//!
//! A grant lies in its agent's outbox, or is the result for which the agent's thread sleeps, until that has it in its
//! robust list. Meanwhile the thread may hold more of the same word. So whether a grant is in a list that has been read
//! is not seen by its word and agent: it was not, if it is on its way *afterwards*, too.
//!
//! An outbox is read for one bucket after the other, and may have a hundred thousand grants. So each grant is read once,
//! and kept with those of its bucket ([`Incoming`]).

use rustc_hash::FxHashMap;

use super::notes::Noted;
use super::registry::Known;
use super::stacks::{NONE, StackId};
use crate::clock::Timestamp;
use crate::lock::{Hold, WaiterListStore};
use crate::queue::{Location, Reading, WaitResult};

/// Where a grant is until it is in the robust list.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    /// In the outbox: the slot of its claim, and its place in the mail.
    Mail(u32, usize),
    /// In the result of the thread's sleep, which began then.
    Sleep(Timestamp),
}

/// A grant that may not be in its agent's robust list yet.
#[derive(Clone, Copy)]
pub struct Undelivered {
    pub location: Location,
    pub hold: Hold,
    at: At,
}

impl Undelivered {
    /// Returns the stack of the call that claimed it; `NONE` unless stalls are reported.
    pub fn call(&self, agent: &Known) -> StackId {
        match self.at {
            At::Mail(slot, _) => agent.notes.get(slot, self.location).map_or(NONE, |(noted, _)| noted.call),
            At::Sleep(_) => agent.notes.sleep().map_or(NONE, |noted| noted.call),
        }
    }
}

/// The grants on their way to an agent, by bucket.
#[derive(Default)]
pub struct Incoming {
    reading: Reading,
    by_bucket: FxHashMap<usize, Vec<Undelivered>>,
}

impl Incoming {
    /// Reads the new grants, and forgets those that were taken.
    pub fn read(&mut self, store: &WaiterListStore, agent: &Known) {
        let mut new = Vec::new();
        if !agent.outbox.read_grants(&mut self.reading, |slot, place| new.push((slot, place))) {
            self.by_bucket.clear();
        }
        for (slot, place) in new {
            // Without a note it has been taken out meanwhile.
            if let Some((location, request)) = agent.notes.of_slot(slot).and_then(Noted::claim)
                && request.is_owned()
                && request.is_visible()
            {
                let given = Undelivered { location, hold: request.hold(), at: At::Mail(slot, place) };
                self.by_bucket.entry(store.index_of(location)).or_default().push(given);
            }
        }
    }

    /// Lists where all grants are that have been read.
    pub fn locations(&self) -> impl Iterator<Item = Location> {
        self.by_bucket.values().flatten().map(|given| given.location)
    }

    /// Lists the agent's grants at words of a bucket.
    pub fn to(&mut self, store: &WaiterListStore, agent: &Known, bucket: usize) -> Vec<Undelivered> {
        self.read(store, agent);
        let slept_for = slept_for(agent).filter(|given| store.index_of(given.location) == bucket);
        let Some(given) = self.by_bucket.get_mut(&bucket) else { return slept_for.into_iter().collect() };
        let still_has = agent.outbox.still_has(&self.reading);
        given.retain(|given| matches!(given.at, At::Mail(_, place) if still_has(place)));
        given.iter().copied().chain(slept_for).collect()
    }

    /// Calls `keep` with the grants that are not in the agent's list.
    ///
    /// The list was read after the grants. `is_listed`: whether it has a new entry for the word. Returns whether it is
    /// known of all grants.
    pub fn keep(
        &self,
        agent: &Known,
        given: Vec<Undelivered>,
        is_listed: impl Fn(Location) -> bool,
        mut keep: impl FnMut(Undelivered),
    ) -> bool {
        let slept_for = slept_for(agent);
        let still_has = agent.outbox.still_has(&self.reading);
        let mut are_known = true;
        for given in given {
            let (is_there, may_be_listed) = match given.at {
                At::Mail(_, place) => (still_has(place), false),
                At::Sleep(_) => (slept_for.is_some_and(|now| now.at == given.at), true),
            };
            are_known &= is_there;
            if is_there && !(may_be_listed && is_listed(given.location)) {
                keep(given);
            }
        }
        are_known
    }
}

/// Returns the grant that ends the sleep of the agent's thread.
fn slept_for(agent: &Known) -> Option<Undelivered> {
    let has_result = agent.blocked_thread.result().is_some_and(WaitResult::is_acquired);
    let noted = agent.notes.sleep().filter(|_| has_result)?;
    let request = noted.request.filter(|request| request.is_owned() && request.is_visible())?;
    Some(Undelivered { location: noted.location, hold: request.hold(), at: At::Sleep(noted.since) })
}
