//! The locks: how a word's grants are shared out among the claims in its line.
//!
//! # Words
//! | word of a | holds | a request takes |
//! |---|---|---|
//! | lock | 0 free, 1 locked | 0 → 1 |
//! | read-write lock | 0 free, *n* readers, −1 a writer | *n* → *n* + 1, 0 → −1 |
//! | semaphore | the permits that are left | *n* → *n* − *k* |
//! | semaphore with a limit | the permits that are taken | *n* → *n* + *k*, up to the request's limit |
//! | named lock | as of a read-write lock; the word is [`names`]' | the same |
//!
//! JavaScript takes a free word, and releases one without waiters, by one atomic operation and without a native call. A
//! claim that has to wait joins the line of its word: in the same list as waiters without a claim, which may be threads
//! that lock by means of `Atomics.wait` and `notify`.
//!
//! # The line of a lock
//! A newcomer may overtake a waking waiter for at most [`fairness::FAIRNESS`]; then the lock is handed over. A promise
//! overtakes no promise of the same agent that is first in line.
//!
//! | event | word | effect |
//! |---|---|---|
//! | a claim comes | 0 | it takes the lock; but a promise joins the line if the first is one of its agent |
//! | | 1 | it joins the line |
//! | the holder releases | 1 → 0 | the first claim is woken to retry; a newcomer may be quicker |
//! | | 1 → 1 | a claim whose turn it is ([`fairness`]) is handed it: the releasing agent's own, at the end of a job |
//! | a woken claim retries | 0 → 1 | it has the lock and leaves the line |
//! | | 1 | it keeps its place, and spins for a moment before it sleeps, since the lock may be handed to it |
//! | a claim gives up, or its agent ends | any | it leaves; if it had been woken, the next one is woken |
//! | the holder's agent ends | 1 → 1 | the first claim gets it, and sees the death; a promise's only if it has retried |
//! | | 1 → 0 | otherwise the location is remembered as abandoned, for the next holder; and as for a release |
//!
//! Waiters without a claim that stand before the first claim are notified whenever it is woken.
//!
//! # The line of a read-write lock or semaphore is strict
//! No claim is overtaken: a claim that finds a line joins it, and a release serves the first claims, as many as the
//! word grants. So a writer, or a request for many permits, does not starve, and readers behind a writer enter
//! together. A grant to a promise whose event loop is busy stays with it. When a claim gives up, the first one is
//! woken, since the word may hold enough for it. A blocked thread that is woken behind a promise's claim serves the
//! first claims as far as the word is enough, as a release does, before it takes anything for itself.
//!
//! # Why no release is missed
//! If the word grants the first claim's request, then that claim is awake, and if it is a promise's the first blocked
//! thread behind it, too; or a release is under way which will wake them. For:
//!
//! - Native code that changes the word wakes the first claim, and the thread, in the same critical section.
//! - JavaScript that changes the word looks at the word's counter *afterwards* and calls native code if anybody is
//!   counted. If the thread is ended between the two, its clean-up does.
//! - A claim is counted *before* it looks at the word (the argument of [`crate::queue::counters`]).
//! - A claim that is awake takes its request, or finds a holder that will give it back, or wakes its successor as it
//!   leaves.
//!
//! A blocked thread that joins the line of a lock has found the lock taken, so a release will follow. One that joins a
//! strict line behind a promise's claim that is awake serves that claim from the word before it waits itself.

mod abandoned;
mod bucket;
mod claims;
pub mod cycles;
pub mod fairness;
pub mod inspection;
pub mod names;
pub mod tracked_buffers;
pub mod wait_for_graph;
pub mod word;

#[cfg(not(feature = "model"))]
pub(crate) use bucket::shrink;
pub use bucket::{Lines, WaiterListStore};
pub use claims::{Claimed, Freed};
pub use fairness::{FAIRNESS, ROOM, Released};
pub use word::{Hold, LOCKED, Mode, Request, UNLOCKED, WRITING, Word};

pub use crate::queue::{Mail, Outbox, Waiter};
