//! Permits of a name: so many processes have it at the same time.
//!
//! Each permit is a lock of its own, of an entry whose key is that of the name, and a number more. Those that hold or await one
//! share the lock of the name, whose state says how many permits there are: so nobody uses it with another number, or without.
//! They wait in the line of the name, and who gives a permit back lets the next one go on there.

use super::entry::{DIED, Entry, Key, permits_in};
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
    /// Takes a permit, if one is free, and nobody goes first. The process shares the name ([`Mode::Permits`]).
    pub fn take_permit(&self, at: Place, me: ProcessId, way: Way) -> Result<Permit, Refusal> {
        let entry = &self.entries[at.position];
        let state = entry.state.load(SeqCst);
        if self.is_behind(entry, state, me, way) {
            return Err(Refusal::Taken);
        }
        let (name, text) = (entry.key(), entry.name());
        for number in 0..permits_in(state) {
            loop {
                let place = self.name(&key_of(&name, number), &text, me)?;
                match self.take(place, me, Mode::Exclusive, Way::Attempt) {
                    Ok(died) => {
                        self.end_turn(entry, me);
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
    pub(super) fn positions_of(&self, place: Place) -> Vec<usize> {
        let entry = &self.entries[place.position];
        let name = entry.key();
        let permits = (0..permits_in(entry.state.load(SeqCst))).filter_map(|number| self.find(&key_of(&name, number)));
        [place].into_iter().chain(permits).map(|place| place.position).collect()
    }
}
