//! Files of Windows: locks of a byte by `LockFileEx`.

use std::ffi::c_void;
use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Result};
use std::os::windows::ffi::OsStrExt;
use std::os::windows::fs::OpenOptionsExt;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::path::{Component, Path, Prefix};
use std::sync::Arc;

use super::{Identity, Mode, Opened};

type Handle = *mut c_void;

const LOCK_VIOLATION: i32 = 33;
const OPERATION_ABORTED: i32 = 995;
const THREAD_TERMINATE: u32 = 1;
const FAIL_IMMEDIATELY: u32 = 1;
const EXCLUSIVE: u32 = 2;
const OPEN_REPARSE_POINT: u32 = 0x0020_0000;
const DRIVE_REMOTE: u32 = 4;
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

#[repr(C)]
struct Overlapped {
    internal: usize,
    internal_high: usize,
    offset: u32,
    offset_high: u32,
    event: Handle,
}

#[repr(C)]
#[derive(Default)]
struct Information {
    attributes: u32,
    times: [u32; 6],
    volume: u32,
    size: [u32; 2],
    links: u32,
    index_high: u32,
    index_low: u32,
}

#[link(name = "kernel32")]
unsafe extern "system" {
    fn LockFileEx(file: Handle, flags: u32, reserved: u32, low: u32, high: u32, at: *mut Overlapped) -> i32;
    fn UnlockFileEx(file: Handle, reserved: u32, low: u32, high: u32, at: *mut Overlapped) -> i32;
    fn GetFileInformationByHandle(file: Handle, information: *mut Information) -> i32;
    fn GetDriveTypeW(root: *const u16) -> u32;
    fn OpenThread(access: u32, inherit: i32, thread: u32) -> Handle;
    fn GetCurrentThreadId() -> u32;
    fn CancelSynchronousIo(thread: Handle) -> i32;
}

fn far() -> Overlapped {
    Overlapped { internal: 0, internal_high: 0, offset: 0, offset_high: FAR, event: std::ptr::null_mut() }
}

pub(super) fn number_of(code: i32) -> i32 {
    NUMBERS.iter().find(|&&(known, _)| known == code).map_or(0, |&(_, number)| number)
}

/// To read what may be a link, which is not followed.
pub(crate) fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(OPEN_REPARSE_POINT);
    options
}

/// Opens a file that is there.
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

fn lock(file: &File, mode: Mode, flags: u32) -> Result<()> {
    let flags = flags | if mode == Mode::Exclusive { EXCLUSIVE } else { 0 };
    let mut at = far();
    // SAFETY: the handle is open during the call, and was not opened for overlapped calls: so this one is over when
    // it returns, and uses `at` no more.
    let is_locked = unsafe { LockFileEx(file.as_raw_handle(), flags, 0, 1, 0, &raw mut at) } != 0;
    if is_locked { Ok(()) } else { Err(Error::last_os_error()) }
}

/// Locks a file; false if another handle has it.
pub(crate) fn try_lock(file: &File, mode: Mode) -> Result<bool> {
    match lock(file, mode, FAIL_IMMEDIATELY) {
        Ok(()) => Ok(true),
        Err(error) if error.raw_os_error() == Some(LOCK_VIOLATION) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Waits until it has locked a file. Fails with `Interrupted` if its thread is interrupted.
pub(crate) fn wait_for_lock(file: &File, mode: Mode) -> Result<()> {
    lock(file, mode, 0).map_err(|error| {
        let is_interrupted = error.raw_os_error() == Some(OPERATION_ABORTED);
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
    let mut found = Information::default();
    // SAFETY: an open handle, and an out-parameter that is a live local of the type that the call fills.
    if unsafe { GetFileInformationByHandle(file.as_raw_handle(), &raw mut found) } == 0 {
        return Err(Error::last_os_error());
    }
    Ok((found.volume.into(), u64::from(found.index_high) << 32 | u64::from(found.index_low)))
}

/// Returns the identity of the file at a path. One that is being removed cannot be opened.
pub(crate) fn identity_of(path: &Path) -> Result<Option<Identity>> {
    match OpenOptions::new().access_mode(0).custom_flags(OPEN_REPARSE_POINT).open(path) {
        Ok(file) => identity(&file).map(Some),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether a folder is on a drive of this machine.
pub(crate) fn is_local(folder: &Path) -> Result<bool> {
    let folder = folder.canonicalize()?;
    let Some(Component::Prefix(prefix)) = folder.components().next() else { return Ok(true) };
    if matches!(prefix.kind(), Prefix::UNC(..) | Prefix::VerbatimUNC(..)) {
        return Ok(false);
    }
    let root: Vec<u16> = prefix.as_os_str().encode_wide().chain([u16::from(b'\\'), 0]).collect();
    // SAFETY: a string of UTF-16 with its final 0.
    Ok(unsafe { GetDriveTypeW(root.as_ptr()) } != DRIVE_REMOTE)
}
