//! Who holds what, who waits for whom, and texts about that.
//!
//! Snapshots, deadlocks, reports of stalls, dumps and profiles are made of these.

pub mod reports;
pub mod rows;
pub mod sentences;
pub mod snapshot;
pub mod survey;
pub mod table;

pub use snapshot::Snapshot;
