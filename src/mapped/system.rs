//! What the kernel has for mapped memory: byte locks, futexes of several processes, robust lists, boots, kinds of drives.

use std::ffi::c_long;
use std::fs::{File, metadata, read};
use std::io::{Error, ErrorKind, Result};
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use rustix::fs::fstatfs;
use rustix::io::Errno;
use rustix::thread::{futex, gettid};
use rustix::time::{ClockId, clock_gettime};

use super::{Slot, unavailable};

/// The bytes whose locks mean something: far behind the end of each file.
const BYTES_AT: i64 = 1 << 60;

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

/// The file systems on which pages that are mapped and allocated have their space: their numbers, as `statfs` tells them.
const DRIVES: [(u32, &str); 4] =
    [(0x0102_1994, "tmpfs"), (0xef53, "ext4"), (0x5846_5342, "xfs"), (0x9123_683e, "btrfs")];

/// Fails unless mapped memory is sound on the file's drive.
pub(super) fn check_drive(file: &File) -> Result<()> {
    let number = fstatfs(file)?.f_type as u32;
    if DRIVES.iter().any(|&(known, _)| known == number) { Ok(()) } else { Err(unknown_drive(Some(number))) }
}

/// Says that a folder's file system is none of [`DRIVES`].
pub(super) fn unknown_drive(number: Option<u32>) -> Error {
    let number = number.map(|number| format!(" (0x{number:x})")).unwrap_or_default();
    let known = DRIVES.map(|(_, name)| name).join(", ");
    unavailable(format!("its folder is on a file system{number} that is none of {known}"))
}

pub(super) fn boot() -> Result<[u8; 37]> {
    const PATH: &str = "/proc/sys/kernel/random/boot_id";
    let unreadable = || unavailable(format!("{PATH} cannot be read"));
    match read(PATH) {
        Ok(text) => text.try_into().map_err(|_| unreadable()),
        Err(error) if [ErrorKind::NotFound, ErrorKind::PermissionDenied].contains(&error.kind()) => Err(unreadable()),
        // As without descriptors, which says nothing about the system.
        Err(error) => Err(error),
    }
}

/// Returns the number of this process's PID namespace; 0 if it cannot be told.
pub(super) fn namespace() -> u64 {
    static NAMESPACE: OnceLock<u64> = OnceLock::new();
    *NAMESPACE.get_or_init(|| metadata("/proc/self/ns/pid").map_or(0, |data| data.ino()))
}

/// Of a futex that is in a robust list: somebody sleeps there; its thread has ended.
pub(super) use futex::{OWNER_DIED, WAITERS};

/// Wakes all that sleep at a word, in whichever process.
pub(super) fn wake(word: &AtomicU32) {
    let _ = futex::wake(word, futex::Flags::empty(), i32::MAX.cast_unsigned());
}

/// How many words a thread can sleep at together.
pub(super) const MOST_WORDS: usize = 128;

/// Sleeps until a word is woken or changed: for some time, at most, and at [`MOST_WORDS`] at most. A signal ends it, too.
/// Returns false if the kernel cannot do it.
pub(super) fn sleep_at(words: &[(&AtomicU32, u32)], time: Option<Duration>) -> bool {
    let waiter = |&(word, value): &(&AtomicU32, u32)| {
        let mut waiter = futex::Wait::new();
        waiter.val = value.into();
        waiter.uaddr = futex::WaitPtr::new(word.as_ptr().cast());
        waiter.flags = futex::WaitFlags::SIZE_U32;
        waiter
    };
    let waiters: Vec<_> = words.iter().take(MOST_WORDS).map(waiter).collect();
    let until = time.and_then(|time| (Duration::from_micros(now()) + time).try_into().ok());
    let slept = futex::waitv(&waiters, futex::WaitvFlags::empty(), until.as_ref(), ClockId::Monotonic);
    !matches!(slept, Err(Errno::NOSYS | Errno::PERM))
}

/// Sleeps at one word, as `sleep_at`.
pub(super) fn sleep_at_one(word: &AtomicU32, value: u32, time: Duration) {
    let _ = futex::wait(word, futex::Flags::empty(), value, time.try_into().ok().as_ref());
}

/// What the kernel reads when the thread ends.
#[repr(C)]
struct RobustList {
    /// The first link, or this itself. A link has the address of the next one.
    first: AtomicUsize,
    alive_after_link: c_long,
    /// No link.
    pending: usize,
}

/// The thread that sleeps until another process rings, or dies.
#[derive(Clone, Copy)]
pub(crate) struct Watcher {
    pub(super) thread_id: u32,
    robust_list: &'static RobustList,
}

impl Watcher {
    /// Makes it of the calling thread, which has no other robust list.
    pub(super) fn of_this_thread() -> Result<Self> {
        let robust_list: &RobustList = Box::leak(Box::new(RobustList {
            first: 0.into(),
            alive_after_link: Slot::ALIVE_AFTER_LINK.cast_signed() as c_long,
            pending: 0,
        }));
        let list = std::ptr::from_ref(robust_list);
        robust_list.first.store(list as usize, Ordering::Release);
        // SAFETY: the list lives for ever.
        match unsafe { libc::syscall(libc::SYS_set_robust_list, list, size_of::<RobustList>()) } {
            0 => Ok(Self { thread_id: gettid().as_raw_nonzero().get().cast_unsigned(), robust_list }),
            _ => Err(Error::last_os_error()),
        }
    }

    /// Adds a slot, whose memory is there for ever. One thread at a time.
    pub(super) fn add(&self, slot: &'static Slot) {
        let first = &self.robust_list.first;
        slot.link.store(first.load(Ordering::Relaxed), Ordering::Relaxed);
        first.store(slot.link.as_ptr() as usize, Ordering::Release);
    }
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
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec.cast_unsigned() * 1_000_000 + time.tv_nsec.cast_unsigned() / 1_000
}
