//! The functions that JavaScript calls. They decode, call and encode, and decide nothing.

pub mod agents;
pub mod code;
pub mod files;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
pub mod memory;
pub mod observing;
mod operations;

use napi::Result;
use napi::bindgen_prelude::Env;

use crate::agent::Agent;

/// Calls what may change whether the agent holds the event loop.
fn updating<T>(env: Env, body: impl FnOnce(&Agent) -> T) -> Result<T> {
    let agent = Agent::of(env.raw())?;
    let result = body(&agent);
    agent.update_hold();
    Ok(result)
}
