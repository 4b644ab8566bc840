//! Which memories, of which only the addresses are known, have been freed.
//!
//! The system says whether anything is mapped at an address. And what the allocator gives has been free. Both only prove that memory is
//! gone; that it still exists cannot be found out.

#![cfg_attr(target_os = "linux", allow(unsafe_code, reason = "mincore(2) and sysconf(3)"))]

use std::collections::BTreeMap;
use std::hint::black_box;
use std::ops::Range;

/// The allocator is first asked for pieces of this length, or of the length of the longest memory; then of half the length, and so on down
/// to that of the shortest memory: a free piece is found alone, and as part of a larger one. (Longer ones, from 128 KiB on, would change
/// when glibc maps memory.)
const LONG: usize = 64 << 10;
/// Memory that is longer is mapped by itself.
const LONGEST: usize = 64 << 20;
/// The allocator is asked for the next length when so many pieces in a row, or so many bytes, have overlapped no memory.
const MISSES: usize = 64;
const MISSED: usize = 4 << 20;

/// Those of the memories that have certainly been freed. They do not overlap.
pub(crate) fn find_freed(memories: Vec<Range<usize>>) -> Vec<Range<usize>> {
    let (mapped, mut freed): (Vec<_>, _) = memories.into_iter().partition(|memory| is_mapped(memory.start));
    let mut mapped: BTreeMap<_, _> =
        mapped.into_iter().map(|memory| (memory.start, memory)).filter(|(_, memory)| memory.len() <= LONGEST).collect();
    let lengths = || mapped.values().map(Range::len);
    let (Some(shortest), Some(longest)) = (lengths().min(), lengths().max()) else { return freed };
    let mut pieces = Vec::new();
    let mut length = longest.max(LONG);
    while length >= shortest.max(1) {
        let mut misses = 0;
        while misses < (MISSED / length).clamp(1, MISSES) && !mapped.is_empty() {
            let mut piece = Vec::<u8>::new();
            if piece.try_reserve_exact(length).is_err() {
                break;
            }
            // Otherwise the compiler knows that no address of new memory equals one that it has not given out.
            let start = black_box(piece.as_mut_ptr()).addr();
            misses += 1;
            while let Some((&base, _)) =
                mapped.range(..start + length).next_back().filter(|(_, memory)| memory.end > start)
            {
                freed.extend(mapped.remove(&base));
                misses = 0;
            }
            pieces.push(piece);
        }
        // The shortest memory may be longer than half of this.
        length = if length > shortest { (length / 2).max(shortest) } else { 0 };
    }
    freed
}

/// Whether anything is mapped at the address; true where the system does not say.
#[cfg(target_os = "linux")]
fn is_mapped(address: usize) -> bool {
    let mut resident = 0;
    // SAFETY: the first call has no arguments. The second looks at one page, which need not exist, and writes one byte.
    let status = unsafe {
        let page = usize::try_from(libc::sysconf(libc::_SC_PAGESIZE)).unwrap_or(1 << 16);
        libc::mincore(std::ptr::without_provenance_mut(address & !(page - 1)), 1, &raw mut resident)
    };
    status == 0 || std::io::Error::last_os_error().raw_os_error() != Some(libc::ENOMEM)
}

#[cfg(not(target_os = "linux"))]
fn is_mapped(_: usize) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn range(memory: &[u8]) -> Range<usize> {
        let range = memory.as_ptr_range();
        range.start.addr()..range.end.addr()
    }

    fn is_freed(memory: &Range<usize>) -> bool {
        !find_freed(vec![memory.clone()]).is_empty()
    }

    #[test]
    fn memory_that_exists_is_not_freed() {
        let memories = [1, 64, 4096, 1 << 20, 65 << 20].map(|length| vec![0; length]);
        assert_eq!(find_freed(memories.iter().map(|memory| range(memory)).collect()), []);
        black_box(&memories);
    }

    #[test]
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    fn memory_that_was_freed_is() {
        for length in [4096, 1 << 20, 65 << 20] {
            let memory = vec![0; length];
            let was = range(black_box(&memory));
            drop(memory);
            assert!(is_freed(&was), "{length} bytes");
        }
    }

    #[test]
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    fn of_many_memories_those_that_were_freed_are_found() {
        let (freed, kept): (Vec<_>, Vec<_>) =
            (0..200).map(|_| vec![0; 4096]).enumerate().partition(|(index, _)| index % 2 == 0);
        let were: HashSet<_> = freed.iter().map(|(_, memory)| range(memory)).collect();
        let kept_at = kept.iter().map(|(_, memory)| range(memory));
        let all: Vec<_> = were.iter().cloned().chain(kept_at).collect();
        drop(freed);
        let found = find_freed(all);
        assert!(found.iter().all(|memory| were.contains(memory)));
        // The search needs memory, too.
        assert!(found.len() > 90, "{}", found.len());
        black_box(&kept);
    }
}
