//! The functions that JavaScript calls once or rarely. They decode, call and encode, and decide nothing.

use std::ptr;

use napi::bindgen_prelude::{
    ArrayBuffer, Env, Float64ArraySlice, FromNapiValue, Function, JsValue, Object, Unknown, Utf16String,
};
use napi::{Error, JsString, Result, Status, check_status, sys};
use napi_derive::napi;

use crate::agent::{Agent, Observer, note_loaded};
use crate::exports::operations;
use crate::observe::{asked, profile, standard_error};
use crate::process::PROCESS;
use waitasync_core::clock::now;
use waitasync_core::held::stacks;
use waitasync_core::observe::{Snapshot, cycle, snapshot};
use waitasync_core::queue::Location;
use waitasync_core::service::watch::EndSignal;

static OBSERVER: Observer = Observer {
    describe: |links| cycle::described(&PROCESS, links),
    slept: profile::end_block,
    has_news: asked::are_for,
    ended: &[
        |id, _| profile::end_thread(id),
        |_, thread_id| PROCESS.elsewhere.end_thread(thread_id),
        |_, thread_id| asked::forget(thread_id),
    ],
};

/// Makes this environment an agent, and returns its operations: they answer in the registers.
///
/// `registers`: as in `lib/agent/registers.js`, and room for a batch of settlements. `settle(count)` is called whenever
/// so many have been put there; `tick(on_slice)` between the slices in which a thread blocks: it calls the function that
/// the wait was given, if any, and lets the engine interrupt the thread. `thread_id` and `thread_name` are those of `worker_threads`;
/// `end_signal`: 0 if the event loop is not libuv's, 1 for [`EndSignal::Shared`], otherwise [`EndSignal::Own`].
///
/// Null if a hook of `async_hooks` has started another one meanwhile.
#[napi(catch_unwind)]
pub fn start(
    env: Env,
    registers: ArrayBuffer<'_>,
    settle: Function<'_, u32, ()>,
    tick: Function<'_, Unknown<'_>, ()>,
    thread_id: u32,
    thread_name: Option<String>,
    end_signal: Option<u32>,
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
            match end_signal {
                Some(0) => EndSignal::Unknown,
                Some(1) => EndSignal::Shared,
                _ => EndSignal::Own,
            },
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

/// Returns the `threadId` of the lock's holder, if that is an agent.
#[napi(catch_unwind)]
pub fn holder(env: Env) -> Result<Option<u32>> {
    let agent = Agent::of(env.raw())?;
    agent.finish_release();
    Ok(agent.holder())
}

/// Returns the process's holds and waits as JSON; null if a string of JavaScript cannot hold the text.
#[napi(catch_unwind)]
pub fn snapshot(env: Env) -> Result<Option<String>> {
    Agent::of(env.raw())?.finish_release();
    Ok(Snapshot::take(&PROCESS).json())
}

/// Returns the cycle that refused this thread's last claim, as JSON.
#[napi(catch_unwind)]
pub fn cycle(env: Env) -> Result<Option<String>> {
    Ok(Agent::of(env.raw())?.blocking.cycle.take())
}

/// Records a promise's wait, for `factor` waits. Returns its number.
#[napi(catch_unwind)]
pub fn wait_begins(env: Env, stack: u32, factor: u32, leaf: String) -> Result<u32> {
    Ok(profile::begin(Agent::of(env.raw())?.id(), stack, leaf.into(), factor))
}

/// Records the wait for which this thread blocks, or has blocked. `milliseconds`: since it began.
#[napi(catch_unwind)]
pub fn blocks(env: Env, stack: u32, factor: u32, leaf: String, milliseconds: f64) -> Result<()> {
    let agent = Agent::of(env.raw())?;
    profile::begin_block(agent.id(), stack, leaf.into(), factor, milliseconds);
    // Otherwise it ends with the sleep, also if the engine interrupts that.
    if !agent.sleeps() {
        profile::end_block(agent.id());
    }
    Ok(())
}

/// Notes that a promise's wait is over.
#[napi(catch_unwind)]
pub fn wait_ends(env: Env, number: u32) -> Result<()> {
    Agent::of(env.raw()).map(|agent| profile::end(agent.id(), number))
}

/// Notes a hold of this thread that begins, or is about to: the number of its entry, and the stack of the call.
#[napi(catch_unwind)]
pub fn hold_begins(env: Env, serial: u32, call: u32) -> Result<()> {
    Agent::of(env.raw()).map(|agent| agent.robust_list.taken.begin(serial, call))
}

/// Notes that a hold is about to end, or has not begun.
#[napi(catch_unwind)]
pub fn hold_ends(env: Env, serial: u32) -> Result<()> {
    Agent::of(env.raw()).map(|agent| agent.robust_list.taken.end(serial))
}

/// Notes that a callback begins with a hold of this thread. From then on the hold waits only for claims made
/// within that.
#[napi(catch_unwind)]
pub fn task_begins(env: Env, serial: u32) -> Result<()> {
    Agent::of(env.raw()).map(|agent| agent.robust_list.taken.begin_task(serial))
}

/// Notes that the callback is over.
#[napi(catch_unwind)]
pub fn task_ends(env: Env, serial: u32) -> Result<()> {
    Agent::of(env.raw()).map(|agent| agent.robust_list.taken.end_task(serial))
}

/// Notes that the token of this thread's hold has been collected.
#[napi(catch_unwind)]
pub fn hold_is_orphaned(env: Env, serial: u32) -> Result<()> {
    Agent::of(env.raw()).map(|agent| agent.robust_list.taken.orphan(serial))
}

/// Returns how many holds of this thread are known.
#[napi(catch_unwind)]
pub fn hold_count(env: Env) -> Result<u32> {
    Ok(Agent::of(env.raw())?.robust_list.taken.count() as u32)
}

/// Returns the stack with this number, for people; undefined if there is none.
#[napi(catch_unwind)]
pub fn stack_text(env: &Env, number: u32) -> Result<Option<JsString<'_>>> {
    stacks::shown(number).map(|text| env.create_string(&*text)).transpose()
}

