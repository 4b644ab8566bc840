//! The addon: Node's environments on top of `waitasync_core`, which knows no Node.
//!
//! | folder | contents |
//! |---|---|
//! | [`exports`] | the functions that JavaScript calls |
//! | [`observe`] | snapshots, deadlocks, stalls, dumps and profiles |
//! | [`agent`] | an environment that has loaded the package, its thread, and its waits |
//! | [`file_locks`] | locks of several processes, by files |
//! | `mapped` | memory that several processes share: files that each of them maps once |
//! | `mapped_names` | locks of several processes, by a table in such memory |
//! | `environment` | calls into a Node environment, its buffers, its event loop |
//! | [`globals`] | the globals of a process: state, images, memory, signals, settings |
//!
//! A folder uses those below it.
//!
//! The head of `core/src/lib.rs` numbers the invariants that code and SAFETY comments cite.

#![allow(unsafe_code, reason = "Node-API, memory that JavaScript owns, and the dynamic loader")]

pub mod agent;
mod environment;
pub mod exports;
pub mod file_locks;
pub mod globals;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
pub mod mapped;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
pub mod mapped_names;
pub mod observe;
