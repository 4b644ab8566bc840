//! Waits for locks that other processes have: who keeps a thread of this one waiting.
//!
//! Meanwhile the thread has the named lock in front, for which the others of this process wait. So a snapshot's hold of
//! that name says for whom its thread waits. `lib/processes/long-wait.js` tells it, of waits that last.

use std::sync::{Arc, Mutex};

use rustc_hash::FxHashMap;

use waitasync_core::sync::lock;

/// Keepers, by the waiting thread and the name in front.
type Keepers = FxHashMap<(u32, Box<[u16]>), Arc<str>>;

static KEEPERS: Mutex<Option<Keepers>> = Mutex::new(None);

/// Notes who has the lock for which a thread waits; or that the wait is over. `name`: of the lock in front.
pub(crate) fn waits(thread_id: u32, name: &[u16], keeper: Option<String>) {
    let key = (thread_id, name.into());
    let mut keepers = lock(&KEEPERS);
    match keeper {
        Some(keeper) => _ = keepers.get_or_insert_default().insert(key, keeper.into()),
        None => _ = keepers.as_mut().and_then(|keepers| keepers.remove(&key)),
    }
}

/// Returns who has the lock for which a thread waits.
pub(super) fn keeper_of(thread_id: u32, name: &[u16]) -> Option<Arc<str>> {
    let keepers = lock(&KEEPERS);
    let keepers = keepers.as_ref().filter(|keepers| !keepers.is_empty())?;
    keepers.get(&(thread_id, name.into())).cloned()
}

/// Forgets the waits of a thread that has ended.
pub(crate) fn end_thread(ended: u32) {
    if let Some(keepers) = lock(&KEEPERS).as_mut() {
        keepers.retain(|&(thread_id, _), _| thread_id != ended);
    }
}
