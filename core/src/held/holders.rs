//! Memory of holders: how long each has held at least, and who died holding a lock.
//!
//! An uncontended lock is taken in JavaScript, which notes no time, unless stalls are reported ([`super::hold_calls`]). So a
//! report of a hold has the time since when it has been *seen*: by a snapshot; or, while claims wait for it, by the
//! queue.

use std::collections::VecDeque;
use std::sync::Mutex;

use rustc_hash::FxHashMap;

use super::registry::Known;
use super::robust_list::Held;
use crate::clock::{Timestamp, now};
use crate::lock::Hold;
use crate::queue::Location;
use crate::sync::lock;

/// A hold: by the number of its agent, its serial number and its word.
type HoldKey = (u64, u32, Location);

const MOST_DEAD: usize = 256;

#[derive(Default)]
pub struct Holders {
    /// Since when the holds of the last snapshot have been seen by snapshots.
    sighted: Mutex<FxHashMap<HoldKey, Timestamp>>,
    /// The threads that died lately, the latest first: each by its `threadId`, with the lock that it held.
    dead: Mutex<VecDeque<(Location, u32)>>,
}

fn key(agent: &Known, held: &Held) -> HoldKey {
    (agent.number, held.serial, held.location)
}

impl Holders {
    /// Notes all holds, for a snapshot.
    pub fn sight(&self, known: &[Known], held: &[(usize, Held)]) {
        let sighted = &mut *lock(&self.sighted);
        let now = now();
        let numbered = held.iter().filter(|(_, held)| held.serial != 0);
        let keys = numbered.map(|(agent, held)| key(&known[*agent], held));
        *sighted = keys.map(|key| (key, sighted.get(&key).copied().unwrap_or(now))).collect();
    }

    /// Notes the `threadId` of a thread that ends as a holder: those who see the death can ask for it.
    pub fn note_dead(&self, location: Location, hold: Hold, thread_id: u32) {
        if hold.is_exclusive() {
            let mut dead = lock(&self.dead);
            dead.truncate(MOST_DEAD - 1);
            dead.push_front((location, thread_id));
        }
    }

    /// Returns the `threadId` of the last dead holder, unless forgotten.
    pub fn last_dead(&self, location: Location) -> Option<u32> {
        lock(&self.dead).iter().find(|&&(at, _)| at == location).map(|&(_, thread_id)| thread_id)
    }

    /// Returns since when snapshots have seen the hold.
    pub(super) fn sighted_since(&self, agent: &Known, held: &Held) -> Option<Timestamp> {
        lock(&self.sighted).get(&key(agent, held)).copied()
    }
}
