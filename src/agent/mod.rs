//! An environment that has loaded the package, its thread, and its waits.

mod agent;
mod blocking;
#[forbid(unsafe_code)]
mod buffers;
#[forbid(unsafe_code)]
mod delivery;
#[forbid(unsafe_code)]
mod ending;
#[forbid(unsafe_code)]
mod locking;
pub mod naming;
#[forbid(unsafe_code)]
mod observer;
#[forbid(unsafe_code)]
mod pace;
mod pending;
#[forbid(unsafe_code)]
mod progress;
mod robust_list;
#[forbid(unsafe_code)]
mod sleeping;
#[forbid(unsafe_code)]
mod waiting;

pub(crate) use agent::{Agent, note_loaded};
pub(crate) use observer::Observer;
