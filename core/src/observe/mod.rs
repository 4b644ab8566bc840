//! Who holds what, who waits for whom, and texts about that.

pub mod reports;
pub mod rows;
pub mod sentences;
pub mod snapshot;
pub mod survey;
pub mod table;

pub use snapshot::Snapshot;
