//! Named locks: from a name to a word of this process, with the line of a read-write lock.
//!
//! A name has a word as long as there are requests for it, pending or granted. Without any it is left aside if its last
//! exclusive holder is dead and the next one has not seen it. Only native code changes the word. Every request has a
//! number: a lock that was stolen is not in its bucket's table any more, so its former holder gives back nothing.
//!
//! # Why the service need not look at the words of names
//! A look finds a word that grants something while the claims that could have it sleep: after a change of the word
//! without a call. No JavaScript knows where the words of names are. Each change is made here or in [`super::claims`],
//! in the critical section in which the line is served, too; those who are woken are recorded there, and woken even if
//! the operation panics. A thread cannot be ended in the midst of native code. If it is ended before or after an
//! operation, its clean-up gives back the names in its robust list, in its outbox or granted to its blocking wait, and
//! withdraws its claims, all by these operations; and a claim that leaves a strict line wakes the next one.
//!
//! # Lock order
//! The lock of [`Names`] is taken before that of a bucket. So a name cannot go between the moment at which it is found
//! and the moment at which a request joins its line. Waiters are woken when both have been released (invariant 5).

use std::collections::{HashMap, VecDeque};
use std::mem;

use rustc_hash::FxHashMap;

pub use super::Mode;
use super::bucket::{Section, shrink};
use super::word::change;
use super::{Claimed, Hold, Outbox, Request, UNLOCKED, Waiter, WaiterListStore, Word};
use crate::clock::Timestamp;
use crate::queue::waiter::Wakes;
use crate::queue::{Location, Ring, WaitResult};
use crate::sync::{Arc, AtomicI32, Mutex, lock};

/// A request's word, and its outcome. It is refused if it would have to wait and must not, or would wait for its own
/// thread.
pub type Requested = (Location, Request, Result<Claimed, Refusal>);

#[derive(Clone, Debug)]
pub enum Waits {
    Never,
    /// It waits as this waiter, until the deadline. A blocked thread must be the calling one.
    As(Waiter, Timestamp),
}

/// A request, for snapshots and queries.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RequestInfo {
    /// The UTF-16 code units of the name.
    pub name: Text,
    pub id: u32,
    pub mode: Mode,
    /// The thread that made the request.
    pub thread_id: u32,
    pub held: bool,
}

/// The UTF-16 code units of a name. (loom's `Arc` takes no slices.)
pub type Text = std::sync::Arc<[u16]>;

/// A name that is in use, and its word.
#[derive(Debug)]
pub struct Name {
    text: Text,
    word: AtomicI32,
}

impl Name {
    pub fn location(&self) -> Location {
        Location::of_process((&raw const self.word).expose_provenance())
    }

    /// Whether a request in this mode would be granted now.
    pub fn grants(&self, mode: Mode) -> bool {
        self.word.grants(Request::Named(mode, 0))
    }
}

/// The agent that requests a name.
#[derive(Clone, Debug)]
pub struct Requester {
    /// Tells it from other agents.
    pub outbox: Arc<Outbox>,
    pub thread_id: u32,
}

/// Why a request was not made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The name is held, or requested before.
    NotAvailable,
    /// A thread that blocks would wait for its own hold.
    HeldHere,
}

#[derive(Debug)]
struct Live {
    name: Arc<Name>,
    mode: Mode,
    requester: Requester,
}

#[derive(Debug, Default)]
struct NameTable {
    /// Those in use, and those that are left, which is said of each.
    names: HashMap<Text, (Arc<Name>, bool)>,
    /// The requests that are pending or granted, by their numbers.
    requests: FxHashMap<u32, Live>,
    last_id: u32,
    /// The unused names whose next exclusive holder is to see a death; the earliest first.
    left: VecDeque<Text>,
}

/// Of how many names that nobody requests any more it is remembered that their last holders died.
const MOST_LEFT: usize = 1024;

impl WaiterListStore {
    /// Whether the request was granted, and not stolen since.
    pub fn holds(&self, location: Location, id: u32) -> bool {
        self.critical_section_at(location, |section| section.lists.policy.named.contains_key(&(location, id)))
    }
}

impl NameTable {
    /// Returns the name, which is in use from now on.
    fn name(&mut self, text: &[u16]) -> Arc<Name> {
        if let Some((name, is_left)) = self.names.get_mut(text) {
            if mem::take(is_left) {
                self.left.retain(|left| !std::sync::Arc::ptr_eq(left, &name.text));
            }
            return Arc::clone(name);
        }
        let name = Arc::new(Name { text: text.into(), word: AtomicI32::new(UNLOCKED) });
        self.names.insert(name.text.clone(), (Arc::clone(&name), false));
        name
    }

