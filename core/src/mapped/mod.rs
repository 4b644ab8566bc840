//! What several processes share: records in memory that each of them has mapped.
//!
//! A process has a slot in the file. Its number there says nothing once it has ended, so everything that it leaves behind
//! names the slot's generation, too.

pub mod names;
mod process_id;
pub mod words;

pub use process_id::{MOST_PROCESSES, ProcessId};
