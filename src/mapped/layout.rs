//! The parts of a file that all kinds have: its header, and the slots of processes.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize};

use waitasync_core::mapped::MOST_PROCESSES;

/// The bytes of a memory page, or a part of one: the table, and the data, begin at a multiple of it.
pub(super) const PAGE: usize = 4096;

/// What is in a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(crate) enum Kind {
    /// A table of named locks.
    Names = 1,
    /// Memory of JavaScript's, and a table of its words.
    Memory = 2,
}

impl Kind {
    pub(super) fn from_number(number: u32) -> Option<Self> {
        [Self::Names, Self::Memory].into_iter().find(|&kind| kind as u32 == number)
    }
}

const MAGIC: [u8; 16] = *b"atomics-waitasyn";
/// Raised with each change of the contents of a file, the clients' tables included.
const LAYOUT: u32 = 2;

/// The header's bytes, by which the processes agree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Header {
    pub(super) kind: Kind,
    pub(super) table_bytes: u64,
    pub(super) data_bytes: u64,
    pub(super) boot: [u8; 16],
}

/// How many bytes of the header are used.
pub(super) const HEADER_BYTES: usize = 56;

impl Header {
    pub(super) fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let parts: [&[u8]; 6] = [
            &MAGIC,
            &LAYOUT.to_ne_bytes(),
            &(self.kind as u32).to_ne_bytes(),
            &self.table_bytes.to_ne_bytes(),
            &self.data_bytes.to_ne_bytes(),
            &self.boot,
        ];
        let mut at = 0;
        for part in parts {
            bytes[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        bytes
    }

    /// Reads a header. `None`: it is none of this layout.
    pub(super) fn from_bytes(bytes: &[u8; HEADER_BYTES]) -> Option<Self> {
        let number = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let kind = Kind::from_number(u32::from_ne_bytes(bytes[20..24].try_into().ok()?))?;
        let header = Self { kind, table_bytes: number(24), data_bytes: number(32), boot: bytes[40..].try_into().ok()? };
        (header.to_bytes() == *bytes).then_some(header)
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
    /// [`Self::used`] of the slot's latest generation, or [`Self::free`]. 0: it was never used.
    pub(super) state: AtomicU32,
    pub(super) pid: AtomicU32,
    /// The inode of the process's PID namespace, in which `pid` has a meaning.
    pub(super) namespace: AtomicU64,
}

impl Slot {
    /// The distance between a slot's link and its word `alive`, which the kernel wants to know.
    pub(super) const ALIVE_AFTER_LINK: usize = std::mem::offset_of!(Self, alive) - std::mem::offset_of!(Self, link);

    pub(super) const fn used(generation: u32) -> u32 {
        2 * generation + 1
    }

    pub(super) const fn free(generation: u32) -> u32 {
        2 * generation
    }
}

pub(super) const SLOTS_AT: usize = PAGE;
pub(super) const TABLE_AT: usize = SLOTS_AT + MOST_PROCESSES * size_of::<Slot>();

const _: () = assert!(size_of::<Slot>() == 64 && TABLE_AT.is_multiple_of(PAGE) && HEADER_BYTES <= PAGE);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_comes_back_and_nothing_else_is_one() {
        let header = Header { kind: Kind::Memory, table_bytes: 5, data_bytes: 7, boot: [3; 16] };
        let bytes = header.to_bytes();
        assert_eq!(Header::from_bytes(&bytes), Some(header));
        // What decides whether it is of this layout; the rest is compared by who opens the file.
        for at in 0..24 {
            let mut other = bytes;
            other[at] ^= 0x40;
            assert_eq!(Header::from_bytes(&other), None, "byte {at}");
        }
        assert_eq!(header.ends(), Some((TABLE_AT + PAGE, TABLE_AT + 2 * PAGE)));
        assert_eq!(Header { data_bytes: u64::MAX, ..header }.ends(), None);
        assert_eq!(Header { table_bytes: u64::MAX / 2, data_bytes: u64::MAX / 2, ..header }.ends(), None);
    }
}
