//! The names that are in use, and the requests for them.

use std::borrow::Borrow;
use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};

use rustc_hash::FxBuildHasher;

use super::policy::{Outbox, WaiterListStore};
use super::request::Request;
use super::word::UNLOCKED;
use crate::clock::Timestamp;
use crate::queue::location::Location;
use crate::sync::{Arc, AtomicI32};

/// A name that is in use: its UTF-16 code units, and its word.
#[derive(Debug)]
pub(super) struct Name {
    pub(super) text: Box<[u16]>,
    pub(super) word: AtomicI32,
}

impl Name {
    pub(super) fn location(&self) -> Location {
        Location::from_address((&raw const self.word).expose_provenance())
    }
}

/// A name, found by its text.
#[derive(Debug)]
pub(super) struct ByText(pub(super) Arc<Name>);

impl Borrow<[u16]> for ByText {
    fn borrow(&self) -> &[u16] {
        &self.0.text
    }
}

impl PartialEq for ByText {
    fn eq(&self, other: &Self) -> bool {
        self.0.text == other.0.text
    }
}

impl Eq for ByText {}

impl Hash for ByText {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.text.hash(state);
    }
}

/// How a name is wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Together with others that want it so.
    Shared,
    /// Alone.
    Exclusive,
}

impl Mode {
    pub(super) const fn request(self, id: u32) -> Request {
        match self {
            Self::Shared => Request::NamedShared(id),
            Self::Exclusive => Request::NamedExclusive(id),
        }
    }
}

/// The agent that requests a name.
#[derive(Clone, Debug)]
pub struct Requester {
    /// Tells it from other agents.
    pub outbox: Arc<Outbox>,
    /// Its `worker_threads.threadId`.
    pub thread_id: u32,
}

impl Requester {
    pub(super) fn is(&self, outbox: &Arc<Outbox>) -> bool {
        Arc::ptr_eq(&self.outbox, outbox)
    }
}

/// Why a request was not made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The name is held, or requested before.
    NotAvailable,
    /// A thread that blocks would wait for what it holds itself.
    HeldHere,
    /// A thread that blocks would wait for a promise of its own, which cannot be settled meanwhile.
    AwaitedHere,
}

/// A request that is pending or granted.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) name: Arc<Name>,
    pub(super) mode: Mode,
    pub(super) requester: Requester,
}

#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) names: HashSet<ByText>,
    /// By their numbers.
    pub(super) requests: HashMap<u32, Live, FxBuildHasher>,
    pub(super) last_id: u32,
    /// The requests whose locks were stolen, until their agents have taken the news.
    pub(super) stolen: Vec<(Arc<Outbox>, u32)>,
}

impl WaiterListStore {
    /// Whether the request has been granted, and the lock not been stolen since.
    pub(super) fn holds(&self, location: Location, id: u32) -> bool {
        self.critical_section_at(location, |section| section.policy().named.contains_key(&id))
    }

    pub(super) fn is_abandoned(&self, location: Location) -> bool {
        self.any_abandoned_near(location)
            && self.critical_section_at(location, |section| section.policy().abandoned.contains(&location))
    }
}

impl Table {
    pub(super) fn name(&mut self, text: &[u16]) -> Arc<Name> {
        if let Some(ByText(name)) = self.names.get(text) {
            return Arc::clone(name);
        }
        let name = Arc::new(Name { text: text.into(), word: AtomicI32::new(UNLOCKED) });
        self.names.insert(ByText(Arc::clone(&name)));
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

    /// A name may not be in use any more.
    pub(super) fn tidy(&mut self, store: &WaiterListStore, name: &Arc<Name>) {
        // One is the set's, one is this.
        if Arc::strong_count(name) == 2 && !store.is_abandoned(name.location()) {
            self.names.remove(&*name.text);
        }
    }

    /// The request is over.
    pub(super) fn remove(&mut self, store: &WaiterListStore, id: u32) {
        if let Some(Live { name, .. }) = self.requests.remove(&id) {
            self.tidy(store, &name);
        }
    }

    /// Whether a thread may block for a name: otherwise it would wait for itself.
    pub(super) fn own_request(
        &self,
        store: &WaiterListStore,
        name: &Arc<Name>,
        requester: &Requester,
        deadline: Timestamp,
    ) -> Result<(), Refusal> {
        let own = self.requests.iter().filter(|(_, live)| Arc::ptr_eq(&live.name, name));
        let mut own = own.filter(|(_, live)| live.requester.is(&requester.outbox)).peekable();
        if own.peek().is_none() {
            Ok(())
        } else if own.any(|(&id, _)| store.holds(name.location(), id)) {
            Err(Refusal::HeldHere)
        } else if deadline == Timestamp::NEVER {
            Err(Refusal::AwaitedHere)
        } else {
            Ok(())
        }
    }
}
