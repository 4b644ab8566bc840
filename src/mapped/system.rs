//! What the kernel has for mapped memory: byte locks, futexes of several processes, robust lists, boots, kinds of drives.

use std::ffi::{CString, c_long, c_void};
use std::fs::{File, metadata, read_to_string};
use std::io::{Error, ErrorKind, Result};
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::ptr::{NonNull, null_mut};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::layout::Slot;
use super::open_error::OpenError;

/// The bytes whose locks mean something: far behind the end of each file.
const BYTES_AT: i64 = 1 << 60;

pub(super) fn user() -> u32 {
    // SAFETY: it cannot fail.
    unsafe { libc::geteuid() }
}

// ——— Byte locks ———

fn byte_lock(file: &File, index: usize, kind: i32, command: i32) -> Result<libc::flock> {
    // SAFETY: zeros are valid in each field.
    let mut lock: libc::flock = unsafe { MaybeUninit::zeroed().assume_init() };
    lock.l_type = kind as _;
    lock.l_whence = libc::SEEK_SET as _;
    lock.l_start = BYTES_AT + index.cast_signed() as i64;
    lock.l_len = 1;
    // SAFETY: the descriptor is open, and the lock lives through the call.
    match unsafe { libc::fcntl(file.as_raw_fd(), command, &raw mut lock) } {
        -1 => Err(Error::last_os_error()),
        _ => Ok(lock),
    }
}

/// Locks a byte; false if another process has it.
pub(super) fn try_lock_byte(file: &File, index: usize) -> Result<bool> {
    match byte_lock(file, index, libc::F_WRLCK, libc::F_OFD_SETLK) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::WouldBlock || error.raw_os_error() == Some(libc::EACCES) => Ok(false),
        Err(error) => Err(error),
    }
}

pub(super) fn unlock_byte(file: &File, index: usize) {
    let _ = byte_lock(file, index, libc::F_UNLCK, libc::F_OFD_SETLK);
}

/// Whether no other process has the byte locked.
pub(super) fn is_byte_free(file: &File, index: usize) -> Result<bool> {
    byte_lock(file, index, libc::F_WRLCK, libc::F_OFD_GETLK).map(|lock| i32::from(lock.l_type) == libc::F_UNLCK)
}

/// Locks the whole file until its descriptor is closed.
pub(super) fn lock_whole(file: &File) -> Result<()> {
    // SAFETY: the descriptor is open.
    if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX) } == 0 { Ok(()) } else { Err(Error::last_os_error()) }
}

// ——— Drives and boots ———

/// The file systems on which pages that are mapped and allocated have their space: their numbers, as `statfs` tells them.
const DRIVES: [(i64, &str); 4] =
    [(0x0102_1994, "tmpfs"), (0xef53, "ext4"), (0x5846_5342, "xfs"), (0x9123_683e, "btrfs")];

/// Fails unless mapped memory is sound on the file's drive.
pub(super) fn check_drive(file: &File) -> std::result::Result<(), OpenError> {
    let mut data = MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: the descriptor is open, and the call fills the local.
    let number = unsafe {
        if libc::fstatfs(file.as_raw_fd(), data.as_mut_ptr()) != 0 {
            return Err(Error::last_os_error().into());
        }
        #[allow(clippy::cast_lossless, reason = "its type differs by platform")]
        {
            data.assume_init().f_type as u32 as i64
        }
    };
    if DRIVES.iter().any(|&(known, _)| known == number) {
        return Ok(());
    }
    Err(unknown_drive(Some(number)))
}

/// Says that a folder's file system is none of [`DRIVES`].
pub(super) fn unknown_drive(number: Option<i64>) -> OpenError {
    let number = number.map(|number| format!(" (0x{number:x})")).unwrap_or_default();
    let known = DRIVES.map(|(_, name)| name).join(", ");
    OpenError::Unavailable(format!("its folder is on a file system{number} that is none of {known}"))
}

