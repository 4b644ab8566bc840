//! A word of this process's own memory, or of shared memory.

use std::ops::Deref;
use std::sync::atomic::AtomicI32;

use waitasync_core::lock::Word;
use waitasync_core::mapped::words::SharedWord;

pub(crate) use waitasync_core::mapped::words::memories::{maps_memory, owner_of, shared_word};
pub(crate) use waitasync_core::queue::other_processes::is_shared;

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
