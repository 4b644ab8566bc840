//! Memory of the threads that died holding a lock.

use std::collections::VecDeque;
use std::sync::Mutex;

use crate::lock::Hold;
use crate::queue::Location;
use crate::sync::lock;

const MOST_DEAD: usize = 256;

#[derive(Default)]
pub struct Holders {
    /// The threads that died lately, the latest first: each by its `threadId`, with the lock that it held.
    dead: Mutex<VecDeque<(Location, u32)>>,
}

impl Holders {
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
}
