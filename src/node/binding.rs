//! What `lib/` calls. Decodes, calls, encodes; decides nothing.
//!
//! Operands and answers pass through the registers (see `agent`), since a Node-API call without arguments costs a fifth of
//! one with them. The operations are therefore functions of their own making, without napi-rs's conversions; what is called
//! once, or rarely, is napi-rs's.

#![allow(unsafe_code, reason = "Node-API")]

use std::ffi::CStr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use crossbeam_utils::CachePadded;
use napi::bindgen_prelude::{ArrayBuffer, Env, FromNapiValue, Function, JsValue, Object, Unknown};
use napi::{Error, Result, Status, check_status, sys};
use napi_derive::napi;

use crate::node::agent::{Agent, Begun, NoTimer, STORE, contained};
use crate::node::images;
use crate::queue::counters::CounterLine;

/// What a wait or a claim answers, beside `WaitResult`'s numbers: it still waits.
const PENDING: u32 = 3;
/// The system gave no thread for the timer.
const NO_TIMER: u32 = 6;
/// The operation panicked.
const FAILED: u32 = 7;
/// The engine has broken the wait off.
const INTERRUPTED: u32 = 8;

impl From<Begun> for u32 {
    fn from(begun: Begun) -> Self {
        match begun {
            Begun::Over(result) => result as Self,
            Begun::Pending => PENDING,
            Begun::Interrupted => INTERRUPTED,
        }
    }
}

fn answer(begun: std::result::Result<Begun, NoTimer>) -> u32 {
    begun.map_or(NO_TIMER, u32::from)
}

/// What an agent does for JavaScript: operands in its registers, the answer given.
type Operation = fn(&Agent) -> u32;

/// The operations, by the names that `lib/` knows. All but `resume` show that the thread is not blocked.
const OPERATIONS: [(&CStr, Operation); 18] = [
    // Atomics.wait.
    (c"wait", |agent| agent.wait().into()),
    // Blocks where `waitGivingBack` has lined the thread up.
    (c"resume", |agent| agent.resume().into()),
    // Atomics.waitAsync: lines up a promise.
    (c"waitAsync", |agent| answer(agent.wait_async())),
    // Atomics.notify: how many were woken.
    (c"notify", Agent::notify),
    // How many wait at the location.
    (c"waiterCount", |agent| STORE.count(agent.registers().location())),
    // Lets the wait in the slot keep the event loop alive, or no longer.
    (c"ref", |agent| agent.set_refed(true)),
    (c"unref", |agent| agent.set_refed(false)),
    // The event loop has run dry: what is on its way by now, or could be, is awaited. Whether the loop is held.
    (c"runsDry", |agent| agent.runs_dry()),
    // Blocks for what is asked of the word at the location. What is acquired has been added to the table of holdings, as
    // its last, unless it belongs to nobody.
    (c"claim", |agent| agent.claim().into()),
    // Takes what is asked of the word at the location, or lines up a promise for it.
    (c"claimAsync", |agent| answer(agent.claim_async())),
    // Takes what is asked of the word at the location if that needs no waiting; otherwise 1.
    (c"tryTake", |agent| agent.try_take().into()),
    // Lines up at the location, and gives back what is at the place in the table of holdings. PENDING: then `resume` is to be
    // called.
    (c"waitGivingBack", |agent| agent.wait_giving_back().into()),
    // Takes the promise in the slot out of the line. 0 if it is settled already.
    (c"cancel", |agent| agent.cancel().into()),
    // Gives back what is at the place in the table of holdings.
    (c"giveBack", Agent::give_back),
    // The word at the location was changed in JavaScript while somebody was counted in its bucket.
    (c"released", Agent::released),
    // Whether what was just taken at the location in JavaScript had been abandoned by a dead holder.
    (c"inherit", |agent| agent.inherit().into()),
    // Gives back what is at the place in the table of holdings and came from a dead holder, so that the next is told of that.
    (c"passOn", Agent::pass_on),
    // Frees the lock at the location, which this thread does not hold: 0. 1: it is free; 2: another one holds it.
    (c"free", Agent::free),
];

