//! Snapshots, deadlocks, stalls, dumps and profiles.

#[forbid(unsafe_code)]
mod aside;
#[forbid(unsafe_code)]
pub(crate) mod asked;
#[forbid(unsafe_code)]
mod cpuprofile;
#[forbid(unsafe_code)]
pub(crate) mod deadlock;
pub mod dump;
pub mod elsewhere;
#[forbid(unsafe_code)]
pub(crate) mod json;
#[cfg(unix)]
#[forbid(unsafe_code)]
mod lines;
#[forbid(unsafe_code)]
mod places;
pub mod profile;
mod profile_file;
#[forbid(unsafe_code)]
mod reports;
pub mod sentences;
#[forbid(unsafe_code)]
pub(crate) mod snapshot;
#[forbid(unsafe_code)]
pub(crate) mod stacks;
pub mod stalls;
pub(crate) mod standard_error;
#[forbid(unsafe_code)]
mod stories;
#[forbid(unsafe_code)]
mod survey;
pub mod table;
#[forbid(unsafe_code)]
pub(crate) mod taken;
#[forbid(unsafe_code)]
mod telling;
pub mod whereabouts;

pub(crate) use snapshot::Snapshot;
pub(crate) use stacks::{NONE, StackId};
pub(crate) use stalls::stalls_are_reported;
pub(crate) use taken::SharedTaken;
