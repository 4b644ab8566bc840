//! What the operating system has for files: locks that belong to a descriptor, identities, and kinds of drives.

use std::fs::File;
use std::io::{Error, Result};
use std::path::Path;

/// The mode of a lock.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Mode {
    Exclusive,
    Shared,
}

/// Whether a call waits until it can have the lock.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Waiting {
    Yes,
    No,
}

pub(super) use platform::{create, is_local, lock, open, unlock};

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
    use std::fs::{File, Metadata, OpenOptions, metadata, symlink_metadata};
    use std::io::{Error, ErrorKind, Result};
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
    use std::path::Path;

    use super::{Identity, Mode, Opened, Waiting};

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

    /// Locks a file; false if another descriptor has it.
    pub(crate) fn lock(file: &File, mode: Mode, waiting: Waiting) -> Result<bool> {
        let operation = match mode {
            Mode::Exclusive => libc::LOCK_EX,
            Mode::Shared => libc::LOCK_SH,
        } | if waiting == Waiting::No { libc::LOCK_NB } else { 0 };
        loop {
            // SAFETY: the descriptor is open during the call, which touches no memory.
            if unsafe { libc::flock(file.as_raw_fd(), operation) } == 0 {
                return Ok(true);
            }
            let error = Error::last_os_error();
            match error.kind() {
                ErrorKind::WouldBlock => return Ok(false),
                ErrorKind::Interrupted => {}
                _ => return Err(error),
            }
        }
    }

    pub(crate) fn unlock(file: &File) {
        // SAFETY: as in `lock`. It cannot fail for a descriptor that is open.
        unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_UN) };
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
        let mut found = std::mem::MaybeUninit::<libc::statfs>::uninit();
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
    use std::os::windows::io::AsRawHandle;
    use std::path::{Component, Path, Prefix};

    use super::{Identity, Mode, Opened, Waiting};

    type Handle = *mut c_void;

    const LOCK_VIOLATION: i32 = 33;
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

    /// Locks a file; false if another handle has it.
    pub(crate) fn lock(file: &File, mode: Mode, waiting: Waiting) -> Result<bool> {
        let flags = if mode == Mode::Exclusive { EXCLUSIVE } else { 0 };
        let flags = flags | if waiting == Waiting::No { FAIL_IMMEDIATELY } else { 0 };
        let mut at = far();
        // SAFETY: the handle is open during the call, and was not opened for overlapped calls: so this one is over when
        // it returns, and uses `at` no more.
        if unsafe { LockFileEx(file.as_raw_handle(), flags, 0, 1, 0, &raw mut at) } != 0 {
            return Ok(true);
        }
        let error = Error::last_os_error();
        if error.raw_os_error() == Some(LOCK_VIOLATION) { Ok(false) } else { Err(error) }
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
