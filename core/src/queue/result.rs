//! How a wait ends.

/// The result of a wait. JavaScript knows the numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum WaitResult {
    /// `"ok"`: the waiter was notified.
    Ok = 0,
    /// `"not-equal"`: the word held another value, so there was no wait.
    NotEqual = 1,
    /// `"timed-out"`: the deadline came first.
    TimedOut = 2,
    // 3 is an operation's answer while the wait is pending.
    /// A claim has its request.
    Acquired = 4,
    /// A claim has its request, and the former holder died with it.
    AcquiredFromDead = 5,
    // 6 and 7 are an operation's answers when it fails.
    /// The deadline of a promise has come, and a job of its agent decides the outcome
    /// ([`super::store::WaiterListStore::decide`]). JavaScript never sees it.
    Due = 8,
}

impl WaitResult {
    pub(super) fn from_code(code: u8) -> Self {
        match code {
            0 => Self::Ok,
            1 => Self::NotEqual,
            2 => Self::TimedOut,
            4 => Self::Acquired,
            _ => Self::AcquiredFromDead,
        }
    }

    /// Whether a claim has its request.
    pub const fn is_acquired(self) -> bool {
        matches!(self, Self::Acquired | Self::AcquiredFromDead)
    }
}
