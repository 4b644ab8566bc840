//! What is remembered of holders: for how long at least each has held what it holds, and which threads died holding a lock.
//!
//! An uncontended lock is taken in JavaScript, which notes no time. So what is reported of a hold is since when it has been *seen*: at a
//! snapshot; or, while claims wait for what is held, by the service, which looks every 50 ms. A lock that is given up for a `Condition`
//! and taken again between two looks counts as held meanwhile, since its token is the same.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{LazyLock, Mutex};

use rustc_hash::FxBuildHasher;

use crate::clock::{Timestamp, now};
use crate::lock::request::Request;
use crate::node::registry::{Known, REGISTRY};
use crate::node::robust_table::Held;
use crate::queue::location::Location;
use crate::sync::lock;

/// A hold: by the number of its agent, its serial number and its word.
type HoldKey = (u64, u32, Location);

/// Since when holds have been seen: those of the last snapshot, and those that claims waited for when the service looked last.
#[derive(Default)]
struct Sightings {
    by_snapshot: HashMap<HoldKey, Timestamp, FxBuildHasher>,
    by_service: HashMap<HoldKey, Timestamp, FxBuildHasher>,
}

static SIGHTINGS: LazyLock<Mutex<Sightings>> = LazyLock::new(Mutex::default);

fn key(agent: &Known, held: &Held) -> HoldKey {
    (agent.number, held.serial, held.location)
}

impl Sightings {
    fn since(&self, key: &HoldKey) -> Option<Timestamp> {
        self.by_snapshot.get(key).or_else(|| self.by_service.get(key)).copied()
    }

    /// These holds, each with since when it has been seen.
    fn of(&self, known: &[Known], held: &[(usize, Held)]) -> HashMap<HoldKey, Timestamp, FxBuildHasher> {
        let now = now();
        let numbered = held.iter().filter(|(_, held)| held.serial != 0);
        let keys = numbered.map(|(agent, held)| key(&known[*agent], held));
        keys.map(|key| (key, self.since(&key).unwrap_or(now))).collect()
    }
}

/// Notes all holds, for a snapshot.
pub(super) fn sight(known: &[Known], held: &[(usize, Held)]) {
    let mut sightings = lock(&SIGHTINGS);
    sightings.by_snapshot = sightings.of(known, held);
}

/// Notes who holds what claims wait for, at these locations.
pub(super) fn sight_awaited(lines: impl IntoIterator<Item = Location>) {
    let awaited: HashSet<_, FxBuildHasher> = lines.into_iter().collect();
    let (known, held) = REGISTRY.held(|_| true, |location| awaited.contains(&location));
    let mut sightings = lock(&SIGHTINGS);
    sightings.by_service = sightings.of(&known, &held);
}

/// The moment since which a hold has been seen; `None` if it has not been seen.
pub(super) fn sighted(agent: &Known, held: &Held) -> Option<Timestamp> {
    lock(&SIGHTINGS).since(&key(agent, held))
}

/// How many of the dead are remembered.
const MOST_DEAD: usize = 256;

/// The threads that died lately, the latest first: each by its `threadId`, with the lock that it held.
static DEAD: Mutex<VecDeque<(Location, u32)>> = Mutex::new(VecDeque::new());

/// The thread with this `threadId` ends while it holds this: those who are told of the death can ask which it was.
pub(super) fn note_dead(location: Location, request: Request, thread_id: u32) {
    if request.is_exclusive() {
        let mut dead = lock(&DEAD);
        dead.truncate(MOST_DEAD - 1);
        dead.push_front((location, thread_id));
    }
}

/// The `threadId` of the last thread that died holding the lock at `location`, unless many have died since.
pub(super) fn last_dead(location: Location) -> Option<u32> {
    lock(&DEAD).iter().find(|&&(at, _)| at == location).map(|&(_, thread_id)| thread_id)
}
