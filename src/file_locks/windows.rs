//! Files of Windows: locks of a byte by `LockFileEx`.

use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Result};
use std::os::windows::fs::{FileExt, OpenOptionsExt};
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::path::{Component, Path, Prefix};
use std::sync::Arc;

use windows_sys::Win32::Foundation::{ERROR_LOCK_VIOLATION, ERROR_OPERATION_ABORTED};
use windows_sys::Win32::Storage::FileSystem::{
    BY_HANDLE_FILE_INFORMATION, FILE_FLAG_OPEN_REPARSE_POINT, GetFileInformationByHandle, LOCKFILE_EXCLUSIVE_LOCK,
    LOCKFILE_FAIL_IMMEDIATELY, LockFileEx, UnlockFileEx,
};
use windows_sys::Win32::System::IO::{CancelSynchronousIo, OVERLAPPED};
use windows_sys::Win32::System::Threading::{GetCurrentThreadId, OpenThread, THREAD_TERMINATE};

use super::{Identity, Mode, Opened};

/// Too many open files, not enough memory, no system resources.
pub(super) const PASSING: [i32; 3] = [4, 8, 1450];
/// The codes of errors that may happen to files, and the number of each in libuv: there they have names.
const NUMBERS: [(i32, i32); 13] = [
    (2, 4058), // ENOENT
    (3, 4058),
    (4, 4066), // EMFILE
    (5, 4048), // EPERM
    (8, 4057), // ENOMEM
    (14, 4057),
    (19, 4047), // EROFS
    (32, 4082), // EBUSY
    (33, 4082),
    (39, 4055), // ENOSPC
    (112, 4055),
    (206, 4064), // ENAMETOOLONG
    (1450, 4057),
];
/// The locked byte lies far behind the state: these locks are mandatory, and all may read the state.
const FAR: u32 = 0x4000_0000;

fn far() -> OVERLAPPED {
    let mut at = OVERLAPPED::default();
    at.Anonymous.Anonymous.OffsetHigh = FAR;
    at
}

pub(super) fn number_of(code: i32) -> i32 {
    NUMBERS.iter().find(|&&(known, _)| known == code).map_or(0, |&(_, number)| number)
}

/// To read what may be a link, which is not followed.
pub(crate) fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(FILE_FLAG_OPEN_REPARSE_POINT);
    options
}

pub(crate) fn open(path: &Path) -> Result<Opened> {
    let file = options().write(true).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(Error::other("it is no regular file"));
    }
    let identity = identity(&file)?;
    Ok((Arc::new(file), identity))
}

/// Creates a file that is not there. It inherits the rights of the folder.
pub(crate) fn create(path: &Path) -> Result<Opened> {
    let file = options().write(true).create_new(true).open(path)?;
    let identity = identity(&file)?;
    Ok((Arc::new(file), identity))
}

pub(crate) fn read_at(file: &File, bytes: &mut [u8]) -> Result<usize> {
    file.seek_read(bytes, 0)
}

pub(crate) fn write_at(file: &File, bytes: &[u8]) -> Result<usize> {
    file.seek_write(bytes, 0)
}

fn lock(file: &File, mode: Mode, flags: u32) -> Result<()> {
    let flags = flags | if mode == Mode::Exclusive { LOCKFILE_EXCLUSIVE_LOCK } else { 0 };
    let mut at = far();
    // SAFETY: the handle is open during the call, and was not opened for overlapped calls: so this one is over when
    // it returns, and uses `at` no more.
    let is_locked = unsafe { LockFileEx(file.as_raw_handle(), flags, 0, 1, 0, &raw mut at) } != 0;
    if is_locked { Ok(()) } else { Err(Error::last_os_error()) }
}

/// Locks a file; false if another handle has it.
pub(crate) fn try_lock(file: &File, mode: Mode) -> Result<bool> {
    match lock(file, mode, LOCKFILE_FAIL_IMMEDIATELY) {
        Ok(()) => Ok(true),
        Err(error) if error.raw_os_error() == Some(ERROR_LOCK_VIOLATION as i32) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Waits until it has locked a file. Fails with `Interrupted` if its thread is interrupted.
pub(crate) fn wait_for_lock(file: &File, mode: Mode) -> Result<()> {
    lock(file, mode, 0).map_err(|error| {
        let is_interrupted = error.raw_os_error() == Some(ERROR_OPERATION_ABORTED as i32);
        if is_interrupted { ErrorKind::Interrupted.into() } else { error }
    })
}

/// Makes a shared lock of an exclusive one: a handle may have both, and the first unlocking ends the exclusive one.
pub(crate) fn downgrade(file: &File) -> Result<bool> {
    let is_shared = try_lock(file, Mode::Shared)?;
    unlock(file);
    Ok(is_shared)
}

/// A thread that waits for locks, and can be interrupted.
#[derive(Clone, Debug)]
pub(crate) struct Sleeper(Option<Arc<OwnedHandle>>);

impl Sleeper {
    /// The calling thread. The system may give no handle of it: then it is not interrupted.
    pub(crate) fn current() -> Self {
        // SAFETY: the calls have no requirements; a handle that is not null is ours.
        Self(unsafe {
            let handle = OpenThread(THREAD_TERMINATE, 0, GetCurrentThreadId());
            (!handle.is_null()).then(|| Arc::new(OwnedHandle::from_raw_handle(handle)))
        })
    }

    /// Interrupts its wait, if it waits by now.
    pub(crate) fn interrupt(&self) {
        if let Some(handle) = &self.0 {
            // SAFETY: an open handle of a thread.
            unsafe { CancelSynchronousIo(handle.as_raw_handle()) };
        }
    }
}

/// Whether the process may open a file that it has kept: it keeps none.
pub(crate) fn may_open(_: &Path) -> bool {
    false
}

/// Returns how many descriptors the process may have: no number is set.
pub(crate) fn most_descriptors() -> usize {
    usize::MAX
}

pub(crate) fn unlock(file: &File) {
    let mut at = far();
    // SAFETY: as in `lock`.
    unsafe { UnlockFileEx(file.as_raw_handle(), 0, 1, 0, &raw mut at) };
}

fn identity(file: &File) -> Result<Identity> {
    let mut found = BY_HANDLE_FILE_INFORMATION::default();
    // SAFETY: an open handle, and an out-parameter that is a live local of the type that the call fills.
    if unsafe { GetFileInformationByHandle(file.as_raw_handle(), &raw mut found) } == 0 {
        return Err(Error::last_os_error());
    }
    Ok((found.dwVolumeSerialNumber.into(), u64::from(found.nFileIndexHigh) << 32 | u64::from(found.nFileIndexLow)))
}

/// Returns the identity of the file at a path. One that is being removed cannot be opened.
pub(crate) fn identity_of(path: &Path) -> Result<Option<Identity>> {
    match OpenOptions::new().access_mode(0).custom_flags(FILE_FLAG_OPEN_REPARSE_POINT).open(path) {
        Ok(file) => identity(&file).map(Some),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether a folder is on a drive of this machine. The real path of a network drive has the name of its server.
pub(crate) fn is_local(folder: &Path) -> Result<bool> {
    let folder = folder.canonicalize()?;
    let is_remote = |kind| matches!(kind, Prefix::UNC(..) | Prefix::VerbatimUNC(..));
    Ok(!matches!(folder.components().next(), Some(Component::Prefix(prefix)) if is_remote(prefix.kind())))
}