/// Gives a file that was made without a name its path.
pub(super) fn link(file: &File, path: &Path) -> Result<()> {
    let [from, to] = [format!("/proc/self/fd/{}", file.as_raw_fd()).as_bytes(), path.as_os_str().as_bytes()]
        .map(|path| CString::new(path).map_err(|_| Error::from(ErrorKind::InvalidInput)));
    let (from, to) = (from?, to?);
    // SAFETY: two C strings.
    let result =
        unsafe { libc::linkat(libc::AT_FDCWD, from.as_ptr(), libc::AT_FDCWD, to.as_ptr(), libc::AT_SYMLINK_FOLLOW) };
    if result == 0 { Ok(()) } else { Err(Error::last_os_error()) }
}

/// Returns the identity of this boot.
pub(super) fn boot() -> std::result::Result<[u8; 16], OpenError> {
    let path = "/proc/sys/kernel/random/boot_id";
    // Another error, as without descriptors, says nothing about the system.
    let text = match read_to_string(path) {
        Err(error) if [ErrorKind::NotFound, ErrorKind::PermissionDenied].contains(&error.kind()) => String::new(),
        read => read?,
    };
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    match u128::from_str_radix(&digits, 16) {
        Ok(number) if digits.len() == 32 => Ok(number.to_be_bytes()),
        _ => Err(OpenError::Unavailable(format!("{path} cannot be read"))),
    }
}

/// Returns the number of this process's PID namespace; 0 if it cannot be told.
pub(super) fn namespace() -> u64 {
    static NAMESPACE: OnceLock<u64> = OnceLock::new();
    *NAMESPACE.get_or_init(|| metadata("/proc/self/ns/pid").map_or(0, |data| data.ino()))
}

// ——— Memory ———

/// Maps a whole file.
pub(super) fn map(file: &File, bytes: usize) -> Result<NonNull<u8>> {
    // SAFETY: a new mapping, which nobody else knows.
    let start = unsafe {
        libc::mmap(null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, file.as_raw_fd(), 0)
    };
    if start == libc::MAP_FAILED {
        return Err(Error::last_os_error());
    }
    NonNull::new(start.cast()).ok_or_else(|| ErrorKind::OutOfMemory.into())
}

/// Undoes [`map`].
///
/// # Safety
/// Nobody uses the memory any more.
pub(super) unsafe fn unmap(start: NonNull<u8>, bytes: usize) {
    // SAFETY: as the caller promises.
    unsafe { libc::munmap(start.as_ptr().cast(), bytes) };
}

// ——— Futexes ———

/// Of a futex that is in a robust list: somebody sleeps there; its thread has ended.
pub(super) const WAITERS: u32 = libc::FUTEX_WAITERS;
pub(super) const OWNER_DIED: u32 = libc::FUTEX_OWNER_DIED;

