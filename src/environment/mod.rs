//! The calls between JavaScript and native code, both ways.

pub(crate) mod environment;
pub mod exports;
mod operations;
pub(crate) mod registers;
