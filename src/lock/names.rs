//! Named locks: from a name to a word of this process, with the line of a read-write lock.
//!
//! A name has a word as long as there are requests for it, pending or granted; or while its last exclusive holder is dead and the
//! next one has not been told. Only native code changes the word. Every request has a number: a lock that was stolen is not in
//! its bucket's table any more, so its former holder gives back nothing.
//!
//! # Lock order
//! The lock of [`Names`] is taken before that of a bucket. So a name cannot go between the moment at which it is found and the
//! moment at which a request joins its line.

use std::borrow::Borrow;
use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};

use rustc_hash::FxBuildHasher;

use super::fairness::Released;
use super::policy::{Outbox, Section, Waiter, WaiterListStore};
use super::request::Request;
use super::store::Claimed;
use super::word::{UNLOCKED, Word};
use crate::clock::Timestamp;
use crate::queue::location::Location;
use crate::queue::result::WaitResult;
use crate::sync::{Arc, AtomicI32, Mutex, lock};

/// A name that is in use: its UTF-16 code units, and its word.
#[derive(Debug)]
struct Name {
    text: Box<[u16]>,
    word: AtomicI32,
}

impl Name {
    fn location(&self) -> Location {
        Location::from_address((&raw const self.word).expose_provenance())
    }
}

/// A name, found by its text.
#[derive(Debug)]
struct ByText(Arc<Name>);

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

impl Word for AtomicI32 {
    fn load(&self) -> i32 {
        self.load(Ordering::SeqCst)
    }

    fn compare_exchange(&self, current: i32, new: i32) -> bool {
        self.compare_exchange(current, new, Ordering::SeqCst, Ordering::SeqCst).is_ok()
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
    const fn request(self, id: u32) -> Request {
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
    fn is(&self, outbox: &Arc<Outbox>) -> bool {
        Arc::ptr_eq(&self.outbox, outbox)
    }
}

/// A request that is pending or granted.
#[derive(Debug)]
struct Live {
    name: Arc<Name>,
    mode: Mode,
    requester: Requester,
}

/// What came of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Requested {
    /// It has been granted.
    Now(Location, Request, WaitResult),
    /// It is in the line.
    Pending(Location, Request, crate::queue::bucket::Ticket),
    /// It would have to wait, and was not to; or for its own thread.
    Refused(Refusal),
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

/// How a request waits.
#[derive(Clone, Debug)]
pub enum Waits {
    /// It does not.
    Never,
    /// As this waiter, until the deadline. A thread is the calling one.
    As(Waiter, Timestamp),
}

/// A request, for those who ask what is held and awaited.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RequestInfo {
    /// The UTF-16 code units of the name.
    pub name: Box<[u16]>,
    /// The number of the request.
    pub id: u32,
    /// Where the word is.
    pub location: Location,
    /// How the name is wanted.
    pub mode: Mode,
    /// The thread that made the request.
    pub thread_id: u32,
    /// Whether it has been granted.
    pub held: bool,
}

#[derive(Debug, Default)]
struct Table {
    names: HashSet<ByText>,
    /// By their numbers.
    requests: HashMap<u32, Live, FxBuildHasher>,
    last_id: u32,
    /// The requests whose locks were stolen, until their agents have taken the news.
    stolen: Vec<(Arc<Outbox>, u32)>,
}

/// The named locks of a process. Any thread may call any method.
#[derive(Debug, Default)]
pub struct Names {
    table: Mutex<Table>,
    /// How many news of stolen locks there are.
    stolen: AtomicUsize,
}

impl Section<'_> {
    /// Whether a request for a named lock does not hold it any more. It is told so once.
    pub(super) fn was_stolen(&mut self, request: Request) -> bool {
        request.id().is_some_and(|id| self.policy_mut().named.remove(&id).is_none())
    }
}

impl WaiterListStore {
    /// Takes the word for `request` from everyone who holds it; gives them the numbers of their requests.
    fn steal(&self, location: Location, request: Request, word: &impl Word) -> (WaitResult, Vec<u32>) {
        self.critical_section_at(location, |section| {
            let named = &mut section.policy_mut().named;
            let stolen = named.extract_if(|_, at| *at == location).map(|(id, _)| id).collect();
            request.overwrite(word);
            (section.taken(location, request), stolen)
        })
    }

    /// Whether the request has been granted, and the lock not been stolen since.
    fn holds(&self, location: Location, id: u32) -> bool {
        self.critical_section_at(location, |section| section.policy().named.contains_key(&id))
    }

    fn is_abandoned(&self, location: Location) -> bool {
        self.any_abandoned_near(location)
            && self.critical_section_at(location, |section| section.policy().abandoned.contains(&location))
    }
}

