//! Descriptors of free locks and open gates, kept for the next take.
//!
//! To open and close a file costs as much as to lock it. A kept descriptor has no lock and announces nothing. Who takes
//! it checks that the path leads to it, as after any lock (invariant 2). All are closed within a second, and once a
//! descriptor is lacking: so a drive can be unmounted, and this library can open files.

use std::mem;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use waitasync_core::service::Notify;
use waitasync_core::sync::lock;

use super::system::Opened;
use crate::globals::service;

/// Windows keeps a file that is removed as long as somebody has it open.
const MOST: usize = if cfg!(windows) { 0 } else { 16 };
const TIME: Duration = Duration::from_secs(1);

struct Shelf {
    kept: Vec<(Arc<Path>, Opened)>,
    /// Whether the service is going to close all.
    is_due: bool,
}

static SHELF: Mutex<Shelf> = Mutex::new(Shelf { kept: Vec::new(), is_due: false });
static BELL: Notify = Notify::const_new();

/// Takes the descriptor of a file out.
pub(super) fn take(path: &Path) -> Option<Opened> {
    let kept = &mut lock(&SHELF).kept;
    let index = kept.iter().rposition(|(each, _)| each.as_os_str() == path.as_os_str())?;
    Some(kept.remove(index).1)
}

/// Keeps a descriptor that has no lock; or closes it.
pub(super) fn keep(path: &Arc<Path>, opened: Opened) {
    let mut shelf = lock(&SHELF);
    if shelf.kept.len() >= MOST {
        return;
    }
    if !shelf.is_due {
        let Some(service) = service() else { return };
        service.attend(&BELL, TIME, || {
            lock(&SHELF).is_due = false;
            clear();
            None
        });
        shelf.is_due = true;
    }
    shelf.kept.push((Arc::clone(path), opened));
}

/// Closes all. Returns whether there were any.
pub(super) fn clear() -> bool {
    let kept = mem::take(&mut lock(&SHELF).kept);
    !kept.is_empty()
}
