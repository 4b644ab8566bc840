//! The globals of a process: queue, agents, images, memory, signals.

pub(crate) mod event_loop;
mod globals;
pub mod images;
mod memory_probe;
mod registry;
#[cfg(unix)]
pub(crate) mod signals;

pub(crate) use globals::{
    MEMORIES, NAMES, STORE, Unused, claim_has_joined, gave_up, pass_on_notification, raise, return_unused, service,
    word_at,
};
pub(crate) use registry::{Known, REGISTRY, Registered, next_number};
