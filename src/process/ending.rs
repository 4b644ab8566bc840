//! What an agent that ends passes on later than at once.

use std::sync::atomic::Ordering;

use crate::environment::environment::contained;
use crate::process::globals::{Given, raise, word_at};
use waitasync_core::lock::request::UNLOCKED;
use waitasync_core::queue::location::Location;

/// What is to be passed on later in an agent's end.
#[derive(Default)]
pub(crate) struct Ending {
    /// The notifications that the thread has not used: once none of its own waiters can receive them.
    pub(crate) given: Vec<Given>,
    /// The events of queues that the thread owes: once it holds nothing any more.
    pub(crate) debts: Vec<Location>,
    /// Where the notifications were given that the thread's holds owe: likewise.
    pub(crate) owed: Vec<Location>,
}

impl Ending {
    /// Gives back a message of a queue that the thread had in use. The queue's events are so many words before that message.
    pub(crate) fn release(&mut self, lease: Location, words: u32) {
        word_at(lease).store(UNLOCKED, Ordering::SeqCst);
        self.debts.push(lease.words_before(words));
    }

    /// Gives what the thread owes.
    pub(crate) fn pay(&mut self) {
        for events in self.debts.drain(..) {
            contained(|| raise(events));
        }
        for location in self.owed.drain(..) {
            contained(|| Given::Notification(location).pass_on());
        }
    }
}
