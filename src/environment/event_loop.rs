//! The event loop of an environment: it is watched by the service, and asked whether it goes on.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::Arc;

#[cfg(unix)]
use libloading::os::unix::Library;
#[cfg(windows)]
use libloading::os::windows::Library;
use napi::sys;
use waitasync_core::queue::BlockedThread;
use waitasync_core::service::watch::Watch;

use super::Environment;

impl Environment {
    /// Makes the watch over the event loop. Only on Linux it has a descriptor: see [`Watch`].
    pub(crate) fn watch(self, thread: &Arc<BlockedThread>, has_end_signal: bool) -> Arc<Watch> {
        let descriptor = if cfg!(linux) { self.ask_loop(b"uv_backend_fd\0").filter(|&fd| fd >= 0) } else { None };
        // SAFETY: libuv closes the descriptor after the environment's clean-up.
        unsafe { Watch::new(descriptor, thread, has_end_signal) }
    }

    /// Whether something holds the event loop. False where it is not libuv's.
    pub(crate) fn is_loop_alive(self) -> bool {
        self.ask_loop(b"uv_loop_alive\0").is_some_and(|answer| answer != 0)
    }

    /// Calls a function of libuv's that takes the loop. `None`: the loop is not libuv's, or Node does not export it.
    fn ask_loop(self, function: &[u8]) -> Option<c_int> {
        type Function = unsafe extern "C" fn(*const c_void) -> c_int;

        if !self.has_libuv {
            return None;
        }
        let mut event_loop = ptr::null_mut();
        // SAFETY: on the environment's thread, and the out-parameter is a live local.
        let status = unsafe { sys::napi_get_uv_event_loop(self.env, &raw mut event_loop) };
        if status != sys::Status::napi_ok {
            return None;
        }
        #[cfg(windows)]
        let host = Library::this().ok()?;
        #[cfg(unix)]
        let host = Library::this();
        // SAFETY: libuv has had these functions, with this signature, since its beginning; the loop is a live one.
        unsafe { Some(host.get::<Function>(function).ok()?(event_loop.cast_const().cast())) }
    }
}
