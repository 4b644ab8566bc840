//! A thread that is told of a signal, beside listeners.
//!
//! It has an event loop of libuv's, which the host has: libuv installs one handler for all loops that listen to a
//! signal, and keeps it until the last of them stops. So listeners of the program come and go.

use std::ffi::{c_int, c_void};
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::thread;

use libloading::os::unix::Library;
use waitasync_core::sync::contained;

/// `uv_handle_type` and `uv_run_mode` of libuv 1.
const UV_SIGNAL: c_int = 16;
const UV_RUN_ONCE: c_int = 1;

type Handle = *mut c_void;

static HAS_COME: AtomicBool = AtomicBool::new(false);

extern "C" fn on_signal(_: Handle, _: c_int) {
    HAS_COME.store(true, Ordering::Relaxed);
}

/// Calls `told` after each signal, in a thread of its own; several that come while it runs may be one. Before the first
/// it calls `begin`. Further calls do nothing.
pub(crate) fn listen(signal: c_int, begin: fn(), told: fn()) -> Result<(), String> {
    static STARTED: OnceLock<Result<(), String>> = OnceLock::new();
    let start = || {
        let (sender, receiver) = mpsc::sync_channel(1);
        let run = move || run(signal, &sender, begin, told);
        thread::Builder::new().name("atomics-dump".into()).spawn(run).map_err(|error| error.to_string())?;
        receiver.recv().unwrap_or_else(|_| Err("the host has no libuv".to_owned()))
    };
    STARTED.get_or_init(start).clone()
}

/// Runs the loop for ever. `None` if the host has no libuv.
fn run(signal: c_int, started: &SyncSender<Result<(), String>>, begin: fn(), told: fn()) -> Option<()> {
    let host = Library::this();
    // SAFETY: the names are of libuv 1, whose functions have these signatures.
    let (loop_size, handle_size, loop_init, signal_init, signal_start, run) = unsafe {
        (
            host.get::<extern "C" fn() -> usize>(b"uv_loop_size\0").ok()?,
            host.get::<extern "C" fn(c_int) -> usize>(b"uv_handle_size\0").ok()?,
            host.get::<unsafe extern "C" fn(Handle) -> c_int>(b"uv_loop_init\0").ok()?,
            host.get::<unsafe extern "C" fn(Handle, Handle) -> c_int>(b"uv_signal_init\0").ok()?,
            host.get::<unsafe extern "C" fn(Handle, extern "C" fn(Handle, c_int), c_int) -> c_int>(
                b"uv_signal_start\0",
            )
            .ok()?,
            host.get::<unsafe extern "C" fn(Handle, c_int) -> c_int>(b"uv_run\0").ok()?,
        )
    };
    let (event_loop, handle) = (zeros(loop_size()), zeros(handle_size(UV_SIGNAL)));
    let checked = |code: c_int| if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(-code).to_string()) };
    // SAFETY: memory of libuv's sizes that is never freed, and used by this thread alone.
    let start = || unsafe {
        checked(loop_init(event_loop))?;
        checked(signal_init(event_loop, handle))?;
        checked(signal_start(handle, on_signal, signal))
    };
    let result = start();
    let has_failed = result.is_err();
    _ = started.send(result);
    if has_failed {
        return Some(());
    }
    _ = contained(begin);
    loop {
        // SAFETY: as above.
        unsafe { run(event_loop, UV_RUN_ONCE) };
        if HAS_COME.swap(false, Ordering::Relaxed) {
            _ = contained(told);
        }
    }
}

/// Allocates memory for ever, aligned for any type of C.
fn zeros(size: usize) -> Handle {
    vec![0_u128; size.div_ceil(16)].leak().as_mut_ptr().cast()
}
