//! The functions that JavaScript calls.

pub mod agents;
pub mod files;
mod operations;
pub mod texts;