/// Wakes all that sleep at a word, in whichever process.
pub(super) fn wake(word: &AtomicU32) {
    // SAFETY: the word lives through the call.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}

/// How many words a thread can sleep at together.
pub(super) const MOST_WORDS: usize = 128;

/// As of every processor.
const SYS_FUTEX_WAITV: c_long = 449;

#[repr(C)]
struct Waiter {
    value: u64,
    address: u64,
    flags: u32,
    reserved: u32,
}

/// A futex of 32 bits, which several processes have.
const OF_32_BITS: u32 = 2;

/// Sleeps until a word is woken or changed: for some time, at most, and at [`MOST_WORDS`] at most. A signal ends it, too.
/// Returns false if the kernel cannot do it.
pub(super) fn sleep_at(words: &[(&AtomicU32, u32)], time: Option<Duration>) -> bool {
    let waiters: Vec<_> = words
        .iter()
        .map(|(word, value)| Waiter {
            value: u64::from(*value),
            address: word.as_ptr() as u64,
            flags: OF_32_BITS,
            reserved: 0,
        })
        .collect();
    let until = time.map(|time| {
        let until = Duration::from_micros(now()) + time;
        // As the kernel has it, on all processors.
        [until.as_secs(), until.subsec_nanos().into()]
    });
    let until = until.as_ref().map_or(std::ptr::null(), |until| until.as_ptr());
    // SAFETY: the words and locals live through the call.
    let result =
        unsafe { libc::syscall(SYS_FUTEX_WAITV, waiters.as_ptr(), waiters.len(), 0, until, libc::CLOCK_MONOTONIC) };
    !(result == -1
        && Error::last_os_error().raw_os_error().is_some_and(|number| [libc::ENOSYS, libc::EPERM].contains(&number)))
}

/// Sleeps at one word, as `sleep_at`.
pub(super) fn sleep_at_one(word: &AtomicU32, value: u32, time: Duration) {
    let time = libc::timespec { tv_sec: time.as_secs().cast_signed(), tv_nsec: time.subsec_nanos().into() };
    // SAFETY: the word and the local live through the call.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, value, &raw const time) };
}

// ——— The robust list of the watching thread ———

/// What the kernel reads when the thread ends.
#[repr(C)]
pub(super) struct RobustList {
    /// The first link, or this itself. A link has the address of the next one.
    first: std::sync::atomic::AtomicUsize,
    alive_after_link: c_long,
    pending: *const c_void,
}

/// Fails where the kernel has no robust lists: emulators have none.
pub(super) fn assert_robust_lists() -> std::result::Result<(), OpenError> {
    let (mut list, mut bytes) = (0_usize, 0_usize);
    // SAFETY: the kernel writes two words.
    let result = unsafe { libc::syscall(libc::SYS_get_robust_list, 0, &raw mut list, &raw mut bytes) };
    if result == 0 {
        return Ok(());
    }
    let error = Error::last_os_error();
    Err(OpenError::Unavailable(format!(
        "Memory of several processes needs Linux with robust lists of futexes: {error}"
    )))
}

// SAFETY: the pointer is null, and only the kernel reads it.
unsafe impl Sync for RobustList {}
// SAFETY: as above.
unsafe impl Send for RobustList {}

impl RobustList {
    /// Makes the only list of the calling thread; `None` if the kernel refuses.
    pub(super) fn of_this_thread() -> Option<&'static Self> {
        let list = Box::leak(Box::new(Self {
            first: 0.into(),
            alive_after_link: Slot::ALIVE_AFTER_LINK.cast_signed() as c_long,
            pending: std::ptr::null(),
        }));
        let list: &Self = list;
        list.first.store(std::ptr::from_ref(list) as usize, Ordering::Release);
        // SAFETY: the list lives for ever.
        let result = unsafe { libc::syscall(libc::SYS_set_robust_list, std::ptr::from_ref(list), size_of::<Self>()) };
        (result == 0).then_some(list)
    }

    /// Adds a slot, whose memory is there for ever. One thread at a time.
    pub(super) fn add(&self, slot: &'static Slot) {
        slot.link.store(self.first.load(Ordering::Relaxed), Ordering::Relaxed);
        self.first.store(slot.link.as_ptr() as usize, Ordering::Release);
    }
}

/// The thread that sleeps until another process rings, or dies.
#[derive(Clone, Copy)]
pub(super) struct Watcher {
    pub(super) thread_id: u32,
    pub(super) robust_list: &'static RobustList,
}

pub(super) fn thread_id() -> u32 {
    // SAFETY: it cannot fail.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

/// Keeps all signals from the calling thread.
pub(super) fn block_signals() {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the first call fills the local.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), null_mut());
    }
}

/// Returns the microseconds of the clock that all processes have.
pub(crate) fn now() -> u64 {
    let mut time = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: it writes there, and of zeros, too, the struct may be.
    let time = unsafe {
        libc::clock_gettime(libc::CLOCK_MONOTONIC, time.as_mut_ptr());
        time.assume_init()
    };
    time.tv_sec as u64 * 1_000_000 + time.tv_nsec as u64 / 1_000
}
