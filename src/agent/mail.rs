//! The settlements of an agent that are on their way to JavaScript.

use std::cell::{Cell, RefCell, RefMut};
use std::collections::VecDeque;
use std::ops::Range;

use crate::process::Unused;
use waitasync_core::held::registers::BATCH;
use waitasync_core::lock::{Mail, Request};
use waitasync_core::queue::Location;

/// From where settlements are handed over.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caller {
    /// A job of their own, without JavaScript below it on the stack.
    EventLoop,
    /// An operation that JavaScript has called. A call that fails is repeated by the event loop, so it is not reported.
    Job,
}

/// Mail taken from the outbox, and how much JavaScript has got.
#[derive(Default)]
pub(super) struct Progress {
    pub(super) mail: Mail,
    /// The gifts of settlements for which the robust list has no entry, each with the settlement's index in the mail.
    pub(super) given: Vec<(usize, Unused)>,
    /// The places where this thread was notified before settlements acquired a lock again, each with the same. Once
    /// that is adopted, its hold owes the notification.
    pub(super) owed: Vec<(usize, Location)>,
    /// Of how many of the settlements the above is known, and the waits are no longer pending.
    pub(super) gathered: usize,
    /// How many of the settlements JavaScript has got.
    pub(super) delivered: usize,
    /// How many of the settlements have their grants in the robust list, with tokens. Not less than `delivered`.
    pub(super) adopted: usize,
    /// How many of `mail.grants` belong to the adopted settlements.
    pub(super) acquired: usize,
}

impl Progress {
    pub(super) fn clear(&mut self) {
        self.mail.clear();
        self.given.clear();
        self.owed.clear();
        (self.gathered, self.delivered, self.adopted, self.acquired) = (0, 0, 0, 0);
    }

    pub(super) fn is_complete(&self) -> bool {
        self.delivered == self.mail.settlements.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        let Mail { settlements, retries, losses, .. } = &self.mail;
        settlements.is_empty() && retries.is_empty() && losses.is_empty()
    }

    /// Returns the next batch of settlements. Those that have been adopted come in a batch of their own.
    pub(super) fn next_batch(&self) -> Range<usize> {
        let end = if self.adopted > self.delivered { self.adopted } else { self.mail.settlements.len() };
        self.delivered..end.min(self.delivered + BATCH)
    }

    /// Lists the grants of settlements from `adopted` to `end`, by slot.
    pub(super) fn acquired_before(&self, end: usize) -> impl Iterator<Item = (u32, Location, Request)> {
        let settlements = self.mail.settlements[self.adopted..end].iter();
        let slots = settlements.filter(|settlement| settlement.result.is_acquired()).map(|settlement| settlement.slot);
        let acquired = self.mail.grants.iter().flatten().skip(self.acquired);
        slots.zip(acquired).map(|(slot, &(location, request))| (slot, location, request))
    }
}

/// How far a delivery is.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Phase {
    /// JavaScript has got all that was taken.
    #[default]
    Idle,
    /// It was interrupted and is to be continued.
    Interrupted,
    /// JavaScript is being called. `again`: afterwards it is to be continued all the same.
    UnderWay { again: bool },
}

/// A delivery that is under way. What it leaves when it is dropped is an interrupted one; so does a panic.
pub(super) struct UnderWay<'a> {
    delivery: &'a Delivery,
    pub(super) progress: RefMut<'a, Progress>,
}

impl UnderWay<'_> {
    /// Lets the delivery be continued once this is over.
    pub(super) fn continue_later(&self) {
        self.delivery.phase.set(Phase::UnderWay { again: true });
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let again = self.delivery.is_interrupted() || !self.progress.is_empty();
        self.delivery.phase.set(if again { Phase::Interrupted } else { Phase::Idle });
    }
}

/// The settlements of an agent that are on their way to JavaScript.
#[derive(Default)]
pub(crate) struct Delivery {
    phase: Cell<Phase>,
    /// Borrowed while a delivery is under way.
    progress: RefCell<Progress>,
    /// The requests for named locks that were stolen, of whose grants JavaScript knows.
    pub(super) losses: RefCell<VecDeque<u32>>,
}

impl Delivery {
    /// Begins a delivery. `None` if one is under way: that one will be continued.
    pub(super) fn begin(&self) -> Option<UnderWay<'_>> {
        let is_under_way = matches!(self.phase.get(), Phase::UnderWay { .. });
        self.phase.set(Phase::UnderWay { again: is_under_way });
        (!is_under_way).then(|| UnderWay { delivery: self, progress: self.progress.borrow_mut() })
    }

    /// Returns the progress of the agent's last delivery, as its environment ends. `None` if that is under way.
    pub(super) fn end(&self) -> Option<Progress> {
        Some(std::mem::take(&mut *self.progress.try_borrow_mut().ok()?))
    }

    /// Whether it is to be continued.
    pub(crate) fn is_interrupted(&self) -> bool {
        matches!(self.phase.get(), Phase::Interrupted | Phase::UnderWay { again: true })
    }

    /// Whether no delivery is under way or interrupted.
    pub(crate) fn is_idle(&self) -> bool {
        self.phase.get() == Phase::Idle
    }

    /// Returns the request of the next stolen name, for JavaScript.
    pub(crate) fn next_loss(&self) -> Option<u32> {
        let next = self.losses.borrow_mut().pop_front();
        if next.is_none() {
            // Gives back the memory: there may have been many.
            self.losses.take();
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use waitasync_core::panics::contained;
    use waitasync_core::queue::{Settlement, WaitResult};

    use super::*;

    #[test]
    fn a_panic_leaves_an_interrupted_delivery_with_its_mail() {
        let delivery = Delivery::default();
        assert!(!contained(|| {
            let mut under_way = delivery.begin().unwrap();
            assert!(!delivery.is_interrupted() && !delivery.is_idle());
            under_way.progress.mail.settle(7, WaitResult::Ok, None);
            panic!("on purpose");
        }));
        assert!(delivery.is_interrupted() && !delivery.is_idle());
        let under_way = delivery.begin().unwrap();
        assert_eq!(under_way.progress.mail.settlements, [Settlement { slot: 7, result: WaitResult::Ok }]);
    }

    #[test]
    fn a_delivery_that_is_through_is_idle() {
        let delivery = Delivery::default();
        drop(delivery.begin());
        assert!(delivery.is_idle());
    }

    #[test]
    fn a_delivery_within_another_one_is_none_and_that_one_is_continued() {
        let delivery = Delivery::default();
        let under_way = delivery.begin().unwrap();
        assert!(delivery.begin().is_none() && delivery.end().is_none());
        assert!(delivery.is_interrupted() && !delivery.is_idle());
        drop(under_way);
        assert!(delivery.is_interrupted() && !delivery.is_idle());
        drop(delivery.begin());
        assert!(delivery.is_idle() && !delivery.is_interrupted());
        delivery.begin().unwrap().continue_later();
        assert!(delivery.is_interrupted() && delivery.end().is_some());
    }
}