/// The places of `resume` and `released` in the table.
const RESUME: usize = 1;
const RELEASED: usize = 14;

unsafe extern "C" fn operate<const N: usize>(env: sys::napi_env, _: sys::napi_callback_info) -> sys::napi_value {
    let operation = |agent: &Agent| {
        if N != RESUME {
            agent.abandon_block();
        }
        if N != RELEASED {
            agent.finish_release();
        }
        let answer = OPERATIONS[N].1(agent);
        // What it settled or nudged may be this agent's own, and from here on that keeps its loop alive.
        agent.update_hold();
        agent.registers().answer.set(answer);
    };
    // Unwinding into Node would end the process.
    if catch_unwind(AssertUnwindSafe(|| Agent::with(env, operation))).is_err() {
        contained(|| Agent::with(env, |agent| agent.registers().answer.set(FAILED)));
    }
    // Undefined.
    ptr::null_mut()
}

/// `operate` for each operation.
const CALLBACKS: [sys::napi_callback; OPERATIONS.len()] = [
    Some(operate::<0>),
    Some(operate::<1>),
    Some(operate::<2>),
    Some(operate::<3>),
    Some(operate::<4>),
    Some(operate::<5>),
    Some(operate::<6>),
    Some(operate::<7>),
    Some(operate::<8>),
    Some(operate::<9>),
    Some(operate::<10>),
    Some(operate::<11>),
    Some(operate::<12>),
    Some(operate::<13>),
    Some(operate::<14>),
    Some(operate::<15>),
    Some(operate::<16>),
    Some(operate::<17>),
];

/// Makes this environment an agent, and gives its operations: functions without arguments, whose answer is in the registers.
///
/// `registers`: as in `lib/registers.js`, and what is behind those is for settlements. `settle(count)` is called whenever some have been put
/// there; `tick()`, which does nothing, between the slices in which a thread blocks. `thread_id` is that of `worker_threads`.
#[napi(catch_unwind)]
pub fn start(
    env: Env,
    registers: ArrayBuffer<'_>,
    settle: Function<'_, u32, ()>,
    tick: Function<'_, (), ()>,
    thread_id: u32,
) -> Result<Object<'static>> {
    // SAFETY: called from JavaScript, and the wrapper checked the types.
    unsafe { Agent::start(env.raw(), registers.raw(), settle.raw(), tick.raw(), thread_id) }?;
    let operations = Object::new(&env)?;
    for ((name, _), callback) in OPERATIONS.iter().zip(CALLBACKS) {
        let mut function = ptr::null_mut();
        // SAFETY: on the thread of `env`; names are C strings, and the out-parameter is a live local.
        unsafe {
            check_status!(sys::napi_create_function(
                env.raw(),
                name.as_ptr(),
                name.count_bytes().cast_signed(),
                callback,
                ptr::null_mut(),
                &raw mut function
            ))?;
            check_status!(sys::napi_set_named_property(env.raw(), operations.raw(), name.as_ptr(), function))?;
        }
    }
    // SAFETY: a value of this environment, given back to it at once.
    unsafe { Object::from_napi_value(env.raw(), operations.raw()) }
}

/// The address of a typed array's first byte.
#[napi(catch_unwind)]
#[allow(clippy::cast_precision_loss, reason = "addresses of user memory have 48 bits (57 at the very most: checked)")]
pub fn address_of(env: Env, array: Object<'_>) -> Result<f64> {
    let mut data = ptr::null_mut();
    // SAFETY: on the thread of `env`; what is not a typed array is refused by Node-API.
    check_status!(unsafe {
        sys::napi_get_typedarray_info(
            env.raw(),
            array.raw(),
            ptr::null_mut(),
            ptr::null_mut(),
            &raw mut data,
            ptr::null_mut(),
            ptr::null_mut(),
        )
    })?;
    let address = data.expose_provenance();
    if address as u64 >= 1 << 53 {
        return Err(Error::new(Status::GenericFailure, "atomics-waitasync: an address beyond 2^53"));
    }
    Ok(address as f64)
}

