//! An environment that has loaded the package, its thread, and its waits.

pub(crate) mod agent;
#[forbid(unsafe_code)]
mod blocking;
#[forbid(unsafe_code)]
mod buffers;
#[forbid(unsafe_code)]
mod delivery;
#[forbid(unsafe_code)]
mod ending;
#[forbid(unsafe_code)]
pub(crate) mod locking;
pub mod naming;
#[forbid(unsafe_code)]
mod pace;
pub(crate) mod pending;
#[forbid(unsafe_code)]
pub(crate) mod waiting;
