//! Permits of a name: so many processes have it at the same time.
//!
//! Each permit is a lock of its own, of an entry whose key is that of the name, and a number more. Those that hold or await one
//! share the lock of the name, whose state says how many permits there are: so nobody uses it with another number, or without.
//! They wait in the line of the name, and who gives a permit back lets the next one go on there.

use super::entry::{DIED, Entry, Key, MOST_SHARERS, permits_in};
use super::{Mode, Names, Place, Refusal, Way, World};
use crate::mapped::ProcessId;
use crate::sync::Ordering::SeqCst;

/// A permit that was taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Permit {
    pub number: u32,
    pub place: Place,
    /// Whether its last holder died.
    pub died: bool,
}

const fn key_of(name: &Key, number: u32) -> Key {
    [name[0], name[1].wrapping_add(number as u64 + 1), name[2], name[3]]
}

impl<W: World> Names<'_, W> {
    /// Shares the name with those that use it with so many permits: until [`Self::release`] in shared mode.
    pub fn join(&self, place: Place, me: ProcessId, permits: u32) -> Result<(), Refusal> {
        let entry = &self.entries[place.position];
        loop {
            let Some(state) = self.current_state(place) else { return Err(Refusal::Renamed) };
            let used = permits_in(state);
            if used != permits && (state & !DIED != 0 || entry.waiting.load(SeqCst) != 0) {
                return Err(Refusal::Unlike(used));
            }
            let next = state | me.mask() | u64::from(permits) << MOST_SHARERS;
            if entry.state.compare_exchange(state, next, SeqCst, SeqCst).is_err() {
                continue;
            }
            if self.is_here(place) {
                return Ok(());
            }
            self.free(place.position, me, Mode::Shared, false);
            return Err(Refusal::Renamed);
        }
    }

    /// Takes a permit, if one is free, and nobody goes first. The process has joined.
    pub fn take_permit(&self, at: Place, permits: u32, me: ProcessId, way: Way) -> Result<Permit, Refusal> {
        let entry = &self.entries[at.position];
        if self.is_behind(entry, entry.state.load(SeqCst), me, way) {
            return Err(Refusal::Taken);
        }
        let name = entry.key();
        for number in 0..permits {
            let key = key_of(&name, number);
            loop {
                let place = self.find(&key).map_or_else(|| self.name(&key, &entry.name(), me), Ok)?;
                match self.take(place, me, Mode::Exclusive, Way::Attempt) {
                    Ok(died) => {
                        entry.use_turn(me);
                        return Ok(Permit { number, place, died });
                    }
                    Err(Refusal::Renamed) => {}
                    Err(_) => break,
                }
            }
        }
        Err(Refusal::Taken)
    }

    pub(super) fn has_free_permit(&self, entry: &Entry) -> bool {
        let name = entry.key();
        (0..permits_in(entry.state.load(SeqCst))).any(|number| {
            let place = self.find(&key_of(&name, number));
            place.is_none_or(|place| self.entries[place.position].state.load(SeqCst) & !DIED == 0)
        })
    }

    /// Lists the entries of a name: its own, and those of its permits.
    pub fn positions_of(&self, place: Place) -> Vec<usize> {
        let entry = &self.entries[place.position];
        let name = entry.key();
        let permits = (0..permits_in(entry.state.load(SeqCst))).filter_map(|number| self.find(&key_of(&name, number)));
        [place].into_iter().chain(permits).map(|place| place.position).collect()
    }
}