impl Table {
    fn name(&mut self, text: &[u16]) -> Arc<Name> {
        if let Some(ByText(name)) = self.names.get(text) {
            return Arc::clone(name);
        }
        let name = Arc::new(Name { text: text.into(), word: AtomicI32::new(UNLOCKED) });
        self.names.insert(ByText(Arc::clone(&name)));
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

    /// A name may not be in use any more.
    fn tidy(&mut self, store: &WaiterListStore, name: &Arc<Name>) {
        // One is the set's, one is this.
        if Arc::strong_count(name) == 2 && !store.is_abandoned(name.location()) {
            self.names.remove(&*name.text);
        }
    }

    /// The request is over.
    fn remove(&mut self, store: &WaiterListStore, id: u32) {
        if let Some(Live { name, .. }) = self.requests.remove(&id) {
            self.tidy(store, &name);
        }
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
        let table = &mut *lock(&self.table);
        let name = table.name(text);
        let (location, id) = (name.location(), table.next_id());
        let request = mode.request(id);
        let may_wait = match &waits {
            Waits::As(Waiter::Agent(..), _) => Ok(()),
            Waits::As(Waiter::Thread(_), deadline) => table.own_request(store, &name, &requester, *deadline),
            Waits::Never => Err(Refusal::NotAvailable),
        };
        let claimed = match (may_wait, waits) {
            (Ok(()), Waits::As(waiter, deadline)) => store.claim(location, waiter, request, deadline, &name.word),
            (may_wait, _) => match (store.try_take(location, request, &name.word), may_wait) {
                (Some(result), _) => Claimed::Now(result),
                (None, refusal) => {
                    table.tidy(store, &name);
                    return Requested::Refused(refusal.err().unwrap_or(Refusal::NotAvailable));
                }
            },
        };
        let outcome = match claimed {
            Claimed::Now(result) => Requested::Now(location, request, result),
            Claimed::Pending(ticket) => Requested::Pending(location, request, ticket),
        };
        table.requests.insert(id, Live { name, mode, requester });
        outcome
    }

    /// Takes the name alone, from everyone who holds it and before everyone who awaits it. Their agents hear of it.
    pub fn steal(
        &self,
        store: &WaiterListStore,
        text: &[u16],
        requester: Requester,
    ) -> (Location, Request, WaitResult) {
        let mut losers = Vec::new();
        let taken = {
            let table = &mut *lock(&self.table);
            let (name, id) = (table.name(text), table.next_id());
            let (location, request) = (name.location(), Request::NamedExclusive(id));
            let (result, stolen) = store.steal(location, request, &name.word);
            for id in stolen {
                if let Some(Live { requester: Requester { outbox, .. }, .. }) = table.requests.remove(&id) {
                    table.stolen.push((Arc::clone(&outbox), id));
                    losers.push(outbox);
                }
            }
            self.stolen.store(table.stolen.len(), Ordering::Release);
            table.requests.insert(id, Live { name, mode: Mode::Exclusive, requester });
            (location, request, result)
        };
        for outbox in losers {
            outbox.ring();
        }
        taken
    }

    /// Whether a lock of this agent was stolen, of which it has not taken the news.
    pub fn any_stolen(&self, outbox: &Arc<Outbox>) -> bool {
        self.stolen.load(Ordering::Acquire) != 0
            && lock(&self.table).stolen.iter().any(|(loser, _)| Arc::ptr_eq(loser, outbox))
    }

    /// The number of a request of this agent whose lock was stolen: each once.
    pub fn take_stolen(&self, outbox: &Arc<Outbox>) -> Option<u32> {
        let table = &mut *lock(&self.table);
        let index = table.stolen.iter().position(|(loser, _)| Arc::ptr_eq(loser, outbox))?;
        let (_, id) = table.stolen.remove(index);
        self.stolen.store(table.stolen.len(), Ordering::Release);
        Some(id)
    }

    /// What was granted is given back. False: it had been stolen.
    pub fn release(&self, store: &WaiterListStore, id: u32) -> bool {
        self.end_request(store, id, |location, request, word| {
            let (Released::GoOn | Released::MakeRoom) = store.release(location, request, word);
        })
    }

    /// The thread that held it has died.
    pub fn abandon(&self, store: &WaiterListStore, id: u32) {
        self.end_request(store, id, |location, request, word| store.abandon(location, request, word));
    }

    /// The grant, made with `result`, was not made use of.
    pub fn return_unused(&self, store: &WaiterListStore, id: u32, result: WaitResult) {
        self.end_request(store, id, |location, request, word| store.return_unused(location, request, result, word));
    }

    fn end_request(&self, store: &WaiterListStore, id: u32, end: impl FnOnce(Location, Request, &AtomicI32)) -> bool {
        let table = &mut *lock(&self.table);
        let Some(Live { name, mode, .. }) = table.requests.get(&id) else { return false };
        end(name.location(), mode.request(id), &name.word);
        table.remove(store, id);
        true
    }

    /// The request has been withdrawn from its line, or has timed out.
    pub fn forget(&self, store: &WaiterListStore, id: u32) {
        lock(&self.table).remove(store, id);
    }

    /// The agent has ended: what it held was passed on, what it awaited withdrawn.
    pub fn end(&self, store: &WaiterListStore, outbox: &Arc<Outbox>) {
        let table = &mut *lock(&self.table);
        let ended: Vec<_> = table.requests.extract_if(|_, live| live.requester.is(outbox)).collect();
        for (_, Live { name, .. }) in ended {
            table.tidy(store, &name);
        }
        table.stolen.retain(|(loser, _)| !Arc::ptr_eq(loser, outbox));
        self.stolen.store(table.stolen.len(), Ordering::Release);
    }

    /// All requests, in the order in which they were made.
    pub fn requests(&self, store: &WaiterListStore) -> Vec<RequestInfo> {
        let table = &*lock(&self.table);
        let info = |(&id, Live { name, mode, requester }): (&u32, &Live)| RequestInfo {
            name: name.text.clone(),
            id,
            location: name.location(),
            mode: *mode,
            thread_id: requester.thread_id,
            held: store.holds(name.location(), id),
        };
        let mut requests: Vec<_> = table.requests.iter().map(info).collect();
        // Numbers start again after 2^32 requests.
        requests.sort_unstable_by_key(|request| request.id.wrapping_sub(table.last_id).wrapping_sub(1));
        requests
    }

    /// How many names are in use.
    pub fn count(&self) -> usize {
        lock(&self.table).names.len()
    }
}

impl Table {
    /// Whether a thread may block for a name: otherwise it would wait for itself.
    fn own_request(
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
