//! What a layer above the queue adds to it: waiters that want more than a notification.
//!
//! The queue calls these functions inside the critical section of the waiters' bucket. It never looks at a claim.

use std::fmt::Debug;

use super::critical_section::CriticalSection;
use super::location::Location;
use super::waiter_list::WaiterKey;

/// The policy of a store, and what it keeps for each bucket.
pub trait Policy: Debug + Default + Sized {
    /// What a waiter asks for that wants more than a notification.
    type Claim: Copy + Debug;
    /// What an agent is told of that the claim of a promise has been granted.
    type Grant: Debug;

    /// A blocked thread without a claim has been appended.
    fn thread_appended(&mut self, location: Location, key: WaiterKey);

    /// A blocked thread without a claim has left its list.
    fn thread_removed(&mut self, location: Location, key: WaiterKey);

    /// A claim has left its list.
    fn claim_removed(section: &mut CriticalSection<'_, Self>, claim: RemovedClaim<Self::Claim>) -> Successor;

    /// Wakes the first waiter at `location` that can make use of what the word holds.
    fn wake_successor(section: &mut CriticalSection<'_, Self>, location: Location);

    /// A notification wakes the claim with this key, which is the first at `location`, so that it retries. One notification
    /// wakes no other claim.
    fn notify_claim(section: &mut CriticalSection<'_, Self>, location: Location, key: WaiterKey);

    /// The first waiter without a claim at `location`, where a claim is the first of all waiters.
    fn first_without_claim(section: &mut CriticalSection<'_, Self>, location: Location) -> Option<WaiterKey>;
}

/// A claim that has left its list.
#[derive(Clone, Copy, Debug)]
pub struct RemovedClaim<C> {
    /// Where it was.
    pub location: Location,
    /// Its former key.
    pub key: WaiterKey,
    /// The waiter before it.
    pub predecessor: Option<WaiterKey>,
    /// What it asked for.
    pub claim: C,
    /// Whether it was a blocked thread's.
    pub blocks: bool,
}

/// Whether a waiter that has left its list without taking anything leaves something to the next one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Successor {
    /// The word may hold what the next one wants, and nobody else wakes it: [`Policy::wake_successor`].
    ToBeWoken,
    /// No other waiter is concerned.
    Unconcerned,
}

impl Successor {
    /// Both of two.
    pub(super) fn or(self, other: Self) -> Self {
        if self == Self::ToBeWoken { self } else { other }
    }

    /// The caller goes on to wake the first claims of the line, whatever it has removed.
    pub(crate) const fn is_woken_by_caller(self) {}
}
