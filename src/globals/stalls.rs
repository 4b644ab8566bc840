//! `ATOMICS_WAITASYNC_STALL`: after how many milliseconds a wait for a lock is reported.

use std::env;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use napi_derive::napi;

pub(crate) const VARIABLE: &str = "ATOMICS_WAITASYNC_STALL";

/// The most that a timer of JavaScript takes.
const MOST: u32 = i32::MAX.cast_unsigned();

/// Returns the variable's value; `None` if it is not allowed. Read once, from the environment of the process: a Worker
/// may have been given another environment.
fn setting() -> Option<u32> {
    static SETTING: OnceLock<Option<u32>> = OnceLock::new();
    *SETTING.get_or_init(|| {
        let Some(text) = env::var_os(VARIABLE) else { return Some(0) };
        let text = text.to_str()?.trim();
        if text.is_empty() { Some(0) } else { text.parse().ok().filter(|&milliseconds| milliseconds <= MOST) }
    })
}

/// Returns after how long waits are reported, if they are.
pub(crate) fn period() -> Option<Duration> {
    let milliseconds = setting().filter(|&milliseconds| milliseconds > 0)?;
    Some(Duration::from_millis(milliseconds.into()))
}

/// Returns after how many milliseconds a wait is to be reported; 0: never. Undefined: the variable has a value that is
/// not allowed, and this is the first call.
#[napi(catch_unwind)]
pub fn stall_after() -> Option<u32> {
    static IS_TOLD: AtomicBool = AtomicBool::new(false);
    setting().or_else(|| IS_TOLD.swap(true, Ordering::Relaxed).then_some(0))
}
