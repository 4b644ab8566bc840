//! The calling thread: which processor it runs on, and how long it spins before it sleeps.

pub(crate) mod processor;
pub mod spinner;
