//! The operations: native functions without result, which JavaScript calls often.
//!
//! An operation finds its operands in the registers and leaves its answer there. An argument, which costs more, is what
//! fits into no register: a name, or the function that a wait of a `Condition` calls.

use std::ffi::CStr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use napi::bindgen_prelude::{Env, FromNapiValue, JsValue, Object};
use napi::{Result, check_status, sys};

use super::files;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
use super::memory::take as take_memory;
use crate::agent::Agent;
use crate::environment::Argument;
use crate::globals::{PROCESS, word_at};
use waitasync_core::held::registers::FAILED;
use waitasync_core::sync::contained;

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
fn take_memory(_: &Agent) -> u32 {
    FAILED
}

/// The work that an interrupted JavaScript left, which an operation does first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Finishes {
    /// A wait that was prepared and a release that was begun.
    Everything,
    /// Not the release: this operation finishes it.
    AllButRelease,
}

#[inline]
fn operate(env: sys::napi_env, finishes: Finishes, operation: impl Fn(&Agent) -> u32) -> sys::napi_value {
    let run = |agent: &Agent| {
        agent.abandon();
        if finishes != Finishes::AllButRelease {
            agent.finish_release();
        }
        let answer = operation(agent);
        // The operation may have settled or woken a waiter of this agent, and that keeps the event loop alive.
        agent.update_hold();
        agent.registers.answer.set(answer);
    };
    // Unwinding into Node would end the process.
    if catch_unwind(AssertUnwindSafe(|| Agent::with(env, run))).is_err() {
        contained(|| Agent::with(env, give_up));
    }
    // Undefined.
    ptr::null_mut()
}

/// Ends the thread's wait after a failed operation. The thread may call nothing else for long, and a grant to it
/// meanwhile would be lost to others.
fn give_up(agent: &Agent) {
    agent.registers.answer.set(FAILED);
    if !agent.sleeps() {
        agent.pending.notes.set_sleep(None);
    }
    agent.robust_list.retract();
    agent.abandon();
}

