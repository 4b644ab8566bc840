//! Texts about holds and waits.

#[forbid(unsafe_code)]
pub mod cpuprofile;
