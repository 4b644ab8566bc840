//! The globals of a process: queue, agents, images, memory.

pub(crate) mod event_loop;
pub(crate) mod globals;
pub(crate) mod images;
mod memory_probe;
pub(crate) mod registry;
