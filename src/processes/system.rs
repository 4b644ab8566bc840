//! What the operating system has for files: locks that belong to a descriptor, identities, and kinds of drives.
//!
//! A thread that waits for a lock can be interrupted by its [`Sleeper`]: on unix by a signal with an empty handler and
//! without `SA_RESTART`. A signal that comes just before the call is lost: so it is sent again until the thread answers.

use std::fs::File;
use std::io::{Error, Result};
use std::path::Path;

/// The mode of a lock.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Mode {
    Exclusive,
    Shared,
}

pub(super) use platform::{
    Sleeper, create, downgrade, is_local, most_descriptors, open, try_lock, unlock, wait_for_lock,
};

/// A file's identity: the numbers of its device and of the file there.
pub(super) type Identity = (u64, u64);

/// A file that was opened, and its identity.
pub(super) type Opened = (File, Identity);

/// Whether the path leads to the file with this identity.
pub(super) fn leads_to(path: &Path, identity: Identity) -> Result<bool> {
    Ok(platform::identity_of(path)? == Some(identity))
}

/// Whether the system may have what is missing in a moment: descriptors, or memory.
pub(super) fn is_passing(error: &Error) -> bool {
    platform::PASSING.iter().any(|&code| error.raw_os_error() == Some(code))
}

#[cfg(unix)]
mod platform {
    use std::ffi::c_int;
    use std::fs::{File, Metadata, OpenOptions, metadata, symlink_metadata};
    use std::io::{Error, ErrorKind, Result};
    use std::mem::MaybeUninit;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
    use std::path::Path;
    use std::ptr::{null, null_mut};
    use std::sync::OnceLock;

    use super::{Identity, Mode, Opened};

    pub(super) const PASSING: [i32; 4] = [libc::EMFILE, libc::ENFILE, libc::ENOMEM, libc::ENOLCK];

    fn options() -> OpenOptions {
        let mut options = OpenOptions::new();
        // A planted symbolic link is not followed. The standard library closes descriptors on exec.
        options.read(true).write(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
        options
    }

    /// Opens a file that is there.
    pub(crate) fn open(path: &Path) -> Result<Opened> {
        let file = options().open(path)?;
        let data = file.metadata()?;
        if data.is_file() { Ok((file, identity(&data))) } else { Err(Error::other("it is no regular file")) }
    }

    /// Creates a file that is not there: those who may write to the folder may write to it.
    pub(crate) fn create(path: &Path) -> Result<Opened> {
        let folder = metadata(path.parent().unwrap_or(path))?.permissions().mode();
        let mode = 0o600 | (folder & 0o666);
        let file = options().create_new(true).mode(mode).open(path)?;
        let data = file.metadata()?;
        if data.permissions().mode() & 0o777 != mode {
            // The umask has taken some away.
            file.set_permissions(PermissionsExt::from_mode(mode))?;
        }
        Ok((file, identity(&data)))
    }

    fn flock(file: &File, mode: Mode, flags: c_int) -> Result<()> {
        let operation = if mode == Mode::Exclusive { libc::LOCK_EX } else { libc::LOCK_SH };
        // SAFETY: the descriptor is open during the call, which touches no memory.
        if unsafe { libc::flock(file.as_raw_fd(), operation | flags) } == 0 {
            Ok(())
        } else {
            Err(Error::last_os_error())
        }
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

    /// A thread that waits for locks, as those see it that interrupt it.
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
        *SIGNAL.get_or_init(|| {
            let signal = candidates().rev().find(|&signal| handler_of(signal) == libc::SIG_DFL)?;
            // SAFETY: zeros are a valid action: no flags, and an empty mask.
            let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
            action.sa_sigaction = ignore as *const () as usize;
            action.sa_flags = libc::SA_ONSTACK;
            // SAFETY: the handler does nothing, so it may run at any moment.
            (unsafe { libc::sigaction(signal, &raw const action, null_mut()) } == 0).then_some(signal)
        })
    }

    #[cfg(target_os = "linux")]
    fn candidates() -> std::ops::RangeInclusive<c_int> {
        libc::SIGRTMIN()..=libc::SIGRTMAX()
    }

    /// By default, this one does nothing.
    #[cfg(not(target_os = "linux"))]
    fn candidates() -> std::ops::RangeInclusive<c_int> {
        libc::SIGURG..=libc::SIGURG
    }

    /// Returns how many descriptors the process may have.
    pub(crate) fn most_descriptors() -> usize {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: an out-parameter that is a live local.
        let is_known = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } == 0;
        if is_known { usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX) } else { usize::MAX }
    }

    fn identity(data: &Metadata) -> Identity {
        (data.dev(), data.ino())
    }

    /// Returns the identity of the file at a path.
    pub(super) fn identity_of(path: &Path) -> Result<Option<Identity>> {
        match symlink_metadata(path) {
            Ok(data) => Ok(Some(identity(&data))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn file_system(folder: &Path) -> Result<libc::statfs> {
        use std::ffi::CString;
        use std::os::unix::ffi::OsStrExt;
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
}

#[cfg(windows)]
mod platform {
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

    fn options() -> OpenOptions {
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(OPEN_REPARSE_POINT);
        options
    }

    /// Opens a file that is there.
    pub(crate) fn open(path: &Path) -> Result<Opened> {
        let file = options().open(path)?;
        if !file.metadata()?.is_file() {
            return Err(Error::other("it is no regular file"));
        }
        let identity = identity(&file)?;
        Ok((file, identity))
    }

    /// Creates a file that is not there. It inherits the rights of the folder.
    pub(crate) fn create(path: &Path) -> Result<Opened> {
        let file = options().create_new(true).open(path)?;
        let identity = identity(&file)?;
        Ok((file, identity))
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

    /// A thread that waits for locks, as those see it that interrupt it.
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
    pub(super) fn identity_of(path: &Path) -> Result<Option<Identity>> {
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
}
