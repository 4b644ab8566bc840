//! `ATOMICS_WAITASYNC_DUMP`: at a signal, a thread of its own writes a snapshot's text to the standard error.
//!
//! No other thread has to go on for it: all of JavaScript may be blocked or busy. Listeners of the program hear the
//! signal, too: see `globals/signals.rs`.

use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use napi::{Env, Error, Result};
use napi_derive::napi;

use crate::agent::Agent;
use crate::globals::PROCESS;
use crate::observe::stalls::is_first;
use waitasync_core::observe::{Snapshot, rows, table};

/// Lets the signal of `ATOMICS_WAITASYNC_DUMP` write a snapshot from now on.
/// Returns the signal's name; undefined without one. Throws, in the process's first call, why there is no dump.
/// `is_node`: otherwise functions with libuv's names may do something else, or end the process.
#[napi(catch_unwind)]
pub fn arm_dumps(is_node: bool) -> Result<Option<&'static str>> {
    signals::arm(is_node).or_else(|reason| {
        let is_told = !is_first("dump".to_owned());
        if is_told { Ok(None) } else { Err(Error::from_reason(format!("ATOMICS_WAITASYNC_DUMP {reason}"))) }
    })
}

/// Returns a dump, as lines of JSON or as a text. For `bin/atomics-waitasync.js`.
#[napi(catch_unwind)]
pub fn dump_text(env: Env, is_json: bool) -> Result<String> {
    Agent::of(env.raw())?.finish_release();
    let mut text = Vec::new();
    write(next_number(), &Snapshot::take(&PROCESS), is_json, |piece| text.extend_from_slice(piece));
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// What a text ends with where nothing is known of the program's lines. To note these costs each call.
const HINT: &str =
    "\nATOMICS_WAITASYNC_STALL=<milliseconds> in the environment adds where these were taken and awaited.\n";

fn next_number() -> u32 {
    static NUMBER: AtomicU32 = AtomicU32::new(1);
    NUMBER.fetch_add(1, Ordering::Relaxed)
}

fn write(number: u32, snapshot: &Snapshot, is_json: bool, mut write: impl FnMut(&[u8])) {
    if is_json {
        let mut text = String::new();
        rows::write_lines(number, snapshot, |line| text.push_str(line));
        return write(text.as_bytes());
    }
    let text = table::text_of(&snapshot.rows());
    let is_empty = snapshot.held.is_empty() && snapshot.waiting.is_empty();
    let hint = if is_empty || PROCESS.stall_after.is_some() { "" } else { HINT };
    write(format!("(node:{}) [ATOMICS_WAITASYNC_DUMP] {text}{hint}", process::id()).as_bytes());
}

#[cfg(unix)]
mod signals {
    use std::ffi::c_int;
    use std::sync::LazyLock;

    use super::{next_number, write};
    use crate::globals::{PROCESS, signals};
    use crate::observe::{stalls, variable};
    use waitasync_core::observe::Snapshot;

    /// The signals that programs may use. Node and V8 need the others themselves, or they end the process.
    const ALLOWED: [(&str, c_int); 6] = [
        ("SIGQUIT", libc::SIGQUIT),
        ("SIGUSR2", libc::SIGUSR2),
        ("SIGHUP", libc::SIGHUP),
        ("SIGALRM", libc::SIGALRM),
        ("SIGURG", libc::SIGURG),
        ("SIGWINCH", libc::SIGWINCH),
    ];

    /// The signal that the variable names. Read once.
    static SIGNAL: LazyLock<Option<String>> = LazyLock::new(|| variable("ATOMICS_WAITASYNC_DUMP"));

    /// Whether a dump is lines of JSON. Read once.
    static IS_JSON: LazyLock<bool> = LazyLock::new(|| {
        variable("ATOMICS_WAITASYNC_DUMP_FORMAT").is_some_and(|format| format.trim().eq_ignore_ascii_case("json"))
    });

    pub(super) fn arm(is_node: bool) -> Result<Option<&'static str>, String> {
        let Some(named) = &*SIGNAL else { return Ok(None) };
        let Some((name, number)) = ALLOWED.into_iter().find(|(name, _)| name == named) else {
            return Err(format!("must be one of {}, not {named:?}", ALLOWED.map(|(name, _)| name).join(", ")));
        };
        if !is_node {
            return Err("has no effect: it needs the event loop of Node".to_owned());
        }
        let armed = signals::listen(number, rehearse, dump);
        armed.map(|()| Some(name)).map_err(|error| format!("cannot use {name}: {error}"))
    }

    fn dump() {
        write(next_number(), &Snapshot::take(&PROCESS), *IS_JSON, stalls::write);
    }

    /// Makes a dump for nobody when its thread begins. A later one then needs little more memory.
    fn rehearse() {
        write(0, &Snapshot::take(&PROCESS), *IS_JSON, |_| {});
    }
}

#[cfg(not(unix))]
mod signals {
    pub(super) fn arm(_: bool) -> Result<Option<&'static str>, String> {
        let is_set = crate::observe::variable("ATOMICS_WAITASYNC_DUMP").is_some();
        if is_set { Err("has no effect: this system has no such signals".to_owned()) } else { Ok(None) }
    }
}
