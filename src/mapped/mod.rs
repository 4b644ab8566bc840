//! Memory that several processes share: files that each of them maps once, and who has them. Linux on 64-bit processors only.
//!
//! # The file
//! `header | slots of processes | table | data`. It is made complete under a temporary name, with its space allocated, and then
//! linked to its path. One of an earlier boot is replaced.
//!
//! # Deaths
//! A process has a slot, and for life the lock of a byte that belongs to it (a lock of the open file description, which no other
//! code of the process can release by accident). So **the byte tells the truth about a death**: the kernel releases it
//! once nothing of the process writes to memory any more. The alarm comes earlier: the slot's word `alive` is in the
//! kernel's robust list of the watching thread. Whoever is alarmed looks at the byte until it is free, locks it, sweeps, and
//! frees the slot.
//!
//! # Invariants
//! 1. A mapping is never unmapped: buffers of JavaScript's, and other threads, lead there.
//! 2. A slot is used again only after it was swept; its generation distinguishes its processes.
//! 3. Who sweeps has the byte of the dead process, and the lock `sweeping` of its own process: so one thread of all sweeps a slot
//!    at a time. If it dies in the midst, another one sweeps again.
//! 4. What is in the file is input: other processes of the same user wrote it.

mod mapping;
mod system;
#[cfg(test)]
mod tests;

use std::fmt::Display;
use std::fs::{File, OpenOptions, Permissions, remove_file};
use std::io::{Error, ErrorKind, Result};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize};

pub(crate) use mapping::{Client, Mapping};
use memmap2::MmapOptions;
use rustix::fs::{AtFlags, CWD, FallocateFlags, FlockOperation, fallocate, flock, linkat};
use rustix::io::Errno;
pub(crate) use system::now;
use waitasync_core::mapped::MOST_PROCESSES;

/// The bytes of a memory page, or a part of one: the table, and the data, begin at a multiple of it.
const PAGE: usize = 4096;

/// What is in a file.
#[derive(Clone, Copy)]
#[repr(u32)]
pub(crate) enum Kind {
    /// A table of named locks.
    Names = 1,
    /// Memory of JavaScript's, and a table of its words.
    Memory = 2,
}

const MAGIC: [u8; 16] = *b"atomics-waitasyn";
/// Raised with each change of the contents of a file, the clients' tables included.
const LAYOUT: u32 = 3;

/// The header's bytes, by which the processes agree.
#[derive(Clone, Copy)]
struct Header {
    kind: Kind,
    table_bytes: u64,
    data_bytes: u64,
    /// The text in which Linux has the identity of a boot.
    boot: [u8; 37],
}

/// Where the header has the number of the data's bytes; the kind and the number of the layout are before that.
const DATA_BYTES_AT: usize = 24;
/// Where the header has the boot.
const BOOT_AT: usize = 40;

impl Header {
    fn to_bytes(self) -> Vec<u8> {
        let (layout, kind) = (LAYOUT.to_ne_bytes(), (self.kind as u32).to_ne_bytes());
        let lengths = [self.data_bytes.to_ne_bytes(), self.table_bytes.to_ne_bytes()];
        [&MAGIC[..], &layout, &kind, lengths.as_flattened(), &self.boot].concat()
    }

    /// Returns where the data begin, and where the file ends; `None` if no memory has room for that.
    fn ends(self) -> Option<(usize, usize)> {
        let pages = |bytes: u64| usize::try_from(bytes).ok()?.checked_next_multiple_of(PAGE);
        let data = TABLE_AT.checked_add(pages(self.table_bytes)?)?;
        let end = data.checked_add(pages(self.data_bytes)?)?;
        (isize::try_from(end).is_ok()).then_some((data, end))
    }
}

/// A process's place in a file.
#[repr(C, align(64))]
struct Slot {
    /// The link of the kernel's robust list, for the process of the slot alone.
    link: AtomicUsize,
    /// The thread id of the watcher, in its own namespace; the kernel adds `FUTEX_OWNER_DIED`. 0: nobody watches.
    alive: AtomicU32,
    /// Grows at each ring.
    doorbell: AtomicU32,
    /// Twice the slot's latest generation, and one more while a process has it.
    state: AtomicU32,
    pid: AtomicU32,
    /// The inode of the process's PID namespace, in which `pid` has a meaning.
    namespace: AtomicU64,
}

impl Slot {
    /// The distance between a slot's link and its word `alive`, which the kernel wants to know.
    const ALIVE_AFTER_LINK: usize = std::mem::offset_of!(Self, alive) - std::mem::offset_of!(Self, link);
}

