//! What the operating system has for files: locks that belong to a descriptor, identities, and kinds of drives.
//!
//! A thread that waits for a lock can be interrupted by its [`Sleeper`]: on unix by a signal with an empty handler and
//! without `SA_RESTART`. A signal that comes just before the call is lost: so it is sent again until the thread answers.

#[cfg_attr(unix, path = "system/unix.rs")]
#[cfg_attr(windows, path = "system/windows.rs")]
mod platform;

use std::fs::File;
use std::io::Error;
use std::sync::Arc;

pub(crate) use waitasync_core::lock::names::Mode;

pub(super) use platform::{
    Sleeper, create, downgrade, identity_of, is_local, may_open, most_descriptors, open, options, read_at, try_lock,
    unlock, wait_for_lock, write_at,
};

/// A file's identity: the numbers of its device and of the file there.
pub(super) type Identity = (u64, u64);

/// A file that was opened, and its identity. Only limits of holds share it.
pub(super) type Opened = (Arc<File>, Identity);

/// Whether the system may have what is missing in a moment: descriptors, or memory.
pub(super) fn is_passing(error: &Error) -> bool {
    platform::PASSING.iter().any(|&code| error.raw_os_error() == Some(code))
}

/// Returns libuv's number of a system's error, without its sign. 0: it has none.
pub(crate) fn number_of(error: &Error) -> i32 {
    error.raw_os_error().map_or(0, platform::number_of)
}

/// The error of a system that gives no thread.
pub(super) fn no_thread() -> Error {
    #[cfg(unix)]
    return Error::from_raw_os_error(libc::EAGAIN);
    #[cfg(not(unix))]
    return Error::from_raw_os_error(8); // `ERROR_NOT_ENOUGH_MEMORY`
}
