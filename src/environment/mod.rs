//! A Node environment, as an agent uses it: references, calls, and how its event loop is woken and held.

use std::ffi::{c_int, c_void};
use std::ptr::{self, NonNull};
use std::sync::Arc;

#[cfg(unix)]
use libloading::os::unix::Library;
#[cfg(windows)]
use libloading::os::windows::Library;
use napi::{Result, check_status, sys};
use waitasync_core::queue::BlockedThread;
use waitasync_core::service::watch::Watch;

/// Pins an `ArrayBuffer`: returns its address, its size, and a reference that keeps its memory until
/// [`Environment::unpin`] or the end.
///
/// # Safety
/// On the thread of `env`, in a call from JavaScript; `buffer` is an `ArrayBuffer`.
pub(crate) unsafe fn pin_buffer(
    env: sys::napi_env,
    buffer: sys::napi_value,
) -> Result<(NonNull<c_void>, usize, sys::napi_ref)> {
    let (mut data, mut bytes, mut reference) = (ptr::null_mut(), 0, ptr::null_mut());
    // SAFETY: as the caller promises; every out-parameter is a live local.
    unsafe {
        check_status!(sys::napi_get_arraybuffer_info(env, buffer, &raw mut data, &raw mut bytes))?;
        check_status!(sys::napi_create_reference(env, buffer, 1, &raw mut reference))?;
    }
    // An empty buffer may have no address.
    Ok((NonNull::new(data).unwrap_or(NonNull::dangling()), bytes, reference))
}

/// The argument of a call from JavaScript. It is read when it is needed, which most calls never do.
#[derive(Clone, Copy)]
pub(crate) struct Argument {
    env: sys::napi_env,
    info: sys::napi_callback_info,
}

impl Argument {
    /// Returns the argument of a call, if it has one.
    ///
    /// # Safety
    /// In a call from JavaScript, with what Node-API passes to it; it is used in that call only.
    pub(crate) unsafe fn of_call<const N: usize>(env: sys::napi_env, info: sys::napi_callback_info) -> [Self; N] {
        const { assert!(N <= 1) };
        [Self { env, info }; N]
    }

    /// Reads it: `undefined` if the call has none.
    fn read(self) -> sys::napi_value {
        let (mut count, mut argument) = (1, ptr::null_mut());
        let (no_receiver, no_data) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: as `of_call` demands; there is room for as many as is said, and Node-API fills it.
        unsafe { sys::napi_get_cb_info(self.env, self.info, &raw mut count, &raw mut argument, no_receiver, no_data) };
        argument
    }

    /// Returns the UTF-16 code units of a string; nothing if it is none.
    pub(crate) fn text(self) -> Vec<u16> {
        /// As long as most names: those take one call.
        const SHORT: usize = 64;
        let (argument, mut units, mut len) = (self.read(), vec![0; SHORT], 0);
        // SAFETY: as `of_call` demands; the buffer has room for as many units as is said, one of them for the final 0.
        unsafe {
            sys::napi_get_value_string_utf16(self.env, argument, units.as_mut_ptr(), SHORT, &raw mut len);
            // The string may be longer, and have been cut off.
            if len == SHORT - 1 {
                sys::napi_get_value_string_utf16(self.env, argument, ptr::null_mut(), 0, &raw mut len);
                units.resize(len + 1, 0);
                sys::napi_get_value_string_utf16(self.env, argument, units.as_mut_ptr(), units.len(), &raw mut len);
            }
        }
        units.truncate(len);
        units
    }
}

/// Handles of an environment. Used on its thread until it ends.
#[derive(Clone, Copy)]
pub(crate) struct Environment {
    pub(crate) env: sys::napi_env,
    pub(crate) bell: Bell,
    /// Whether its event loop is libuv's.
    has_libuv: bool,
    settle: sys::napi_ref,
    tick: sys::napi_ref,
}

