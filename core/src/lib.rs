//! A futex-style queue over shared memory, and locks on top of it. Blocked threads (`Atomics.wait`) and promises
//! (`Atomics.waitAsync`) are in the same line. It knows no Node.
//!
//! # Map
//! | folder | contents | uses |
//! |---|---|---|
//! | `observe` | who holds what, who waits for whom, and texts about that | `held` |
//! | `held` | the agents of a process, with their holds and waits, as every thread may read them | `lock` |
//! | [`lock`] | the rules of locks: which claims are woken and granted, dead holders | `queue` |
//! | [`service`] | the one thread that serves all others: timeouts, words freed without a call, signals to event loops | `queue` |
//! | [`queue`] | the waiters of each word, and their results | |
//! | [`mapped`] | what several processes share: records in memory that each of them has mapped | |
//! | [`spinner`] | how long a thread spins before it sleeps | |
//! | [`clock`], [`sync`] | monotonic time as one word; the primitives of std or of loom, and where a panic stops | |
//! | `json` | texts for JavaScript | |
//!
//! # Invariants
//! Code and SAFETY comments cite these numbers.
//!
//! 1. A waiter is in its list exactly as long as it is unsettled.
//! 2. The thread that removes a waiter settles it, once: notification, timeout and the end of its agent compete for
//!    that removal under the bucket's lock, and nothing else decides.
//! 3. The value is compared and the waiter appended in one critical section.
//! 4. Waiters without a claim leave their location in the order in which they came, except those that give up. The
//!    rules of [`lock`] say in which order claims leave.
//! 5. No thread is woken, no job posted and no Node-API call made inside a critical section. Except that of a word of
//!    several processes a bell is rung there: a watching thread is woken, of another process or of this one, which at
//!    most waits for the bucket. A release that a kill could part from its ring would be told late.
//! 6. At most one bucket lock is held at a time. Lock order: memories, the table of names or the wait-for graph, then
//!    bucket, then any other lock; of these only one at a time.
//! 7. After an agent's clean-up no waiter of it is in any list, and its threadsafe function is never called again.
//! 8. Memory waited on outlives the wait. JavaScript keeps a promise's typed array or lock until it hears of the
//!    settlement, and that of a blocking call until the call returns; an agent that ends withdraws its waits before its
//!    heap goes.
//! 9. Shared memory is only accessed atomically, `SeqCst`.

#![allow(missing_docs, reason = "what needs words has them")]

pub mod clock;
#[cfg(not(feature = "model"))]
pub mod held;
#[cfg(not(feature = "model"))]
pub mod json;
pub mod lock;
pub mod mapped;
#[cfg(not(feature = "model"))]
#[forbid(unsafe_code)]
pub mod observe;
pub mod queue;
#[cfg(not(feature = "model"))]
pub mod service;
pub mod spinner;
pub mod sync;
