//! A Node environment: the calls into it, its buffers, and its event loop.

mod environment;
pub(crate) mod event_loop;

pub(crate) use environment::{Argument, Bell, Environment, pin_buffer};