/// The `threadId` of the lock's holder, if an agent holds it.
#[napi(catch_unwind)]
pub fn holder(env: Env) -> Result<Option<u32>> {
    Ok(Agent::of(env.raw())?.holder())
}

/// Uses `buffer` as the table of holdings.
#[napi(catch_unwind)]
pub fn set_holdings(env: Env, buffer: ArrayBuffer<'_>) -> Result<()> {
    // SAFETY: called from JavaScript, and the wrapper checked the type.
    unsafe { Agent::of(env.raw())?.set_holdings(buffer.raw()) }
}

/// A lock is made on a buffer object, of a memory of `length` bytes at the address `base`, for the first time in this thread.
#[napi(catch_unwind)]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "what `address_of` and a buffer have given")]
pub fn register_memory(env: Env, base: f64, length: f64) -> Result<()> {
    Agent::of(env.raw())?.register_memory(base as usize, length as usize);
    Ok(())
}

/// A buffer object of a memory at the address `base`, which this thread has registered, has been collected.
#[napi(catch_unwind)]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "as above")]
pub fn lose_memory(env: Env, base: f64) -> Result<()> {
    Agent::of(env.raw())?.lose_memory(base as usize);
    Ok(())
}

/// Makes this environment's end begin here, before whatever else has asked to be told of it so far.
#[napi(catch_unwind)]
pub fn end_first(env: Env) -> Result<()> {
    Agent::of(env.raw())?.end_first()
}

/// This thread has made a worker, the one with this `threadId`, that is going to load the addon: it counts as a thread that
/// may notify from now on.
#[napi(catch_unwind)]
pub fn worker_starts(env: Env, thread_id: u32) -> Result<()> {
    Agent::of(env.raw())?.expect(thread_id);
    Ok(())
}

/// That worker has ended.
#[napi(catch_unwind)]
pub fn worker_ended(env: Env, thread_id: u32) -> Result<()> {
    Agent::of(env.raw())?.expect_no_longer(thread_id);
    Ok(())
}

/// How far it is from one counter to the next, in units of four bytes.
#[napi(catch_unwind)]
#[allow(clippy::cast_possible_truncation, reason = "a cache line")]
pub fn counter_words() -> u32 {
    COUNTER_WORDS as u32
}

const COUNTER_WORDS: usize = size_of::<CachePadded<CounterLine>>() / size_of::<i32>();

/// The counters as an `ArrayBuffer`: how many wait, by bucket and word, and then how many locks are abandoned, by bucket. To be read only, atomically. Undefined where the host allows no such buffer.
#[napi(catch_unwind)]
pub fn counters(env: Env) -> Result<Option<Unknown<'static>>> {
    let counters = STORE.counters();
    let mut buffer = ptr::null_mut();
    // SAFETY: the counters are in a static, so they outlive every environment; JavaScript only reads them, atomically.
    let status = unsafe {
        sys::napi_create_external_arraybuffer(
            env.raw(),
            counters.as_ptr().cast_mut().cast(),
            size_of_val(counters),
            None,
            ptr::null_mut(),
            &raw mut buffer,
        )
    };
    if status != sys::Status::napi_ok {
        return Ok(None);
    }
    // Not as an `ArrayBuffer` of napi's, which would ask for its memory: V8 of Node 15 and 16 ends the process when a second
    // isolate does so for the same address.
    // SAFETY: a value just made in this environment.
    unsafe { Unknown::from_napi_value(env.raw(), buffer) }.map(Some)
}

/// The file of the image that serves this process, if it is another one than this.
#[napi(catch_unwind)]
pub fn other_first_image() -> Option<String> {
    images::other_first_image()
}
