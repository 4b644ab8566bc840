//! What several processes share: records in memory that each of them has mapped.
//!
//! A process has a slot in the file. Its number there says nothing once it has ended, so everything that it leaves behind
//! names the slot's generation, too.

pub mod names;
pub mod words;

/// How many processes may have a file at the same time.
pub const MOST_PROCESSES: usize = 64;

const INDEX_BITS: u32 = MOST_PROCESSES.trailing_zeros();

/// The last generation of a slot, after which they start again.
const LAST_GENERATION: u32 = (1 << 22) - 1;

/// A process among those that share a file: the index of its slot, and the slot's generation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ProcessId(u32);

impl ProcessId {
    /// How many bits [`Self::packed`] has at most.
    pub const BITS: u32 = 22 + INDEX_BITS;

    /// Returns the process of a slot. `None` if there is no such slot or generation: these are input.
    pub const fn new(index: usize, generation: u32) -> Option<Self> {
        if index < MOST_PROCESSES && generation > 0 && generation <= LAST_GENERATION {
            Some(Self(generation << INDEX_BITS | index as u32))
        } else {
            None
        }
    }

    /// Returns the process of a number that [`Self::packed`] gave; `None` for all others.
    pub const fn from_packed(packed: u32) -> Option<Self> {
        Self::new(packed as usize % MOST_PROCESSES, packed >> INDEX_BITS)
    }

    /// Returns it as a number, which is not 0.
    pub const fn packed(self) -> u32 {
        self.0
    }

    pub const fn index(self) -> usize {
        self.0 as usize % MOST_PROCESSES
    }

    pub const fn generation(self) -> u32 {
        self.0 >> INDEX_BITS
    }

    pub const fn mask(self) -> u64 {
        1 << self.index()
    }

    pub const fn next_generation(generation: u32) -> u32 {
        if generation >= LAST_GENERATION { 1 } else { generation + 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packed_process_comes_back_and_no_other_number_is_one() {
        for (index, generation) in [(0, 1), (63, 1), (5, LAST_GENERATION)] {
            let process = ProcessId::new(index, generation).expect("there is such a slot");
            assert_eq!(ProcessId::from_packed(process.packed()), Some(process));
            assert_eq!((process.index(), process.generation()), (index, generation));
            assert!(process.packed() < 1 << ProcessId::BITS);
        }
        for number in [0, 63, (LAST_GENERATION + 1) << INDEX_BITS, u32::MAX] {
            assert_eq!(ProcessId::from_packed(number), None, "{number}");
        }
        assert_eq!(ProcessId::next_generation(LAST_GENERATION), 1);
    }
}