const SLOTS_AT: usize = PAGE;
const TABLE_AT: usize = SLOTS_AT + MOST_PROCESSES * size_of::<Slot>();

const _: () = assert!(size_of::<Slot>() == 64 && TABLE_AT.is_multiple_of(PAGE));

/// An error whose text begins with a code that `lib/processes/engines/native.js` knows.
fn refused(code: &str, what: impl Display) -> Error {
    Error::other(format!("ERR_SHARED_MEMORY_{code} {what}"))
}

/// This system, file system, processor or Node cannot do it: what is missing.
pub(crate) fn unavailable(what: impl Display) -> Error {
    refused("UNAVAILABLE", what)
}

/// How often a file is looked for that others remove or replace meanwhile.
const MOST_TRIES: u32 = 1000;

fn invalid<T>(what: &str) -> Result<T> {
    Err(refused("INVALID", what))
}

/// Opens the file with this header and so many bytes. Makes it if there is none of this boot.
fn open_file(path: &Path, header: Header, size: usize) -> Result<File> {
    for _ in 0..MOST_TRIES {
        let mut options = OpenOptions::new();
        match options.read(true).write(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path) {
            Ok(file) if is_of_this_boot(&file, header, size)? => return Ok(file),
            Ok(file) => remove(path, &file)?,
            Err(error) if error.kind() == ErrorKind::NotFound => make(path, header, size)?,
            Err(error) if error.raw_os_error() == Some(libc::ELOOP) => return invalid("it is a symbolic link"),
            Err(error) if error.kind() == ErrorKind::IsADirectory => return invalid("it is a folder"),
            Err(error) => return Err(error),
        }
    }
    invalid("it is removed or replaced all the time")
}

/// Checks that a file is ours, and of this header. Returns false if it is of an earlier boot.
fn is_of_this_boot(file: &File, wanted: Header, size: usize) -> Result<bool> {
    let data = file.metadata()?;
    if !data.is_file() {
        return invalid("it is no regular file");
    }
    if data.uid() != rustix::process::geteuid().as_raw() {
        return invalid("it belongs to another user");
    }
    if data.mode() & 0o022 != 0 {
        return invalid("others than its owner may write to it");
    }
    let wanted = wanted.to_bytes();
    let mut found = vec![0; wanted.len()];
    if file.read_exact_at(&mut found, 0).is_err() || found[..DATA_BYTES_AT] != wanted[..DATA_BYTES_AT] {
        return invalid("it was not made by this version of atomics-waitasync, or for something else");
    }
    if found[BOOT_AT..] != wanted[BOOT_AT..] {
        return Ok(false);
    }
    let data_bytes =
        |header: &[u8]| header[DATA_BYTES_AT..].first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
    if data_bytes(&found) != data_bytes(&wanted) {
        return Err(refused("LENGTH", data_bytes(&found)));
    }
    if found != wanted || data.len() != size as u64 {
        return invalid("it has been truncated or changed");
    }
    Ok(true)
}

/// Makes a file, and then gives it its name. If this process dies before, nobody sees it.
fn make(path: &Path, header: Header, size: usize) -> Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let named = |error: Error| match error.raw_os_error() {
        Some(libc::EOPNOTSUPP | libc::EISDIR) => system::unknown_drive(None),
        _ => error,
    };
    let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_TMPFILE).mode(0o600).open(folder);
    let file = file.map_err(named)?;
    system::check_drive(&file)?;
    // Whatever the umask has taken away.
    file.set_permissions(Permissions::from_mode(0o600))?;
    fallocate(&file, FallocateFlags::empty(), 0, size as u64).map_err(|error| named(error.into()))?;
    file.write_all_at(&header.to_bytes(), 0)?;
    // If this process has no room for it, there is to be no file either.
    drop(MmapOptions::new().len(size).map_raw(&file)?);
    match linkat(CWD, format!("/proc/self/fd/{}", file.as_raw_fd()), CWD, path, AtFlags::SYMLINK_FOLLOW) {
        // Another process was quicker.
        Err(Errno::EXIST) => Ok(()),
        linked => Ok(linked?),
    }
}

/// Removes a file of an earlier boot. Others that find it wait here, and then find the new one.
fn remove(path: &Path, old: &File) -> Result<()> {
    flock(old, FlockOperation::LockExclusive)?;
    let identity = |data: &std::fs::Metadata| (data.dev(), data.ino());
    let is_there =
        path.symlink_metadata().is_ok_and(|there| old.metadata().is_ok_and(|old| identity(&there) == identity(&old)));
    if is_there { remove_file(path) } else { Ok(()) }
}
