//! A word of this process's own memory, or of shared memory.

use std::ops::Deref;
use std::sync::atomic::AtomicI32;

use waitasync_core::lock::Word;
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

impl Deref for WordAt {
    type Target = dyn Word;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Own(word) => *word,
            Self::Shared(word) => word,
        }
    }
}
