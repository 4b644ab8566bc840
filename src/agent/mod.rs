//! An environment that has loaded the package, its thread, and its waits.

#![deny(unsafe_code)]

#[allow(unsafe_code, reason = "Node-API")]
mod agent;
mod buffers;
mod delivery;
mod ending;
mod locking;
mod pending;
mod progress;
#[allow(unsafe_code, reason = "memory that JavaScript owns")]
mod robust_list;
mod sleeping;
mod waiting;

pub(crate) use agent::{Agent, Observer, note_loaded};