    fn next_id(&mut self) -> u32 {
        loop {
            self.last_id = self.last_id.wrapping_add(1);
            if self.last_id != 0 && !self.requests.contains_key(&self.last_id) {
                return self.last_id;
            }
        }
    }

    /// Removes a name that is no longer in use: if one reference to it is the table's, and one the caller's.
    fn tidy(&mut self, store: &WaiterListStore, name: &Arc<Name>) {
        if Arc::strong_count(name) > 2 {
            return;
        }
        let location = name.location();
        if !store.critical_section_at(location, |section| section.lists.policy.abandoned.contains(&location)) {
            self.names.remove(&name.text);
            shrink(&mut self.names);
            return;
        }
        self.left.push_back(name.text.clone());
        if let Some((_, is_left)) = self.names.get_mut(&name.text) {
            *is_left = true;
        }
        if self.left.len() > MOST_LEFT
            && let Some((name, _)) = self.left.pop_front().and_then(|first| self.names.remove(&first))
        {
            let location = name.location();
            store.critical_section_at(location, |section| section.lists.policy.abandoned.remove(&location));
        }
    }

    /// Whether the agent has the name. Mostly that has one holder, unless they share it.
    fn is_held_by(&self, outbox: &Arc<Outbox>, name: &Name, section: &Section<'_>) -> bool {
        let is_own = |id| self.requests.get(&id).is_some_and(|live| Arc::ptr_eq(&live.requester.outbox, outbox));
        section.holders_of(name.location()).any(is_own)
    }

    /// Removes a request; its name may not be in use any more.
    fn take(&mut self, id: u32) -> Option<Live> {
        let live = self.requests.remove(&id)?;
        shrink(&mut self.requests);
        Some(live)
    }

    fn remove(&mut self, store: &WaiterListStore, id: u32) {
        if let Some(Live { name, .. }) = self.take(id) {
            self.tidy(store, &name);
        }
    }
}

/// The named locks of a process. Any thread may call any method.
#[derive(Debug, Default)]
pub struct Names {
    table: Mutex<NameTable>,
}

impl Section<'_> {
    #[inline(never)]
    pub(super) fn note_holder(&mut self, location: Location, id: u32, from_dead: bool) {
        self.lists.policy.named.insert((location, id), from_dead);
    }

    pub(super) fn holders_of(&self, location: Location) -> impl Iterator<Item = u32> {
        self.lists.policy.named.range((location, 0)..=(location, u32::MAX)).map(|(&(_, id), _)| id)
    }

    /// Returns whether the request of a named lock no longer holds it. The request is forgotten.
    pub(super) fn was_stolen(&mut self, location: Location, hold: Hold) -> bool {
        hold.id().is_some_and(|id| self.lists.policy.named.remove(&(location, id)).is_none())
    }
}

impl Names {
    /// Requests the name with these UTF-16 code units.
    pub fn request(
        &self,
        store: &WaiterListStore,
        text: &[u16],
        mode: Mode,
        requester: Requester,
        waits: Waits,
    ) -> Requested {
        // Dropped last: then its waiters are woken.
        let _wakes;
        let table = &mut *lock(&self.table);
        let name = table.name(text);
        let (location, id) = (name.location(), table.next_id());
        let request = Request::Named(mode, id);
        let claimed;
        (claimed, _wakes) = store.critical_section_and_wakes(location, |section| {
            let refusal = match waits {
                Waits::As(waiter, _) if waiter.blocks() && table.is_held_by(&requester.outbox, &name, section) => {
                    Refusal::HeldHere
                }
                Waits::As(waiter, deadline) => {
                    return Ok(section.claim_or_append(location, waiter, request, deadline, &name.word));
                }
                Waits::Never => Refusal::NotAvailable,
            };
            section.try_take(location, request, &name.word).map(Claimed::Now).ok_or(refusal)
        });
        if claimed.is_ok() {
            table.requests.insert(id, Live { name, mode, requester });
        } else {
            table.tidy(store, &name);
        }
        (location, request, claimed)
    }

    /// Finds the name with this text, if only others have it.
    pub fn of_others(&self, store: &WaiterListStore, text: &[u16], outbox: &Arc<Outbox>) -> Option<Arc<Name>> {
        let table = lock(&self.table);
        let (name, _) = table.names.get(text)?;
        let is_own = store.critical_section_at(name.location(), |section| table.is_held_by(outbox, name, section));
        (!is_own).then(|| Arc::clone(name))
    }

