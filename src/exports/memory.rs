//! The functions for `lib/processes/engines/memory.js`. They decode, call and encode, and decide nothing.
//!
//! What waits has its number among the requests for files: `filesNext`, `filesWait`, `filesAbort`, `filesHeld` and
//! `filesRelease` are for both.

#![allow(clippy::needless_pass_by_value, reason = "napi gives strings by value only")]

use std::path::Path;

use napi::bindgen_prelude::{Buffer, Env, External, Float64ArraySlice};
use napi::{Error, Result};
use napi_derive::napi;

use super::files::{failed, write};
use super::shared_memory::refused;
use super::updating;
use crate::agent::Agent;
use crate::mapped_names::{self as names, Asked, Requester, Table};
use waitasync_core::mapped::names::{Key, Look, Mode};
use waitasync_core::mapped::{MOST_PROCESSES, ProcessId};

/// Opens the table in a file, or makes it. An error's message begins with its code, and a space.
#[napi(catch_unwind)]
pub fn memory_open(path: String) -> Result<External<&'static Table>> {
    let table = names::open(Path::new(&path)).map_err(|error| refused(&error))?;
    Ok(External::new(table))
}

/// Makes what the requests for a name have in common. `key`: its SHA-256; `max_hold`: for how many milliseconds they may have
/// the lock; `permits`: they ask for one of so many. 0: without.
#[napi(catch_unwind)]
#[allow(clippy::too_many_arguments, reason = "an object takes longer")]
pub fn memory_place(
    table: &External<&'static Table>,
    key: Buffer,
    name: String,
    shared: bool,
    thread: u32,
    label: String,
    max_hold: f64,
    permits: u32,
) -> Result<External<Requester>> {
    let (key, mode) = (key_of(&key)?, if shared { Mode::Shared } else { Mode::Exclusive });
    let (table, max_hold) = (**table, max_hold.ceil() as u64);
    Ok(External::new(Requester::new(Asked { table, key, name, mode, thread, label, max_hold, permits })))
}

fn key_of(bytes: &[u8]) -> Result<Key> {
    match bytes.as_chunks() {
        (&[a, b, c, d], []) => Ok([a, b, c, d].map(u64::from_le_bytes)),
        _ => Err(Error::from_reason("a key has 32 bytes")),
    }
}

/// Takes a free lock or permit, and writes the grant. Returns whether it was free.
#[napi(catch_unwind)]
pub fn memory_take(
    env: Env,
    place: &External<Requester>,
    attempt: bool,
    into: Float64ArraySlice<'_>,
) -> Result<bool> {
    let granted = place.take(Agent::of(env.raw())?.files(), attempt);
    Ok(granted.map_err(failed)?.map(|granted| write(granted, into)).is_some())
}

/// Lets a request wait. Returns its number.
#[napi(catch_unwind)]
pub fn memory_request(env: Env, place: &External<Requester>) -> Result<i64> {
    updating(env, |agent| place.wait(agent.files(), &agent.outbox))
}

/// A process that holds a name, or waits for it.
#[napi(object, object_from_js = false)]
#[derive(Default)]
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
    let positions = match key {
        Some(key) => table.names.find(&key_of(&key)?).map_or_else(Vec::new, |place| table.names.positions_of(place)),
        None => (0..table.names.capacity()).collect(),
    };
    let looks = positions.into_iter().filter_map(|position| table.names.look(position));
    Ok(looks.flat_map(|look| infos(table, look)).collect())
}

fn infos(table: &Table, look: Look) -> Vec<MemoryInfo> {
    let Look { name, holder, noted, sharers, waiting, readers } = look;
    let info = |process: ProcessId, shared: bool, waits: bool| MemoryInfo {
        name: name.clone(),
        waits,
        shared,
        ours: process == table.mapping.me(),
        pid: table.mapping.pid_of(process),
        ..MemoryInfo::default()
    };
    let of_mask = |mask: u64, waits: bool| {
        let indexes = (0..MOST_PROCESSES).filter(move |index| mask >> index & 1 != 0);
        indexes.filter_map(|index| table.mapping.process_at(index)).map(move |process| (process, waits))
    };
    let (since, thread, label) = noted.map_or((None, None, None), |(since, thread, label)| {
        (Some(since as f64), Some(thread), Some(label).filter(|label| !label.is_empty()))
    });
    let holder = holder.map(|holder| MemoryInfo { thread, label, since, ..info(holder, false, false) });
    let others = of_mask(sharers, false).chain(of_mask(waiting, true));
    let others = others.map(|(process, waits)| info(process, !waits || readers & process.mask() != 0, waits));
    holder.into_iter().chain(others).collect()
}
