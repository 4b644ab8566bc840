//! The addon: Node's environments on top of `waitasync_core`, which knows no Node.
//!
//! | folder | what it is |
//! |---|---|
//! | [`environment`] | what JavaScript calls, and the Node-API calls that call it |
//! | `agent` | an environment that has loaded the package, its thread, and its waits |
//! | [`observe`] | what is told of waits and holds: snapshots, deadlocks, stalls, dumps and profiles |
//! | `held` | what the threads hold |
//! | `process` | what a process has one of |
//!
//! The head of `core/src/lib.rs` numbers the invariants that code and SAFETY comments cite.

#![allow(unsafe_code, reason = "Node-API, memory that JavaScript owns, and the dynamic loader")]

pub mod agent;
pub mod environment;
mod held;
pub mod observe;
mod process;
