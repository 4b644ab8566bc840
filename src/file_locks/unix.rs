//! Files of unix: locks by `flock`, and a signal for threads that wait for one.

use std::ffi::{CString, c_int};
use std::fs::{File, Metadata, OpenOptions, metadata, symlink_metadata};
use std::io::{Error, ErrorKind, Result};
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::ptr::{null, null_mut};
use std::sync::{Arc, OnceLock};

use super::{Identity, Mode, Opened};

pub(super) const PASSING: [i32; 4] = [libc::EMFILE, libc::ENFILE, libc::ENOMEM, libc::ENOLCK];

pub(super) fn number_of(code: i32) -> i32 {
    code
}

/// To read what may be a planted symbolic link, or a FIFO. The first is not followed, and the second does not block. The
/// standard library closes descriptors on exec.
pub(crate) fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    options
}

pub(crate) fn open(path: &Path) -> Result<Opened> {
    let file = options().write(true).open(path)?;
    let data = file.metadata()?;
    if data.is_file() { Ok((Arc::new(file), identity(&data))) } else { Err(Error::other("it is no regular file")) }
}

/// Whether the process may open a file. The kernel, or the C library, asks for the effective user.
pub(crate) fn may_open(path: &Path) -> bool {
    let path = CString::new(path.as_os_str().as_bytes());
    // SAFETY: a C string.
    path.is_ok_and(|path| unsafe { libc::faccessat(libc::AT_FDCWD, path.as_ptr(), libc::R_OK | libc::W_OK, libc::AT_EACCESS) } == 0)
}

/// Creates a file that is not there: those who may write to the folder may write to it.
pub(crate) fn create(path: &Path) -> Result<Opened> {
    let folder = metadata(path.parent().unwrap_or(path))?.permissions().mode();
    let mode = 0o600 | (folder & 0o666);
    let file = options().write(true).create_new(true).mode(mode).open(path)?;
    let data = file.metadata()?;
    if data.permissions().mode() & 0o777 != mode {
        // The umask has taken some away.
        file.set_permissions(PermissionsExt::from_mode(mode))?;
    }
    Ok((Arc::new(file), identity(&data)))
}

pub(crate) fn read_at(file: &File, bytes: &mut [u8]) -> Result<usize> {
    file.read_at(bytes, 0)
}

pub(crate) fn write_at(file: &File, bytes: &[u8]) -> Result<usize> {
    file.write_at(bytes, 0)
}

fn flock(file: &File, mode: Mode, flags: c_int) -> Result<()> {
    let operation = if mode == Mode::Exclusive { libc::LOCK_EX } else { libc::LOCK_SH };
    // SAFETY: the descriptor is open during the call, which touches no memory.
    if unsafe { libc::flock(file.as_raw_fd(), operation | flags) } == 0 { Ok(()) } else { Err(Error::last_os_error()) }
}

/// Locks a file; false if another descriptor has it.
pub(crate) fn try_lock(file: &File, mode: Mode) -> Result<bool> {
    loop {
        match flock(file, mode, libc::LOCK_NB) {
            Ok(()) => return Ok(true),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Waits until it has locked a file. Fails with `Interrupted` after a signal.
pub(crate) fn wait_for_lock(file: &File, mode: Mode) -> Result<()> {
    flock(file, mode, 0)
}

/// Makes a shared lock of an exclusive one. False: another one had it between, and this one has nothing.
pub(crate) fn downgrade(file: &File) -> Result<bool> {
    try_lock(file, Mode::Shared)
}

pub(crate) fn unlock(file: &File) {
    // SAFETY: as in `flock`. It cannot fail for a descriptor that is open.
    unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_UN) };
}

/// A thread that waits for locks, and can be interrupted: by a signal with an empty handler and without `SA_RESTART`.
///
/// A signal that comes just before the call is lost: so it is sent again until the thread answers.
#[derive(Clone, Debug)]
pub(crate) struct Sleeper(
    /// Its `pthread_t`, which is a pointer in some C libraries.
    usize,
);

impl Sleeper {
    /// The calling thread, which takes the signal from now on.
    pub(crate) fn current() -> Self {
        if let Some(signal) = signal() {
            let mut signals = MaybeUninit::<libc::sigset_t>::uninit();
            // SAFETY: a live local, which the first call fills.
            unsafe {
                libc::sigemptyset(signals.as_mut_ptr());
                libc::sigaddset(signals.as_mut_ptr(), signal);
                libc::pthread_sigmask(libc::SIG_UNBLOCK, signals.as_ptr(), null_mut());
            }
        }
        // SAFETY: it has no requirements.
        Self(unsafe { libc::pthread_self() } as usize)
    }

    /// Interrupts its wait, if it waits by now. The caller knows that the thread has not ended.
    pub(crate) fn interrupt(&self) {
        // Without the handler the signal would end the process.
        if let Some(signal) = signal().filter(|&signal| handler_of(signal) == ignore as *const () as usize) {
            // SAFETY: the thread has not ended.
            unsafe { libc::pthread_kill(self.0 as libc::pthread_t, signal) };
        }
    }
}

extern "C" fn ignore(_: c_int) {}

fn handler_of(signal: c_int) -> libc::sighandler_t {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: no action is set, and the out-parameter is a live local, for which zeros are valid.
    unsafe {
        libc::sigaction(signal, null(), action.as_mut_ptr());
        action.assume_init().sa_sigaction
    }
}

/// Returns the signal of this module: one that the process does not use. `None`: it uses all.
fn signal() -> Option<c_int> {
    static SIGNAL: OnceLock<Option<c_int>> = OnceLock::new();
    *SIGNAL.get_or_init(|| candidates().rev().find(|&signal| handler_of(signal) == libc::SIG_DFL && takes(signal)))
}

/// Sets the handler of a signal. An emulator (qemu) says that it has set those that it cannot send, too.
fn takes(signal: c_int) -> bool {
    // SAFETY: zeros are a valid action: no flags, and an empty mask.
    let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    action.sa_sigaction = ignore as *const () as usize;
    action.sa_flags = libc::SA_ONSTACK;
    // SAFETY: the handler does nothing, so it may run at any moment.
    let is_set = unsafe { libc::sigaction(signal, &raw const action, null_mut()) } == 0;
    // SAFETY: as above; this thread has not ended.
    is_set && unsafe { libc::pthread_kill(libc::pthread_self(), signal) } == 0
}

#[cfg(target_os = "linux")]
fn candidates() -> impl DoubleEndedIterator<Item = c_int> {
    libc::SIGRTMIN()..=libc::SIGRTMAX()
}

/// By default, these do nothing.
#[cfg(not(target_os = "linux"))]
fn candidates() -> impl DoubleEndedIterator<Item = c_int> {
    [libc::SIGIO, libc::SIGURG].into_iter()
}

pub(crate) fn most_descriptors() -> usize {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: 0 };
    // SAFETY: an out-parameter that is a live local.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX)
}