impl Environment {
    /// Makes the handles. `on_ring` is that of the bell.
    ///
    /// # Safety
    /// On the thread of `env`, in a call from JavaScript; `settle` and `tick` are functions.
    pub(crate) unsafe fn new(
        env: sys::napi_env,
        settle: sys::napi_value,
        tick: sys::napi_value,
        has_libuv: bool,
        on_ring: sys::napi_threadsafe_function_call_js,
    ) -> Result<Self> {
        let (mut settle_ref, mut tick_ref) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the values are as the caller promises, and every out-parameter is a live local.
        let bell = unsafe {
            check_status!(sys::napi_create_reference(env, settle, 1, &raw mut settle_ref))?;
            check_status!(sys::napi_create_reference(env, tick, 1, &raw mut tick_ref))?;
            Bell::new(env, settle, on_ring)
        }?;
        Ok(Self { env, bell, has_libuv, settle: settle_ref, tick: tick_ref })
    }

    /// Calls `hook(env)` when the environment ends: before all hooks that were added earlier, so before the threadsafe
    /// function is closed (invariant 7). It must make no Node-API call.
    pub(crate) fn add_end_hook(self, hook: unsafe extern "C" fn(*mut c_void)) -> Result<()> {
        // SAFETY: on the environment's thread; the hook takes any argument.
        check_status!(unsafe { sys::napi_add_env_cleanup_hook(self.env, Some(hook), self.env.cast()) })
    }

    pub(crate) fn remove_end_hook(self, hook: unsafe extern "C" fn(*mut c_void)) -> Result<()> {
        // SAFETY: as above; it was added with the same argument.
        check_status!(unsafe { sys::napi_remove_env_cleanup_hook(self.env, Some(hook), self.env.cast()) })
    }

    /// Releases a reference of `pin_buffer`; null is nothing.
    pub(crate) fn unpin(self, reference: sys::napi_ref) -> Result<()> {
        if reference.is_null() {
            return Ok(());
        }
        // SAFETY: made by `pin_buffer`, and not used any more.
        check_status!(unsafe { sys::napi_delete_reference(self.env, reference) })
    }

    /// Holds the event loop, or lets it go. Returns whether that succeeded.
    pub(crate) fn set_held(self, held: bool) -> bool {
        let set = if held { sys::napi_ref_threadsafe_function } else { sys::napi_unref_threadsafe_function };
        // SAFETY: on the environment's thread, and the threadsafe function lives as long as the environment.
        unsafe { set(self.env, self.bell.0) == sys::Status::napi_ok }
    }

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

    fn call(self, function: sys::napi_ref, argument: Option<sys::napi_value>) -> Result<()> {
        let (mut called, mut receiver, mut ignored) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        // SAFETY: on the environment's thread, in a handle scope; every out-parameter is a live local.
        unsafe {
            check_status!(sys::napi_get_reference_value(self.env, function, &raw mut called))?;
            check_status!(sys::napi_get_undefined(self.env, &raw mut receiver))?;
            let arguments = &raw const *argument.as_ref().unwrap_or(&receiver);
            check_status!(sys::napi_call_function(self.env, receiver, called, 1, arguments, &raw mut ignored))
        }
    }

    /// Calls `settle(count)`, and may report an error of it as uncaught. In a handle scope.
    pub(crate) fn settle(self, count: usize, reports: bool) -> Result<()> {
        let mut argument = ptr::null_mut();
        // SAFETY: on the environment's thread, in a handle scope; the out-parameter is a live local.
        check_status!(unsafe { sys::napi_create_uint32(self.env, count as u32, &raw mut argument) })?;
        self.call(self.settle, Some(argument)).inspect_err(|_| {
            // An exception that is left behind would keep Node 10 from calling JavaScript again, and newer versions
            // would only warn of a deprecation. On Node 10, that of a termination is a string, "illegal access".
            if let Some((sys::ValueType::napi_object, exception)) = self.take_exception()
                && reports
            {
                // SAFETY: on the environment's thread, in a handle scope.
                unsafe { sys::napi_fatal_exception(self.env, exception) };
            }
        })
    }

