//! The functions that JavaScript calls.

pub mod agents;
pub mod code;
pub mod digest;
pub mod files;
pub mod observing;
mod operations;
pub mod shared_memory;
pub mod words;
