//! What rings are made of: what is held and awaited, the links, and the turns of claims in a line.

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;

use super::request::{Mode, Request};
use crate::queue::location::Location;

pub(super) type Map<K, V> = HashMap<K, V, FxBuildHasher>;

/// What a thread holds or awaits.
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
    /// What it requests of what others hold, if it is a claim for such a thing.
    pub(super) fn wanted(&self) -> Option<Request> {
        self.request.filter(|request| request.waits_for_holders())
    }
}

/// What a thread has that another one waits for.
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
    /// What the link before waits for; of the first one, the last.
    pub has: Has,
    /// The index of what the thread awaits.
    pub waits_for: usize,
}

/// Finds, as it is told of the claims of a word in the order of its line, which claims ahead keep one waiting.
#[derive(Default)]
pub(super) struct Turns {
    /// By word, the nearest claim that keeps those behind it waiting; and the nearest of another thread than that one.
    last: Map<Location, (usize, Option<usize>)>,
}

impl Turns {
    /// The nearest claim that keeps this one waiting, of a thread that `counts`.
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

/// The links of a ring of which each hold, or claim ahead, is after the claim that waits for it.
pub(super) fn links(has: &[Has], waits_for: impl Iterator<Item = usize>) -> Vec<Link> {
    let has_before = has.last().into_iter().chain(has);
    waits_for.zip(has_before).map(|(waits_for, &has)| Link { has, waits_for }).collect()
}

/// Turns a ring so that it begins with the thread that has the smallest number.
pub(super) fn from_smallest(mut ring: Vec<Link>, waiting: &[Seen]) -> Vec<Link> {
    let first = (0..ring.len()).min_by_key(|&n| (waiting[ring[n].waits_for].thread, ring[n].waits_for));
    ring.rotate_left(first.unwrap_or(0));
    ring
}
