//! The state of a name, as its file has it; and a look at that and the lock, for `query`.
//!
//! | bytes | |
//! |---|---|
//! | 0 | `AWPL`, and the version of this format |
//! | 8 | the token of the last exclusive grant |
//! | 16 | since when that is held, in milliseconds since 1970 |
//! | 24 | 1: held, or its holder died; 0: released in order |
//! | 28 | the length of the description |
//! | 32 | a checksum of all others |
//! | 40 | a description of the holder for people: JSON, which only JavaScript reads |
//!
//! All numbers are little-endian. It is written by one call, so the death of a process leaves all of it or nothing. Only
//! a loss of power can damage it: then the clock gives the next token, and the holder counts as dead.
//!
//! # Who has the lock
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

use super::Mode;
use super::system::options;

const MAGIC: [u8; 4] = *b"AWPL";
const VERSION: u32 = 1;
const HEADER: usize = 40;
/// What JavaScript counts to without a gap.
const LARGEST_TOKEN: u64 = (1 << 53) - 1;
/// As many bytes as a state has at most.
pub(super) const LARGEST: usize = 4096;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct State {
    pub(super) token: u64,
    /// Whether the last exclusive holder has not released it in order.
    pub(super) is_marked: bool,
}

/// Reads a state. Nothing at all is that of a new file. Fails if it is of another version.
pub(super) fn read(bytes: &[u8]) -> Result<State> {
    if bytes.is_empty() {
        return Ok(State::default());
    }
    if bytes.len() >= HEADER && bytes[..4] == MAGIC && u32_at(bytes, 4) != VERSION {
        return Err(Error::other(format!("its state has version {}, which is not known", u32_at(bytes, 4))));
    }
    let damaged = State { token: 0, is_marked: true };
    Ok(whole(bytes).map_or(damaged, |all| State { token: u64_at(all, 8), is_marked: u32_at(all, 24) == 1 }))
}

/// Returns since when a name is held, the mark, and the description. None of a state that is damaged.
pub(super) fn described(bytes: &[u8]) -> Option<(u64, bool, String)> {
    let all = whole(bytes)?;
    let description = String::from_utf8(all[HEADER..].to_vec()).ok()?;
    Some((u64_at(all, 16), u32_at(all, 24) == 1, description))
}

/// Returns the bytes of a state, unless it is damaged. A token that is no number of JavaScript is damage, too.
fn whole(bytes: &[u8]) -> Option<&[u8]> {
    if bytes.len() < HEADER || bytes[..4] != MAGIC || u32_at(bytes, 4) != VERSION {
        return None;
    }
    let all = bytes.get(..HEADER + u32_at(bytes, 28) as usize)?;
    (u64_at(all, 32) == checksum(all) && u64_at(all, 8) < LARGEST_TOKEN).then_some(all)
}

/// Makes the bytes of a marked state. What does not fit of the description is left out.
pub(super) fn marked(token: u64, milliseconds: u64, description: &str) -> Vec<u8> {
    let description = description.as_bytes();
    let description = if description.len() <= LARGEST - HEADER { description } else { b"{}" };
    let mut bytes = Vec::with_capacity(HEADER + description.len());
    bytes.extend(MAGIC);
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend(token.to_le_bytes());
    bytes.extend(milliseconds.to_le_bytes());
    bytes.extend(1_u32.to_le_bytes());
    bytes.extend(u32::try_from(description.len()).expect("it fits").to_le_bytes());
    bytes.extend([0; 8]);
    bytes.extend(description);
    seal(&mut bytes);
    bytes
}

/// Removes the mark.
pub(super) fn unmark(bytes: &mut [u8]) {
    bytes[24] = 0;
    seal(bytes);
}

fn seal(bytes: &mut [u8]) {
    let sum = checksum(bytes);
    bytes[32..HEADER].copy_from_slice(&sum.to_le_bytes());
}

/// FNV-1a of all but the checksum itself.
fn checksum(bytes: &[u8]) -> u64 {
    let others = bytes[..32].iter().chain(&bytes[HEADER..]);
    others.fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

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
    let state = described(&bytes);
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

#[cfg(test)]
mod tests {
    use super::{LARGEST, LARGEST_TOKEN, State, marked, unmark};

    fn read(bytes: &[u8]) -> State {
        super::read(bytes).expect("it is of this version")
    }

    #[test]
    fn a_new_file_has_no_token_and_a_damaged_one_a_dead_holder() {
        assert_eq!(read(&[]), State { token: 0, is_marked: false });
        let mut whole = marked(123, 456, "{}");
        unmark(&mut whole);
        let damaged = State { token: 0, is_marked: true };
        for length in 1..whole.len() {
            assert_eq!(read(&whole[..length]), damaged, "{length} bytes");
        }
        for index in (0..whole.len()).filter(|index| !(4..8).contains(index)) {
            let mut bytes = whole.clone();
            bytes[index] ^= 0x10;
            assert_eq!(read(&bytes), damaged, "byte {index}");
        }
        assert_eq!(read(&[0; LARGEST]), damaged);
    }

    #[test]
    fn a_token_that_javascript_cannot_count_on_is_damage() {
        let token = LARGEST_TOKEN - 1;
        assert_eq!(read(&marked(token, 0, "{}")), State { token, is_marked: true });
        for token in [LARGEST_TOKEN, u64::MAX] {
            assert_eq!(read(&marked(token, 0, "{}")), State { token: 0, is_marked: true });
        }
    }
}
