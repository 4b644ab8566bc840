//! The addon: Node's environments on top of `waitasync_core`, which knows no Node.
//!
//! | folder | contents |
//! |---|---|
//! | [`environment`] | the calls between JavaScript and native code, both ways |
//! | [`agent`] | an environment that has loaded the package, its thread, and its waits |
//! | [`observe`] | snapshots, deadlocks, stalls, dumps and profiles |
//! | `held` | the holds of threads |
//! | [`processes`] | locks of several processes, by files |
//! | `process` | the globals of a process: queue, agents, images, memory, signals |
//!
//! The head of `core/src/lib.rs` numbers the invariants that code and SAFETY comments cite.

#![allow(unsafe_code, reason = "Node-API, memory that JavaScript owns, and the dynamic loader")]

pub mod agent;
pub mod environment;
mod held;
pub mod observe;
pub mod process;
pub mod processes;
