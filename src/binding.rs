//! What `lib/` calls. Decodes, calls, encodes; decides nothing.
//!
//! Operands pass through the registers (see `agent`), since a Node-API call without arguments costs a fifth of one with
//! them. What a wait answers is a number: 0 `"ok"`, 1 `"not-equal"`, 2 `"timed-out"`, 3 still waiting; and a claim's 4
//! acquired, 5 acquired from a holder that died.

#![allow(unsafe_code, reason = "Node-API")]

use std::ptr;
use std::rc::Rc;
use std::sync::atomic::AtomicI32;

use crossbeam_utils::CachePadded;
use napi::bindgen_prelude::{ArrayBuffer, Env, FromNapiValue, Function, JsValue, Object, Unknown};
use napi::{Error, Result, Status, check_status, sys};
use napi_derive::napi;

use crate::agent::{Agent, Begun, STORE};
use crate::images;

const PENDING: u32 = 3;

impl From<Begun> for u32 {
    fn from(begun: Begun) -> Self {
        match begun {
            Begun::Over(result) => result as Self,
            Begun::Pending => PENDING,
        }
    }
}

/// Makes this environment an agent. `registers`: 64 bytes, and what is behind those is for settlements.
/// `settle(count)` is called whenever some have been put there. `thread_id` is that of `worker_threads`.
#[napi(catch_unwind)]
pub fn start(env: Env, registers: ArrayBuffer<'_>, settle: Function<'_, u32, ()>, thread_id: u32) -> Result<()> {
    // SAFETY: called from JavaScript, and the wrapper checked the types.
    unsafe { Agent::start(env.raw(), registers.raw(), settle.raw(), thread_id) }
}

/// The agent of this environment, in a call by which it shows that it is not blocked.
fn agent(env: Env) -> Result<Rc<Agent>> {
    let agent = Agent::of(env.raw())?;
    agent.abandon_block();
    Ok(agent)
}

/// The address of a typed array's first byte.
#[napi(catch_unwind)]
#[expect(clippy::cast_precision_loss, reason = "addresses of user memory have 48 bits (57 at the very most: checked)")]
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

/// `Atomics.wait`: begins to block; 3 after a slice, then `resume` is to be called.
#[napi(catch_unwind)]
pub fn wait(env: Env) -> Result<u32> {
    Ok(agent(env)?.wait().into())
}

/// Goes on blocking for another slice.
#[napi(catch_unwind)]
pub fn resume(env: Env) -> Result<u32> {
    Ok(Agent::of(env.raw())?.resume().into())
}

/// Breaks off a blocking wait between two slices.
#[napi(catch_unwind)]
pub fn abandon(env: Env) -> Result<()> {
    agent(env).map(drop)
}

/// `Atomics.waitAsync`: lines up a promise; 3 if it waits now.
#[napi(catch_unwind)]
pub fn wait_async(env: Env) -> Result<u32> {
    Ok(agent(env)?.wait_async()?.into())
}

/// `Atomics.notify`: how many were woken.
#[napi(catch_unwind)]
#[expect(clippy::cast_possible_truncation, reason = "2^32 waiters do not fit into memory")]
pub fn notify(env: Env) -> Result<u32> {
    let agent = agent(env)?;
    let registers = agent.registers();
    let woken = STORE.notify(registers.location(), registers.count());
    if woken > 0 {
        // What it woke may be the agent's own, and from here on that keeps its loop alive.
        agent.update_hold();
    }
    Ok(woken as u32)
}

/// How many wait at the location.
#[napi(catch_unwind)]
pub fn waiter_count(env: Env) -> Result<u32> {
    Ok(STORE.count(agent(env)?.registers().location()))
}

/// Sets whether the wait in a slot keeps the event loop alive.
#[napi(catch_unwind)]
pub fn set_refed(env: Env, refed: bool) -> Result<()> {
    let agent = agent(env)?;
    agent.set_refed(agent.registers().slot(), refed);
    Ok(())
}

/// Blocks for what is asked of the word at the location; 3 after a slice, then `resume` is to be called. What is acquired
/// has been added to the table of holdings, as its last, unless it belongs to nobody.
#[napi(catch_unwind)]
pub fn claim(env: Env) -> Result<u32> {
    Ok(agent(env)?.claim().into())
}

/// Takes what is asked of the word at the location, or lines up a promise for it; 3 if that waits now.
#[napi(catch_unwind)]
pub fn claim_async(env: Env) -> Result<u32> {
    Ok(agent(env)?.claim_async()?.into())
}

/// Takes what is asked of the word at the location if that needs no waiting; otherwise 1.
#[napi(catch_unwind)]
pub fn try_take(env: Env) -> Result<u32> {
    Ok(agent(env)?.try_take().into())
}

/// Holds the event loop, or lets it go, as what is pending and what is on its way demands.
#[napi(catch_unwind)]
pub fn update_hold(env: Env) -> Result<()> {
    agent(env)?.update_hold();
    Ok(())
}

/// Lines up at the location, gives back what is at the place in the table of holdings, and blocks; 3 after a slice, then
/// `resume` is to be called.
#[napi(catch_unwind)]
pub fn wait_giving_back(env: Env) -> Result<u32> {
    Ok(agent(env)?.wait_giving_back().into())
}

/// Takes the promise in the slot out of the line. False if it is settled already.
#[napi(catch_unwind)]
pub fn cancel(env: Env) -> Result<bool> {
    Ok(agent(env)?.cancel())
}

/// Gives back what is at the place in the table of holdings.
#[napi(catch_unwind)]
pub fn give_back(env: Env) -> Result<()> {
    agent(env)?.give_back();
    Ok(())
}

/// The word at the location was changed in JavaScript while somebody was counted in its bucket.
#[napi(catch_unwind)]
pub fn released(env: Env) -> Result<()> {
    agent(env)?.released();
    Ok(())
}

/// Whether the lock at the location, just taken in JavaScript, had been abandoned by a dead holder.
#[napi(catch_unwind)]
pub fn inherit(env: Env) -> Result<bool> {
    Ok(agent(env)?.inherit())
}

/// The `threadId` of the lock's holder, if an agent holds it.
#[napi(catch_unwind)]
pub fn holder(env: Env) -> Result<Option<u32>> {
    Ok(agent(env)?.holder())
}

/// Uses `buffer` as the table of holdings.
#[napi(catch_unwind)]
pub fn set_holdings(env: Env, buffer: ArrayBuffer<'_>) -> Result<()> {
    // SAFETY: called from JavaScript, and the wrapper checked the type.
    unsafe { agent(env)?.set_holdings(buffer.raw()) }
}

/// Where the counter of the location's bucket is among the `counters`, in units of four bytes.
#[napi(catch_unwind)]
#[expect(clippy::cast_possible_truncation, reason = "there are fewer than 2^32 counters")]
pub fn counter_of(env: Env) -> Result<u32> {
    let location = agent(env)?.registers().location();
    Ok((STORE.index_of(location) * COUNTER_WORDS) as u32)
}

/// How far it is from one counter to the next, in units of four bytes.
#[napi(catch_unwind)]
#[expect(clippy::cast_possible_truncation, reason = "a cache line")]
pub fn counter_words() -> u32 {
    COUNTER_WORDS as u32
}

const COUNTER_WORDS: usize = size_of::<CachePadded<AtomicI32>>() / size_of::<i32>();

/// The counters as an `ArrayBuffer`: how many wait, by bucket, and as the last one how many locks are abandoned. To be read
/// only, atomically. Undefined where the host allows no such buffer.
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
