//! The settlements of an agent that are on their way to JavaScript.

use std::cell::{Cell, RefCell};
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

/// Mail taken from the outbox, and how far JavaScript was told.
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
    /// How many of the settlements JavaScript has been told of.
    pub(super) told: usize,
    /// How many of the settlements have their grants in the robust list, with tokens. Not less than `told`.
    pub(super) adopted: usize,
    /// How many of `mail.grants` belong to the adopted settlements.
    pub(super) acquired: usize,
}

impl Progress {
    pub(super) fn clear(&mut self) {
        self.mail.clear();
        self.given.clear();
        self.owed.clear();
        (self.gathered, self.told, self.adopted, self.acquired) = (0, 0, 0, 0);
    }

    pub(super) fn is_complete(&self) -> bool {
        self.told == self.mail.settlements.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        let Mail { settlements, retries, losses, .. } = &self.mail;
        settlements.is_empty() && retries.is_empty() && losses.is_empty()
    }

    /// Returns the next batch of settlements. Those that have been adopted come in a batch of their own.
    pub(super) fn next_batch(&self) -> Range<usize> {
        let end = if self.adopted > self.told { self.adopted } else { self.mail.settlements.len() };
        self.told..end.min(self.told + BATCH)
    }

    /// Lists the grants of settlements from `adopted` to `end`, by slot.
    pub(super) fn acquired_before(&self, end: usize) -> impl Iterator<Item = (u32, Location, Request)> {
        let settlements = self.mail.settlements[self.adopted..end].iter();
        let slots = settlements.filter(|settlement| settlement.result.is_acquired()).map(|settlement| settlement.slot);
        let acquired = self.mail.grants.iter().flatten().skip(self.acquired);
        slots.zip(acquired).map(|(slot, &(location, request))| (slot, location, request))
    }
}

/// A delivery's progress: it is put back when this is dropped, and a panic leaves an interrupted delivery.
pub(super) struct UnderWay<'a> {
    delivery: &'a Delivery,
    pub(super) progress: Box<Progress>,
}

impl<'a> UnderWay<'a> {
    pub(super) fn of(delivery: &'a Delivery) -> Option<Self> {
        Some(Self { delivery, progress: delivery.progress.take()? })
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let progress = std::mem::take(&mut self.progress);
        if !progress.is_empty() {
            self.delivery.is_interrupted.set(true);
        }
        self.delivery.progress.set(Some(progress));
    }
}

/// The settlements of an agent that are on their way to JavaScript.
pub(crate) struct Delivery {
    /// `None` while JavaScript is being told.
    pub(super) progress: Cell<Option<Box<Progress>>>,
    /// The requests for named locks that were stolen, of which JavaScript has been told that they were granted.
    pub(super) losses: RefCell<VecDeque<u32>>,
    /// Whether it was interrupted and is to be continued.
    pub(super) is_interrupted: Cell<bool>,
}

impl Default for Delivery {
    fn default() -> Self {
        Self { progress: Cell::new(Some(Box::default())), losses: RefCell::default(), is_interrupted: Cell::default() }
    }
}

impl Delivery {
    pub(crate) fn is_interrupted(&self) -> bool {
        self.is_interrupted.get()
    }

    /// Whether no delivery is under way or interrupted.
    pub(crate) fn is_idle(&self) -> bool {
        // It is put back at once.
        let progress = self.progress.take();
        let is_idle = progress.is_some() && !self.is_interrupted();
        self.progress.set(progress);
        is_idle
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
            let mut under_way = UnderWay::of(&delivery).unwrap();
            assert!(UnderWay::of(&delivery).is_none(), "one at a time");
            under_way.progress.mail.settle(7, WaitResult::Ok, None);
            panic!("on purpose");
        }));
        assert!(delivery.is_interrupted() && !delivery.is_idle());
        let under_way = UnderWay::of(&delivery).unwrap();
        assert_eq!(under_way.progress.mail.settlements, [Settlement { slot: 7, result: WaitResult::Ok }]);
    }

    #[test]
    fn a_delivery_that_is_through_is_idle() {
        let delivery = Delivery::default();
        drop(UnderWay::of(&delivery));
        assert!(delivery.is_idle());
    }
}
