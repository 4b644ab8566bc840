//! Which memories, of which only the addresses are known, have been freed.
//!
//! The system says whether anything is mapped at an address. And memory that the allocator gives has been free. Both
//! only prove that memory is gone; that it still exists cannot be found out.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::iter::successors;
use std::ops::Range;

/// The allocator is first asked for pieces of this length, or of the length of the longest memory; then of half the
/// length, and so on below that of the shortest memory: a free piece is found alone, and as part of a larger one.
/// (Longer ones, from 128 KiB on, would change when glibc maps memory.)
const LONG: usize = 64 << 10;
/// Down to this part of the shortest memory: something else may have a part of it, such as the search itself.
const PART: usize = 8;
/// Memory that is longer is mapped by itself.
const LONGEST: usize = 64 << 20;
/// The next length's turn comes when so many pieces in a row, or so many bytes, have overlapped no memory.
const MISSES: usize = 64;
const MISSED: usize = 4 << 20;
/// Of long pieces up to `LONGEST` bytes: a dead thread may have left other free pieces of the same length.
const MISSES_OF_LONG: usize = 4;

/// Returns those of the memories that have certainly been freed. They do not overlap.
pub(crate) fn find_freed(memories: Vec<Range<usize>>) -> Vec<Range<usize>> {
    let (mapped, mut freed): (Vec<_>, _) = memories.into_iter().partition(|memory| is_mapped(memory.start));
    let mut mapped: BTreeMap<_, _> =
        mapped.into_iter().map(|memory| (memory.start, memory)).filter(|(_, memory)| memory.len() <= LONGEST).collect();
    let lengths = || mapped.values().map(Range::len);
    let (Some(shortest), Some(longest)) = (lengths().min(), lengths().max()) else { return freed };
    let mut pieces = Vec::new();
    for length in lengths_from(longest.max(LONG), shortest) {
        let mut misses = 0;
        while misses < misses_of(length) && !mapped.is_empty() {
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
    }
    freed
}

/// Lists the lengths of pieces to ask the allocator for. None is much shorter than the shortest memory.
fn lengths_from(longest: usize, shortest: usize) -> impl Iterator<Item = usize> {
    // The shortest memory may be longer than half of a length: its own is not left out.
    let shorter = move |&length: &usize| Some(if length > shortest { shortest.max(length / 2) } else { length / 2 });
    successors(Some(longest), shorter).take_while(move |&length| length >= (shortest / PART).max(1))
}

/// Returns how many such pieces in a row may overlap no memory.
fn misses_of(length: usize) -> usize {
    (MISSED / length).max(MISSES_OF_LONG.min(LONGEST / length)).min(MISSES)
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

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    use super::*;

    fn is_freed(memory: &Range<usize>) -> bool {
        !find_freed(vec![memory.clone()]).is_empty()
    }

    fn address(piece: &[u8]) -> usize {
        piece.as_ptr().addr()
    }

    /// Makes so many free pieces of that length: each between two that are returned, so it is free by itself.
    fn free_separately(count: usize, length: usize) -> (Vec<Range<usize>>, Vec<Vec<u8>>) {
        // A piece begins at most so far behind the end of its neighbour.
        const DISTANCE: usize = 64;
        let (mut separate, mut kept) = (Vec::new(), Vec::new());
        while separate.len() < count {
            let [before, piece, after] = [(); 3].map(|()| black_box(Vec::<u8>::with_capacity(length)));
            let is_next = |one: &[u8], other: &[u8]| {
                (length..length + DISTANCE).contains(&address(other).wrapping_sub(address(one)))
            };
            let list = if is_next(&before, &piece) && is_next(&piece, &after) { &mut separate } else { &mut kept };
            list.push(piece);
            kept.extend([before, after]);
        }
        (separate.iter().map(|piece| address(piece)..address(piece) + length).collect(), kept)
    }

    #[test]
    #[cfg(target_pointer_width = "64")]
    fn long_memory_is_found_behind_other_free_pieces_of_its_length() {
        const LENGTH: usize = 4 << 20;
        // From now on glibc does not map pieces of this length by themselves.
        drop(black_box(Vec::<u8>::with_capacity(LENGTH + (1 << 20))));
        let (memories, kept) = free_separately(7, LENGTH);
        assert!(memories.iter().all(|memory| is_mapped(memory.start)));
        assert!(memories.iter().all(is_freed));
        black_box(&kept);
    }

    #[test]
    fn memory_of_which_something_else_has_a_part_is_found() {
        const LENGTH: usize = 4096;
        let (memories, kept) = free_separately(1, LENGTH);
        let mut others = Vec::<Vec<u8>>::new();
        while !others.last().is_some_and(|other| memories[0].contains(&address(other))) {
            others.push(black_box(Vec::with_capacity(LENGTH / 4)));
        }
        assert!(is_freed(&memories[0]));
        black_box((&kept, &others));
    }
}
