//! The functions that JavaScript calls.

pub mod agents;
pub mod code;
pub mod digest;
pub mod files;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
pub mod memory;
pub mod observing;
mod operations;
pub mod shared_memory;
pub mod words;
