//! The entry of a name, its words, and their values. How they are taken back: from holders that are dead, or late; and
//! turns from processes that do not use them.

use super::titles::{WRITTEN, phase};
use super::{Names, World, set};
use crate::mapped::{MOST_PROCESSES, ProcessId};
use crate::sync::AtomicU64;
use crate::sync::Ordering::{Release, SeqCst};

/// What stands for a name: its SHA-256. Names of any length are told apart by it.
pub type Key = [u64; 4];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    Exclusive,
    Shared,
    /// Exclusive, until a moment of the system's clock, in milliseconds: then anybody may end it.
    Until(u64),
    /// Shared among those who use the name with so many permits: they hold or await one.
    Permits(u32),
}

/// How many processes can share a lock: those with the first slots.
pub const MOST_SHARERS: usize = 52;
/// The bits of a state that say who shares the lock.
pub(super) const SHARERS: u64 = (1 << MOST_SHARERS) - 1;
/// How many permits the name has, if it has any: then those that share it hold or await one.
pub(super) const PERMITS: u64 = 0x1ff << MOST_SHARERS;
/// One process has the lock alone: its number is in the low bits, and [`LIMITS`] above it.
pub(super) const EXCLUSIVE: u64 = 1 << 63;
/// The last one that had it alone has died, and nobody has had it alone since.
pub(super) const DIED: u64 = 1 << 62;
/// The entry is about to lose its name. It keeps this state until it gets another one.
pub(super) const RETIRED: u64 = 1 << 61;

/// For how long a turn keeps others out. A process that is suspended does not use it.
pub const TURN_MILLISECONDS: u64 = 20;
/// Until when a hold lasts: the low bits of [`Mode::Until`], or 0 if it has no limit.
const LIMITS: u64 = (1 << (61 - ProcessId::BITS)) - 1;
/// The longest limit of a hold. One that is further ahead is damaged.
const LONGEST_HOLD: u64 = 1 << 31;
/// What JavaScript counts to without a gap.
const LARGEST_TOKEN: u64 = (1 << 53) - 1;

/// As many words as the texts have. The first byte of each is its length, also if it has not all of it.
const NAME_WORDS: usize = 8;
const LABEL_WORDS: usize = 4;

/// The lock of a name. All zeros is free.
#[repr(C)]
#[derive(Default)]
pub struct Entry {
    pub(super) state: AtomicU64,
    /// The processes that wait; of these, the ones whose first request is a shared one.
    pub(super) waiting: AtomicU64,
    pub(super) readers: AtomicU64,
    /// Who goes first once the lock is free: a [`Turn`].
    pub(super) turn: AtomicU64,
    /// That of the last exclusive grant.
    pub(super) token: AtomicU64,
    /// Of that grant, for people: since when, in milliseconds since 1970, and the numbers of process and thread.
    since: AtomicU64,
    holder: AtomicU64,
    key: [AtomicU64; 4],
    name: [AtomicU64; NAME_WORDS],
    label: [AtomicU64; LABEL_WORDS],
}

/// Who goes first, and until when: milliseconds of the system's clock in the upper bits.
pub(super) struct Turn;

impl Turn {
    /// Begins a turn. One that was given before, while others took the lock, is not young.
    pub(super) const fn begin(index: usize, now: u64, is_again: bool) -> u64 {
        (now + TURN_MILLISECONDS - is_again as u64) << 8 | (index as u64 + 1)
    }

    /// Whether newcomers may take a free lock: within the same millisecond, since the owner can hardly have woken yet.
    pub(super) const fn is_young(turn: u64, now: u64) -> bool {
        turn >> 8 == now + TURN_MILLISECONDS
    }

    /// Returns whose turn it is. `None` if it is nobody's.
    pub(super) fn owner(turn: u64) -> Option<usize> {
        ((turn & 0xff) as usize).checked_sub(1).filter(|index| *index < MOST_PROCESSES)
    }

    /// Whether it is not over. One that is far ahead is damaged.
    pub(super) fn is_valid(turn: u64, now: u64) -> bool {
        let end = turn >> 8;
        Self::owner(turn).is_some() && now < end && end <= now + TURN_MILLISECONDS
    }
}

