//! Interrupts a blocked thread when its event loop is signalled.
//!
//! A thread that blocks in native code has to return to JavaScript to learn that its worker is being terminated. Doing
//! so thirty times a second costs each blocked thread a wake-up with cold caches. But a thread that terminates a worker
//! also signals the worker's event loop, whose epoll descriptor then becomes readable; and the service's runtime can
//! wait for that (an epoll descriptor may be watched by another one).
//!
//! The loop of a blocked thread does not run, so its descriptor stays readable. The watch is edge-triggered: only the moment counts at which
//! something is added, in epoll's edge-triggered mode, for which tokio asks. A signal can be missed when one of the
//! same kind is pending already; then the thread returns when its slice ends. So once the loop has been signalled
//! during a watch, the slices are shorter. Signals before the watch do not count: messages to a thread that has not
//! read them yet, nearly always. But where a worker's end has no signal of its own ([`EndSignal::Shared`]), those
//! messages hide it, and they count.
//!
//! A thread is watched from the first time that it blocks; blocking again costs a look at a word. If its loop is
//! signalled while it does not block, the service has woken up for nothing, and ends the watch. ([`super::idle_flag`] says
//! why that leaves no blocked thread unwatched. The thread's note is that it blocks.)
//!
//! libuv owns the descriptor and closes it after the environment's clean-up, which ends the watch before.
//!
//! Linux and libuv only: elsewhere slices are shorter. Bun has libuv's names, and one of them ends the process.

#![allow(unsafe_code, reason = "the descriptor of an event loop, which is not ours")]

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use crate::sync::lock;
pub use watched::Watch;

/// The signal by which an event loop learns of its thread's end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EndSignal {
    /// Unknown: the loop is not libuv's.
    Unknown,
    /// That of the parent's messages: before Node 12.11.
    Shared,
    /// One of its own.
    Own,
}

/// The watches over event loops that have been signalled.
#[derive(Debug, Default)]
pub struct Signals {
    bell: Notify,
    watches: Mutex<Vec<Arc<Watch>>>,
}

impl Signals {
    /// Begins a watch. Called by the runtime, on the service's own thread.
    #[cfg(linux)]
    fn add(&self, watch: Arc<Watch>) {
        lock(&self.watches).push(watch);
        self.bell.notify_one();
    }

    /// Interrupts the threads whose event loops are signalled, for ever. A duty of the service.
    pub(super) async fn deliver(&self) -> Infallible {
        loop {
            while let Some(watch) = self.next() {
                watch.signalled();
            }
            self.bell.notified().await;
        }
    }

    fn next(&self) -> Option<Arc<Watch>> {
        lock(&self.watches).pop()
    }
}

