//! `ATOMICS_WAITASYNC_STALL`: after how many milliseconds a wait for a lock is reported.
//!
//! It is read from the environment of the process, once, since a Worker may have been given another environment.

use std::env;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use napi_derive::napi;

use crate::clock::Timestamp;

/// The most that a timer of JavaScript takes.
const MOST: u32 = i32::MAX.cast_unsigned();

/// The number of milliseconds; 0: waits are not reported. `Err`: the variable has a value that is not allowed.
fn setting() -> Result<u32, ()> {
    static SETTING: OnceLock<Result<u32, ()>> = OnceLock::new();
    *SETTING.get_or_init(|| {
        let Some(text) = env::var_os("ATOMICS_WAITASYNC_STALL") else { return Ok(0) };
        let text = text.to_str().ok_or(())?.trim();
        if text.is_empty() {
            return Ok(0);
        }
        text.parse().ok().filter(|&milliseconds| milliseconds <= MOST).ok_or(())
    })
}

/// The moment at which a thread that has blocked for a lock since `since` is to be woken, so that JavaScript reports the wait.
pub(super) fn stalls_at(since: Timestamp) -> Timestamp {
    match setting() {
        Ok(0) | Err(()) => Timestamp::NEVER,
        Ok(milliseconds) => since.after_millis(milliseconds.into()),
    }
}

/// After how many milliseconds a wait is to be reported; 0: never. Undefined: the variable has a value that is not allowed, and this is
/// the first call.
#[napi(catch_unwind)]
pub fn stall_after() -> Option<u32> {
    static IS_TOLD: AtomicBool = AtomicBool::new(false);
    match setting() {
        Ok(milliseconds) => Some(milliseconds),
        Err(()) => IS_TOLD.swap(true, Ordering::Relaxed).then_some(0),
    }
}
