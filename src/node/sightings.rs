//! For how long at least something has been held.
//!
//! An uncontended lock is taken in JavaScript, which notes no time. So what is told of a hold is since when it has been *seen*: at a
//! snapshot, or by the service, which looks every 50 ms while any claim waits. A lock that is given up for a `Condition` and taken
//! again between two looks counts as held meanwhile, since its token is the same.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::clock::{Timestamp, now};
use crate::lock::Outbox;
use crate::node::registry::REGISTRY;
use crate::node::robust_table::Held;
use crate::queue::location::Location;

/// A hold: by the address of its agent's outbox, its serial number and its word.
type HoldKey = (usize, u32, Location);

/// Since when each hold has been seen.
static SIGHTED: Mutex<Option<HashMap<HoldKey, Timestamp>>> = Mutex::new(None);

fn key(outbox: &Arc<Outbox>, held: &Held) -> HoldKey {
    (Arc::as_ptr(outbox).addr(), held.serial, held.location)
}

/// Notes all holds that there are, and forgets those that are no more.
pub(super) fn sight() {
    let (known, held) = REGISTRY.held(|_| true);
    let now = now();
    let mut sighted = SIGHTED.lock().unwrap_or_else(PoisonError::into_inner);
    let former = sighted.take().unwrap_or_default();
    let keys = held.iter().filter(|(_, held)| held.serial != 0).map(|(agent, held)| key(&known[*agent].outbox, held));
    *sighted = Some(keys.map(|key| (key, *former.get(&key).unwrap_or(&now))).collect());
}

/// Since when a hold has been seen.
pub(super) fn sighted(outbox: &Arc<Outbox>, held: &Held) -> Option<Timestamp> {
    let sighted = SIGHTED.lock().unwrap_or_else(PoisonError::into_inner);
    sighted.as_ref()?.get(&key(outbox, held)).copied()
}
