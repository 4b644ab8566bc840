//! An environment that has loaded the package, its thread, and its waits.

mod agent;
#[forbid(unsafe_code)]
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
mod pace;
mod pending;
#[forbid(unsafe_code)]
mod waiting;

pub(crate) use agent::Agent;
pub(crate) use pending::{Noted, PLAIN, PURPOSE_BITS, SharedNotes, Within};
