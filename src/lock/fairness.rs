//! When a lock is handed over, and to which claim.
//!
//! A blocked thread does nothing but wait, so it retries soon after it has been woken. A promise's claim retries when its
//! thread's event loop turns, and the loop may be computing for seconds. A busy event loop must not delay a thread that can run.
//! Therefore:
//!
//! - When a promise's claim is woken, the first blocked thread behind it is woken as well, and waiters without a claim that block
//!   before that one are notified (not by a notification, which wakes as many as it counts). So at most two claims are awake: one
//!   of a promise, which is the first in line, and one of a blocked thread.
//! - That thread gives the promise a head start: it retries once [`FAIRNESS`] has passed since the first release that left the
//!   promise's claim waiting, unless the claim has retried before.
//! - It is the turn of the first claim if it has been woken and has retried in vain: its thread ran a moment ago. A blocked thread
//!   need only have been overtaken for [`FAIRNESS`]. If the first claim is a promise's that has not retried, the same rule holds
//!   for the first blocked thread behind it.
//! - An event loop that is not busy may lack a processor, when threads that take the lock in turns occupy all of them. So a thread
//!   that releases the lock sleeps for [`ROOM`] when a promise's claim has waited for [`FAIRNESS`] without retrying, as do the
//!   threads that release it meanwhile. That happens again only after twice as long, for the loop may be busy after all.
//!
//! # Limits
//! A loop may become busy after its promise's claim has retried: a lock that is handed to it then stays with it until the loop
//! turns. Of several promises only the first is woken: event loops behind a busy one wait for it, or for a blocked thread's
//! release.

use super::lines::Section;
pub use super::overtaken::{FAIRNESS, ROOM, Released};
use crate::queue::location::Location;
use crate::queue::waiter_list::WaiterKey;

impl Section<'_> {
    /// Whether a claim may be handed a lock as far as its thread is concerned: it blocks, or ran a moment ago.
    pub(super) fn is_ready(&self, location: Location, key: WaiterKey) -> bool {
        self.blocks(key) || self.policy().line(location).is_some_and(|line| line.has_tried(key))
    }

    /// The claim that is handed the lock at `location`, which is being released, if it is any claim's turn. And what the
    /// releasing thread does next.
    pub(super) fn turn(&mut self, location: Location) -> (Option<WaiterKey>, Released) {
        let mut released = Released::GoOn;
        let turn = self.turn_of(location, &mut released);
        (turn, released)
    }

    fn turn_of(&mut self, location: Location, released: &mut Released) -> Option<WaiterKey> {
        let (mut key, _, mut behind_others) = self.first_claim(location)?;
        if !self.is_ready(location, key) {
            let now = self.now();
            *released = self.policy_mut().line_mut(location)?.overtaken.promise_is_unready(key, now);
            let thread_behind_others;
            (key, thread_behind_others) = self.first_thread(location)?;
            behind_others |= thread_behind_others;
        }
        let has_tried = self.policy().line(location)?.has_tried(key);
        let is_its_turn = has_tried || {
            let now = self.now();
            self.policy_mut().line_mut(location)?.overtaken.thread_is_late(key, now)
        };
        (is_its_turn && !behind_others).then_some(key)
    }
}
