//! A word of this process's own memory, or of shared memory.

use std::sync::atomic::AtomicI32;

use waitasync_core::lock::{Hold, Mode, Request, Word};
use waitasync_core::mapped::words::SharedWord;

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
pub(crate) use super::shared_words::{is_shared, maps_memory, owner_of, shared_word};
#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
pub(crate) use elsewhere::{is_shared, maps_memory, owner_of, shared_word};

/// Where no memory is mapped.
#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
mod elsewhere {
    use waitasync_core::mapped::words::SharedWord;
    use waitasync_core::queue::Location;

    pub(crate) const fn shared_word(_: Location) -> Option<SharedWord<'static>> {
        None
    }

    pub(crate) const fn maps_memory() -> bool {
        false
    }

    pub(crate) const fn owner_of(_: usize) -> Option<u32> {
        None
    }

    pub(crate) const fn is_shared(_: usize) -> bool {
        false
    }
}

#[derive(Clone, Copy)]
pub(crate) enum WordAt {
    Own(&'static AtomicI32),
    Shared(SharedWord<'static>),
}

macro_rules! of_either {
    ($word:ident, $this:expr, $result:expr) => {
        match $this {
            WordAt::Own($word) => $result,
            WordAt::Shared($word) => $result,
        }
    };
}

impl Word for WordAt {
    fn load(&self) -> i32 {
        of_either!(word, self, Word::load(word))
    }

    fn compare_exchange(&self, current: i32, new: i32) -> bool {
        of_either!(word, self, Word::compare_exchange(word, current, new))
    }

    fn grants(&self, request: Request) -> bool {
        of_either!(word, self, word.grants(request))
    }

    fn take(&self, request: Request) -> bool {
        of_either!(word, self, word.take(request))
    }

    fn give_back(&self, hold: Hold) {
        of_either!(word, self, word.give_back(hold));
    }

    fn is_due_elsewhere(&self) -> bool {
        of_either!(word, self, word.is_due_elsewhere())
    }

    fn has_known_holder(&self) -> bool {
        of_either!(word, self, word.has_known_holder())
    }

    fn note_death(&self) -> bool {
        of_either!(word, self, word.note_death())
    }

    fn take_note_of_death(&self, mode: Mode) -> bool {
        of_either!(word, self, word.take_note_of_death(mode))
    }
}