/// Returns who has a lock alone. `None` also if the state is damaged.
pub(super) fn exclusive_holder(state: u64) -> Option<ProcessId> {
    let packed = (state & ((1 << ProcessId::BITS) - 1)) as u32;
    if state & EXCLUSIVE == 0 { None } else { ProcessId::from_packed(packed) }
}

/// The state of a lock that a process has alone.
pub(super) fn held_by(process: ProcessId, mode: Mode) -> u64 {
    let limit = if let Mode::Until(end) = mode { (end & LIMITS).max(1) } else { 0 };
    EXCLUSIVE | limit << ProcessId::BITS | u64::from(process.packed())
}

/// Returns for how many milliseconds a limited hold lasts; `None` if no such hold is in the state.
pub(super) const fn left(state: u64, now: u64) -> Option<u64> {
    let limit = state >> ProcessId::BITS & LIMITS;
    if state & EXCLUSIVE == 0 || limit == 0 {
        return None;
    }
    let ahead = limit.wrapping_sub(now) & LIMITS;
    Some(if ahead <= LONGEST_HOLD { ahead } else { 0 })
}

/// Returns how many permits a name is used with; 0: it is used without, or not at all.
pub(super) const fn permits_in(state: u64) -> u32 {
    if state & EXCLUSIVE == 0 { ((state & PERMITS) >> MOST_SHARERS) as u32 } else { 0 }
}

/// The state without some of those that share it.
pub(super) const fn without(state: u64, sharers: u64) -> u64 {
    let next = state & !sharers;
    if next & SHARERS == 0 { next & !PERMITS } else { next }
}

/// A token as it is read. A number that is none of JavaScript's is damage: the clock gives the next one.
const fn sound(token: u64) -> u64 {
    if token < LARGEST_TOKEN { token } else { 0 }
}

impl Entry {
    /// Gives the entry a name. Nobody else uses it meanwhile; some may look at it.
    pub(super) fn begin(&self, key: &Key, name: &str, token: u64) {
        for word in [&self.state, &self.waiting, &self.readers, &self.turn, &self.since, &self.holder] {
            word.store(0, SeqCst);
        }
        self.token.store(token, SeqCst);
        for (word, part) in self.key.iter().zip(key) {
            word.store(*part, SeqCst);
        }
        write_text(&self.name, name);
    }

    pub(super) fn key(&self) -> Key {
        std::array::from_fn(|at| self.key[at].load(SeqCst))
    }

    pub fn last_token(&self) -> u64 {
        sound(self.token.load(SeqCst))
    }

    /// Notes the exclusive holder, which calls it, and returns its token. `microseconds` since 1970.
    pub fn note_holder(&self, process: ProcessId, thread: u32, label: &str, microseconds: u64) -> u64 {
        // One whose time is over may come here, too, beside the next holder, whose token must not become less.
        let next = |last: u64| microseconds.max(sound(last) + 1);
        let last = self.token.fetch_update(SeqCst, SeqCst, |last| Some(next(last)));
        let token = last.map_or_else(next, next);
        // Whoever sees one of these sees also that the holder changes. They need no place among all stores, which takes longer.
        self.holder.store(0, Release);
        self.since.store(microseconds / 1000, Release);
        write_text(&self.label, label);
        self.holder.store(u64::from(process.packed()) << 32 | u64::from(thread), Release);
        token
    }

    pub(super) fn name(&self) -> String {
        read_text(&self.name)
    }

    /// Returns since when it is held, the thread, and the label: `None` if the holder has not noted them yet.
    pub(super) fn noted(&self, process: ProcessId) -> Option<(u64, u32, String)> {
        let holder = self.holder.load(SeqCst);
        let noted = (self.since.load(SeqCst), holder as u32, read_text(&self.label));
        let is_whole = holder >> 32 == u64::from(process.packed()) && self.holder.load(SeqCst) == holder;
        is_whole.then_some(noted)
    }
}

