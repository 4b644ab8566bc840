//! Descriptors of free locks and open gates, kept for the next take of the same name in this process.
//!
//! To open and close a file costs as much as to lock it. A kept descriptor has no lock and announces nothing. Who takes
//! it checks that the path leads to it, as after any lock (invariant 2). It is closed after 1 to 2 s without use, and
//! all are once a descriptor is lacking: so a drive can be unmounted, and others can open files.

use std::mem;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use waitasync_core::service::Notify;
use waitasync_core::sync::lock;

use super::lock_file::{Name, Place, Which};
use super::system::{Opened, most_descriptors};
use crate::process::service;

const MOST: usize = 64;
/// Of the descriptors that the process may have, one in so many may be kept, and this many in any case.
const SHARE: usize = 16;
const FEW: usize = 4;
const TIME: Duration = Duration::from_secs(1);

struct Kept {
    place: Arc<Place>,
    which: Which,
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
pub(super) fn take(name: &Name, which: Which) -> Option<Opened> {
    let kept = &mut lock(&SHELF).kept;
    let index = kept.iter().rposition(|each| each.which == which && each.place == name.place)?;
    Some(kept.remove(index).opened)
}

/// Keeps a descriptor that has no lock; or closes it.
pub(super) fn keep(name: &Name, which: Which, opened: Opened) {
    // Windows keeps a file that is removed as long as somebody has it open.
    if cfg!(windows) {
        return;
    }
    let mut shelf = lock(&SHELF);
    if !shelf.is_swept {
        let Some(service) = service() else { return };
        service.attend(&BELL, TIME, sweep);
        shelf.is_swept = true;
    }
    let is_full = |kept: usize| kept >= FEW && kept >= MOST.min(most_descriptors() / SHARE);
    let oldest = if is_full(shelf.kept.len()) { Some(shelf.kept.remove(0)) } else { None };
    shelf.kept.push(Kept { place: Arc::clone(&name.place), which, opened, since: Instant::now() });
    drop(shelf);
    drop(oldest);
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
