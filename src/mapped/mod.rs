//! Memory that several processes share: files that each of them maps once, and who has them. Linux on 64-bit processors only.
//!
//! # The file
//! `header | slots of processes | table | data`. It is made complete under a temporary name, with its space allocated, and then
//! linked to its path. One of an earlier boot is replaced.
//!
//! # Deaths
//! A process has a slot, and for life the lock of a byte that belongs to it (a lock of the open file description, which no other
//! code of the process can release by accident). So **the byte tells the truth about a death**: the kernel releases it
//! once nothing of the process writes to memory any more. The alarm comes earlier: the slot's word `alive` is in the
//! kernel's robust list of the watching thread. Whoever is alarmed looks at the byte until it is free, locks it, sweeps, and
//! frees the slot.
//!
//! # Invariants
//! 1. A mapping is never unmapped: buffers of JavaScript's, and other threads, lead there.
//! 2. A slot is used again only after it was swept; its generation distinguishes its processes.
//! 3. Who sweeps has the byte of the dead process, and the lock `sweeping` of its own process: so one thread of all sweeps a slot
//!    at a time. If it dies in the midst, another one sweeps again.
//! 4. What is in the file is input: other processes of the same user wrote it.

mod file;
mod layout;
mod mapping;
mod open_error;
mod system;
#[cfg(test)]
mod tests;
mod watcher;

pub(crate) use layout::Kind;
pub(crate) use mapping::{Client, Mapping};
pub(crate) use open_error::OpenError;
pub(crate) use system::now;
pub(crate) use watcher::start as watch;
