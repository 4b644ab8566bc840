//! The memories that this process shares with others, and their words.

use std::sync::OnceLock;

use super::SharedWord;
use crate::queue::Location;
use crate::queue::other_processes::{self, OtherProcesses};

static MEMORIES: OnceLock<&'static dyn Memories> = OnceLock::new();

/// The memories that this process shares with others.
pub trait Memories: OtherProcesses {
    /// Returns the word at a location, with its record; `makes` that. `None`: it is in none of them, or there is no room.
    fn word(&self, location: Location, makes: bool) -> Option<SharedWord<'static>>;
}

/// Sets the memories. Only the first call counts.
pub fn connect(memories: &'static dyn Memories) {
    let _ = MEMORIES.set(memories);
    other_processes::connect(memories);
}

/// Whether this process has any memory that several processes may have.
pub fn maps_memory() -> bool {
    MEMORIES.get().is_some()
}

/// Returns the word at a location if other processes may have it. It has a record then.
#[inline]
pub fn shared_word(location: Location) -> Option<SharedWord<'static>> {
    MEMORIES.get()?.word(location, false)
}

/// Returns the pid of the process that has a shared word alone; 0: unknown. `None`: there is none.
pub fn owner_of(location: Location) -> Option<u32> {
    let word = shared_word(location)?;
    word.owner().map(|slot| word.peers.pid(slot))
}

/// Names the other process that has a shared word alone.
pub fn holder_text(location: Location) -> Option<String> {
    let word = shared_word(location)?;
    let slot = word.owner().filter(|&slot| slot != word.me().index())?;
    Some(match word.peers.pid(slot) {
        0 => "another process".to_owned(),
        pid => format!("process {pid}"),
    })
}
