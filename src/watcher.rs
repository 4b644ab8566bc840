//! Calls blocked threads back to JavaScript when their event loops have something new for them.
//!
//! A thread that blocks in native code cannot be interrupted, so it has to go back to JavaScript to learn that its worker is
//! being terminated. Doing so thirty times a second costs each blocked thread a wake-up with cold caches. But whoever
//! terminates a worker also signals its event loop, whose epoll descriptor then becomes readable. One thread of the process
//! sleeps on the descriptors of all threads that have been blocked for a while, and unparks those concerned.
//!
//! A blocked thread's loop does not run, so what has been readable once stays so. Therefore only the moment counts at which
//! something is added (epoll's edge-triggered mode). A signal can be missed, when one of the same kind is pending already;
//! then the thread comes back by the clock.
//!
//! Linux only: elsewhere threads come back by the clock, more often.

#![cfg_attr(
    target_os = "linux",
    allow(unsafe_code, reason = "epoll(7), and uv_backend_fd of the libuv that Node carries")
)]

#[cfg(target_os = "linux")]
mod watched {
    use std::collections::HashMap;
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
    use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

    use crate::parker::BlockedThread;

    /// An event loop that can be watched.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct EventLoop(RawFd);

    struct Watcher {
        epoll: OwnedFd,
        /// By the descriptor of their event loop.
        threads: Mutex<HashMap<RawFd, Arc<BlockedThread>>>,
    }

    /// The one of this process, started when it is needed first. `None` if the system gave no thread for it.
    fn watcher() -> Option<&'static Watcher> {
        static WATCHER: OnceLock<Option<&'static Watcher>> = OnceLock::new();
        *WATCHER.get_or_init(|| {
            // SAFETY: no pointers; what comes back is a descriptor of our own, or -1.
            let epoll = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
            if epoll < 0 {
                return None;
            }
            // SAFETY: just opened, and nobody else's.
            let epoll = unsafe { OwnedFd::from_raw_fd(epoll) };
            let watcher: &Watcher = Box::leak(Box::new(Watcher { epoll, threads: Mutex::default() }));
            let thread = std::thread::Builder::new().name("atomics-watcher".into());
            thread.spawn(|| watcher.run()).is_ok().then_some(watcher)
        })
    }

    impl Watcher {
        fn threads(&self) -> MutexGuard<'_, HashMap<RawFd, Arc<BlockedThread>>> {
            self.threads.lock().unwrap_or_else(PoisonError::into_inner)
        }

        fn control(&self, operation: i32, descriptor: RawFd) -> bool {
            #[expect(clippy::cast_sign_loss, reason = "flags; and a descriptor that was checked")]
            let mut event =
                libc::epoll_event { events: (libc::EPOLLIN | libc::EPOLLET) as u32, u64: descriptor as u64 };
            // SAFETY: `event` lives during the call. A descriptor that has been closed is refused.
            unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), operation, descriptor, &raw mut event) == 0 }
        }

        fn run(&self) {
            const EVENTS: i32 = 64;
            let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS as usize];
            loop {
                // SAFETY: room for as many events as said.
                let count = unsafe { libc::epoll_wait(self.epoll.as_raw_fd(), events.as_mut_ptr(), EVENTS, -1) };
                let threads = self.threads();
                for event in events.iter().take(usize::try_from(count).unwrap_or(0)) {
                    let descriptor = event.u64;
                    // One that is not there any more has unblocked meanwhile.
                    if let Some(thread) =
                        RawFd::try_from(descriptor).ok().and_then(|descriptor| threads.get(&descriptor))
                    {
                        thread.call_back();
                    }
                }
            }
        }
    }

    impl EventLoop {
        /// That of an environment, on whose thread this is called.
        pub(crate) fn of(env: napi::sys::napi_env) -> Option<Self> {
            use libloading::os::unix::Library;
            type BackendFd = unsafe extern "C" fn(*const std::ffi::c_void) -> RawFd;

            let mut event_loop = std::ptr::null_mut();
            // SAFETY: on the thread of `env`, and the out-parameter is a live local.
            let status = unsafe { napi::sys::napi_get_uv_event_loop(env, &raw mut event_loop) };
            if status != napi::sys::Status::napi_ok {
                return None;
            }
            // SAFETY: libuv has had this function, with this signature, since its beginning; the loop is a live one.
            let descriptor =
                unsafe { Library::this().get::<BackendFd>(b"uv_backend_fd\0").ok()?(event_loop.cast_const().cast()) };
            (descriptor >= 0).then_some(Self(descriptor))
        }

        /// Has `thread` called back whenever this loop is signalled, until [`Self::forget`]. False if that cannot be.
        pub(crate) fn watch(self, thread: &Arc<BlockedThread>) -> bool {
            let Some(watcher) = watcher() else { return false };
            // Before the first event can come.
            watcher.threads().insert(self.0, Arc::clone(thread));
            let added = watcher.control(libc::EPOLL_CTL_ADD, self.0);
            if !added {
                watcher.threads().remove(&self.0);
            }
            added
        }

        /// The thread is not blocked any more.
        pub(crate) fn forget(self) {
            if let Some(watcher) = watcher() {
                watcher.control(libc::EPOLL_CTL_DEL, self.0);
                watcher.threads().remove(&self.0);
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod watched {
    use std::sync::Arc;

    use crate::parker::BlockedThread;

    /// An event loop that can be watched: there is none.
    #[derive(Clone, Copy, Debug)]
    pub(crate) enum EventLoop {}

    impl EventLoop {
        pub(crate) fn of(_: napi::sys::napi_env) -> Option<Self> {
            None
        }

        pub(crate) fn watch(self, _: &Arc<BlockedThread>) -> bool {
            match self {}
        }

        pub(crate) fn forget(self) {
            match self {}
        }
    }
}

pub(crate) use watched::EventLoop;