    /// Steals the name from all holders, whose agents hear of it. Returns, too, whether anyone held it.
    pub fn steal(
        &self,
        store: &WaiterListStore,
        text: &[u16],
        requester: Requester,
    ) -> (Location, Request, WaitResult, bool) {
        let mut losers: Vec<Arc<Outbox>> = Vec::new();
        let taken = {
            // A steal wakes nobody.
            let table = &mut *lock(&self.table);
            let (name, id) = (table.name(text), table.next_id());
            let (location, request) = (name.location(), Request::Named(Mode::Exclusive, id));
            let (result, stolen) = store.critical_section_at(location, |section| {
                let stolen: Vec<_> = section.holders_of(location).collect();
                let named = &mut section.lists.policy.named;
                let mut saw_death = false;
                for &id in &stolen {
                    saw_death |= named.remove(&(location, id)).unwrap_or_default();
                }
                // A loser that saw a death may not have repaired anything yet.
                if saw_death {
                    section.note_death(location, &name.word);
                }
                change(&name.word, |_| request.taken_from(UNLOCKED));
                section.was_taken(location);
                (section.taken(location, request.hold(), &name.word), stolen)
            });
            let took_over = !stolen.is_empty();
            for id in stolen {
                if let Some(Live { requester: Requester { outbox, .. }, .. }) = table.take(id)
                    && outbox.lose(id) == Ring::Needed
                {
                    losers.push(outbox);
                }
            }
            table.requests.insert(id, Live { name, mode: Mode::Exclusive, requester });
            (location, request, result, took_over)
        };
        for outbox in losers {
            outbox.ring();
        }
        taken
    }

    /// Ends a grant that its holder cannot use; a holder that died, or saw a death, is `AcquiredFromDead`.
    pub fn end_grant(&self, store: &WaiterListStore, id: u32, holder: WaitResult) -> bool {
        self.end_grant_and_wakes(store, id, holder).is_some()
    }

    /// Releases a grant, as [`WaiterListStore::release_unrung`]. `None`: it had been stolen.
    pub fn release_unrung(&self, store: &WaiterListStore, id: u32, outbox: &Arc<Outbox>) -> Option<bool> {
        let mut wakes = self.end_grant_and_wakes(store, id, WaitResult::Acquired)?;
        Some(wakes.withhold(outbox))
    }

    /// Ends a grant. The waiters are woken when the result is dropped, with no lock held.
    fn end_grant_and_wakes(&self, store: &WaiterListStore, id: u32, holder: WaitResult) -> Option<Wakes> {
        let table = &mut *lock(&self.table);
        let Live { name, mode, .. } = table.requests.get(&id)?;
        let (location, hold) = (name.location(), Hold::Named(*mode, id));
        let ((), wakes) = store.critical_section_and_wakes(location, |section| {
            section.return_unused(location, hold, holder, &name.word);
        });
        table.remove(store, id);
        Some(wakes)
    }

    /// Forgets a request that was withdrawn from its line or timed out.
    pub fn forget(&self, store: &WaiterListStore, id: u32) {
        lock(&self.table).remove(store, id);
    }

    /// Forgets an agent that has ended: its holds were passed on, its waits withdrawn.
    pub fn end(&self, store: &WaiterListStore, outbox: &Arc<Outbox>) {
        let table = &mut *lock(&self.table);
        let is_its = |live: &Live| Arc::ptr_eq(&live.requester.outbox, outbox);
        let ended: Vec<_> = table.requests.iter().filter(|(_, live)| is_its(live)).map(|(&id, _)| id).collect();
        for id in ended {
            table.remove(store, id);
        }
    }

    /// Returns all requests, in the order in which they were made.
    pub fn requests(&self, store: &WaiterListStore) -> Vec<RequestInfo> {
        let table = &*lock(&self.table);
        let info = |(&id, Live { name, mode, requester }): (&u32, &Live)| RequestInfo {
            name: name.text.clone(),
            id,
            mode: *mode,
            thread_id: requester.thread_id,
            held: store.holds(name.location(), id),
        };
        let mut requests: Vec<_> = table.requests.iter().map(info).collect();
        // Numbers start again after 2^32 requests.
        requests.sort_unstable_by_key(|request| request.id.wrapping_sub(table.last_id).wrapping_sub(1));
        requests
    }

    /// Returns the UTF-16 code units of the request's name; `None` if the request is over.
    pub fn name_of(&self, id: u32) -> Option<Text> {
        Some(lock(&self.table).requests.get(&id)?.name.text.clone())
    }

    /// Counts the names in use and those that dead holders left behind.
    pub fn count(&self) -> usize {
        lock(&self.table).names.len()
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_at_no_location_that_memory_of_javascript_can_have() {
        let name = NameTable::default().name(&[65]);
        let address = (&raw const name.word).addr();
        assert_ne!(name.location(), Location::from_address(address));
        assert!(name.location().is_of_process() && !Location::from_address(address).is_of_process());
        assert_eq!(name.location().address() & !3, address);
    }
}
