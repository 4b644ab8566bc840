//! How long a thread spins before it sleeps; and whether memory has been freed.

#[cfg(not(feature = "model"))]
pub(crate) mod freed;
pub mod spinner;
