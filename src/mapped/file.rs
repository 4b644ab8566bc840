//! Opens a file of mapped memory, or makes it.

use std::fs::{File, OpenOptions, Permissions, remove_file};
use std::io::{Error, ErrorKind, Result};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use memmap2::MmapOptions;
use rustix::fs::{AtFlags, CWD, FallocateFlags, FlockOperation, fallocate, flock, linkat};
use rustix::io::Errno;

use super::{BOOT_AT, DATA_BYTES_AT, Header, refused, system};

/// How often a file is looked for that others remove or replace meanwhile.
const MOST_TRIES: u32 = 1000;

fn invalid<T>(what: &str) -> Result<T> {
    Err(refused("INVALID", what))
}

/// Opens the file with this header and so many bytes. Makes it if there is none of this boot.
pub(super) fn open(path: &Path, header: Header, size: usize) -> Result<File> {
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
