//! Locks of the processes of one machine, by locks of files: what `lib/processes/engines/files.js` is made of.
//!
//! Each name has a file in a folder. Whoever has the lock of that file holds the name; the operating system takes it
//! from a process that ends in any way. The file has the state: the last token, and whether its holder is still there.
//!
//! A second file, the gate, makes a line: whoever has to wait takes the gate first, alone in either mode, and gives it
//! back once it has the lock. So newcomers wait behind it, and nobody passes another one. Only contended names have a
//! gate. Whoever has it may be suspended: so a lock that stays free is taken all the same, by those who wait and by attempts.
//!
//! # Invariants
//! 1. The state is written with the lock only. A look (`state.rs`) reads it without, and relies on its checksum.
//! 2. A lock counts only if the path still leads to the locked file, after the lock and again after the write.
//! 3. A lock is released before its descriptor is closed: a child process may have inherited the descriptor.
//! 4. A request is answered once: by its mailbox, or, if that was closed or the request aborted, what came is given back.
//! 5. Nothing is locked, written or closed while the table of lines or a mailbox is locked.

mod files;
mod lock_file;
mod mailbox;
mod state;
#[cfg_attr(unix, path = "unix.rs")]
#[cfg_attr(windows, path = "windows.rs")]
mod system;
mod timed;
mod waiting;

use std::fs::File;
use std::io::Error;
use std::sync::Arc;

pub(crate) use files::{Files, Granted};
pub(crate) use lock_file::{Asked, Folder, Name};
pub(crate) use mailbox::Answer;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
pub(crate) use mailbox::{Lock, Mailbox, Queue};
pub(crate) use state::look;
pub(crate) use waitasync_core::lock::names::Mode;

/// A file's identity: the numbers of its device and of the file there.
type Identity = (u64, u64);

/// A file that was opened, and its identity. Only limits of holds share it.
type Opened = (Arc<File>, Identity);

/// Whether the system may have what is missing in a moment: descriptors, or memory.
fn is_passing(error: &Error) -> bool {
    system::PASSING.iter().any(|&code| error.raw_os_error() == Some(code))
}

/// Returns libuv's number of a system's error, without its sign. 0: it has none.
pub(crate) fn number_of(error: &Error) -> i32 {
    error.raw_os_error().map_or(0, system::number_of)
}

/// The error of a system that gives no thread.
fn no_thread() -> Error {
    #[cfg(unix)]
    return Error::from_raw_os_error(libc::EAGAIN);
    #[cfg(not(unix))]
    return Error::from_raw_os_error(8); // `ERROR_NOT_ENOUGH_MEMORY`
}
