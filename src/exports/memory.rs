//! The functions for memory of several processes.
//!
//! They are for `lib/processes/engines/memory.js`; those of buffers also for `lib/holding/shared-word.js`. What waits
//! has its number among the requests for files: `filesNext`, `filesWait`, `filesAbort`, `filesHeld` and `filesRelease`
//! are for both.

#![allow(clippy::needless_pass_by_value, reason = "napi gives strings by value only")]

use std::ffi::c_void;
use std::path::Path;
use std::ptr::{NonNull, null_mut};
use std::rc::Rc;

use libloading::os::unix::Library;
use napi::bindgen_prelude::{Buffer, Env, External, FromNapiValue, Unknown};
use napi::{Error, Result, sys};
use napi_derive::napi;

use super::files::{failed, throw, write};
use super::updating;
use crate::agent::Agent;
use crate::globals::shared_words;
use crate::mapped::{Kind, Mapping, unavailable};
use crate::mapped_names::{self as names, Asked, Requester, Table};
use waitasync_core::mapped::names::{Key, Mode, Row};
use waitasync_core::mapped::words::{Peers, table_bytes};
use waitasync_core::queue::Location;

/// Opens the table in a file, or makes it. An error's message begins with a number; 0 and a code if it is refused.
#[napi(catch_unwind)]
pub fn memory_open(path: String) -> Result<External<&'static Table>> {
    names::open(Path::new(&path)).map(External::new).map_err(failed)
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
    Agent::of(env.raw())?.registers.count.set(address as f64);
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
    updating(env, |agent| place.wait(agent.files()))
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
        let (ours, pid) = (process == table.mapping.me(), Some(table.mapping.pid(index)).filter(|pid| *pid != 0));
        Some(MemoryInfo { name, waits, shared: is_shared, ours, pid, thread, label, since })
    };
    Ok(table.names.rows(key.as_ref()).into_iter().filter_map(info).collect())
}

type CreateBuffer = unsafe extern "C" fn(
    sys::napi_env,
    *mut c_void,
    usize,
    extern "C" fn(*mut c_void, *mut c_void),
    *mut c_void,
    *mut sys::napi_value,
) -> sys::napi_status;

/// Mapped memory stays: see `Mapping`.
extern "C" fn keep(_: *mut c_void, _: *mut c_void) {}

/// Returns a new buffer of a file's memory; makes the file if need be. Its errors are as those of `memory_open`.
#[napi(catch_unwind)]
pub fn shared_memory(env: Env, path: String, bytes: f64) -> Result<Unknown<'static>> {
    let create = create_buffer()?;
    let (path, bytes) = (Path::new(&path), bytes as usize);
    let mapping = Mapping::open(path, Kind::Memory, table_bytes(bytes), bytes, shared_words::start).map_err(failed)?;
    buffer(env, create, mapping.data(), mapping.data_bytes())
}

/// Prepares a word that several processes may have for a lock. Returns a new buffer of its record; null if there are too
/// many. The number of its owner if this process has the lock is written into the registers.
#[napi(catch_unwind)]
pub fn share_word(env: Env, address: f64) -> Result<Option<Unknown<'static>>> {
    let Some((record, owning)) = shared_words::prepare(Location::from_address(address as usize)) else {
        return Ok(None);
    };
    Agent::of(env.raw())?.registers.count.set(owning.into());
    buffer(env, create_buffer()?, NonNull::from(record).cast(), size_of_val(record)).map(Some)
}

fn create_buffer() -> Result<CreateBuffer> {
    let this = Library::this();
    // SAFETY: the type is that of Node's header.
    let create = unsafe { this.get::<CreateBuffer>(b"node_api_create_external_sharedarraybuffer\0") };
    let missing = "This Node.js cannot wrap mapped memory: that needs Node.js 22.23, 24.16, 26.1 or newer";
    create.map(|create| *create).map_err(|_| failed(unavailable(missing)))
}

/// Makes a buffer of mapped memory.
fn buffer(env: Env, create: CreateBuffer, start: NonNull<u8>, bytes: usize) -> Result<Unknown<'static>> {
    let mut buffer = null_mut();
    // SAFETY: on the thread of `env`, with memory that is never unmapped.
    let status = unsafe { create(env.raw(), start.as_ptr().cast(), bytes, keep, null_mut(), &raw mut buffer) };
    if status != sys::Status::napi_ok {
        return Err(failed(unavailable("This runtime refuses to wrap mapped memory")));
    }
    // SAFETY: the buffer is a value of `env`.
    unsafe { Unknown::from_napi_value(env.raw(), buffer) }
}
