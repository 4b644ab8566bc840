//! The parts of rings: holds, waits, links, and turns in a line.

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;

use super::request::{Mode, Request};
use crate::queue::location::Location;

pub(super) type Map<K, V> = HashMap<K, V, FxBuildHasher>;

/// A hold or a wait of a thread.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// Of which word.
    pub location: Location,
    /// By its number.
    pub thread: u32,
    /// `None` for a wait for a notification.
    pub request: Option<Request>,
    /// Whether the thread is blocked, if it holds this; whether it blocks for this, if it awaits it.
    pub blocked: bool,
}

impl Seen {
    /// Returns the request, if it is a claim that waits for holders.
    pub(super) fn wanted(&self) -> Option<Request> {
        self.request.filter(|request| request.waits_for_holders())
    }
}

/// A thread's hold or place that keeps another one waiting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Has {
    /// It holds this.
    Held(usize),
    /// It awaits this, ahead in the line.
    Awaited(usize),
}

/// A thread of a ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// The hold or place that the link before waits for; of the first one, the last.
    pub has: Has,
    /// The index of the thread's wait.
    pub waits_for: usize,
}

/// Finds which claims ahead keep one waiting. It is told of a word's claims in the order of its line.
#[derive(Default)]
pub(super) struct Turns {
    /// By word, the nearest claim that keeps those behind it waiting; and the nearest of another thread than that one.
    last: Map<Location, (usize, Option<usize>)>,
}

impl Turns {
    /// Finds the nearest claim ahead that counts and keeps this one waiting.
    pub(super) fn next(&mut self, waiting: &[Seen], index: usize, counts: impl Fn(u32) -> bool) -> Option<usize> {
        let Seen { location, thread, .. } = waiting[index];
        let request = waiting[index].wanted()?;
        let last = self.last.get(&location).copied();
        let thread_of = |index: usize| waiting[index].thread;
        if request.mode() != Some(Mode::Shared) {
            let other =
                last.and_then(|(nearest, other)| if thread_of(nearest) == thread { other } else { Some(nearest) });
            self.last.insert(location, (index, other));
        }
        // Whoever is ahead of a writer waits for a holder for which the writer waits itself.
        let ahead = last.filter(|_| !request.is_exclusive());
        ahead
            .into_iter()
            .flat_map(|(nearest, other)| [Some(nearest), other])
            .flatten()
            .find(|&index| counts(thread_of(index)))
    }
}

/// Links each hold, or claim ahead, to the claim awaiting it.
pub(super) fn links(has: &[Has], waits_for: impl Iterator<Item = usize>) -> Vec<Link> {
    let has_before = has.last().into_iter().chain(has);
    waits_for.zip(has_before).map(|(waits_for, &has)| Link { has, waits_for }).collect()
}

/// Turns a ring so that the smallest thread number comes first.
pub(super) fn from_smallest(mut ring: Vec<Link>, waiting: &[Seen]) -> Vec<Link> {
    let first = (0..ring.len()).min_by_key(|&n| (waiting[ring[n].waits_for].thread, ring[n].waits_for));
    ring.rotate_left(first.unwrap_or(0));
    ring
}
