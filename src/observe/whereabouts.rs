//! `ATOMICS_WAITASYNC_DUMP_NOW`: where each thread is now, as a helper Worker finds out for a dump.
//!
//! The helper (`lib/install/workers/dump-helper-thread.js`) asks the threads by Node's inspector. It is no agent: it
//! waits for nothing and holds nothing. The dumping thread rings it, and takes what the helper has answered after [`LIMIT`]
//! at the latest: so a dump is written whatever the helper does, and without it.
//!
//! The helper is rung, and forgotten at its end, under one lock (invariant 7). Answers carry the number of their
//! request, since those of an earlier one may come late.

use std::collections::BTreeSet;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use napi::bindgen_prelude::{Env, Function, JsValue, retain_current_module_for_unload_safety};
use napi::{Result, check_status, sys};
use napi_derive::napi;

use crate::environment::{Bell, bell_for};
use crate::process::{PROCESS, images};
use waitasync_core::held::Known;
use waitasync_core::json;
use waitasync_core::observe::whereabouts::{Activity, Threads, Whereabouts};
use waitasync_core::panics::contained;
use waitasync_core::sync::lock;

/// How long a dump waits for answers.
const LIMIT: Duration = Duration::from_millis(200);

/// A thread that blocks in the package answers between two slices of its sleep. They last longer than [`LIMIT`], so
/// they are interrupted after this time, again and again.
const SLICE: Duration = Duration::from_millis(20);

struct State {
    /// Whether a thread has been asked to start the helper.
    is_claimed: bool,
    /// That of the helper, while it lives.
    bell: Option<Bell>,
    request: u32,
    answers: Threads,
    is_answered: bool,
}

static STATE: Mutex<State> =
    Mutex::new(State { is_claimed: false, bell: None, request: 0, answers: Threads::new(), is_answered: false });

/// Whether dumps are written.
pub(crate) static ARE_WRITTEN: AtomicBool = AtomicBool::new(false);

/// Whether dumps are written, and ask where the threads are.
fn are_asked_for() -> bool {
    let value = std::env::var_os("ATOMICS_WAITASYNC_DUMP_NOW").unwrap_or_default();
    ARE_WRITTEN.load(Ordering::Relaxed) && !value.is_empty() && value != "0"
}

static ADVANCE: Condvar = Condvar::new();

/// Asks where each thread is. `None` without a helper.
#[cfg_attr(not(unix), expect(dead_code, reason = "only dumps ask"))]
pub(crate) fn ask() -> Option<Threads> {
    let mut state = lock(&STATE);
    state.bell.as_ref()?;
    state.request = state.request.wrapping_add(1);
    state.is_answered = false;
    state.answers.clear();
    let (agents, _) = PROCESS.registry.held(|_| true, |_| false);
    state.bell.as_ref()?.ring();
    drop(state);
    let mut state = lock(&STATE);
    let end = Instant::now() + LIMIT;
    loop {
        let rest = end.saturating_duration_since(Instant::now());
        if state.is_answered || state.bell.is_none() || rest.is_zero() {
            break;
        }
        (state, _) = ADVANCE.wait_timeout(state, rest.min(SLICE)).unwrap_or_else(PoisonError::into_inner);
        drop(state);
        PROCESS.registry.interrupt();
        state = lock(&STATE);
    }
    let mut answers = std::mem::take(&mut state.answers);
    drop(state);
    for Known { thread_id, thread_name, .. } in agents {
        let unknown = Whereabouts { name: None, activity: Activity::Unknown };
        let thread = answers.entry(thread_id).or_insert(unknown);
        // That of the install, which other threads do not know.
        thread.name = thread_name.as_deref().map(str::to_owned).or(thread.name.take());
    }
    Some(answers)
}

fn forget() {
    let mut state = lock(&STATE);
    state.bell = None;
    state.is_claimed = false;
    drop(state);
    ADVANCE.notify_all();
}

/// The folders with the code of each copy of the package that a thread has used.
static COPIES: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Notes the folder with a copy's code.
#[napi(catch_unwind)]
pub fn note_copy(folder: String) {
    lock(&COPIES).insert(folder);
}

/// Returns the folders with the package's code.
#[napi(catch_unwind)]
pub fn copies() -> Vec<String> {
    lock(&COPIES).iter().cloned().collect()
}

/// Returns the library's file to the first thread that asks: it starts the helper. Null if dumps are not armed.
#[napi(catch_unwind)]
pub fn claim_dump_helper() -> Option<String> {
    let mut state = lock(&STATE);
    if state.is_claimed || !are_asked_for() {
        return None;
    }
    state.is_claimed = true;
    images::first_image()
}

/// Notes that the helper could not be started.
#[napi(catch_unwind)]
pub fn dump_helper_failed() {
    forget();
}

/// Makes this environment the helper. `look()` is called when a dump asks: see [`dump_request`].
#[napi(catch_unwind)]
pub fn become_dump_helper(env: Env, look: Function<'_, (), ()>) -> Result<()> {
    // The dumping thread outlives this environment.
    retain_current_module_for_unload_safety();
    let env = env.raw();
    // SAFETY: on the thread of `env`, in a call from JavaScript; the wrapper checked the type.
    let bell = unsafe { bell_for(env, look.raw(), Some(on_ring)) }?;
    // SAFETY: as above. Hooks run in the reverse order: so this one runs before the bell is closed.
    check_status!(unsafe { sys::napi_add_env_cleanup_hook(env, Some(on_end), ptr::null_mut()) })?;
    lock(&STATE).bell = Some(bell);
    Ok(())
}

/// Returns the number of the dump that asks last.
#[napi(catch_unwind)]
pub fn dump_request() -> u32 {
    lock(&STATE).request
}

/// Answers where a thread is: its frames, one a line, if it runs; otherwise how many milliseconds it has been silent, or
/// that it is idle. Called by the helper.
#[napi(catch_unwind)]
pub fn dump_answer(request: u32, thread_id: u32, name: Option<String>, frames: Option<String>, silent: Option<u32>) {
    let mut state = lock(&STATE);
    if state.request != request {
        return;
    }
    let activity = match (frames, silent) {
        (Some(frames), _) => Activity::Runs(json::shown(&frames).into_owned()),
        (None, Some(milliseconds)) => Activity::Silent(milliseconds),
        (None, None) => Activity::Idle,
    };
    state.answers.insert(thread_id, Whereabouts { name, activity });
}

/// Notes that the helper has answered all that it will.
#[napi(catch_unwind)]
pub fn dump_answers_end(request: u32) {
    let mut state = lock(&STATE);
    if state.request == request {
        state.is_answered = true;
        drop(state);
        ADVANCE.notify_all();
    }
}

/// Called by Node on the helper's thread after a ring. With a null `env` if that is ending.
unsafe extern "C" fn on_ring(env: sys::napi_env, look: sys::napi_value, _: *mut c_void, _: *mut c_void) {
    if env.is_null() || look.is_null() {
        return;
    }
    let (mut receiver, mut ignored) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: on the environment's thread, in a handle scope; every out-parameter is a live local. An exception ends
    // the helper, as any that its own code does not catch.
    unsafe {
        sys::napi_get_undefined(env, &raw mut receiver);
        sys::napi_call_function(env, receiver, look, 0, ptr::null(), &raw mut ignored);
    }
}

/// Called by Node on the helper's thread when its environment ends. Makes no Node-API call.
unsafe extern "C" fn on_end(_: *mut c_void) {
    contained(forget);
}
