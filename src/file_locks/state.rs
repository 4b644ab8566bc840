//! The state of a name, as its file has it.
//!
//! | bytes | |
//! |---|---|
//! | 0 | `AWPL`, and the version of this format |
//! | 8 | the token of the last exclusive grant |
//! | 16 | since when that is held, in milliseconds since 1970 |
//! | 24 | 1: held, or its holder died; 0: released in order |
//! | 28 | the length of the description |
//! | 32 | a checksum of all others |
//! | 40 | a description of the holder for people: JSON, which only JavaScript reads |
//!
//! All numbers are little-endian. It is written by one call, so the death of a process leaves all of it or nothing. Only
//! a loss of power can damage it: then the clock gives the next token, and the holder counts as dead.

use std::io::{Error, Result};

const MAGIC: [u8; 4] = *b"AWPL";
const VERSION: u32 = 1;
const HEADER: usize = 40;
/// What JavaScript counts to without a gap.
const LARGEST_TOKEN: u64 = (1 << 53) - 1;
/// As many bytes as a state has at most.
pub(super) const LARGEST: usize = 4096;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct State {
    pub(super) token: u64,
    /// Whether the last exclusive holder has not released it in order.
    pub(super) is_marked: bool,
}

/// Reads a state. Nothing at all is that of a new file. Fails if it is of another version.
pub(super) fn read(bytes: &[u8]) -> Result<State> {
    if bytes.is_empty() {
        return Ok(State::default());
    }
    if bytes.len() >= HEADER && bytes[..4] == MAGIC && u32_at(bytes, 4) != VERSION {
        return Err(Error::other(format!("its state has version {}, which is not known", u32_at(bytes, 4))));
    }
    let damaged = State { token: 0, is_marked: true };
    Ok(whole(bytes).map_or(damaged, |all| State { token: u64_at(all, 8), is_marked: u32_at(all, 24) == 1 }))
}

/// Returns since when a name is held, the mark, and the description. None of a state that is damaged.
pub(super) fn described(bytes: &[u8]) -> Option<(u64, bool, String)> {
    let all = whole(bytes)?;
    let description = String::from_utf8(all[HEADER..].to_vec()).ok()?;
    Some((u64_at(all, 16), u32_at(all, 24) == 1, description))
}

/// Returns the bytes of a state, unless it is damaged. A token that is no number of JavaScript is damage, too.
fn whole(bytes: &[u8]) -> Option<&[u8]> {
    if bytes.len() < HEADER || bytes[..4] != MAGIC || u32_at(bytes, 4) != VERSION {
        return None;
    }
    let all = bytes.get(..HEADER + u32_at(bytes, 28) as usize)?;
    (u64_at(all, 32) == checksum(all) && u64_at(all, 8) < LARGEST_TOKEN).then_some(all)
}

/// Makes the bytes of a marked state. What does not fit of the description is left out.
pub(super) fn marked(token: u64, milliseconds: u64, description: &str) -> Vec<u8> {
    let description = description.as_bytes();
    let description = if description.len() <= LARGEST - HEADER { description } else { b"{}" };
    let mut bytes = Vec::with_capacity(HEADER + description.len());
    bytes.extend(MAGIC);
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend(token.to_le_bytes());
    bytes.extend(milliseconds.to_le_bytes());
    bytes.extend(1_u32.to_le_bytes());
    bytes.extend(u32::try_from(description.len()).expect("it fits").to_le_bytes());
    bytes.extend([0; 8]);
    bytes.extend(description);
    seal(&mut bytes);
    bytes
}

/// Removes the mark.
pub(super) fn unmark(bytes: &mut [u8]) {
    bytes[24] = 0;
    seal(bytes);
}

fn seal(bytes: &mut [u8]) {
    let sum = checksum(bytes);
    bytes[32..HEADER].copy_from_slice(&sum.to_le_bytes());
}

/// FNV-1a of all but the checksum itself.
fn checksum(bytes: &[u8]) -> u64 {
    let others = bytes[..32].iter().chain(&bytes[HEADER..]);
    others.fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::{LARGEST, LARGEST_TOKEN, State, marked, unmark};

    fn read(bytes: &[u8]) -> State {
        super::read(bytes).expect("it is of this version")
    }

    #[test]
    fn a_new_file_has_no_token_and_a_damaged_one_a_dead_holder() {
        assert_eq!(read(&[]), State { token: 0, is_marked: false });
        let mut whole = marked(123, 456, "{}");
        unmark(&mut whole);
        let damaged = State { token: 0, is_marked: true };
        for length in 1..whole.len() {
            assert_eq!(read(&whole[..length]), damaged, "{length} bytes");
        }
        for index in (0..whole.len()).filter(|index| !(4..8).contains(index)) {
            let mut bytes = whole.clone();
            bytes[index] ^= 0x10;
            assert_eq!(read(&bytes), damaged, "byte {index}");
        }
        assert_eq!(read(&[0; LARGEST]), damaged);
    }

    #[test]
    fn a_token_that_javascript_cannot_count_on_is_damage() {
        let token = LARGEST_TOKEN - 1;
        assert_eq!(read(&marked(token, 0, "{}")), State { token, is_marked: true });
        for token in [LARGEST_TOKEN, u64::MAX] {
            assert_eq!(read(&marked(token, 0, "{}")), State { token: 0, is_marked: true });
        }
    }
}
