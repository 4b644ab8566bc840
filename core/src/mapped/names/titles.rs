//! Titles: which entries have names, and how an entry gets one and loses it. The entries of permits.
//!
//! | bits | unused, named | written |
//! |---|---|---|
//! | 0 | the phase | the phase |
//! | 2 | a version, which changes with each name | the process |
//! | 32 | the fingerprint of the key; 0 of unused ones | the version |
//!
//! `decided` has the position of the entry that was named last, and above it the version.
//!
//! # Permits
//! Each permit of a name is a lock of its own, of an entry whose key is that of the name, and a number more. Those that hold or
//! await one share the lock of the name, whose state says how many permits there are: so nobody uses it with another number, or
//! without. They wait in the line of the name, and who gives a permit back lets the next one go on there.

use super::entry::{DIED, Entry, Key, RETIRED, permits_in};
use super::{Mode, Names, Place, Refusal, Way, World};
use crate::mapped::ProcessId;
use crate::sync::Ordering::SeqCst;

pub(super) const WRITTEN: u64 = 1;
pub(super) const NAMED: u64 = 2;

const VERSIONS: u64 = (1 << 30) - 1;

pub(super) const fn phase(title: u64) -> u64 {
    title & 3
}

const fn is_unused(title: u64) -> bool {
    !matches!(phase(title), WRITTEN | NAMED)
}

const fn version(title: u64) -> u64 {
    if phase(title) == WRITTEN { title >> 32 } else { title >> 2 & VERSIONS }
}

/// The version that follows: not 0, which stands for a title that was never used.
const fn next_version(title: u64) -> u64 {
    let next = version(title) + 1;
    if next > VERSIONS { 1 } else { next }
}

const fn make(fingerprint: u64, version: u64, phase: u64) -> u64 {
    fingerprint << 32 | version << 2 | phase
}

const fn fingerprint(key: &Key) -> u64 {
    key[0] >> 32
}

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
    /// The positions of a key's entry that are tried, in order.
    fn positions(&self, key: &Key) -> impl Iterator<Item = usize> + use<W> {
        let (home, all) = ((key[1] % self.titles.len() as u64) as usize, self.titles.len());
        (home..all).chain(0..home)
    }

    pub fn find(&self, key: &Key) -> Option<Place> {
        for position in self.positions(key) {
            let title = self.titles[position].load(SeqCst);
            if title == 0 {
                // Nothing is behind one that was never used.
                break;
            }
            if phase(title) == NAMED && self.is_of(position, title, key) {
                if self.entries[position].state.load(SeqCst) & RETIRED == 0 {
                    return Some(Place { position, title });
                }
                self.bury(position, title);
            }
        }
        None
    }

    /// Whether the entry with this title has the key.
    fn is_of(&self, position: usize, title: u64, key: &Key) -> bool {
        title >> 32 == fingerprint(key)
            && self.entries[position].key() == *key
            && self.titles[position].load(SeqCst) == title
    }

    /// Finds the entry of a key, or gives one to it. `text`: its name, for people.
    pub fn name(&self, key: &Key, text: &str, me: ProcessId) -> Result<Place, Refusal> {
        loop {
            let last = self.complete();
            if let Some(place) = self.find(key) {
                return Ok(place);
            }
            let load = |position: usize| (position, self.titles[position].load(SeqCst));
            let unused = self.positions(key).map(load).find(|(_, title)| is_unused(*title));
            let Some((position, unused)) = unused else {
                if self.retire_one(key) {
                    continue;
                }
                return Err(Refusal::Full(self.titles.len()));
            };
            let version = next_version(unused);
            let written = make(version, u64::from(me.packed()), WRITTEN);
            if !self.exchange(position, unused, written) {
                continue;
            }
            self.entries[position].begin(key, text, self.head.floor.load(SeqCst));
            let decided = version << 32 | position as u64;
            if self.head.decided.compare_exchange(last, decided, SeqCst, SeqCst).is_err() {
                // Another entry was named meanwhile, perhaps with this key.
                self.drop_title(position, written);
            }
        }
    }

    /// Completes what was decided last, and returns it. Its process may be suspended.
    pub(super) fn complete(&self) -> u64 {
        let decided = self.head.decided.load(SeqCst);
        let position = decided as u32 as usize;
        if let Some(title) = self.titles.get(position) {
            let written = title.load(SeqCst);
            if phase(written) == WRITTEN && version(written) == decided >> 32 {
                let fingerprint = fingerprint(&self.entries[position].key());
                self.exchange(position, written, make(fingerprint, version(written), NAMED));
            }
        }
        decided
    }

    fn exchange(&self, position: usize, from: u64, to: u64) -> bool {
        self.titles[position].compare_exchange(from, to, SeqCst, SeqCst).is_ok()
    }

    fn drop_title(&self, position: usize, title: u64) -> bool {
        self.exchange(position, title, make(0, next_version(title), 0))
    }

    /// Takes its name from an entry that nobody holds or awaits. Returns whether there was one.
    fn retire_one(&self, key: &Key) -> bool {
        for position in self.positions(key) {
            let (title, entry) = (self.titles[position].load(SeqCst), &self.entries[position]);
            let is_removed = match phase(title) {
                _ if is_unused(title) => true,
                NAMED if entry.waiting.load(SeqCst) == 0 => {
                    // If it has got another name meanwhile, that is retired, too, and whoever looks for it sees so.
                    let is_retired = entry.state.compare_exchange(0, RETIRED, SeqCst, SeqCst).is_ok();
                    if is_retired {
                        self.bury(position, title);
                    }
                    is_retired
                }
                _ => false,
            };
            if is_removed {
                return true;
            }
        }
        false
    }

    /// Removes the title of a retired entry: invariant 4.
    fn bury(&self, position: usize, title: u64) {
        if phase(title) == NAMED {
            self.head.floor.fetch_max(self.entries[position].last_token(), SeqCst);
            self.drop_title(position, title);
        }
    }

    /// Removes a title that a dead process was about to write.
    pub(super) fn drop_written(&self, position: usize, title: u64, dead: ProcessId) {
        if title >> 2 & VERSIONS == u64::from(dead.packed()) {
            self.drop_title(position, title);
        }
    }

    /// Takes a permit, if one is free, and nobody goes first. The process shares the name ([`Mode::Permits`]).
    pub fn take_permit(&self, at: Place, me: ProcessId, way: Way) -> Result<Permit, Refusal> {
        let entry = self.entry(at);
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
            place.is_none_or(|place| self.entry(place).state.load(SeqCst) & !DIED == 0)
        })
    }

    /// Lists the entries of a name: its own, and those of its permits.
    pub(super) fn positions_of(&self, place: Place) -> Vec<usize> {
        let entry = self.entry(place);
        let name = entry.key();
        let permits = (0..permits_in(entry.state.load(SeqCst))).filter_map(|number| self.find(&key_of(&name, number)));
        [place].into_iter().chain(permits).map(|place| place.position).collect()
    }
}
