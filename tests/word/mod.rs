//! A word that excludes, of the program's own memory.

use std::sync::atomic::{AtomicI32, Ordering};

use atomics_waitasync::lock::word::Word;

/// An atomic word, written `SeqCst`.
#[derive(Default)]
pub(crate) struct LocalWord(pub(crate) AtomicI32);

impl LocalWord {
    /// Writes the word, `SeqCst`.
    pub(crate) fn store(&self, value: i32) {
        self.0.store(value, Ordering::SeqCst);
    }
}

impl Word for LocalWord {
    fn load(&self) -> i32 {
        self.0.load(Ordering::SeqCst)
    }

    fn compare_exchange(&self, current: i32, new: i32) -> bool {
        self.0.compare_exchange(current, new, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }
}
