//! How far the settlements are that an agent has taken.
//!
//! # Stages of a settlement
//! Settlements reach them in their order, also if a call fails or JavaScript is interrupted.
//!
//! | stage | reached when | if the environment ends, others get |
//! |---|---|---|
//! | taken | it has left the outbox | its grant, or the notification that it is or that led to its claim |
//! | adopted | its grant is in the robust list, with a token | a grant or notification for which no entry stands |
//! | delivered | JavaScript has settled its promise | nothing from here |
//!
//! # A delivery
//! One is under way while its progress is borrowed. It is interrupted if it has not delivered all, also by a panic, or if
//! another one would have begun meanwhile: then it is to be continued by the event loop.

use std::cell::{Cell, RefCell, RefMut};
use std::collections::VecDeque;
use std::ops::Range;

use crate::globals::Unused;
use waitasync_core::held::Noted;
use waitasync_core::held::registers::BATCH;
use waitasync_core::lock::{Hold, Mail, Request};
use waitasync_core::queue::{Location, WaitResult};

/// The most settlements of a batch; few in a test.
const MOST: usize = if cfg!(test) { 2 } else { BATCH };

/// From where settlements are handed over.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caller {
    /// A job of their own, without JavaScript below it on the stack.
    EventLoop,
    /// An operation that JavaScript has called. A call that fails is repeated by the event loop, so it is not reported.
    Job,
}

/// Mail taken from the outbox, and how far it is.
#[derive(Default)]
pub(super) struct Progress {
    pub(super) mail: Mail,
    /// What settlements bring, in their order: of each the index in the mail, and whether an entry of the robust list has
    /// it once that settlement is adopted.
    brought: Vec<(usize, bool, Unused)>,
    /// How many settlements have been delivered, and adopted: those that have been delivered, at least.
    pub(super) delivered: usize,
    pub(super) adopted: usize,
}

impl Progress {
    pub(super) fn clear(&mut self) {
        self.mail.clear();
        self.brought.clear();
        (self.delivered, self.adopted) = (0, 0);
    }

    pub(super) fn is_empty(&self) -> bool {
        let Mail { settlements, retries, losses, .. } = &self.mail;
        settlements.is_empty() && retries.is_empty() && losses.is_empty()
    }

    pub(super) fn gather(&mut self, index: usize, wait: Noted, result: WaitResult) {
        if result != WaitResult::Ok && !result.is_acquired() {
            return;
        }
        // Once a claim is adopted, its entry has the grant, and owes the notification that led to it.
        let is_owned = wait.request.is_some_and(Request::is_owned);
        let grant = wait.claim().map(|(location, request)| Unused::Acquired(location, request.hold()));
        let all = grant.into_iter().chain(wait.relay.map(Unused::Notification));
        self.brought.extend(all.map(|given| (index, is_owned, given)));
    }

    /// Returns the next batch, and whether it is to be adopted. Those that have been adopted come in one of their own.
    pub(super) fn next_batch(&self) -> (Range<usize>, bool) {
        let adopts = self.adopted <= self.delivered;
        let end = if adopts { self.mail.settlements.len() } else { self.adopted };
        (self.delivered..end.min(self.delivered + MOST), adopts)
    }

    /// Lists the holds of settlements from `adopted` to `end`, by slot.
    pub(super) fn acquired_before(&self, end: usize) -> impl Iterator<Item = (u32, Location, Hold)> {
        let start = self.brought.partition_point(|&(index, ..)| index < self.adopted);
        let brought = self.brought[start..].iter().take_while(move |&&(index, ..)| index < end);
        brought.filter_map(|&(index, is_owned, given)| match given {
            Unused::Acquired(location, hold) if is_owned => Some((self.mail.settlements[index].slot, location, hold)),
            _ => None,
        })
    }

    /// Notes that JavaScript has adopted a batch, and how many it settled.
    pub(super) fn advance(&mut self, batch: &Range<usize>, settled: usize) {
        self.adopted = self.adopted.max(batch.end);
        self.delivered = (batch.start + settled).min(batch.end);
    }

    /// Returns what others get: the environment ends.
    pub(super) fn left(self) -> Vec<Unused> {
        let end = |is_owned| if is_owned { self.adopted } else { self.delivered };
        let unused = self.brought.iter().filter(|&&(index, is_owned, _)| index >= end(is_owned));
        unused.map(|&(.., given)| given).collect()
    }
}

/// A delivery that is under way, until this is dropped.
pub(super) struct UnderWay<'a> {
    is_interrupted: &'a Cell<bool>,
    pub(super) progress: RefMut<'a, Progress>,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        if !self.progress.is_empty() {
            self.is_interrupted.set(true);
        }
    }
}

/// The settlements of an agent that are on their way to JavaScript.
#[derive(Default)]
pub(crate) struct Delivery {
    /// Whether the event loop is to continue it, once the one under way is over.
    pub(super) is_interrupted: Cell<bool>,
    /// Borrowed while a delivery is under way.
    progress: RefCell<Progress>,
    /// The requests for named locks that were stolen, of whose grants JavaScript knows.
    pub(super) losses: RefCell<VecDeque<u32>>,
}

