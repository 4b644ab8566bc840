//! Words and the memories in which they lie: names for people, and whether the memories exist.

use napi::bindgen_prelude::Env;
use napi::{JsString, Result};
use napi_derive::napi;

use crate::agent::Agent;
use crate::globals::{self, PROCESS};
use waitasync_core::observe::snapshot;
use waitasync_core::queue::Location;

/// Registers a buffer object of `length` bytes at `base` for this thread.
#[napi(catch_unwind)]
pub fn register_memory(env: Env, base: f64, length: f64) -> Result<()> {
    Agent::of(env.raw()).map(|agent| agent.buffers.register(agent.id(), base as usize, length as usize))
}

/// Notes that registered objects of the memory at `base` were collected. Returns whether `look_at_memories` is to be
/// called once the memory may have been freed.
#[napi(catch_unwind)]
pub fn lose_memory(env: Env, base: f64, objects: u32) -> Result<bool> {
    Agent::of(env.raw()).map(|agent| agent.buffers.lose(agent.id(), base as usize, objects as usize))
}

/// Finds out which memories without a known buffer object have been freed.
#[napi(catch_unwind)]
pub fn look_at_memories() {
    PROCESS.tracked_buffers.look(&PROCESS.store);
}

/// Returns the number that users see for the word at an address.
#[napi(catch_unwind)]
pub fn word_id(address: f64) -> f64 {
    snapshot::id(Location::from_address(address as usize)) as f64
}

/// Whether this process has any memory that several processes may have.
#[napi(catch_unwind)]
pub fn maps_memory() -> bool {
    globals::maps_memory()
}

/// Whether several processes may have the word at an address.
#[napi(catch_unwind)]
pub fn is_shared(address: f64) -> bool {
    globals::is_shared(Location::from_address(address as usize))
}

/// Returns the pid of a shared word's only holder; 0: unknown.
#[napi(catch_unwind)]
pub fn owner_of(address: f64) -> Option<u32> {
    globals::owner_of(Location::from_address(address as usize))
}

/// Gives the word at an address a name, for people.
#[napi(catch_unwind)]
pub fn set_label(address: f64, label: JsString<'_>) -> Result<()> {
    let length = label.utf16_len()?;
    PROCESS.tracked_buffers.set_label(Location::from_address(address as usize), label.into_utf16()?[..length].into());
    Ok(())
}

/// Returns the name that a program gave the word at an address.
#[napi(catch_unwind)]
pub fn label_of(env: &Env, address: f64) -> Result<Option<JsString<'_>>> {
    let label = PROCESS.tracked_buffers.label(Location::from_address(address as usize));
    label.map(|label| env.create_string_utf16(label)).transpose()
}

/// Returns the `threadId` of the last thread that died with the lock.
#[napi(catch_unwind)]
pub fn dead_owner(address: f64) -> Option<u32> {
    PROCESS.last_dead(Location::from_address(address as usize))
}
