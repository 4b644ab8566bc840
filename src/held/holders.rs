//! Memory of holders: how long each has held at least, and who died holding a lock.
//!
//! An uncontended lock is taken in JavaScript, which notes no time, unless stalls are reported
//! ([`crate::observe::taken`]). So a report of a hold has the time since when it has been *seen*: by a snapshot; or,
//! while claims wait for it, by [`STORE`](crate::process::STORE).

use std::collections::VecDeque;
use std::sync::{LazyLock, Mutex};

use rustc_hash::FxHashMap;

use crate::held::robust_table::Held;
use crate::process::{Known, REGISTRY};
use waitasync_core::clock::{Timestamp, now};
use waitasync_core::lock::Request;
use waitasync_core::queue::Location;
use waitasync_core::sync::lock;

/// A hold: by the number of its agent, its serial number and its word.
type HoldKey = (u64, u32, Location);

/// Since when the holds of the last snapshot have been seen by snapshots.
static SIGHTED: LazyLock<Mutex<FxHashMap<HoldKey, Timestamp>>> = LazyLock::new(Mutex::default);

fn key(agent: &Known, held: &Held) -> HoldKey {
    (agent.number, held.serial, held.location)
}

/// Notes all holds, for a snapshot.
pub(crate) fn sight(known: &[Known], held: &[(usize, Held)]) {
    let sighted = &mut *lock(&SIGHTED);
    let now = now();
    let numbered = held.iter().filter(|(_, held)| held.serial != 0);
    let keys = numbered.map(|(agent, held)| key(&known[*agent], held));
    *sighted = keys.map(|key| (key, sighted.get(&key).copied().unwrap_or(now))).collect();
}

/// Returns since when at least a hold lasts, if that is known. `in_line`: the answer of its word's line.
pub(crate) fn held_since(agent: &Known, held: &Held, in_line: Option<Timestamp>) -> Option<Timestamp> {
    if let Some(taken) = agent.taken.get(held.serial) {
        return Some(taken.since);
    }
    // A thread that is releasing may have freed the word already, and the line hears of that later.
    let is_freed = || REGISTRY.thread_of(|agent| agent.robust_list.is_releasing(held.location)).is_some();
    let in_line = in_line.filter(|_| !is_freed());
    let sighted = lock(&SIGHTED).get(&key(agent, held)).copied();
    sighted.into_iter().chain(in_line).min()
}

const MOST_DEAD: usize = 256;

/// The threads that died lately, the latest first: each by its `threadId`, with the lock that it held.
static DEAD: Mutex<VecDeque<(Location, u32)>> = Mutex::new(VecDeque::new());

/// Notes the `threadId` of a thread that ends as a holder: those who are told of the death can ask for it.
pub(crate) fn note_dead(location: Location, request: Request, thread_id: u32) {
    if request.is_exclusive() {
        let mut dead = lock(&DEAD);
        dead.truncate(MOST_DEAD - 1);
        dead.push_front((location, thread_id));
    }
}

/// Returns the `threadId` of the last dead holder, unless forgotten.
pub(crate) fn last_dead(location: Location) -> Option<u32> {
    lock(&DEAD).iter().find(|&&(at, _)| at == location).map(|&(_, thread_id)| thread_id)
}
