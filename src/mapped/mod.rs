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
mod mapping;
mod system;
#[cfg(test)]
mod tests;

use std::fmt::Display;
use std::io::Error;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize};

pub(crate) use mapping::{Client, Mapping};
pub(crate) use system::now;
use waitasync_core::mapped::MOST_PROCESSES;

/// The bytes of a memory page, or a part of one: the table, and the data, begin at a multiple of it.
const PAGE: usize = 4096;

/// What is in a file.
#[derive(Clone, Copy)]
#[repr(u32)]
pub(crate) enum Kind {
    /// A table of named locks.
    Names = 1,
    /// Memory of JavaScript's, and a table of its words.
    Memory = 2,
}

const MAGIC: [u8; 16] = *b"atomics-waitasyn";
/// Raised with each change of the contents of a file, the clients' tables included.
const LAYOUT: u32 = 3;

/// The header's bytes, by which the processes agree.
#[derive(Clone, Copy)]
struct Header {
    kind: Kind,
    table_bytes: u64,
    data_bytes: u64,
    /// The text in which Linux has the identity of a boot.
    boot: [u8; 37],
}

/// Where the header has the number of the data's bytes; the kind and the number of the layout are before that.
const DATA_BYTES_AT: usize = 24;
/// Where the header has the boot.
const BOOT_AT: usize = 40;

impl Header {
    fn to_bytes(self) -> Vec<u8> {
        let (layout, kind) = (LAYOUT.to_ne_bytes(), (self.kind as u32).to_ne_bytes());
        let lengths = [self.data_bytes.to_ne_bytes(), self.table_bytes.to_ne_bytes()];
        [&MAGIC[..], &layout, &kind, lengths.as_flattened(), &self.boot].concat()
    }

    /// Returns where the data begin, and where the file ends; `None` if no memory has room for that.
    fn ends(self) -> Option<(usize, usize)> {
        let pages = |bytes: u64| usize::try_from(bytes).ok()?.checked_next_multiple_of(PAGE);
        let data = TABLE_AT.checked_add(pages(self.table_bytes)?)?;
        let end = data.checked_add(pages(self.data_bytes)?)?;
        (isize::try_from(end).is_ok()).then_some((data, end))
    }
}

/// A process's place in a file.
#[repr(C, align(64))]
struct Slot {
    /// The link of the kernel's robust list, for the process of the slot alone.
    link: AtomicUsize,
    /// The thread id of the watcher, in its own namespace; the kernel adds `FUTEX_OWNER_DIED`. 0: nobody watches.
    alive: AtomicU32,
    /// Grows at each ring.
    doorbell: AtomicU32,
    /// Twice the slot's latest generation, and one more while a process has it.
    state: AtomicU32,
    pid: AtomicU32,
    /// The inode of the process's PID namespace, in which `pid` has a meaning.
    namespace: AtomicU64,
}

impl Slot {
    /// The distance between a slot's link and its word `alive`, which the kernel wants to know.
    const ALIVE_AFTER_LINK: usize = std::mem::offset_of!(Self, alive) - std::mem::offset_of!(Self, link);
}

const SLOTS_AT: usize = PAGE;
const TABLE_AT: usize = SLOTS_AT + MOST_PROCESSES * size_of::<Slot>();

const _: () = assert!(size_of::<Slot>() == 64 && TABLE_AT.is_multiple_of(PAGE));

/// An error whose text begins with a code that `lib/processes/engines/native.js` knows.
fn refused(code: &str, what: impl Display) -> Error {
    Error::other(format!("ERR_SHARED_MEMORY_{code} {what}"))
}

/// This system, file system, processor or Node cannot do it: what is missing.
pub(crate) fn unavailable(what: impl Display) -> Error {
    refused("UNAVAILABLE", what)
}