fn identity(data: &Metadata) -> Identity {
    (data.dev(), data.ino())
}

pub(crate) fn identity_of(path: &Path) -> Result<Option<Identity>> {
    match inode_at(path) {
        Ok(identity) => Ok(Some(identity)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        // An old kernel, or a filter that does not know the call.
        Err(_) => symlink_metadata(path).map(|data| Some(identity(&data))),
    }
}

#[cfg(not(target_os = "linux"))]
fn inode_at(path: &Path) -> Result<Identity> {
    symlink_metadata(path).map(|data| identity(&data))
}

/// Asks for nothing but the inode: after a look at the times, the next write would have to note new ones.
#[cfg(target_os = "linux")]
fn inode_at(path: &Path) -> Result<Identity> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let (flags, wanted) = (libc::AT_SYMLINK_NOFOLLOW, libc::STATX_INO);
    let mut found = MaybeUninit::<libc::statx>::zeroed();
    // SAFETY: a C string, and an out-parameter that is a live local. The C library may be older than the call.
    let answer =
        unsafe { libc::syscall(libc::SYS_statx, libc::AT_FDCWD, path.as_ptr(), flags, wanted, found.as_mut_ptr()) };
    if answer != 0 {
        return Err(Error::last_os_error());
    }
    // SAFETY: zeros are valid, and so is what the call has written.
    let found = unsafe { found.assume_init() };
    Ok((libc::makedev(found.stx_dev_major, found.stx_dev_minor), found.stx_ino))
}

fn file_system(folder: &Path) -> Result<libc::statfs> {
    let path = CString::new(folder.as_os_str().as_bytes())?;
    let mut found = MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: a C string, and an out-parameter that is a live local.
    if unsafe { libc::statfs(path.as_ptr(), found.as_mut_ptr()) } != 0 {
        return Err(Error::last_os_error());
    }
    // SAFETY: the call has succeeded, so it has filled it.
    Ok(unsafe { found.assume_init() })
}

/// Whether the kernel itself keeps the locks of a folder's drive.
#[cfg(target_os = "linux")]
pub(crate) fn is_local(folder: &Path) -> Result<bool> {
    /// NFS, SMB, SMB 2, CIFS, FUSE, AFS, Ceph, 9P, Coda, Lustre, GPFS, OCFS 2 and GFS 2.
    const REMOTE: [u32; 13] = [
        0x6969,
        0x517b,
        0xfe53_4d42,
        0xff53_4d42,
        0x6573_5546,
        0x5346_414f,
        0x00c3_6400,
        0x0102_1997,
        0x7375_7245,
        0x0bd0_0bd0,
        0x4750_4653,
        0x7461_636f,
        0x0116_1970,
    ];
    Ok(!REMOTE.contains(&(file_system(folder)?.f_type as u32)))
}

/// Whether a folder is on a drive of this machine.
#[cfg(not(target_os = "linux"))]
pub(crate) fn is_local(folder: &Path) -> Result<bool> {
    let flags = file_system(folder)?.f_flags;
    Ok(u64::from(flags) & libc::MNT_LOCAL as u64 != 0)
}
