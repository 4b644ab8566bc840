//! What a layer above the queue keeps for each bucket: the waiters that want more than a notification have a claim.
//!
//! The queue never looks at a claim. [`super::critical_section::Policy`] says when claims are woken.

use std::fmt::Debug;

use super::location::Location;
use super::waiter_list::WaiterKey;

/// What a policy keeps for a bucket, inside the bucket's lock.
pub trait Claims: Debug + Default {
    /// What a waiter asks for that wants more than a notification.
    type Claim: Copy + Debug;
    /// What an agent is told when the claim of a promise has been granted.
    type Grant: Debug;

    /// A blocked thread without a claim has been appended.
    fn thread_appended(&mut self, location: Location, key: WaiterKey);

    /// A blocked thread without a claim has left its list.
    fn thread_removed(&mut self, location: Location, key: WaiterKey);

    /// A claim has been appended.
    fn claim_appended(&mut self, claim: &ListedClaim<Self::Claim>);

    /// A claim has left its list.
    fn claim_removed(&mut self, claim: &ListedClaim<Self::Claim>) -> Successor;

    /// Whether the bucket has no claims.
    fn is_empty(&self) -> bool;
}

/// A claim that has been appended or removed.
#[derive(Clone, Copy, Debug)]
pub struct ListedClaim<C> {
    /// Where it is.
    pub location: Location,
    /// Its key.
    pub key: WaiterKey,
    /// The waiter before it.
    pub predecessor: Option<WaiterKey>,
    /// What it asks for.
    pub claim: C,
    /// Whether it is a blocked thread's.
    pub blocks: bool,
}

/// Whether a waiter that has left its list without taking anything leaves something to the next one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Successor {
    /// The word may hold what the next one wants, and nobody else wakes it.
    ToBeWoken,
    /// No other waiter is concerned.
    Unconcerned,
}

impl Successor {
    /// The caller goes on to wake the first claims of the line, whatever it has removed.
    pub(crate) const fn is_woken_by_caller(self) {
        let _ = self;
    }
}
