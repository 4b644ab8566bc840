//! The parts of a file that all kinds have: its header, and the slots of processes.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize};

use waitasync_core::mapped::MOST_PROCESSES;

/// The bytes of a memory page, or a part of one: the table, and the data, begin at a multiple of it.
pub(super) const PAGE: usize = 4096;

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
pub(super) struct Header {
    pub(super) kind: Kind,
    pub(super) table_bytes: u64,
    pub(super) data_bytes: u64,
    /// The text in which Linux has the identity of a boot.
    pub(super) boot: [u8; 37],
}

/// Where the header has the number of the data's bytes; the kind and the number of the layout are before that.
pub(super) const DATA_BYTES_AT: usize = 24;
/// Where the header has the boot.
pub(super) const BOOT_AT: usize = 40;

impl Header {
    pub(super) fn to_bytes(self) -> Vec<u8> {
        let (layout, kind) = (LAYOUT.to_ne_bytes(), (self.kind as u32).to_ne_bytes());
        let lengths = [self.data_bytes.to_ne_bytes(), self.table_bytes.to_ne_bytes()];
        [&MAGIC[..], &layout, &kind, lengths.as_flattened(), &self.boot].concat()
    }

    /// Returns where the data begin, and where the file ends; `None` if no memory has room for that.
    pub(super) fn ends(self) -> Option<(usize, usize)> {
        let pages = |bytes: u64| usize::try_from(bytes).ok()?.checked_next_multiple_of(PAGE);
        let data = TABLE_AT.checked_add(pages(self.table_bytes)?)?;
        let end = data.checked_add(pages(self.data_bytes)?)?;
        (isize::try_from(end).is_ok()).then_some((data, end))
    }
}

/// A process's place in a file.
#[repr(C, align(64))]
pub(super) struct Slot {
    /// The link of the kernel's robust list, for the process of the slot alone.
    pub(super) link: AtomicUsize,
    /// The thread id of the watcher, in its own namespace; the kernel adds `FUTEX_OWNER_DIED`. 0: nobody watches.
    pub(super) alive: AtomicU32,
    /// Grows at each ring.
    pub(super) doorbell: AtomicU32,
    /// Twice the slot's latest generation, and one more while a process has it.
    pub(super) state: AtomicU32,
    pub(super) pid: AtomicU32,
    /// The inode of the process's PID namespace, in which `pid` has a meaning.
    pub(super) namespace: AtomicU64,
}

impl Slot {
    /// The distance between a slot's link and its word `alive`, which the kernel wants to know.
    pub(super) const ALIVE_AFTER_LINK: usize = std::mem::offset_of!(Self, alive) - std::mem::offset_of!(Self, link);
}

pub(super) const SLOTS_AT: usize = PAGE;
pub(super) const TABLE_AT: usize = SLOTS_AT + MOST_PROCESSES * size_of::<Slot>();

const _: () = assert!(size_of::<Slot>() == 64 && TABLE_AT.is_multiple_of(PAGE));
