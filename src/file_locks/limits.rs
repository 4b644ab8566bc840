//! Limits of holds: the service gives back a lock whose time is over, whatever its thread does.
//!
//! The mark of the holder stays, so the next one sees a death. A limit is on the list until its time is over or its lock
//! is given back. Whoever removes it unlocks the file: so a state is never written without the lock.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Result;
use std::mem;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use waitasync_core::service::Notify;
use waitasync_core::sync::lock;

use super::look::withdraw_announcement;
use super::system::{no_thread, unlock};
use crate::globals::service;

/// When a hold ends, and a number that tells it from others.
pub(super) type Limit = (Instant, u64);

struct List {
    limits: BTreeMap<Limit, Weak<File>>,
    last: u64,
    /// When the service comes next; `None`: it does not.
    comes: Option<Instant>,
}

static LIST: Mutex<List> = Mutex::new(List { limits: BTreeMap::new(), last: 0, comes: None });
static BELL: Notify = Notify::const_new();
const SOON: Duration = Duration::from_millis(1);

/// Begins to count for a file that is locked. Fails if the system gives no thread.
pub(super) fn begin(file: &Arc<File>, time: Duration) -> Result<Limit> {
    let service = service().ok_or_else(no_thread)?;
    let mut list = lock(&LIST);
    list.last += 1;
    let limit = (Instant::now() + time, list.last);
    list.limits.insert(limit, Arc::downgrade(file));
    match list.comes {
        None => service.attend(&BELL, SOON, sweep),
        Some(comes) if limit.0 < comes => BELL.notify_one(),
        Some(_) => return Ok(limit),
    }
    list.comes = Some(limit.0);
    Ok(limit)
}

/// Returns for how long a lock may still be held: not at all, if it has been given back.
pub(super) fn left(limit: Limit) -> Duration {
    if lock(&LIST).limits.contains_key(&limit) {
        limit.0.saturating_duration_since(Instant::now())
    } else {
        Duration::ZERO
    }
}

/// Ends a limit before the lock is given back. False: its time is over, and so is the lock.
pub(super) fn end(limit: Limit) -> bool {
    lock(&LIST).limits.remove(&limit).is_some()
}

/// Unlocks the files of limits that are over. Returns when to come again; `None` if there are no others.
fn sweep() -> Option<Duration> {
    let mut list = lock(&LIST);
    let now = Instant::now();
    let later = list.limits.split_off(&(now, u64::MAX));
    let over = mem::replace(&mut list.limits, later);
    list.comes = list.limits.keys().next().map(|(until, _)| *until);
    let next = list.comes.map(|comes| comes.saturating_duration_since(now));
    drop(list);
    for file in over.into_values().filter_map(|file| file.upgrade()) {
        withdraw_announcement(&file);
        unlock(&file);
    }
    next
}