impl Delivery {
    /// Begins a delivery. `None` if one is under way: that one will be continued.
    pub(super) fn begin(&self) -> Option<UnderWay<'_>> {
        let progress = self.progress.try_borrow_mut().ok();
        self.is_interrupted.set(progress.is_none());
        Some(UnderWay { is_interrupted: &self.is_interrupted, progress: progress? })
    }

    /// Returns what others get as the environment ends. Nothing if a delivery is under way.
    pub(super) fn end(&self) -> Vec<Unused> {
        self.progress.try_borrow_mut().map_or_else(|_| Vec::new(), |mut progress| std::mem::take(&mut *progress).left())
    }

    pub(crate) fn is_idle(&self) -> bool {
        !self.is_interrupted.get() && self.progress.try_borrow().is_ok()
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
    use waitasync_core::clock::now;
    use waitasync_core::held::PLAIN;
    use waitasync_core::sync::contained;

    use super::*;

    /// A settlement's request, and whether its wait has a relay.
    type Kind = (Option<Request>, bool);

    const KINDS: [Kind; 5] = [
        (None, false),
        (None, true),
        (Some(Request::Lock), false),
        (Some(Request::Lock), true),
        (Some(Request::Signals(1)), false),
    ];

    fn taken(kinds: &[Kind]) -> Progress {
        let mut progress = Progress::default();
        for (n, &(request, relays)) in (0..).zip(kinds) {
            let location = Location::from_address(8 * n as usize);
            let result = if request.is_some() { WaitResult::Acquired } else { WaitResult::Ok };
            progress.mail.settle(n, result);
            let relay = relays.then_some(location);
            progress.gather(
                n as usize,
                Noted { location, request, relay, wait_kind: PLAIN, call: 0, since: now() },
                result,
            );
        }
        progress
    }

    #[test]
    fn whenever_the_environment_ends_others_get_what_javascript_has_not_got() {
        const LENGTH: u32 = 3;
        const CALLS: u32 = 4;
        let digits = |number: u32, base: u32, length| (0..length).map(move |n| number / base.pow(n) % base);
        let mut reached = [false; 3];
        for mail in 0..5_u32.pow(LENGTH) {
            let kinds: Vec<_> = digits(mail, 5, LENGTH).map(|kind| KINDS[kind as usize]).collect();
            // Each call adopts nothing, or settles so many.
            for outcomes in 0..4_u32.pow(CALLS) {
                let (mut progress, mut adopted) = (taken(&kinds), 0);
                for outcome in digits(outcomes, 4, CALLS) {
                    let (batch, adopts) = progress.next_batch();
                    if outcome > 0 || !adopts {
                        adopted += if adopts { progress.acquired_before(batch.end).count() } else { 0 };
                        let before = progress.delivered;
                        progress.advance(&batch, outcome as usize);
                        assert!(before <= progress.delivered && progress.delivered <= progress.adopted);
                    }
                }
                let mut expected = Vec::new();
                for (index, &(request, relays)) in kinds.iter().enumerate() {
                    let (is_adopted, is_delivered) = (index < progress.adopted, index < progress.delivered);
                    reached[usize::from(is_adopted) + usize::from(is_delivered)] = true;
                    let is_owned = request == Some(Request::Lock);
                    adopted -= usize::from(is_owned && is_adopted);
                    let is_left = !(is_delivered || is_owned && is_adopted);
                    expected.extend((is_left && request.is_some()).then_some((8 * index, true)));
                    expected.extend((is_left && relays).then_some((8 * index, false)));
                }
                let mut left: Vec<_> = progress
                    .left()
                    .into_iter()
                    .map(|left| match left {
                        Unused::Acquired(location, _) => (location.address(), true),
                        Unused::Notification(location) => (location.address(), false),
                    })
                    .collect();
                left.sort_unstable();
                expected.sort_unstable();
                assert_eq!((left, adopted), (expected, 0), "{kinds:?}, {outcomes}");
            }
        }
        assert_eq!(reached, [true; 3]);
    }

    #[test]
    fn a_delivery_is_continued_if_mail_is_left_or_another_one_would_have_begun() {
        for (is_left, another, is_interrupted) in
            [(false, false, false), (true, false, true), (false, true, true), (true, true, true)]
        {
            let delivery = Delivery::default();
            // It is over by a panic, too.
            contained(|| {
                let mut under_way = delivery.begin().unwrap();
                assert!(!delivery.is_idle() && !delivery.is_interrupted.get());
                assert!(!another || delivery.begin().is_none());
                if is_left {
                    under_way.progress.mail.settle(7, WaitResult::Ok);
                    panic!("on purpose");
                }
            });
            assert_eq!((delivery.is_interrupted.get(), delivery.is_idle()), (is_interrupted, !is_interrupted));
            drop(delivery.begin().unwrap());
            assert_eq!(delivery.is_idle(), !is_left);
        }
    }
}
