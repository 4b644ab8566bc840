//! Snapshots, deadlocks, stalls, dumps and profiles.

#[forbid(unsafe_code)]
mod aside;
#[forbid(unsafe_code)]
pub(crate) mod asked;
pub mod dump;
pub mod profile;
pub(crate) mod standard_error;
