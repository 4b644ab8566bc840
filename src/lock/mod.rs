//! The locks: the rules by which what a word grants is shared out to the waiters in its queue.

#![forbid(unsafe_code)]

pub mod line;
pub mod memories;
