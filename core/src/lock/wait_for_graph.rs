//! Deadlocks: cycles of threads that block without a timeout, each for something that the next one holds.
//!
//! Claims that have a timeout, and those of promises, are left out: they may leave the line.
//!
//! No graph is built, unlike that of [`super::cycles`]: a line is read only where the search comes to it, and of holds
//! only those of threads that block. What others hold makes nobody's sleep dearer.
//!
//! # For what a request waits: the rules of all cycles
//! | it requests | it waits for the holders | and for claims ahead in the line |
//! |---|---|---|
//! | a lock, exclusive access | all | none: whoever is ahead waits for one of the same holders |
//! | a share | the writer | those of writers |
//! | permits | none: any thread may add permits | none |
//! | permits of a limit | each of so many that its own holds and the request do not fit beside them | all |
//!
//! It waits for *all* of these, so one that never goes on is enough to make it wait for ever. That several holders
//! together leave too little room of a limit is not enough: each of them may be the one that goes on.
//!
//! # Why every cycle is found, by one thread
//! A thread that holds something publishes its wait after its claim has joined the line, and looks for a cycle under
//! the same lock. A thread that holds nothing need do neither: others wait for it only if its claim is ahead of theirs,
//! and that is found in the line. Such a claim joined before the one behind it, whose thread holds something, as a
//! thread of the cycle waits for it. So when the last holder of a cycle looks, it sees the waits of all others. One
//! ahead that holds something counts once it is published, as other holders do: it may be the one that finds the cycle.
//! Then it leaves the line, and the one ahead of it, of which nobody knew, would keep those behind waiting: so a search
//! asks about each thread ahead. Of holds, only those of published threads and of the searching one are read: one that
//! holds much makes no other's sleep dearer, as long as it does not block itself. A thread that finds a cycle is not
//! published, so no other finds the same one. A promise that is granted a lock while its thread blocks makes that a
//! holder and can close a cycle: so a thread looks again after a slice of its sleep in which that has happened.
//!
//! # Why no false one is found
//! Published threads change nothing that they hold: each takes its wait back, under the lock of the graph, before it
//! goes on. So a hold of a published thread that is found once the lock of the graph is held lasts during the whole
//! search. That a claim is unsettled is found in the critical section of its line. In a cycle of such threads no claim
//! can be granted, as each needs that another goes on. A thread may be terminated, which the search cannot know: its
//! claim was in the line, so the cycle was there.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Hold, Mode, Request, Waiter, WaiterListStore};
use crate::queue::{BlockedThread, Listed, Location, Ticket};
use crate::sync::{Arc, Mutex, lock};

/// A thread that blocks for a claim without a timeout.
#[derive(Clone, Debug)]
pub struct Blocked {
    pub thread: Arc<BlockedThread>,
    pub ticket: Ticket,
    pub location: Location,
    pub request: Request,
}

/// A thread's hold or place that keeps another one waiting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Obstacle {
    /// It holds this.
    Holds(Hold),
    /// It requests this, ahead in the line.
    IsAhead(Request),
}

#[derive(Debug)]
pub struct CycleLink {
    pub blocked: Blocked,
    /// Its hold or place that the thread before it in the cycle waits for; of the first one, the last.
    pub obstacle: Obstacle,
}

/// A thread that keeps another waiting.
#[derive(Debug)]
pub struct Blocker {
    pub thread: Arc<BlockedThread>,
    pub obstacle: Obstacle,
    /// Its claim ahead in the line, if it holds nothing, here or elsewhere. Otherwise its wait counts once published.
    pub claim: Option<Blocked>,
}

/// The threads that block without a timeout.
#[derive(Debug, Default)]
pub struct WaitForGraph {
    /// By the addresses of their records.
    published: Mutex<FxHashMap<usize, Blocked>>,
}

fn key(thread: &Arc<BlockedThread>) -> usize {
    Arc::as_ptr(thread).addr()
}

impl WaitForGraph {
    /// Publishes that the calling thread, a holder, is about to sleep; or returns the cycle that this would close,
    /// which begins with it. Idempotent: a call for the same wait looks anew.
    ///
    /// `look`, called once the lock of the graph is held, is given the waits that are published and this one. It
    /// returns a function that tells which threads keep a blocked one waiting; none if its claim has been settled. The
    /// search asks only about claims at the locations of those waits, and of threads that hold something it need only
    /// be told those that have one of these waits.
    pub fn block<K: Fn(&Blocked) -> Vec<Blocker>>(
        &self,
        blocked: &Blocked,
        look: impl FnOnce(&[&Blocked]) -> K,
    ) -> Option<Vec<CycleLink>> {
        let mut published = lock(&self.published);
        published.remove(&key(&blocked.thread));
        let waits: Vec<_> = published.values().chain([blocked]).collect();
        let (blockers, (seen, path)) = (look(&waits), Default::default());
        let mut search = Search { published: &published, start: blocked, blockers, seen, path };
        let closing = search.visit(blocked);
        let mut cycle = search.path;
        let Some(obstacle) = closing else {
            published.insert(key(&blocked.thread), blocked.clone());
            return None;
        };
        cycle.push(CycleLink { blocked: blocked.clone(), obstacle });
        cycle.reverse();
        Some(cycle)
    }

