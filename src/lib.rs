//! The native core of `atomics-waitasync`: a futex-style queue of waiters over shared memory, in which blocked threads
//! (`Atomics.wait`) and promises (`Atomics.waitAsync`) stand in the same line.
//!
//! # Map
//! | module | what it is |
//! |---|---|
//! | [`queue::location`] | the address of a word, and reading it |
//! | [`clock`] | monotonic time as one word |
//! | [`queue::waiter_list`] | the lists of one bucket: plain data |
//! | `deadlines` | the deadlines of one bucket: plain data |
//! | [`queue::store`] | all buckets, their locks, and every operation on the queue |
//! | [`lock::line`] | the line before a lock: claims, nudges, hand-off, dead holders |
//! | [`queue::parker`] | a blocked thread: its outcome and its sleep |
//! | [`thread::spinner`] | looking for an outcome before sleeping |
//! | `processor` | which one a thread runs on |
//! | [`lock::memories`] | which memories of locks still exist |
//! | [`queue::outbox`] | the outcomes on their way to an agent |
//! | [`service`] | the one thread that serves all others: time-outs, slices, signals to event loops, words that were freed silently |
//! | `agent` | a Node environment: its outbox's bell, its event loop's hold, its end |
//! | `binding` | what JavaScript calls: decode, call, encode |
//! | `images` | which copy of this library serves the process |
//!
//! Nothing above `agent` knows of Node, so all of it is tested and model-checked without Node.
//!
//! # Invariants
//! Code and SAFETY comments cite these numbers.
//!
//! 1. A waiter is in its list exactly as long as it is unsettled.
//! 2. Whoever removes it settles it, once: notification, time-out and the end of its agent compete for that removal under
//!    the bucket's lock, and nothing else decides.
//! 3. The value is compared and the waiter appended in one critical section.
//! 4. Waiters of one location leave in the order they came (those that give up apart).
//! 5. No thread is woken, no job posted and no Node-API call made inside a critical section.
//! 6. At most one bucket lock is held at a time. Lock order: memories, then bucket, then an outbox or the list of all agents; every
//!    other lock is taken alone.
//! 7. After an agent's clean-up no waiter of it is in any list, and its threadsafe function is never called again.
//! 8. Memory waited on outlives the wait: the JavaScript side keeps the typed array until the promise is settled, and an
//!    agent that ends withdraws its waits before its heap goes.
//! 9. Shared memory is only read atomically, `SeqCst`.

pub mod clock;
pub mod lock;
pub mod queue;
pub mod service;
mod sync;
pub mod thread;

#[cfg(not(feature = "model"))]
pub mod node;
