//! The globals of a process: its state, images, memory, signals, settings.

mod globals;
pub mod images;
mod memory_probe;
#[cfg(unix)]
pub(crate) mod signals;
pub mod stalls;

pub(crate) use globals::{
    PROCESS, Unused, claim_has_joined, gave_up, pass_on_notification, raise, return_unused, service, word_at,
};
