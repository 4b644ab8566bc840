//! Locks by name, in memory that several processes have mapped: what `memory(folder)` is made of.
//!
//! Each name has an entry, and each entry a title: a word that says whether it is in use. An entry is found by probing
//! the titles from the home of its key on.
//!
//! | title | | and then |
//! |---|---|---|
//! | unused | without a name, or never used: all zeros | written |
//! | written | a process gives it a key | named, by a decision; unused, if another comes before, or that process dies |
//! | named | the only one of its key | unused, once its lock is retired |
//!
//! | state of a lock | | and then |
//! |---|---|---|
//! | free | nobody has it | exclusive, shared, retired |
//! | exclusive | the process in the lower bits has it | free; free and died |
//! | limited | the same, until the moment above it | free; free and died, once that is over, by anybody |
//! | shared | the processes whose bits are set have it | shared; free |
//! | with permits | they hold or await one of so many permits, which are locks of entries of their own | the same; free |
//! | died | besides the others: the last exclusive holder has died, or abandoned it | exclusive, without it |
//! | retired | the entry loses its name | free, under the next name |
//!
//! A process that finds the lock taken sets its bit in `waiting`, and then looks again. Who frees it then looks at
//! `waiting`, gives the next process the turn, round robin, and rings it. The lock is free meanwhile: the turn only keeps
//! newcomers out, and only for a while: not in its first millisecond, in which the process that has it wakes, unless it is given
//! again. So a lock is not idle that long, and nobody is passed by for longer. A process that is suspended stops nobody for
//! long: who gives a turn comes back when it is over, and passes it on; the suspended one waits anew when it goes on.
//!
//! # Invariants
//! 1. Each step is one exchange, so the death of a process leaves nothing half done: `sweep` finds all it has.
//! 2. A lock is taken by a change of its state. Whoever has changed it looks whether the title is still the same: until then
//!    the entry may have got another name. Of one that is held it stays.
//! 3. No two titles of a key are named: entries are named one by one, each by a change of `decided`. Whoever changes it has
//!    looked at all titles since the change before.
//! 4. Of an entry that loses its name, the token is below the `floor`, where the tokens of new names begin. So tokens of a name
//!    grow, also if the clock was set back meanwhile.
//! 5. Who waits has set its bit before it looked at the state; who frees has changed the state before it looks at the bits.
//! 6. A limit is part of the state. So whoever ends a hold has seen it in the state that it changes, and a release that is late
//!    changes nothing: the holder looks at the clock first. Of those whose time is over, any may be ended at any time.
//! 7. What is in the memory is input: others may have written it. Numbers are checked, and loops are bounded by the table.

mod entry;
mod titles;

use super::{MOST_PROCESSES, ProcessId};
use crate::sync::{AtomicU64, Ordering::SeqCst};
use entry::{DIED, EXCLUSIVE, RETIRED, SHARERS, Turn, exclusive_holder, held_by, permits_in, without};
pub use entry::{Entry, Key, MOST_SHARERS, Mode, TURN_MILLISECONDS};
pub use titles::Permit;
use titles::{NAMED, phase};

/// What a table begins with.
#[repr(C)]
#[derive(Default)]
pub struct Head {
    /// The highest token of all names that have lost their entries.
    floor: AtomicU64,
    /// Which entry was named last.
    decided: AtomicU64,
}

/// The entry of a name. It has that name as long as the title is the same.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Place {
    pub position: usize,
    title: u64,
}

/// How a request comes to a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// It goes behind those that wait.
    New,
    /// It makes one attempt, and passes those that wait, but not to share a lock that others share already.
    Attempt,
    /// It is the first that waits in its process.
    First,
}

/// Why nothing was taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// Others have it, or go first.
    Taken,
    /// Others use the name with so many permits; 0: without.
    Unlike(u32),
    /// The entry has another name now.
    Renamed,
    /// All entries have names that are in use: so many.
    Full(usize),
}

/// A process that holds a name, or waits for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    /// The beginning of the name, if it is long.
    pub name: String,
    /// That of the process's slot.
    pub index: usize,
    pub waits: bool,
    pub is_shared: bool,
    /// Of the exclusive holder: since when, in milliseconds since 1970, its thread, and its label.
    pub noted: Option<(u64, u32, String)>,
}

/// The clock and the bell, which a model has of its own.
pub trait World: Sync {
    /// Milliseconds that all processes count alike.
    fn now(&self) -> u64;
    /// Rings a process: it looks at what it awaits, where [it has to](Names::is_rung_for).
    fn ring(&self, index: usize);
    /// Comes back to an entry at a moment, by [`Names::heed`].
    fn come(&self, position: usize, moment: u64);
}

pub struct Names<'a, W> {
    head: &'a Head,
    titles: &'a [AtomicU64],
    entries: &'a [Entry],
    pub world: W,
}

impl<'a, W: World> Names<'a, W> {
    /// `titles` and `entries` are as many, and all zeros at first.
    pub fn new(head: &'a Head, titles: &'a [AtomicU64], entries: &'a [Entry], world: W) -> Self {
        assert!(titles.len() == entries.len() && !titles.is_empty());
        Self { head, titles, entries, world }
    }

