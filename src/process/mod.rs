//! What a process has one of.
//!
//! | module | what it is |
//! |---|---|
//! | `globals` | the store of waiters, the service, the memories of locks, the names |
//! | `registry` | the agents of all threads |
//! | `event_loop` | the descriptor of an event loop, for the service to watch |
//! | `memory_probe` | whether memory has been freed |
//! | `images` | which copy of this library serves the process |

pub(crate) mod event_loop;
pub(crate) mod globals;
pub(crate) mod images;
mod memory_probe;
pub(crate) mod registry;
