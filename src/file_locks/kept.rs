//! Descriptors of free locks and open gates, kept for the next take.
//!
//! To open and close a file costs as much as to lock it. A kept descriptor has no lock and announces nothing. Who takes
//! it checks that the path leads to it, as after any lock (invariant 2). It is closed after 1 to 2 s without use, and
//! all are once a descriptor is lacking: so a drive can be unmounted, and this library can open files.

use std::mem;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use waitasync_core::service::Notify;
use waitasync_core::sync::lock;

use super::system::Opened;
use crate::globals::service;

/// Windows keeps a file that is removed as long as somebody has it open.
const MOST: usize = if cfg!(windows) { 0 } else { 16 };
const TIME: Duration = Duration::from_secs(1);

struct Kept {
    path: Arc<Path>,
    opened: Opened,
    since: Instant,
}

struct Shelf {
    kept: Vec<Kept>,
    is_swept: bool,
}

static SHELF: Mutex<Shelf> = Mutex::new(Shelf { kept: Vec::new(), is_swept: false });
static BELL: Notify = Notify::const_new();

/// Takes the descriptor of a file out.
pub(super) fn take(path: &Path) -> Option<Opened> {
    let kept = &mut lock(&SHELF).kept;
    let index = kept.iter().rposition(|each| each.path.as_os_str() == path.as_os_str())?;
    Some(kept.remove(index).opened)
}

/// Keeps a descriptor that has no lock; or closes it.
pub(super) fn keep(path: &Arc<Path>, opened: Opened) {
    let mut shelf = lock(&SHELF);
    if shelf.kept.len() >= MOST {
        return;
    }
    if !shelf.is_swept {
        let Some(service) = service() else { return };
        service.attend(&BELL, TIME, sweep);
        shelf.is_swept = true;
    }
    shelf.kept.push(Kept { path: Arc::clone(path), opened, since: Instant::now() });
}

/// Closes all. Returns whether there were any.
pub(super) fn clear() -> bool {
    let kept = mem::take(&mut lock(&SHELF).kept);
    !kept.is_empty()
}

/// Closes those that nobody has used for a while. Returns when to come again; `None` if there are no others.
fn sweep() -> Option<Duration> {
    let mut shelf = lock(&SHELF);
    let young = shelf.kept.iter().position(|each| each.since.elapsed() < TIME).unwrap_or(shelf.kept.len());
    let old: Vec<Kept> = shelf.kept.drain(..young).collect();
    shelf.is_swept = !shelf.kept.is_empty();
    let next = shelf.is_swept.then_some(TIME);
    drop(shelf);
    drop(old);
    next
}