/// Asks for reports of this thread's long waits: returns the number of the question. `waits`: of each the slot, the
/// milliseconds since it began, and the key of its last report (0: none).
#[napi(catch_unwind)]
pub fn ask_about_stalls(env: Env, waits: Float64ArraySlice<'_>) -> Result<u32> {
    Ok(asked::ask(Agent::of(env.raw())?.thread_id, &waits))
}

/// Reports the wait for which this thread blocks, as JSON. `milliseconds`: since it began.
#[napi(catch_unwind)]
pub fn report_blocked(env: Env, milliseconds: f64) -> Result<String> {
    Ok(asked::report_blocked(Agent::of(env.raw())?.thread_id, &[-1.0, milliseconds, 0.0]))
}

/// Has a native thread write a text to the standard error.
#[napi(catch_unwind)]
#[allow(clippy::needless_pass_by_value, reason = "napi gives strings by value only")]
pub fn leave_report(text: String) {
    standard_error::leave(&text);
}

/// Returns this thread's next reports as JSON: the number of its question, or 0 for those of a blocked thread, which it
/// is to publish; and the reports. Undefined if there are none.
#[napi(catch_unwind)]
pub fn next_reports(env: Env) -> Result<Option<String>> {
    Ok(asked::next(Agent::of(env.raw())?.thread_id))
}

/// Returns the number that users see for the word at an address.
#[napi(catch_unwind)]
pub fn word_id(address: f64) -> f64 {
    snapshot::id(Location::from_address(address as usize)) as f64
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
    PROCESS.holders.last_dead(Location::from_address(address as usize))
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

/// Notes who has the lock for which this thread waits; or that the wait is over. `name`: of the lock in front.
#[napi(catch_unwind)]
#[allow(clippy::needless_pass_by_value, reason = "napi gives strings by value only")]
pub fn waits_elsewhere(env: Env, name: Utf16String, keeper: Option<String>) -> Result<()> {
    Agent::of(env.raw()).map(|agent| PROCESS.elsewhere.note(agent.thread_id, &name, keeper))
}

/// Notes how this thread ends, if it ends now: a number of `MANNERS` in `lib/agent/ends.js`.
#[napi(catch_unwind)]
pub fn ends_by(env: Env, manner: u32) -> Result<()> {
    Agent::of(env.raw()).map(|agent| agent.ends.set(manner))
}

/// Returns how many milliseconds ago a user of some memory ended last; undefined if none has.
#[napi(catch_unwind)]
pub fn since_last_end() -> Option<f64> {
    PROCESS.tracked_buffers.last_end().map(|at| now().duration_since(at).as_secs_f64() * 1e3)
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
    let agent = Agent::of(env.raw())?;
    PROCESS.registry.worker_starts(&agent.outbox, thread_id);
    // Here and now, since a loop that has run dry hears no ring.
    agent.update_hold();
    Ok(())
}

/// Notes that the worker with this `threadId` has ended.
#[napi(catch_unwind)]
pub fn worker_ended(env: Env, thread_id: u32) -> Result<()> {
    let agent = Agent::of(env.raw())?;
    PROCESS.registry.worker_ended(&agent.outbox, thread_id);
    agent.update_hold();
    Ok(())
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
