//! The threads that died lately while they held a lock, for those who are told of the death.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use crate::lock::request::Request;
use crate::queue::location::Location;

/// So many are known.
const MOST: usize = 256;

static DEAD: Mutex<VecDeque<(Location, u32)>> = Mutex::new(VecDeque::new());

fn locked<R>(body: impl FnOnce(&mut VecDeque<(Location, u32)>) -> R) -> R {
    body(&mut DEAD.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The thread with this `threadId` ends, and holds this.
pub(super) fn died(location: Location, request: Request, thread_id: u32) {
    if request.is_exclusive() {
        locked(|dead| {
            dead.truncate(MOST - 1);
            dead.push_front((location, thread_id));
        });
    }
}

/// The `threadId` of the last thread that died holding the lock at `location`, unless many have died since.
pub(super) fn last_dead(location: Location) -> Option<u32> {
    locked(|dead| dead.iter().find(|&&(at, _)| at == location).map(|&(_, thread_id)| thread_id))
}
