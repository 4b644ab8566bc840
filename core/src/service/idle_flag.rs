//! Whether the service rests with respect to a duty: only then do threads ring for it.
//!
//! # Why no thread is overlooked
//! A thread notes its need, passes a `SeqCst` fence, then reads whether the service rests. The service notes that it
//! rests, passes a `SeqCst` fence, then looks once more for notes of threads. In the single order of the two fences one
//! comes first: if the thread's, the service sees the note and does not rest; if the service's, the thread sees that it
//! rests, and ends that.

use crate::sync::{AtomicBool, Ordering, fence};

/// Whether the service rests with respect to one of its duties.
#[derive(Debug)]
pub struct IdleFlag(AtomicBool);

impl Default for IdleFlag {
    /// Makes one that rests.
    fn default() -> Self {
        Self(AtomicBool::new(true))
    }
}

impl IdleFlag {
    /// Rests, unless `is_needed` finds a note of a thread. Returns whether the service rests. Called by the service.
    pub fn try_idle(&self, is_needed: impl FnOnce() -> bool) -> bool {
        self.0.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let rests = !is_needed();
        if !rests {
            self.0.store(false, Ordering::Relaxed);
        }
        rests
    }

    /// Ends the rest. Returns true to exactly one caller, a thread with a note, which must ring the service.
    pub fn wake(&self) -> bool {
        fence(Ordering::SeqCst);
        // Release: the service, once it sees that the rest is over, sees the note.
        self.0.load(Ordering::Relaxed) && self.0.swap(false, Ordering::Release)
    }

    /// Returns whether the service rests, which only models ask.
    #[cfg(feature = "model")]
    pub fn is_idle(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
