//! The functions that JavaScript calls.

pub mod agents;
pub mod files;
pub mod observing;
mod operations;
pub mod words;
