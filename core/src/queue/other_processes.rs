//! Waiters of other processes that have the same memory.

use std::fmt::Debug;
use std::sync::OnceLock;

use super::Location;

static OTHERS: OnceLock<&'static dyn OtherProcesses> = OnceLock::new();

/// Sets who knows the other processes. Only the first call counts.
pub fn connect(others: &'static dyn OtherProcesses) {
    let _ = OTHERS.set(others);
}

/// Names the other process that has a shared word alone.
pub fn holder_text(location: Location) -> Option<String> {
    Some(match at(location)?.holder(location)? {
        0 => "another process".to_owned(),
        pid => format!("process {pid}"),
    })
}

/// Returns the other processes, if they may have the word at `location`.
#[inline]
pub(crate) fn at(location: Location) -> Option<&'static dyn OtherProcesses> {
    OTHERS.get().copied().filter(|others| others.share(location))
}

/// What a store asks of the layer that knows the other processes. Called within critical sections, unless it says
/// otherwise; nothing here waits for another lock of this process.
pub trait OtherProcesses: Debug + Sync {
    /// Whether other processes may have the word. Called for each location, so it must be quick where there are none.
    fn share(&self, location: Location) -> bool;

    /// Counts a waiter, before it reads the word for the last time. `claims`: whether it has a claim.
    fn enter(&self, location: Location, claims: bool);

    /// Uncounts a waiter without a claim. Returns whether it takes a notification of another process with it.
    fn leave(&self, location: Location) -> bool;

    /// Whether another process has notified a waiter here.
    fn is_notified(&self, location: Location) -> bool;

    /// Uncounts a waiter that another process has notified. Returns false if there is none.
    fn take_notification(&self, location: Location) -> bool;

    /// Notes that the process has no claims any more.
    fn end_claims(&self, location: Location);

    /// Returns the pid of the other process that has the word alone; 0: unknown. `None`: there is none.
    fn holder(&self, location: Location) -> Option<u32>;

    /// Notifies up to `count` waiters of all processes; `here` does so in this one. Returns how many. In a critical
    /// section `here` does nothing.
    fn notify(&self, location: Location, count: usize, here: &mut dyn FnMut(usize) -> usize) -> usize;
}
