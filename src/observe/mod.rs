//! Snapshots, deadlocks, stalls, dumps and profiles.

#[forbid(unsafe_code)]
mod background;
pub mod dump;
pub mod profile;
#[forbid(unsafe_code)]
pub(crate) mod stall_questions;
pub(crate) mod standard_error;
