//! Waiters of other processes that have the same memory.

use std::sync::OnceLock;

use super::Location;

static OTHERS: OnceLock<&'static dyn OtherProcesses> = OnceLock::new();

/// Sets who knows the other processes. Only the first call counts.
pub fn connect(others: &'static dyn OtherProcesses) {
    let _ = OTHERS.set(others);
}

/// Returns the other processes, if they may have the word at `location`.
#[inline]
pub(crate) fn at(location: Location) -> Option<&'static dyn OtherProcesses> {
    OTHERS.get().copied().filter(|others| others.share(location))
}

/// Whether other processes may have the word.
#[inline]
pub fn is_shared(location: Location) -> bool {
    at(location).is_some()
}

/// Returns what is known of a word's waiters, if it is shared.
pub(crate) fn waits_at(location: Location) -> Option<Box<dyn SharedWaits>> {
    at(location)?.waits_at(location, false)
}

/// The other processes. Called within critical sections; nothing here waits for another lock of this process.
pub trait OtherProcesses: Sync {
    /// Whether other processes may have the word. Called for each location, so it must be quick.
    fn share(&self, location: Location) -> bool;

    /// Returns what the processes know of a word's waiters; `makes` its record. `None`: it has none, or there is no room.
    fn waits_at(&self, location: Location, makes: bool) -> Option<Box<dyn SharedWaits>>;

    /// Begins or ends to look at a word without a record. Its waiters are notified once its value has changed.
    fn poll(&self, location: Location, polls: bool);
}

/// What the processes know of a word's waiters.
pub trait SharedWaits {
    /// Says that this process has claims, before their last attempt.
    fn begin_claims(&self);

    /// Says that this process has no claim any more. If it is left with a turn, that goes on.
    fn end_claims(&self);

    /// Counts a waiter, before it reads the word.
    fn enter(&self);

    /// Uncounts a waiter. Returns whether it takes a notification with it: all that are left are notified.
    #[must_use]
    fn leave(&self) -> bool;

    /// Uncounts a waiter that another process has notified. Returns false if there is none.
    #[must_use]
    fn take_notification(&self) -> bool;

    /// Notifies up to `count` waiters, process by process; `here` does so in this one. Returns how many.
    fn notify(&self, count: usize, here: &mut dyn FnMut(usize) -> usize) -> usize;
}
