//! The names that are in use, and the requests for them.

use std::collections::HashMap;

use rustc_hash::FxHashMap;

use super::bucket::{Section, shrink};
use super::{Mode, Outbox, Request, UNLOCKED, WaiterListStore, Word};
use crate::queue::Location;
use crate::sync::{Arc, AtomicI32};

/// The UTF-16 code units of a name. (loom's `Arc` takes no slices.)
pub type Text = std::sync::Arc<[u16]>;

/// A name that is in use, and its word.
#[derive(Debug)]
pub struct Name {
    pub(super) text: Text,
    pub(super) word: AtomicI32,
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
pub(super) struct Live {
    pub(super) name: Arc<Name>,
    pub(super) mode: Mode,
    pub(super) requester: Requester,
}

#[derive(Debug, Default)]
pub(super) struct NameTable {
    pub(super) names: HashMap<Text, Arc<Name>>,
    /// The requests that are pending or granted, by their numbers.
    pub(super) requests: FxHashMap<u32, Live>,
    pub(super) last_id: u32,
    /// The unused names whose next exclusive holder is to see a death, numbered in their order.
    pub(super) left: HashMap<Text, (u64, Arc<Name>)>,
    last_left: u64,
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
    pub(super) fn name(&mut self, text: &[u16]) -> Arc<Name> {
        if let Some(name) = self.names.get(text) {
            return Arc::clone(name);
        }
        let left = if self.left.is_empty() { None } else { self.left.remove(text) };
        let new = || Arc::new(Name { text: text.into(), word: AtomicI32::new(UNLOCKED) });
        let name = left.map_or_else(new, |(_, name)| name);
        self.names.insert(name.text.clone(), Arc::clone(&name));
        name
    }

    pub(super) fn next_id(&mut self) -> u32 {
        loop {
            self.last_id = self.last_id.wrapping_add(1);
            if self.last_id != 0 && !self.requests.contains_key(&self.last_id) {
                return self.last_id;
            }
        }
    }

    /// Removes a name that is no longer in use: if one reference to it is the table's, and one the caller's.
    pub(super) fn tidy(&mut self, store: &WaiterListStore, name: &Arc<Name>) {
        if Arc::strong_count(name) > 2 {
            return;
        }
        self.names.remove(&*name.text);
        shrink(&mut self.names);
        let location = name.location();
        if store.critical_section_at(location, |section| section.lists.policy.abandoned.contains(&location)) {
            self.last_left += 1;
            self.left.insert(name.text.clone(), (self.last_left, Arc::clone(name)));
            if self.left.len() > MOST_LEFT
                && let Some(first) = self.left.values().map(|&(nth, _)| nth).min()
            {
                for (_, (_, name)) in self.left.extract_if(|_, (nth, _)| *nth == first) {
                    let location = name.location();
                    store.critical_section_at(location, |section| section.lists.policy.abandoned.remove(&location));
                }
            }
        }
    }

    /// Whether the agent has the name. Mostly that has one holder, unless they share it.
    pub(super) fn is_held_by(&self, outbox: &Arc<Outbox>, name: &Name, section: &Section<'_>) -> bool {
        let is_own = |id| self.requests.get(&id).is_some_and(|live| Arc::ptr_eq(&live.requester.outbox, outbox));
        section.holders_of(name.location()).any(is_own)
    }

    /// Removes a request; its name may not be in use any more.
    pub(super) fn take(&mut self, id: u32) -> Option<Live> {
        let live = self.requests.remove(&id)?;
        shrink(&mut self.requests);
        Some(live)
    }

    pub(super) fn remove(&mut self, store: &WaiterListStore, id: u32) {
        if let Some(Live { name, .. }) = self.take(id) {
            self.tidy(store, &name);
        }
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
