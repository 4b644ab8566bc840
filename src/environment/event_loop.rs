//! The event loop of an environment, for the service to watch.

use std::ffi::c_int;
use std::sync::Arc;

use napi::sys;
use waitasync_core::queue::BlockedThread;
use waitasync_core::service::watch::{EndSignal, Watch};

/// Makes the watch over the event loop of `env`, on its thread.
pub(crate) fn watch(env: sys::napi_env, thread: &Arc<BlockedThread>, end_signal: EndSignal) -> Arc<Watch> {
    let event_loop = if end_signal == EndSignal::Unknown { None } else { descriptor_of(env) };
    // SAFETY: libuv closes the descriptor after the environment's clean-up, which closes the watch.
    unsafe { Watch::new(event_loop, thread, end_signal) }
}

/// Returns the descriptor of an environment's event loop, on its thread.
#[cfg(linux)]
fn descriptor_of(env: sys::napi_env) -> Option<c_int> {
    use libloading::os::unix::Library;
    type BackendFd = unsafe extern "C" fn(*const std::ffi::c_void) -> c_int;

    let mut event_loop = std::ptr::null_mut();
    // SAFETY: on the thread of `env`, and the out-parameter is a live local.
    let status = unsafe { sys::napi_get_uv_event_loop(env, &raw mut event_loop) };
    if status != sys::Status::napi_ok {
        return None;
    }
    // SAFETY: libuv has had this function, with this signature, since its beginning; the loop is a live one.
    let descriptor =
        unsafe { Library::this().get::<BackendFd>(b"uv_backend_fd\0").ok()?(event_loop.cast_const().cast()) };
    (descriptor >= 0).then_some(descriptor)
}

/// Returns none: no loop could be watched, see [`Watch`].
#[cfg(not(linux))]
fn descriptor_of(_: sys::napi_env) -> Option<c_int> {
    None
}
