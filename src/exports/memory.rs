//! The functions for `lib/processes/engines/memory.js`. They decode, call and encode, and decide nothing.
//!
//! What waits has its number among the requests for files: `filesNext`, `filesWait`, `filesAbort`, `filesHeld` and
//! `filesRelease` are for both.

#![allow(clippy::needless_pass_by_value, reason = "napi gives strings by value only")]

use std::path::Path;
use std::rc::Rc;

use napi::bindgen_prelude::{Buffer, Env, External};
use napi::{Error, Result};
use napi_derive::napi;

use super::files::{throw, write};
use super::shared_memory::refused;
use super::updating;
use crate::agent::Agent;
use crate::mapped_names::{self as names, Asked, Requester, Table};
use waitasync_core::mapped::names::{Key, Mode, Row};

/// Opens the table in a file, or makes it. An error's message begins with its code, and a space.
#[napi(catch_unwind)]
pub fn memory_open(path: String) -> Result<External<&'static Table>> {
    let table = names::open(Path::new(&path)).map_err(|error| refused(&error))?;
    Ok(External::new(table))
}

/// Makes what the requests for a name have in common. `key`: its SHA-256; `max_hold`: for how many milliseconds they may have
/// the lock; `permits`: they ask for one of so many. 0: without. Its address is written into the registers.
#[napi(catch_unwind)]
#[allow(clippy::too_many_arguments, reason = "an object takes longer")]
pub fn memory_place(
    env: Env,
    table: &External<&'static Table>,
    key: Buffer,
    name: String,
    shared: bool,
    thread: u32,
    label: String,
    max_hold: f64,
    permits: u32,
) -> Result<External<Rc<Requester>>> {
    let (key, mode) = (key_of(&key)?, if shared { Mode::Shared } else { Mode::Exclusive });
    let max_hold = max_hold.ceil() as u64;
    let place = Rc::new(Requester::new(**table, Asked { key, name, mode, thread, label, max_hold, permits }));
    let address = Rc::as_ptr(&place).expose_provenance();
    Agent::of(env.raw())?.registers.set_count(address.cast_signed() as i64);
    Ok(External::new(place))
}

fn key_of(bytes: &[u8]) -> Result<Key> {
    match bytes.as_chunks() {
        (&[a, b, c, d], []) => Ok([a, b, c, d].map(u64::from_le_bytes)),
        _ => Err(Error::from_reason("a key has 32 bytes")),
    }
}

/// Takes a free lock or permit: see [`write()`]. The registers have the address of its place, and whether it is an attempt.
pub(super) fn take(agent: &Agent) -> u32 {
    let address = agent.registers.location().address();
    // SAFETY: `lib/processes/engines/memory.js` has the place that `memory_place` has made there.
    let place: &Requester = unsafe { &*std::ptr::with_exposed_provenance(address) };
    let granted = place.take(agent.files(), agent.registers.amount.get() != 0);
    granted.map_or_else(|error| throw(agent, error), |granted| write(agent, granted))
}

/// Lets a request wait. Returns its number.
#[napi(catch_unwind)]
pub fn memory_request(env: Env, place: &External<Rc<Requester>>) -> Result<i64> {
    updating(env, |agent| place.wait(agent.files(), &agent.outbox))
}

/// A process that holds a name, or waits for it.
#[napi(object, object_from_js = false)]
pub struct MemoryInfo {
    /// The beginning of the name.
    pub name: String,
    /// Whether it waits.
    pub waits: bool,
    /// Whether that is in shared mode.
    pub shared: bool,
    /// Whether it is this process.
    pub ours: bool,
    /// Undefined of a process of another namespace.
    pub pid: Option<u32>,
    /// The thread. Only exclusive holders have it, and what follows.
    pub thread: Option<u32>,
    /// The holder's label.
    pub label: Option<String>,
    /// Since when it is held, in milliseconds since 1970.
    pub since: Option<f64>,
}

/// Lists who holds and awaits names: all of them, or that with a key.
#[napi(catch_unwind)]
pub fn memory_look(table: &External<&'static Table>, key: Option<Buffer>) -> Result<Vec<MemoryInfo>> {
    let key = key.map(|key| key_of(&key)).transpose()?;
    let info = |Row { name, index, waits, is_shared, noted }| {
        let process = table.mapping.process_at(index)?;
        let (since, thread, label) = noted.map_or((None, None, None), |(since, thread, label)| {
            (Some(since as f64), Some(thread), Some(label).filter(|label| !label.is_empty()))
        });
        let (ours, pid) = (process == table.mapping.me(), table.mapping.pid_of(process));
        Some(MemoryInfo { name, waits, shared: is_shared, ours, pid, thread, label, since })
    };
    Ok(table.names.rows(key.as_ref()).into_iter().filter_map(info).collect())
}