/// Writes a text; of one that is too long, its beginning.
fn write_text(words: &[AtomicU64], text: &str) {
    let mut bytes = [0; NAME_WORDS * 8];
    let kept = text.len().min(words.len() * 8 - 1);
    bytes[0] = text.len().min(255) as u8;
    bytes[1..=kept].copy_from_slice(&text.as_bytes()[..kept]);
    // The words that have nothing of it keep what they have.
    for (word, part) in words.iter().zip(bytes.as_chunks::<8>().0).take(kept / 8 + 1) {
        word.store(u64::from_le_bytes(*part), Release);
    }
}

/// Reads a text: as much as is known of it. Damage ends it.
fn read_text(words: &[AtomicU64]) -> String {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.load(SeqCst).to_le_bytes()).collect();
    let (length, known) = (usize::from(bytes[0]), &bytes[1..]);
    let kept = known.get(..length).unwrap_or(known).utf8_chunks().next().map_or("", |chunk| chunk.valid());
    format!("{kept}{}", if length > known.len() { "…" } else { "" })
}

impl<W: World> Names<'_, W> {
    /// Whether the state has a limit that is over.
    pub(super) fn is_over(&self, state: u64) -> bool {
        self.left(state) == Some(0)
    }

    /// Without a limit, the clock is not read.
    fn left(&self, state: u64) -> Option<u64> {
        left(state, 0)?;
        left(state, self.world.now())
    }

    /// Ends a limited hold or a turn that is over. Returns for how many milliseconds one lasts.
    pub fn heed(&self, position: usize) -> Option<u64> {
        let entry = &self.entries[position];
        let state = entry.state.load(SeqCst);
        if state & EXCLUSIVE != 0 {
            let left = self.left(state)?;
            if left == 0 {
                self.end(position, state);
            }
            return Some(left).filter(|left| *left > 0);
        }
        let turn = entry.turn.load(SeqCst);
        let (owner, now) = (Turn::owner(turn)?, self.world.now());
        if Turn::is_valid(turn, now) {
            return Some((turn >> 8) - now);
        }
        // If the owner could not use it, whoever frees the lock or a permit gives the next turn.
        let could_use = if permits_in(state) == 0 {
            state & SHARERS == 0 || entry.readers.load(SeqCst) & 1 << owner != 0
        } else {
            self.has_free_permit(entry)
        };
        if could_use && self.pass_over(entry, turn, owner) {
            self.give_turn(position, owner, 0);
        }
        None
    }

    /// Ends the turn of a process that does not use it. Returns whether it was not ended before.
    pub(super) fn pass_over(&self, entry: &Entry, turn: u64, owner: usize) -> bool {
        let is_ended = entry.turn.compare_exchange(turn, 0, SeqCst, SeqCst).is_ok();
        if is_ended {
            // It waits anew, once it goes on: also if it does just now.
            set(&entry.waiting, 1 << owner, false);
            self.world.ring(owner);
        }
        is_ended
    }

    /// Takes the lock from a dead or late holder.
    pub(super) fn end(&self, position: usize, state: u64) {
        if self.entries[position].state.compare_exchange(state, DIED, SeqCst, SeqCst).is_ok() {
            let after = exclusive_holder(state).map_or(MOST_PROCESSES - 1, ProcessId::index);
            self.give_turn(position, after, 0);
        }
    }

    /// Takes back all that a process has left, which is dead: that can be interrupted, and done again.
    pub fn sweep(&self, dead: ProcessId) {
        self.complete();
        for (position, (title, entry)) in self.titles.iter().zip(self.entries).enumerate() {
            let found = title.load(SeqCst);
            if found == 0 {
                continue;
            }
            if phase(found) == WRITTEN {
                self.drop_written(position, found, dead);
                continue;
            }
            set(&entry.waiting, dead.mask(), false);
            self.free(position, dead, Mode::Shared, false);
            let state = entry.state.load(SeqCst);
            if exclusive_holder(state) == Some(dead) {
                self.end(position, state);
            }
        }
        // It may have given a lock back, or had the turn, and not rung anybody. Permits are awaited at another entry.
        for (position, entry) in self.entries.iter().enumerate() {
            if entry.state.load(SeqCst) & EXCLUSIVE == 0 {
                self.give_turn(position, dead.index(), 0);
            }
        }
    }
}
