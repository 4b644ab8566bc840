//! Snapshots, deadlocks, stalls, dumps and profiles.

#[forbid(unsafe_code)]
mod aside;
#[forbid(unsafe_code)]
pub(crate) mod asked;
#[forbid(unsafe_code)]
pub(crate) mod cycle;
pub mod dump;
#[forbid(unsafe_code)]
pub(crate) mod elsewhere;
#[forbid(unsafe_code)]
mod ended;
#[cfg(unix)]
#[forbid(unsafe_code)]
mod lines;
#[forbid(unsafe_code)]
mod places;
pub mod profile;
mod profile_file;
#[forbid(unsafe_code)]
mod reports;
pub mod rows;
pub mod sentences;
#[forbid(unsafe_code)]
pub(crate) mod snapshot;
pub(crate) mod standard_error;
#[forbid(unsafe_code)]
mod stories;
#[forbid(unsafe_code)]
mod survey;
pub mod table;
#[forbid(unsafe_code)]
mod telling;
pub mod whereabouts;

pub(crate) use snapshot::Snapshot;
