//! The calling thread: which processor it runs on, and how long it spins before it sleeps. And whether memory has been freed.

#[cfg(not(feature = "model"))]
pub(crate) mod freed;
pub(crate) mod processor;
pub mod spinner;
