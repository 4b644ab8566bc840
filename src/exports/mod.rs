//! The functions that JavaScript calls, of agents and of locks of files.

pub mod agents;
pub mod files;
mod operations;
