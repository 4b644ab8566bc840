//! What the service ends in time: holds that have a limit, and descriptors that are kept.
//!
//! It gives back a lock whose time is over, whatever its thread does. The mark of the holder stays, so the next one sees a
//! death. A limit is on the list until its time is over or its lock is given back. Whoever removes it unlocks the file:
//! so a state is never written without the lock.
//!
//! Descriptors of free locks and open gates are kept for the next take: to open and close a file costs as much as to lock
//! it. A kept descriptor has no lock and announces nothing. Who takes it checks that the path leads to it, as after any
//! lock (invariant 2). All are closed within a second, and once a descriptor is lacking: so a drive can be unmounted, and
//! this library can open files.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Result;
use std::mem;
use std::path::Path;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use waitasync_core::service::Notify;
use waitasync_core::sync::lock;

use super::state::withdraw_announcement;
use super::system::unlock;
use super::{Opened, no_thread};
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

/// Windows keeps a file that is removed as long as somebody has it open.
const MOST_KEPT: usize = if cfg!(windows) { 0 } else { 16 };
const KEPT_FOR: Duration = Duration::from_secs(1);

struct Shelf {
    kept: Vec<(Arc<Path>, Opened)>,
    /// Whether the service is going to close all.
    is_due: bool,
}

static SHELF: Mutex<Shelf> = Mutex::new(Shelf { kept: Vec::new(), is_due: false });
static SHELF_BELL: Notify = Notify::const_new();

pub(super) fn take_kept(path: &Path) -> Option<Opened> {
    let kept = &mut lock(&SHELF).kept;
    let index = kept.iter().rposition(|(each, _)| each.as_os_str() == path.as_os_str())?;
    Some(kept.remove(index).1)
}

/// Keeps a descriptor that has no lock; or closes it.
pub(super) fn keep(path: &Arc<Path>, opened: Opened) {
    let mut shelf = lock(&SHELF);
    if shelf.kept.len() >= MOST_KEPT {
        return;
    }
    if !shelf.is_due {
        let Some(service) = service() else { return };
        service.attend(&SHELF_BELL, KEPT_FOR, || {
            lock(&SHELF).is_due = false;
            close_kept();
            None
        });
        shelf.is_due = true;
    }
    shelf.kept.push((Arc::clone(path), opened));
}

/// Closes all. Returns whether there were any.
pub(super) fn close_kept() -> bool {
    let kept = mem::take(&mut lock(&SHELF).kept);
    !kept.is_empty()
}
