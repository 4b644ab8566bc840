//! The processor that a thread runs on, and whether there are others.

#![cfg_attr(all(linux, not(feature = "model")), allow(unsafe_code, reason = "sched_getcpu(3) and sysconf(3)"))]

/// The number of the processor that the calling thread runs on now; `None` where the system does not say.
#[cfg(all(linux, not(feature = "model")))]
pub(crate) fn current() -> Option<u32> {
    // SAFETY: no arguments; gives a number, or -1.
    u32::try_from(unsafe { libc::sched_getcpu() }).ok()
}

#[cfg(not(all(linux, not(feature = "model"))))]
pub(crate) fn current() -> Option<u32> {
    None
}

/// Whether the system has only one processor. (The calling thread may be bound to one, and others not.)
#[cfg(all(linux, not(feature = "model")))]
pub(crate) fn is_single() -> bool {
    // SAFETY: a query by number; gives a number, or -1.
    unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) == 1 }
}

#[cfg(not(all(linux, not(feature = "model"))))]
pub(crate) fn is_single() -> bool {
    std::thread::available_parallelism().is_ok_and(|processors| processors.get() == 1)
}
