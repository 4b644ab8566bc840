//! A look at the lock of a name, for `query`. On Linux it changes nothing.
//!
//! No call tells whether a file is locked by `flock`, and an attempt would keep others out for a moment. So on Linux each
//! holder announces itself besides: by a lock of one byte far behind the state, which belongs to its descriptor and ends
//! with it. These locks are all shared, so none of them fails; the byte says the mode. The system tells of them without
//! an attempt, also of holders in other containers, of whose processes `/proc/locks` knows nothing. Readers wait at the gate alone, as
//! writers do: the byte of their process's number, in the gate, tells them apart.
//!
//! Elsewhere, and with 32 bits, it makes an attempt for a shared lock if the state is marked, and sees exclusive holders
//! only.

use std::io::{Error, ErrorKind, Read, Result};
use std::path::Path;

use super::state::{self, LARGEST};
use super::system::{Mode, options};

/// What there is to see at the path of a lock: the mode in which it is held; and of its state since when, whether it is
/// marked, and the description. Without these, the state is missing or damaged.
pub(crate) type Look = (Option<Mode>, Option<(u64, bool, String)>);

/// Looks at a file. None if it is not there, or cannot be that of a lock.
pub(crate) fn look(path: &Path) -> Result<Option<Look>> {
    let file = match options().open(path) {
        Err(error) if is_absence(&error) => return Ok(None),
        opened => opened?,
    };
    if !file.metadata()?.is_file() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    (&file).take(LARGEST as u64).read_to_end(&mut bytes)?;
    let state = state::described(&bytes);
    let is_marked = state.as_ref().map_or(!bytes.is_empty(), |(_, is_marked, _)| *is_marked);
    let held = announced(&file, is_marked)?;
    Ok(Some((held, state)))
}

/// Whether a path leads nowhere, or to no file. Windows refuses folders, and files that are being removed.
fn is_absence(error: &Error) -> bool {
    #[cfg(windows)]
    if error.kind() == ErrorKind::PermissionDenied {
        return true;
    }
    #[cfg(unix)]
    if matches!(error.raw_os_error(), Some(libc::ELOOP | libc::ENXIO)) {
        return true;
    }
    error.kind() == ErrorKind::NotFound
}

use platform::announced;
pub(super) use platform::{announce, announce_reader, withdraw_announcement};

// The types for the locks of a descriptor have 64 bits, which 32-bit systems name otherwise.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod platform {
    use std::fs::File;
    use std::io::{Error, Result};
    use std::os::fd::AsRawFd;

    use super::Mode;

    /// The byte of shared holders. That of exclusive ones comes next.
    const FAR: libc::off_t = 0x4000_0000;

    fn bytes(kind: i32, start: libc::off_t, length: libc::off_t) -> libc::flock {
        libc::flock { l_type: kind as _, l_whence: libc::SEEK_SET as _, l_start: start, l_len: length, l_pid: 0 }
    }

    /// Tells processes that look that this descriptor has the lock. It may fail where the drive has no such locks.
    pub(crate) fn announce(file: &File, mode: Mode) {
        announce_at(file, libc::off_t::from(mode == Mode::Exclusive));
    }

    /// Tells them that this process waits for a share.
    pub(crate) fn announce_reader(gate: &File) {
        // The first two bytes are those of holders.
        announce_at(gate, 2 + libc::off_t::from(std::process::id()));
    }

    /// Takes back what a descriptor has announced of its lock.
    pub(crate) fn withdraw_announcement(file: &File) {
        set(file, bytes(libc::F_UNLCK, FAR, 2));
    }

    fn announce_at(file: &File, offset: libc::off_t) {
        set(file, bytes(libc::F_RDLCK, FAR + offset, 1));
    }

    fn set(file: &File, byte: libc::flock) {
        // SAFETY: the descriptor is open during the call, which reads a live local of the type that it takes.
        unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const byte) };
    }

    /// Returns the mode of a holder that has announced itself.
    pub(crate) fn announced(file: &File, _: bool) -> Result<Option<Mode>> {
        let mut found = bytes(libc::F_WRLCK, FAR, 2);
        // SAFETY: as in `announce`; the call writes to the local, too.
        if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &raw mut found) } != 0 {
            let error = Error::last_os_error();
            // Old kernels, and some drives, have no such locks: then nobody has announced anything.
            let is_missing = matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOLCK | libc::ENOTSUP));
            return if is_missing { Ok(None) } else { Err(error) };
        }
        let mode = if found.l_start > FAR { Mode::Exclusive } else { Mode::Shared };
        Ok((i32::from(found.l_type) != libc::F_UNLCK).then_some(mode))
    }
}

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
mod platform {
    use std::fs::File;
    use std::io::Result;

    use super::Mode;
    use crate::file_locks::system::{try_lock, unlock};

    pub(crate) fn announce(_: &File, _: Mode) {}

    pub(crate) fn announce_reader(_: &File) {}

    pub(crate) fn withdraw_announcement(_: &File) {}

    /// Tries to have a lock for a moment. An unmarked one is free.
    pub(crate) fn announced(file: &File, is_marked: bool) -> Result<Option<Mode>> {
        if is_marked && !try_lock(file, Mode::Shared)? {
            return Ok(Some(Mode::Exclusive));
        }
        // One that it does not have stays as it is.
        unlock(file);
        Ok(None)
    }
}