    /// Removes the calling thread, which is about to go on.
    pub fn leave(&self, thread: &Arc<BlockedThread>) {
        lock(&self.published).remove(&key(thread));
    }
}

struct Search<'a, K> {
    published: &'a FxHashMap<usize, Blocked>,
    start: &'a Blocked,
    blockers: K,
    seen: FxHashSet<usize>,
    /// Once a cycle has been found: its links but for the first one, in reverse.
    path: Vec<CycleLink>,
}

impl<K: Fn(&Blocked) -> Vec<Blocker>> Search<'_, K> {
    /// Finds the obstacle that closes a cycle through `blocked`. It is the first thread's.
    fn visit(&mut self, blocked: &Blocked) -> Option<Obstacle> {
        for Blocker { thread, obstacle, claim } in (self.blockers)(blocked) {
            if Arc::ptr_eq(&thread, &self.start.thread) {
                return Some(obstacle);
            }
            if !self.seen.insert(key(&thread)) {
                continue;
            }
            if let Some(next) = claim.or_else(|| self.published.get(&key(&thread)).cloned())
                && let Some(closing) = self.visit(&next)
            {
                self.path.push(CycleLink { blocked: next, obstacle });
                return Some(closing);
            }
        }
        None
    }
}

/// Whether this hold keeps a claim with this request waiting. Users see the hold.
pub const fn is_kept_by(request: Request, held: Hold) -> bool {
    match (request, held) {
        (Request::Limited { amount, limit }, Hold::Limited(held)) => amount as u64 + held as u64 > limit as u64,
        (Request::Limited { .. }, _) => false,
        _ => request.mode().is_some() && (request.hold().is_exclusive() || held.is_exclusive()),
    }
}

/// Whether a claim with this request waits for one ahead.
pub const fn is_behind(request: Request, ahead: Request) -> bool {
    match request.mode() {
        Some(Mode::Exclusive) => false,
        Some(Mode::Shared) => ahead.hold().is_exclusive(),
        None => matches!(request, Request::Limited { .. }),
    }
}

/// Adds a thread's own holds of the word to its request.
pub fn beside_own(request: Request, own: impl Iterator<Item = Hold>) -> Request {
    own.fold(request, |sum, own| match (sum, own) {
        (Request::Limited { amount, limit }, Hold::Limited(own)) => {
            Request::Limited { amount: amount.saturating_add(own), limit }
        }
        _ => sum,
    })
}

impl WaiterListStore {
    /// Returns which threads keep a blocked one waiting; none if its claim has been settled. `held`: the holds of its
    /// word that count. `thread_of`: finds the thread of the waiter that the lock is on its way to. `holds`: whether a
    /// thread holds anything, here or elsewhere.
    pub fn blockers(
        &self,
        blocked: &Blocked,
        held: &[(Arc<BlockedThread>, Hold)],
        thread_of: impl FnOnce(&Waiter) -> Option<Arc<BlockedThread>>,
        holds: impl Fn(&Arc<BlockedThread>) -> bool,
    ) -> Vec<Blocker> {
        let is_own = |thread: &Arc<_>| Arc::ptr_eq(thread, &blocked.thread);
        let own = held.iter().filter(|(thread, _)| is_own(thread)).map(|&(_, own)| own);
        let beside_own = beside_own(blocked.request, own);
        let waiter = Waiter::Thread(Arc::clone(&blocked.thread));
        let blockers = self.with_waiter(blocked.ticket, &waiter, |section, key, location| {
            let policy = &section.lists.policy;
            let granted = policy.granted.get(&location).and_then(thread_of).map(|thread| (thread, Hold::Lock));
            // Not what has been stolen.
            let is_left = |held: Hold| held.id().is_none_or(|id| policy.named.contains_key(&(location, id)));
            let holder = |(thread, held): &(Arc<BlockedThread>, Hold)| {
                let wanted = if is_own(thread) { blocked.request } else { beside_own };
                let keeps = is_kept_by(wanted, *held) && is_left(*held);
                keeps.then(|| Blocker { thread: Arc::clone(thread), obstacle: Obstacle::Holds(*held), claim: None })
            };
            let ahead = |other| match section.untimed(other) {
                Some(Listed { waiter: Waiter::Thread(thread), claim: Some(request) })
                    if is_behind(blocked.request, *request) =>
                {
                    let (thread, request, ticket) = (Arc::clone(thread), *request, section.ticket(other));
                    let claim = Blocked { thread: Arc::clone(&thread), ticket, location, request };
                    let claim = Some(claim).filter(|_| !holds(&thread));
                    Some(Blocker { thread, obstacle: Obstacle::IsAhead(request), claim })
                }
                _ => None,
            };
            let line = section.before(key).take_while(|_| !blocked.request.hold().is_exclusive());
            held.iter().chain(&granted).filter_map(holder).chain(line.filter_map(ahead)).collect()
        });
        blockers.unwrap_or_default()
    }
}
