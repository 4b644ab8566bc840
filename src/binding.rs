//! What `lib/` calls. Decodes, calls, encodes; decides nothing.
//!
//! Operands pass through the registers (see `agent`), since a Node-API call without arguments costs a fifth of one with
//! them. What a wait answers is a number: 0 `"ok"`, 1 `"not-equal"`, 2 `"timed-out"`, 3 still waiting.

#![allow(unsafe_code, reason = "Node-API")]

use std::ptr;

use napi::bindgen_prelude::{ArrayBuffer, Env, Function, JsValue, Object};
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

/// Makes this environment an agent. `registers`: 40 bytes, and what is behind those is for settlements.
/// `settle(count)` is called whenever some have been put there.
#[napi(catch_unwind)]
pub fn start(env: Env, registers: ArrayBuffer<'_>, settle: Function<'_, u32, ()>) -> Result<()> {
    // SAFETY: called from JavaScript, and the wrapper checked the types.
    unsafe { Agent::start(env.raw(), registers.raw(), settle.raw()) }
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
    Ok(Agent::of(env.raw())?.wait().into())
}

/// Goes on blocking for another slice.
#[napi(catch_unwind)]
pub fn resume(env: Env) -> Result<u32> {
    Ok(Agent::of(env.raw())?.resume().into())
}

/// Breaks off a blocking wait between two slices.
#[napi(catch_unwind)]
pub fn abandon(env: Env) -> Result<()> {
    Agent::of(env.raw())?.abandon_block();
    Ok(())
}

/// `Atomics.waitAsync`: lines up a promise; 3 if it waits now.
#[napi(catch_unwind)]
pub fn wait_async(env: Env) -> Result<u32> {
    Ok(Agent::of(env.raw())?.wait_async()?.into())
}

/// `Atomics.notify`: how many were woken.
#[napi(catch_unwind)]
#[expect(clippy::cast_possible_truncation, reason = "2^32 waiters do not fit into memory")]
pub fn notify(env: Env) -> Result<u32> {
    let agent = Agent::of(env.raw())?;
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
    Ok(STORE.count(Agent::of(env.raw())?.registers().location()))
}

/// Sets whether the wait in a slot keeps the event loop alive.
#[napi(catch_unwind)]
pub fn set_refed(env: Env, refed: bool) -> Result<()> {
    let agent = Agent::of(env.raw())?;
    agent.set_refed(agent.registers().slot(), refed);
    Ok(())
}

/// The file of the image that serves this process, if it is another one than this.
#[napi(catch_unwind)]
pub fn other_first_image() -> Option<String> {
    images::other_first_image()
}