    /// Calls the agent's `tick`, which calls the function. At such a call the engine can interrupt the thread.
    ///
    /// Returns false if JavaScript is interrupted: the thread is being terminated, a time limit of `vm` is over, or
    /// there is no stack for the call. JavaScript learns of it when the operation returns.
    #[must_use]
    pub(crate) fn tick(self, function: Option<Argument>) -> bool {
        let mut scope = ptr::null_mut();
        // SAFETY: on the environment's thread, in a call from JavaScript; the out-parameter is a live local.
        if unsafe { sys::napi_open_handle_scope(self.env, &raw mut scope) } != sys::Status::napi_ok {
            return false;
        }
        let called = self.call(self.tick, function.map(Argument::read));
        if called.is_err()
            && let Some((_, exception)) = self.take_exception()
        {
            // SAFETY: on the environment's thread, in a handle scope.
            unsafe { sys::napi_throw(self.env, exception) };
        }
        // SAFETY: opened above.
        unsafe { sys::napi_close_handle_scope(self.env, scope) };
        called.is_ok()
    }

    /// Takes the exception that a call left behind, if any.
    ///
    /// A termination cannot be caught by JavaScript. Node-API takes it for an exception, `null`, which it would throw once
    /// more, and up to Node 16 that could be caught. So that is dropped.
    fn take_exception(self) -> Option<(sys::napi_valuetype, sys::napi_value)> {
        let (mut exception, mut kind) = (ptr::null_mut(), sys::ValueType::napi_undefined);
        // SAFETY: on the environment's thread, in a handle scope; the out-parameters are live locals.
        let taken = unsafe {
            sys::napi_get_and_clear_last_exception(self.env, &raw mut exception) == sys::Status::napi_ok
                && sys::napi_typeof(self.env, exception, &raw mut kind) == sys::Status::napi_ok
        };
        let is_one = taken && kind != sys::ValueType::napi_null && kind != sys::ValueType::napi_undefined;
        is_one.then_some((kind, exception))
    }
}

/// A threadsafe function. It does not hold the event loop unless it is told to; its environment closes it.
#[derive(Clone, Copy)]
pub(crate) struct Bell(sys::napi_threadsafe_function);

// SAFETY: any thread may call a threadsafe function. It is valid whenever it is called: `Outbox::ring` holds the lock
// that `Outbox::close` takes before the environment closes it (invariant 7).
unsafe impl Send for Bell {}
// SAFETY: as above.
unsafe impl Sync for Bell {}

impl Bell {
    /// Makes a bell. `on_ring` is called on the environment's thread, with a null `env` if that is ending.
    ///
    /// # Safety
    /// On the thread of `env`, in a call from JavaScript; `function` is one.
    pub(crate) unsafe fn new(
        env: sys::napi_env,
        function: sys::napi_value,
        on_ring: sys::napi_threadsafe_function_call_js,
    ) -> Result<Self> {
        let (mut name, mut bell) = (ptr::null_mut(), ptr::null_mut());
        let text = "atomics-waitasync";
        // SAFETY: as the caller promises, and every out-parameter is a live local.
        unsafe {
            let length = text.len().cast_signed();
            check_status!(sys::napi_create_string_utf8(env, text.as_ptr().cast(), length, &raw mut name))?;
            check_status!(sys::napi_create_threadsafe_function(
                env,
                // Not needed, but Node before 12.6 insists on a function.
                function,
                ptr::null_mut(),
                name,
                0,
                1,
                ptr::null_mut(),
                None,
                ptr::null_mut(),
                on_ring,
                &raw mut bell,
            ))?;
            // It starts out holding the loop.
            check_status!(sys::napi_unref_threadsafe_function(env, bell))?;
        }
        Ok(Self(bell))
    }

    pub(crate) fn ring(self) {
        // SAFETY: see `Send`. A failure means that the environment is ending, which drops its waits anyway.
        unsafe {
            sys::napi_call_threadsafe_function(self.0, ptr::null_mut(), sys::ThreadsafeFunctionCallMode::nonblocking);
        }
    }
}
