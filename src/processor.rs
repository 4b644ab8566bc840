//! Which processor a thread runs on.

#![cfg_attr(all(target_os = "linux", not(feature = "model")), allow(unsafe_code, reason = "sched_getcpu(3)"))]

/// The number of the processor that the calling thread runs on at this moment; `None` where the system does not say.
#[cfg(all(target_os = "linux", not(feature = "model")))]
pub(crate) fn current() -> Option<u32> {
    // SAFETY: no arguments; gives a number, or -1.
    u32::try_from(unsafe { libc::sched_getcpu() }).ok()
}

#[cfg(not(all(target_os = "linux", not(feature = "model"))))]
pub(crate) fn current() -> Option<u32> {
    None
}
