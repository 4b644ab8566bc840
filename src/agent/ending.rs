//! The end of an agent: its waits are withdrawn, and its holds and grants are passed on.

use std::sync::atomic::Ordering;

use crate::agent::agent::Agent;
use crate::agent::progress::Progress;
use crate::globals::{PROCESS, Unused, own_word_at, raise};
use waitasync_core::clock::now;
use waitasync_core::lock::tracked_buffers::Ended;
use waitasync_core::lock::{Hold, UNLOCKED, Word};
use waitasync_core::queue::{Location, Withdrawal};
use waitasync_core::sync::contained;

/// How many words behind a queue's first events those are for which one waits until it is idle.
const IDLE_EVENTS: u32 = 2;

/// What an agent that ends owes, to be passed on later.
#[derive(Default)]
pub(crate) struct Ending {
    /// The pairs of events of queues that the thread owes: once it holds nothing any more.
    pub(crate) events: Vec<Location>,
    /// Where the notifications were given that the thread has not used, or that its holds owe: then, too.
    pub(crate) notifications: Vec<Location>,
}

impl Ending {
    /// Owes a queue's events for takers, and for those who await idleness.
    fn owe_takers(&mut self, events: Location) {
        self.events.extend([events, events.words_after(IDLE_EVENTS)]);
    }

    /// Owes one pair of events, or all of a queue: then those of putters are so many words behind the first.
    fn owe(&mut self, events: Location, words: u32) {
        if words == 0 {
            self.events.push(events);
        } else {
            self.owe_takers(events);
            self.events.push(events.words_after(words));
        }
    }
}

impl Agent {
    /// Leaves the queue: afterwards no other thread knows of this agent, and its holds have been passed on.
    ///
    /// Each step is contained: if one panics the others are taken all the same, and the outbox is closed.
    pub(crate) fn end(&self) {
        let mut ending = Ending::default();
        for step in Self::END {
            contained(|| step(self, &mut ending));
        }
        self.outbox.close();
    }

    const END: [fn(&Self, &mut Ending); 15] = [
        |agent, ending| ending.notifications.extend(agent.registers.take_relay()),
        |agent, _| agent.take_given().into_iter().for_each(Unused::pass_on),
        |agent, _| agent.blocking.watch.close(),
        // Before the named locks in front of these go to other threads.
        |agent, _| agent.files.get().into_iter().for_each(|files| files.end()),
        |agent, ending| match agent.end_wait() {
            Some(Unused::Notification(location)) => ending.notifications.push(location),
            Some(acquired) => acquired.pass_on(),
            None => {}
        },
        Self::withdraw_waits,
        // All that JavaScript has not got. The robust list has the adopted grants.
        |agent, _| agent.delivery.end().into_iter().for_each(|left| _ = contained(|| left.pass_on())),
        // From here on nothing is granted to this agent. Earlier grants are in the outbox or in the robust list.
        |agent, _| agent.pass_on_mail(),
        |agent, ending| {
            agent.robust_list.drain(|location, hold, owed| agent.leave_behind(location, hold, owed, ending));
        },
        |agent, _| PROCESS.names.end(&PROCESS.store, &agent.outbox),
        |agent, _| {
            let (thread_name, manner) = (agent.thread_name.clone(), agent.ends.get());
            agent.buffers.end(agent.id(), Ended { thread_id: agent.thread_id, thread_name, manner, at: now() });
        },
        // The thread may have ended between a change of a word in JavaScript and the call that serves the line.
        |agent, _| agent.finish_release(),
        // After all locks and leases: whoever is woken finds nothing in the hands of this thread.
        |_, ending| {
            for events in ending.events.drain(..) {
                contained(|| raise(events));
            }
            for location in ending.notifications.drain(..) {
                contained(|| Unused::Notification(location).pass_on());
            }
        },
        |agent, _| agent.observer.ended.iter().for_each(|ended| _ = contained(|| ended(agent.id(), agent.thread_id))),
        // Last, since an agent that learns that it is alone may let its loop end, unless it has mail already.
        |agent, _| PROCESS.registry.leave(&agent.outbox),
    ];

    /// Passes on the hold of an entry of the robust list. What the thread owes is noted: that comes later.
    fn leave_behind(&self, location: Location, hold: Hold, owed: Option<Location>, ending: &mut Ending) {
        ending.notifications.extend(owed);
        match hold {
            Hold::Owed(words) => ending.owe(location, words),
            // The count of those that wait to put into a queue, or a message: its events are so many words before that.
            Hold::Putter(words) | Hold::BlockedPutter(words) => {
                own_word_at(location).give_back(Hold::Putter(words));
                ending.owe_takers(location.words_before(words));
            }
            Hold::Lease(words) => {
                own_word_at(location).store(UNLOCKED, Ordering::SeqCst);
                ending.owe_takers(location.words_before(words));
            }
            _ => {
                self.note_death(location, hold);
                contained(|| Unused::Acquired(location, hold).pass_on());
            }
        }
    }

    fn note_death(&self, location: Location, hold: Hold) {
        contained(|| {
            // A stolen name has had other holders since.
            if hold.is_visible() && hold.id().is_none_or(|id| PROCESS.store.holds(location, id)) {
                PROCESS.note_dead(location, hold, self.thread_id);
            }
        });
    }

    fn withdraw_waits(&self, ending: &mut Ending) {
        for (slot, ticket) in self.pending.tickets() {
            contained(|| {
                if PROCESS.store.withdraw_agent(ticket, &self.outbox, slot) == Withdrawal::Done {
                    let claim = self.pending.remove(slot).filter(|wait| wait.request.is_some());
                    ending.notifications.extend(claim.and_then(|claim| claim.relay));
                }
            });
        }
    }

    fn pass_on_mail(&self) {
        let mut progress = Progress::default();
        self.outbox.take(&mut progress.mail);
        self.gather(&mut progress);
        for given in progress.left() {
            if let Unused::Acquired(location, hold) = given {
                self.note_death(location, hold);
            }
            contained(|| given.pass_on());
        }
    }
}