    pub fn is_here(&self, place: Place) -> bool {
        self.titles[place.position].load(SeqCst) == place.title
    }

    pub fn entry(&self, place: Place) -> &'a Entry {
        &self.entries[place.position]
    }

    /// Takes the lock, if it is free and nobody goes first. Returns whether the last exclusive holder died.
    pub fn take(&self, place: Place, me: ProcessId, mode: Mode, way: Way) -> Result<bool, Refusal> {
        let entry = self.entry(place);
        loop {
            let Some(state) = self.current_state(place) else { return Err(Refusal::Renamed) };
            let others = permits_in(state);
            let next = match mode {
                // Who waits for the lock was there before.
                Mode::Permits(permits)
                    if others == permits || (state & !DIED == 0 && entry.waiting.load(SeqCst) == 0) =>
                {
                    state | me.mask() | u64::from(permits) << MOST_SHARERS
                }
                Mode::Permits(_) => return Err(Refusal::Unlike(others)),
                _ if others != 0 => return Err(Refusal::Unlike(others)),
                Mode::Shared if state & EXCLUSIVE == 0 && me.index() < MOST_SHARERS => state | me.mask(),
                Mode::Exclusive | Mode::Until(_) if state & !DIED == 0 => held_by(me, mode),
                _ => return Err(Refusal::Taken),
            };
            let joins = matches!(mode, Mode::Permits(_));
            if !joins && self.is_behind(entry, state, me, way) {
                return Err(Refusal::Taken);
            }
            if entry.state.compare_exchange(state, next, SeqCst, SeqCst).is_err() {
                continue;
            }
            if !self.is_here(place) {
                // Invariant 2. It is given back as it was: those of the other name may wait by now.
                self.free(place.position, me, mode, state & DIED != 0);
                return Err(Refusal::Renamed);
            }
            if !joins {
                self.end_turn(entry, me);
            }
            // Readers of other processes may be next.
            if mode == Mode::Shared && way == Way::First {
                self.give_turn(place.position, me.index(), me.mask());
            }
            return Ok(state & DIED != 0);
        }
    }

    /// Returns the state of a lock, in which no hold is over. `None`: the entry has another name now.
    fn current_state(&self, place: Place) -> Option<u64> {
        loop {
            let state = self.entry(place).state.load(SeqCst);
            if !self.is_here(place) || state & RETIRED != 0 {
                return None;
            }
            if !self.is_over(state) {
                return Some(state);
            }
            self.end(place.position, state);
        }
    }

    /// Whether others go first.
    fn is_behind(&self, entry: &Entry, state: u64, me: ProcessId, way: Way) -> bool {
        let waiting = entry.waiting.load(SeqCst);
        let others = if way == Way::First { waiting & !me.mask() } else { waiting };
        if others == 0 || (way == Way::Attempt && state & SHARERS == 0) {
            return false;
        }
        let turn = entry.turn.load(SeqCst);
        if Turn::owner(turn) == Some(me.index()) && way == Way::First {
            return false;
        }
        // Between readers, those that wait have to be given the turn.
        let now = self.world.now();
        let is_read = state & SHARERS != 0 && permits_in(state) == 0;
        is_read || (Turn::is_valid(turn, now) && !(way == Way::New && Turn::is_young(turn, now)))
    }

    /// Ends the turn of a process that goes on; or that of another which has not used it until it was over.
    fn end_turn(&self, entry: &Entry, me: ProcessId) {
        let turn = entry.turn.load(SeqCst);
        match Turn::owner(turn) {
            Some(owner) if owner == me.index() => {
                let _ = entry.turn.compare_exchange(turn, 0, SeqCst, SeqCst);
            }
            Some(owner) if !Turn::is_valid(turn, self.world.now()) => drop(self.pass_over(entry, turn, owner)),
            _ => {}
        }
    }

    /// Notes that the process waits. It has to try once more then: invariant 5.
    pub fn wait(&self, place: Place, me: ProcessId, mode: Mode) {
        let Entry { waiting, readers, .. } = self.entry(place);
        set(readers, me.mask(), mode == Mode::Shared);
        set(waiting, me.mask(), true);
    }

    /// Notes that the process waits no more.
    pub fn leave(&self, place: Place, me: ProcessId) {
        set(&self.entry(place).waiting, me.mask(), false);
    }

    /// Lets others go on after a request has given up: it may have had the turn, or have kept readers out.
    pub fn stir(&self, place: Place, me: ProcessId) {
        let state = self.entry(place).state.load(SeqCst);
        if self.is_here(place) && state & EXCLUSIVE == 0 {
            self.give_turn(place.position, me.index(), 0);
        }
    }

    pub fn is_held(&self, place: Place, me: ProcessId, mode: Mode) -> bool {
        let state = self.entry(place).state.load(SeqCst);
        self.is_here(place) && has(state, me, mode) && !self.is_over(state)
    }

    /// Gives the lock back. Returns whether the process had it.
    pub fn release(&self, place: Place, me: ProcessId, mode: Mode, died: bool) -> bool {
        if let Mode::Until(_) = mode {
            // Once it is over, the holder has not had it until now.
            self.heed(place.position);
        }
        self.is_held(place, me, mode) && self.free(place.position, me, mode, died)
    }

    fn free(&self, position: usize, me: ProcessId, mode: Mode, died: bool) -> bool {
        let entry = &self.entries[position];
        loop {
            let state = entry.state.load(SeqCst);
            if !has(state, me, mode) {
                return false;
            }
            let next = match mode {
                Mode::Shared | Mode::Permits(_) => without(state, me.mask()),
                _ if died => DIED,
                _ => 0,
            };
            if entry.state.compare_exchange(state, next, SeqCst, SeqCst).is_ok() {
                if next & SHARERS == 0 {
                    self.give_turn(position, me.index(), 0);
                }
                return true;
            }
        }
    }

    /// Gives the next process that waits the turn, and rings it; none of those in `except`.
    fn give_turn(&self, position: usize, after: usize, except: u64) {
        let entry = &self.entries[position];
        let waiting = entry.waiting.load(SeqCst) & !except;
        if waiting == 0 {
            return;
        }
        let (last, now) = (entry.turn.load(SeqCst), self.world.now());
        // A newcomer may have taken the lock meanwhile: then the owner of the turn is still the next.
        let kept = Turn::owner(last).filter(|index| waiting & 1 << index != 0);
        let first = (after as u32 + 1) % MOST_PROCESSES as u32;
        let in_line = || (first + waiting.rotate_right(first).trailing_zeros()) as usize % MOST_PROCESSES;
        let index = kept.unwrap_or_else(in_line);
        let is_unchanged = kept.is_some() && Turn::is_young(last, now);
        let turn = if is_unchanged { last } else { Turn::begin(index, now, kept.is_some()) };
        entry.turn.store(turn, SeqCst);
        self.world.ring(index);
        self.world.come(position, turn >> 8);
    }

    /// Whether a waiting process that is rung has to look there. Not if whoever frees the lock will ring: invariant 5.
    pub fn is_rung_for(&self, place: Place, me: ProcessId) -> bool {
        let Entry { state, waiting, .. } = self.entry(place);
        waiting.load(SeqCst) & me.mask() == 0 || state.load(SeqCst) & EXCLUSIVE == 0 || !self.is_here(place)
    }

    /// Lists who holds and awaits names: all of them, or that of a key.
    pub fn rows(&self, key: Option<&Key>) -> Vec<Row> {
        let all = || (0..self.entries.len()).collect();
        let of = |key| self.find(key).map_or_else(Vec::new, |place| self.positions_of(place));
        let positions: Vec<usize> = key.map_or_else(all, of);
        positions.into_iter().filter_map(|position| self.look(position)).flatten().collect()
    }

    /// `None` if it has no name.
    fn look(&self, position: usize) -> Option<Vec<Row>> {
        let (title, entry) = (self.titles[position].load(SeqCst), &self.entries[position]);
        if phase(title) != NAMED {
            return None;
        }
        let (state, waiting, readers) =
            (entry.state.load(SeqCst), entry.waiting.load(SeqCst), entry.readers.load(SeqCst));
        let holder = exclusive_holder(state);
        // Those that hold permits are seen there.
        let sharers = if state & EXCLUSIVE == 0 && permits_in(state) == 0 { state & SHARERS } else { 0 };
        if holder.is_none() && sharers | waiting == 0 {
            return None;
        }
        let name = entry.name();
        let row = |index, waits, is_shared, noted| Row { name: name.clone(), index, waits, is_shared, noted };
        let of = |mask: u64| (0..MOST_PROCESSES).filter(move |index| mask >> index & 1 != 0);
        let holding = holder.map(|holder| row(holder.index(), false, false, entry.noted(holder)));
        let sharing = of(sharers).map(|index| row(index, false, true, None));
        let awaiting = of(waiting).map(|index| row(index, true, readers >> index & 1 != 0, None));
        let rows = holding.into_iter().chain(sharing).chain(awaiting).collect();
        // Otherwise it is being changed: its former text is not known.
        (self.titles[position].load(SeqCst) == title).then_some(rows)
    }
}

fn has(state: u64, me: ProcessId, mode: Mode) -> bool {
    match mode {
        Mode::Shared | Mode::Permits(_) => state & EXCLUSIVE == 0 && state & SHARERS & me.mask() != 0,
        _ => state == held_by(me, mode),
    }
}

/// Sets or clears a bit. It is not written if it is as it should be.
fn set(bits: &AtomicU64, mask: u64, on: bool) {
    let is_on = bits.load(SeqCst) & mask != 0;
    if on && !is_on {
        bits.fetch_or(mask, SeqCst);
    } else if !on && is_on {
        bits.fetch_and(!mask, SeqCst);
    }
}
