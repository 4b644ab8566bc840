//! An environment's agent, the threads beside it, its words and memories.

use std::ptr;

use napi::bindgen_prelude::{ArrayBuffer, Env, FromNapiValue, Function, JsValue, Object, Unknown};
use napi::{Error, JsString, Result, Status, check_status, sys};
use napi_derive::napi;

use super::{operations, updating};
use crate::agent::{Agent, Observer, note_loaded};
use crate::globals::{self, PROCESS};
use crate::observe::{profile, stalls};
use waitasync_core::observe::{sentences, snapshot};
use waitasync_core::queue::Location;

static OBSERVER: Observer = Observer {
    describe: |links| sentences::refused_cycle(&PROCESS, links),
    has_news: stalls::are_for,
    ended: &[
        |id, _| profile::end_thread(id),
        |_, thread_id| PROCESS.end_waits_elsewhere(thread_id),
        |_, thread_id| stalls::forget(thread_id),
    ],
};

/// Makes this environment an agent, and returns its operations: they answer in the registers.
///
/// `registers`: as in `lib/agent/registers.js`, and room for a batch of settlements. `settle(count)` is called whenever
/// so many have been put there; `tick()` between the slices in which a thread blocks, where the engine may interrupt
/// the thread, and `tick(function)` for a function that a wait was given. `thread_id` and `thread_name` are those of `worker_threads`;
/// `has_libuv`: whether the event loop is libuv's; `has_end_signal`: whether a worker's end has a signal of its own.
///
/// Null if a hook of `async_hooks` has started another one meanwhile.
#[napi(catch_unwind)]
#[allow(clippy::too_many_arguments, reason = "it is called once")]
pub fn start(
    env: Env,
    registers: ArrayBuffer<'_>,
    settle: Function<'_, u32, ()>,
    tick: Function<'_, Unknown<'_>, ()>,
    thread_id: u32,
    thread_name: Option<String>,
    has_libuv: bool,
    has_end_signal: bool,
) -> Result<Option<Object<'static>>> {
    // SAFETY: called from JavaScript, and the wrapper checked the types.
    let is_started = unsafe {
        Agent::start(
            env.raw(),
            &OBSERVER,
            registers.raw(),
            settle.raw(),
            tick.raw(),
            thread_id,
            thread_name,
            has_libuv,
            has_end_signal,
        )
    }?;
    if is_started { operations::create(&env).map(Some) } else { Ok(None) }
}

/// Calls `run()` in no asynchronous context.
#[napi(catch_unwind)]
pub fn in_root_context(env: Env, run: Function<'_, (), ()>) -> Result<()> {
    let (env, mut global, mut result) = (env.raw(), ptr::null_mut(), ptr::null_mut());
    // SAFETY: on the thread of `env`, in a call from JavaScript; the wrapper checked the type.
    unsafe {
        check_status!(sys::napi_get_global(env, &raw mut global))?;
        let (no_context, no_arguments) = (ptr::null_mut(), ptr::null());
        check_status!(sys::napi_make_callback(env, no_context, global, run.raw(), 0, no_arguments, &raw mut result))
    }
}

/// Returns the address of a typed array's first byte.
#[napi(catch_unwind)]
pub fn address_of(env: Env, array: Object<'_>) -> Result<f64> {
    let (mut data, unused, unused_kind) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
    // SAFETY: on the thread of `env`; Node-API refuses any value but a typed array.
    check_status!(unsafe {
        let (env, array) = (env.raw(), array.raw());
        sys::napi_get_typedarray_info(env, array, unused_kind, unused, &raw mut data, ptr::null_mut(), unused)
    })?;
    let address = data.expose_provenance();
    if address as u64 >= 1 << 53 {
        return Err(Error::new(Status::GenericFailure, "atomics-waitasync: an address beyond 2^53"));
    }
    Ok(address as f64)
}

/// Notes that this thread blocks to put: its robust list says so at `index`.
///
/// If it would never go on, returns the `threadId`s of all that have messages in use and block so, instead. `queue`: the
/// address of its first word.
#[napi(catch_unwind)]
pub fn block_putter(env: Env, index: u32, queue: f64, capacity: u32) -> Result<Option<Vec<u32>>> {
    let agent = Agent::of(env.raw())?;
    let queue = Location::from_address(queue as usize);
    Ok(PROCESS.registry.block_putter(&agent.outbox, index as usize, queue, capacity as usize))
}

/// Notes the holds, by serial number, around the next claim.
#[napi(catch_unwind)]
pub fn claims_within(env: Env, holds: Vec<u32>) -> Result<()> {
    Agent::of(env.raw()).map(|agent| agent.pending.set_within(holds))
}

/// Moves the robust list to `buffer`, which has its entries already.
#[napi(catch_unwind)]
pub fn set_robust_list(env: Env, buffer: ArrayBuffer<'_>) -> Result<()> {
    let agent = Agent::of(env.raw())?;
    let publish = |table| PROCESS.registry.set_robust_list(&agent.outbox, table);
    // SAFETY: called from JavaScript, and the wrapper checked the type.
    unsafe { agent.robust_list.enlarge(agent.environment, buffer.raw(), publish) }
}

/// Notes how this thread ends, if it ends now: a number of `MANNERS` in `lib/agent/agent.js`.
#[napi(catch_unwind)]
pub fn ends_by(env: Env, manner: u32) -> Result<()> {
    Agent::of(env.raw()).map(|agent| agent.ends.set(manner))
}

/// Lets this environment's end begin here, before all hooks added so far.
#[napi(catch_unwind)]
pub fn end_first(env: Env) -> Result<()> {
    Agent::of(env.raw())?.end_first()
}

/// Counts this thread among those that may notify: it has loaded the package.
#[napi(catch_unwind)]
pub fn thread_loads(env: Env) -> Result<()> {
    note_loaded(env.raw())
}

/// Notes a worker of this thread that will load the addon. From now on it counts as a thread that may notify.
#[napi(catch_unwind)]
pub fn worker_starts(env: Env, thread_id: u32) -> Result<()> {
    // Here and now, since a loop that has run dry hears no ring.
    updating(env, |agent| PROCESS.registry.worker_starts(&agent.outbox, thread_id))
}

/// Notes that the worker with this `threadId` has ended.
#[napi(catch_unwind)]
pub fn worker_ended(env: Env, thread_id: u32) -> Result<()> {
    updating(env, |agent| PROCESS.registry.worker_ended(&agent.outbox, thread_id))
}

/// Returns the counters as an `ArrayBuffer`: of waiters, and then, fewer, of abandoned locks, both by word. To be read
/// only, atomically. Undefined where the host allows no such buffer.
#[napi(catch_unwind)]
pub fn counters(env: Env) -> Result<Option<Unknown<'static>>> {
    let counters = PROCESS.store.counters();
    let (start, hint, mut buffer) = (counters.as_ptr().cast_mut().cast(), ptr::null_mut(), ptr::null_mut());
    // SAFETY: the counters are in a static, so they outlive every environment; JavaScript only reads them, atomically.
    let status = unsafe {
        sys::napi_create_external_arraybuffer(env.raw(), start, size_of_val(counters), None, hint, &raw mut buffer)
    };
    if status != sys::Status::napi_ok {
        return Ok(None);
    }
    // Not as napi's `ArrayBuffer`, which would ask for its memory: V8 of Node 15 and 16 ends the process when a second
    // isolate does so for the same address. SAFETY: a value just made in this environment.
    unsafe { Unknown::from_napi_value(env.raw(), buffer) }.map(Some)
}

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