#[cfg(linux)]
mod watched {
    use std::ffi::c_int;
    use std::os::fd::{AsRawFd, RawFd};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, Mutex, OnceLock};
    use std::task::{Context, Poll, Wake, Waker};

    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;
    use tokio::runtime::Handle;

    use super::{EndSignal, Signals};
    use crate::clock::{Timestamp, now};
    use crate::queue::parker::BlockedThread;
    use crate::service::idle_flag::IdleFlag;
    use crate::sync::lock;

    /// A thread that blocks again and again while its loop is signalled is watched no more often than this.
    const INTERVAL_MILLISECONDS: f64 = 1.0;

    /// The descriptor of an event loop. Not ours: dropping it does not close it.
    #[derive(Clone, Copy, Debug)]
    struct EventLoop(RawFd);

    impl AsRawFd for EventLoop {
        fn as_raw_fd(&self) -> RawFd {
            self.0
        }
    }

    impl EventLoop {
        /// Whether it has been signalled and has not turned since.
        fn is_signalled(self) -> bool {
            let mut descriptor = libc::pollfd { fd: self.0, events: libc::POLLIN, revents: 0 };
            // SAFETY: one live record, and no wait.
            unsafe { libc::poll(&raw mut descriptor, 1, 0) == 1 }
        }
    }

    /// The watch over one thread's event loop.
    #[derive(Debug)]
    pub struct Watch {
        thread: Arc<BlockedThread>,
        event_loop: Option<EventLoop>,
        end_signal: EndSignal,
        /// Known when the thread is watched for the first time.
        signals: OnceLock<Arc<Signals>>,
        state: Mutex<State>,
        /// Whether the thread is not watched.
        idle: IdleFlag,
        /// Whether the loop has been signalled during this watch.
        is_signalled: AtomicBool,
    }

    #[derive(Debug, Default)]
    struct State {
        /// The runtime's registration of the descriptor, while watched. It refers to the `Watch` until dropped.
        registered: Option<AsyncFd<EventLoop>>,
        /// Whether the first event tells of an earlier signal, and does not count.
        was_signalled: bool,
        /// The thread is not watched again before this.
        not_before: Timestamp,
    }

    impl Watch {
        /// Makes a watch over `event_loop`, the calling thread's, if it is known.
        ///
        /// # Safety
        /// The descriptor must be open until [`Self::close`] is called.
        pub unsafe fn new(event_loop: Option<c_int>, thread: &Arc<BlockedThread>, end_signal: EndSignal) -> Arc<Self> {
            Arc::new(Self {
                thread: Arc::clone(thread),
                event_loop: event_loop.map(EventLoop),
                end_signal,
                signals: OnceLock::new(),
                state: Mutex::default(),
                idle: IdleFlag::default(),
                is_signalled: AtomicBool::new(false),
            })
        }

        /// Interrupts the thread when its loop is signalled, or was before. Whether the loop is watched. Called by the
        /// thread itself, which has noted that it is blocked.
        pub(crate) fn begin(self: &Arc<Self>, signals: &Arc<Signals>, runtime: &Handle) -> bool {
            !self.idle.wake() || self.register(signals, runtime)
        }

        #[cold]
        fn register(self: &Arc<Self>, signals: &Arc<Signals>, runtime: &Handle) -> bool {
            self.signals.get_or_init(|| Arc::clone(signals));
            let mut state = lock(&self.state);
            let now = now();
            if state.registered.is_none()
                && let Some(event_loop) = self.event_loop.filter(|_| now >= state.not_before)
            {
                state.not_before = now.after_millis(INTERVAL_MILLISECONDS);
                state.was_signalled = self.end_signal == EndSignal::Own && event_loop.is_signalled();
                self.is_signalled.store(false, Ordering::Relaxed);
                let _entered = runtime.enter();
                // SAFETY: the descriptor is always the same, and open until `close` is called, as the maker promised.
                state.registered = unsafe { AsyncFd::register_with_interest(event_loop, Interest::READABLE) }.ok();
            }
            self.listen(&mut state)
        }

        /// Waits for the next signal; if there has been one, interrupts the thread. Whether the loop is watched.
        fn listen(self: &Arc<Self>, state: &mut State) -> bool {
            let waker = Waker::from(Arc::clone(self));
            while let Some(registered) = &state.registered {
                match registered.poll_read_ready(&mut Context::from_waker(&waker)) {
                    Poll::Pending => return true,
                    Poll::Ready(Ok(mut ready)) => {
                        ready.clear_ready();
                        if !std::mem::take(&mut state.was_signalled) {
                            self.is_signalled.store(true, Ordering::Relaxed);
                        }
                        self.thread.interrupt();
                    }
                    Poll::Ready(Err(_)) => state.registered = None,
                }
            }
            self.idle.try_idle(|| false);
            false
        }

        /// Notes a signal to the loop: a blocked thread was interrupted by that; otherwise the watch ends.
        pub(super) fn signalled(self: &Arc<Self>) {
            let mut state = lock(&self.state);
            if self.idle.try_idle(|| self.thread.is_blocked()) {
                state.registered = None;
            } else {
                self.listen(&mut state);
            }
        }

        /// Whether the loop has been signalled during this watch: the next signal may be missed. For the thread.
        pub fn may_miss(&self) -> bool {
            self.is_signalled.load(Ordering::Relaxed)
        }

        /// Ends the watch with its environment. Called by the thread itself.
        pub fn close(&self) {
            lock(&self.state).registered = None;
        }
    }

    impl Wake for Watch {
        /// Passes the watch on to the service. Called by the runtime, in the middle of its own work.
        fn wake(self: Arc<Self>) {
            if let Some(signals) = self.signals.get() {
                signals.add(Arc::clone(&self));
            }
        }
    }
}

#[cfg(not(linux))]
mod watched {
    use std::ffi::c_int;
    use std::sync::Arc;

    use tokio::runtime::Handle;

    use super::{EndSignal, Signals};
    use crate::queue::parker::BlockedThread;

    /// The watch over one thread's event loop: there is none.
    #[derive(Debug)]
    pub struct Watch;

    #[expect(clippy::unused_self, reason = "as on Linux")]
    impl Watch {
        /// Watches nothing.
        ///
        /// # Safety
        /// None is needed here.
        pub unsafe fn new(_: Option<c_int>, _: &Arc<BlockedThread>, _: EndSignal) -> Arc<Self> {
            Arc::new(Self)
        }

        pub(crate) fn begin(&self, _: &Arc<Signals>, _: &Handle) -> bool {
            false
        }

        pub(super) fn signalled(&self) {}

        /// Whether the next signal may be missed: no loop is watched.
        pub fn may_miss(&self) -> bool {
            false
        }

        /// Does nothing: no watch was begun.
        pub fn close(&self) {}
    }
}