/// Defines the operations, by the names that `lib/` knows; the agent's functions describe them. Behind the agent, the
/// argument.
macro_rules! operations {
    ($($(#[$doc:meta])* $name:literal finishes $finishes:ident: |$agent:pat_param $(, $argument:ident)*| $answer:expr;)+) => {
        const OPERATIONS: &[(&CStr, sys::napi_callback)] = &[$({
            $(#[$doc])*
            unsafe extern "C" fn entry(env: sys::napi_env, info: sys::napi_callback_info) -> sys::napi_value {
                // SAFETY: Node-API passes both, on the thread of `env`.
                let [$($argument),*] = unsafe { Argument::of_call(env, info) };
                operate(env, Finishes::$finishes, |$agent: &Agent| $answer)
            }
            ($name, Some(entry))
        },)+];
    };
}

operations! {
    c"wait" finishes Everything: |agent| agent.wait(Agent::block).into();
    c"waitAsync" finishes Everything: |agent| agent.wait_async().into();
    /// The same two for Condition, Barrier and Latch.
    c"waitFor" finishes Everything: |agent| agent.wait_for().into();
    c"waitAsyncFor" finishes Everything: |agent| agent.wait_async_for().into();
    c"notify" finishes Everything: |agent| agent.notify();
    c"waiterCount" finishes Everything: |agent| PROCESS.store.count(agent.registers.location());
    c"relay" finishes Everything: |agent| { agent.relay(); 0 };
    c"cancel" finishes Everything: |agent| agent.cancel().into();
    /// From here on the wait in the slot keeps the event loop alive, or does not.
    c"ref" finishes Everything: |agent| { agent.pending.set_refed(agent.registers.slot.get(), true); 0 };
    c"unref" finishes Everything: |agent| { agent.pending.set_refed(agent.registers.slot.get(), false); 0 };
    c"runsDry" finishes Everything: |agent| agent.runs_dry().into();
    /// How deep in its stack the thread is: answers by an address there, in the place of a location.
    c"depth" finishes Everything: |agent| { agent.registers.note_depth(); 0 };

    /// A grant is then the last entry of the robust list, unless it belongs to nobody.
    c"claim" finishes Everything: |agent| agent.claim().into();
    c"claimAsync" finishes Everything: |agent| agent.claim_async().into();
    c"take" finishes Everything: |agent| agent.try_take().into();
    c"waitGivingBack" finishes Everything: |agent, on_released|
        agent.wait_giving_back(on_released).into();
    c"release" finishes Everything: |agent| agent.release_midway().into();
    c"releaseInJob" finishes Everything: |agent| agent.release_in_job().into();
    c"servePromises" finishes Everything: |agent| { agent.serve_promises(); 0 };
    c"settlesAtOnce" finishes Everything: |agent| agent.settles_at_once().into();
    c"releaseAndForwardNotify" finishes Everything: |agent| agent.release_and_forward_notify().into();
    c"releaseOwnerDied" finishes Everything: |agent| agent.release_owner_died().into();
    /// The next exclusive holder of the word at the location sees a death.
    c"noteDeath" finishes Everything: |agent| {
        let location = agent.registers.location();
        PROCESS.store.note_death(location, &*word_at(location));
        0
    };
    /// Notes that the state under the entry at the index is repaired. Answers 0 if a steal took that named lock.
    c"repaired" finishes Everything: |agent|
        agent.robust_list.at_index().is_some_and(|(at, hold)| PROCESS.store.set_saw_death(at, hold, &*word_at(at), false)).into();
    /// Notes that the state under the entry at the index is not sound. Answers 0 if a steal took that named lock.
    c"abandoned" finishes Everything: |agent|
        agent.robust_list.at_index().is_some_and(|(at, hold)| PROCESS.store.set_saw_death(at, hold, &*word_at(at), true)).into();
    /// Of a word that several processes have: the writer's access becomes a reader's. Then "released" is called.
    c"downgrade" finishes AllButRelease: |agent| { agent.downgrade(); 0 };
    c"wasStolen" finishes Everything: |agent| agent.was_stolen().into();
    /// JavaScript has changed the word at the location while a waiter was counted there: the line is served.
    c"released" finishes AllButRelease: |agent| { agent.released(); 0 };
    /// Answers whether the last holder of the word just taken had died.
    c"takeNoteOfDeath" finishes Everything: |agent| agent.take_note_of_death().into();
    c"free" finishes Everything: |agent| agent.free();
    /// Answers the number of a request whose named lock was stolen, each once; 0 if there is none.
    c"nextStolen" finishes Everything: |agent| agent.delivery.next_loss().unwrap_or(0);

    c"takeName" finishes Everything: |agent, name| agent.try_take_name(&name.text()).into();
    c"claimNameAsync" finishes Everything: |agent, name| agent.claim_name_async(&name.text()).into();
    c"claimName" finishes Everything: |agent, name| agent.claim_name(&name.text()).into();
    /// Take and give back locks that several processes have; and may throw.
    c"takeMemory" finishes Everything: |agent| take_memory(agent);
    c"releaseLock" finishes Everything: |agent| files::release(agent);

    c"stealName" finishes Everything: |agent, name| agent.steal_name(&name.text()).into();
}

/// Makes an object with the operations of an environment.
pub(crate) fn create(env: &Env) -> Result<Object<'static>> {
    let operations = Object::new(env)?;
    for &(name, entry) in OPERATIONS {
        let (length, mut function) = (name.count_bytes().cast_signed(), ptr::null_mut());
        // SAFETY: on the thread of `env`; names are C strings, and the out-parameter is a live local.
        unsafe {
            let data = ptr::null_mut();
            check_status!(sys::napi_create_function(env.raw(), name.as_ptr(), length, entry, data, &raw mut function))?;
            check_status!(sys::napi_set_named_property(env.raw(), operations.raw(), name.as_ptr(), function))?;
        }
    }
    // SAFETY: a value of this environment, given back to it at once.
    unsafe { Object::from_napi_value(env.raw(), operations.raw()) }
}
