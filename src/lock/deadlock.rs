//! Deadlocks: cycles of threads that block without a time-out, each for something that the next one holds.
//!
//! # What keeps a blocked thread waiting
//! | it requests | it waits for |
//! |---|---|
//! | a lock | its holder |
//! | exclusive access | each holder, and the blocked thread ahead of it in the line |
//! | a share | the writer, and the nearest blocked writer ahead of it in the line |
//! | permits | nothing: any thread may add permits |
//!
//! It waits for *all* of these, so one that never goes on is enough to make it wait for ever. Claims that have a time-out, and those of
//! promises, are left out: they may leave the line.
//!
//! # Why every cycle is found, by one thread
//! A thread publishes its wait after its claim has joined the line, and looks for a cycle under the same lock. Of the threads of a
//! cycle the last one to do so sees the waits of all others. A thread that finds a cycle is not published, so no other finds the
//! same one. A promise that is granted a lock while its thread blocks can close a cycle, too: so a thread looks again between the
//! slices of its sleep.
//!
//! # Why no false one is found
//! Published threads change nothing that they hold: each takes its wait back, under the lock of the graph, before it goes on. So
//! what a published thread is found to hold it holds during the whole search. That a claim is unsettled is found in the critical
//! section in which its obstacles are found. In a cycle of such threads no claim can be granted, as each needs that another goes
//! on. A thread may be terminated, which the search cannot know: it has not taken its wait back, so the cycle was there.

use super::policy::{Waiter, WaiterListStore};
use super::request::Request;
use crate::queue::bucket::Ticket;
use crate::queue::location::Location;
use crate::queue::parker::BlockedThread;
use crate::sync::{Arc, Mutex, lock};

/// A thread that blocks for a claim without a time-out.
#[derive(Clone, Debug)]
pub struct Blocked {
    /// The thread.
    pub thread: Arc<BlockedThread>,
    /// Of its claim.
    pub ticket: Ticket,
    /// Where it waits.
    pub location: Location,
    /// What it requests.
    pub request: Request,
}

/// What a thread has that keeps another waiting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Obstacle {
    /// It holds this.
    Holds(Request),
    /// It requests this, ahead in the line.
    IsAhead(Request),
}

/// A thread of a cycle.
#[derive(Debug)]
pub struct Link {
    /// What it waits for.
    pub blocked: Blocked,
    /// What it has that the thread before it in the cycle waits for; of the first one, the last.
    pub obstacle: Obstacle,
}

/// Whether a thread that holds `held` keeps a claim with this request waiting.
pub const fn is_kept_by(request: Request, held: Request) -> bool {
    match request {
        Request::Lock | Request::Exclusive | Request::NamedExclusive(_) => held.is_owned(),
        Request::Shared | Request::NamedShared(_) => held.is_exclusive(),
        Request::Permits(_) | Request::Signals(_) => false,
    }
}

/// The threads that block without a time-out.
#[derive(Debug, Default)]
pub struct WaitForGraph {
    blocked: Mutex<Vec<Blocked>>,
}

impl WaitForGraph {
    /// Publishes that `blocked`, the calling thread, is about to sleep; or gives the cycle that this would close, which begins with
    /// it. To be called again for the same wait: looks anew.
    ///
    /// `obstacles`: the threads that keep a published thread waiting; none if its claim has been settled.
    pub fn block(
        &self,
        blocked: &Blocked,
        obstacles: impl Fn(&Blocked) -> Vec<(Arc<BlockedThread>, Obstacle)>,
    ) -> Option<Vec<Link>> {
        let mut all = lock(&self.blocked);
        all.retain(|other| !Arc::ptr_eq(&other.thread, &blocked.thread));
        let mut search = Search { others: &all, start: blocked, obstacles, seen: Vec::new(), path: Vec::new() };
        let closing = search.visit(blocked);
        let mut cycle = search.path;
        let Some(obstacle) = closing else {
            all.push(blocked.clone());
            return None;
        };
        cycle.push(Link { blocked: blocked.clone(), obstacle });
        cycle.reverse();
        Some(cycle)
    }

    /// The thread, the calling one, is about to go on.
    pub fn leave(&self, thread: &Arc<BlockedThread>) {
        lock(&self.blocked).retain(|blocked| !Arc::ptr_eq(&blocked.thread, thread));
    }
}

/// A search, depth first.
struct Search<'a, O> {
    others: &'a [Blocked],
    start: &'a Blocked,
    obstacles: O,
    /// Those that have been visited.
    seen: Vec<*const BlockedThread>,
    /// Once a cycle has been found: its links but for the first one, in reverse.
    path: Vec<Link>,
}

impl<O: Fn(&Blocked) -> Vec<(Arc<BlockedThread>, Obstacle)>> Search<'_, O> {
    /// What the first thread has that closes a cycle through `blocked`, if there is one.
    fn visit(&mut self, blocked: &Blocked) -> Option<Obstacle> {
        for (thread, obstacle) in (self.obstacles)(blocked) {
            if Arc::ptr_eq(&thread, &self.start.thread) {
                return Some(obstacle);
            }
            if self.seen.contains(&Arc::as_ptr(&thread)) {
                continue;
            }
            self.seen.push(Arc::as_ptr(&thread));
            let others = self.others;
            if let Some(next) = others.iter().find(|other| Arc::ptr_eq(&other.thread, &thread))
                && let Some(closing) = self.visit(next)
            {
                self.path.push(Link { blocked: next.clone(), obstacle });
                return Some(closing);
            }
        }
        None
    }
}

impl WaiterListStore {
    /// Runs `body` while the claim of `blocked` waits: with the waiter that its lock is on its way to, with the nearest blocked
    /// thread ahead of it in a strict line that keeps it waiting, and with what tells whether something that was granted has not
    /// been stolen. `None` if the claim has been settled.
    pub fn while_waiting<R>(
        &self,
        blocked: &Blocked,
        body: impl FnOnce(Option<&Waiter>, Option<(Arc<BlockedThread>, Request)>, &dyn Fn(Request) -> bool) -> R,
    ) -> Option<R> {
        let waiter = Waiter::Thread(Arc::clone(&blocked.thread));
        self.with_waiter(blocked.ticket, &waiter, |section, key, location| {
            let keeps = |other| match section.untimed(other) {
                Some((Waiter::Thread(thread), Some(request))) => {
                    is_kept_by(blocked.request, request).then_some((thread, request))
                }
                _ => None,
            };
            let ahead = if blocked.request.is_strict() { section.before(key).find_map(keeps) } else { None };
            let policy = section.policy();
            let is_left = |granted: Request| granted.id().is_none_or(|id| policy.named.contains_key(&id));
            body(policy.granted.get(&location), ahead, &is_left)
        })
    }
}
