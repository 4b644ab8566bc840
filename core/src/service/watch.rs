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
//! read them yet, nearly always. But where a worker's end has no signal of its own (before Node 12.11), those messages
//! hide it, and they count.
//!
//! A thread is watched from the first time that it blocks; blocking again costs a free mutex. If its loop is signalled
//! while it does not block, the service has woken up for nothing, and ends the watch. The service decides that with the
//! mutex locked, and the thread notes that it blocks before it locks the mutex: so no blocked thread is left unwatched.
//!
//! libuv closes its descriptor after the environment's clean-up. The watch has a duplicate, which lasts until its task
//! has ended; the clean-up aborts that.
//!
//! Linux and libuv only: elsewhere slices are shorter. Bun has libuv's names, and one of them ends the process.

#![cfg_attr(not(linux), allow(dead_code, reason = "nothing is watched"))]
#![allow(unsafe_code, reason = "the descriptor of an event loop, which is not ours")]

use std::ffi::c_int;
#[cfg(linux)]
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

#[cfg(linux)]
use tokio::io::{Interest, unix::AsyncFd};
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use crate::clock::Timestamp;
#[cfg(linux)]
use crate::clock::now;
use crate::queue::BlockedThread;
use crate::sync::lock;

/// A thread that blocks again and again while its loop is signalled is watched no more often than this.
#[cfg(linux)]
const INTERVAL_MILLISECONDS: f64 = 1.0;

/// Whether an event loop has been signalled and has not turned since.
#[cfg(linux)]
fn is_signalled(event_loop: &OwnedFd) -> bool {
    let mut descriptor = libc::pollfd { fd: event_loop.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one live record, and no wait.
    unsafe { libc::poll(&raw mut descriptor, 1, 0) == 1 }
}

/// The watch over one thread's event loop.
#[derive(Debug)]
pub struct Watch {
    thread: Arc<BlockedThread>,
    event_loop: Option<c_int>,
    /// Whether the thread's end has a signal of its own.
    has_end_signal: bool,
    state: Mutex<State>,
    /// Whether the loop has been signalled during this watch.
    is_signalled: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    /// What watches the loop, until it ends by itself.
    task: Option<AbortHandle>,
    /// The thread is not watched again before this.
    not_before: Timestamp,
}

impl Watch {
    /// Makes a watch over `event_loop`, the calling thread's, if it is known.
    ///
    /// # Safety
    /// The descriptor must be open whenever the thread blocks.
    pub unsafe fn new(event_loop: Option<c_int>, thread: &Arc<BlockedThread>, has_end_signal: bool) -> Arc<Self> {
        let (state, is_signalled) = Default::default();
        Arc::new(Self { thread: Arc::clone(thread), event_loop, has_end_signal, state, is_signalled })
    }

    /// Interrupts the thread when its loop is signalled, or was before. Whether the loop is watched. Called by the
    /// thread itself, which has noted that it is blocked.
    pub(crate) fn begin(self: &Arc<Self>, runtime: &Handle) -> bool {
        let mut state = lock(&self.state);
        state.task.is_some() || self.register(&mut state, runtime).is_some()
    }

    #[cold]
    #[cfg(linux)]
    fn register(self: &Arc<Self>, state: &mut State, runtime: &Handle) -> Option<()> {
        let now = now();
        let event_loop = self.event_loop.filter(|_| now >= state.not_before)?;
        // SAFETY: the thread blocks, so the descriptor is open, as the maker promised.
        let event_loop = unsafe { BorrowedFd::borrow_raw(event_loop) }.try_clone_to_owned().ok()?;
        state.not_before = now.after_millis(INTERVAL_MILLISECONDS);
        let was_signalled = self.has_end_signal && is_signalled(&event_loop);
        self.is_signalled.store(false, Ordering::Relaxed);
        let _entered = runtime.enter();
        // SAFETY: the registration owns the descriptor.
        let registered = unsafe { AsyncFd::register_with_interest(event_loop, Interest::READABLE) }.ok()?;
        state.task = Some(runtime.spawn(Arc::clone(self).run(registered, was_signalled)).abort_handle());
        Some(())
    }

    #[cfg(not(linux))]
    #[allow(clippy::unused_self, reason = "as on Linux")]
    const fn register(&self, _: &mut State, _: &Handle) -> Option<()> {
        None
    }

    /// Interrupts the blocked thread at each signal. Ends at one that finds it not blocked. The first event does not
    /// count if the loop `was_signalled` before.
    #[cfg(linux)]
    async fn run(self: Arc<Self>, event_loop: AsyncFd<OwnedFd>, mut was_signalled: bool) {
        while let Ok(mut ready) = event_loop.readable().await {
            ready.clear_ready();
            if self.ends_idle() {
                return;
            }
            if !std::mem::take(&mut was_signalled) {
                self.is_signalled.store(true, Ordering::Relaxed);
            }
            self.thread.interrupt();
        }
    }

    /// Ends the watch if the thread does not block. Returns whether it does.
    #[cfg(linux)]
    fn ends_idle(&self) -> bool {
        let mut state = lock(&self.state);
        let ends = !self.thread.is_blocked();
        if ends {
            state.task = None;
        }
        ends
    }

    /// Whether the loop has been signalled during this watch: the next signal may be missed. For the thread.
    pub fn may_miss(&self) -> bool {
        self.is_signalled.load(Ordering::Relaxed)
    }

    /// Ends the watch with its environment. Called by the thread itself.
    pub fn close(&self) {
        if let Some(task) = lock(&self.state).task.take() {
            task.abort();
        }
    }
}
