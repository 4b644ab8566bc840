//! The lines of a bucket: their claims, and how these are woken and granted.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::hash::{BuildHasher, Hash};

use rustc_hash::FxHashMap;

use super::fairness::Overtaken;
use super::{Hold, Released, Request, Waiter, Word};
use crate::clock::Timestamp;
use crate::queue::{CriticalSection, Listed, Location, Policy, Successor, WaitResult, WaiterKey, store};

pub type WaiterListStore = store::WaiterListStore<Lines>;

#[derive(Debug, Default)]
pub struct Lines {
    by_location: FxHashMap<Location, Line>,
    /// The locks whose holders died when nobody waited; until they are locked again, or their memory is gone
    /// (`memories`). Ordered, so that those of a memory are found among all.
    pub(super) abandoned: BTreeSet<Location>,
    /// The locks on their way to a waiter, until its thread's robust list has them: so a lock's holder is always known.
    pub(super) granted: FxHashMap<Location, Waiter>,
    /// The requests that hold named locks, by their numbers: each with whether it saw a death. A request that
    /// is not here any more gave its lock back, or had it revoked by a steal.
    pub(super) named: BTreeMap<(Location, u32), bool>,
}

pub(super) type Section<'a> = CriticalSection<'a, Lines>;

/// Tables up to this capacity keep it.
const RETAINED: usize = 64;

/// Gives memory back if the table was much larger: seldom, so that it costs little.
pub(crate) fn shrink<K: Eq + Hash, V, S: BuildHasher>(table: &mut HashMap<K, V, S>) {
    if table.capacity() > RETAINED && table.len() < table.capacity() / 8 {
        table.shrink_to(2 * table.len());
    }
}

impl Lines {
    /// Notes that the lock at `location` has reached its holder.
    pub(super) fn end_grant(&mut self, location: Location) {
        if !self.granted.is_empty() && self.granted.remove(&location).is_some() {
            shrink(&mut self.granted);
        }
    }

    pub(super) fn line(&self, location: Location) -> Option<&Line> {
        self.by_location.get(&location)
    }

    pub(super) fn line_mut(&mut self, location: Location) -> Option<&mut Line> {
        self.by_location.get_mut(&location)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_location.is_empty()
    }

    /// Returns the locations of the lines at words of JavaScript's.
    pub(super) fn words(&self) -> Vec<Location> {
        self.by_location.keys().copied().filter(|location| !location.is_of_process()).collect()
    }
}

impl Policy for Lines {
    type Claim = Request;

    fn appended(&mut self, location: Location, key: WaiterKey, claim: Option<Request>, blocks: bool) {
        if claim.is_some() {
            self.by_location.entry(location).or_default().append(key, blocks);
        } else if let Some(line) = self.line_mut(location) {
            line.append_thread(key);
        }
    }

    fn removed(&mut self, location: Location, key: WaiterKey, claim: Option<Request>, blocks: bool) -> Successor {
        let Some(request) = claim else {
            if let Some(line) = self.line_mut(location) {
                line.remove_thread(key);
            }
            return Successor::Unconcerned;
        };
        let line = self.by_location.get_mut(&location).expect("a line exists as long as it has claims");
        let successor = line.remove(key, blocks);
        if line.claims == 0 {
            self.by_location.remove(&location);
            shrink(&mut self.by_location);
        }
        // The word of a strict line may hold enough for the next claim.
        if request.is_strict() { Successor::ToBeWoken } else { successor }
    }

    fn claims(&self, location: Location) -> u32 {
        self.line(location).map_or(0, |line| line.claims)
    }

    fn wake_successor(section: &mut Section<'_>, location: Location) {
        section.wake_first(location);
    }

    /// Wakes the first claim and, behind a promise's, the first blocked one; no waiter that a notification counts.
    fn notify_claim(section: &mut Section<'_>, location: Location, first: WaiterKey) {
        let line = section.lists.policy.line(location).filter(|_| !section.blocks(first));
        let thread = line.and_then(|line| line.threads().find(|&thread| section.claim(thread).is_some()));
        for key in thread.into_iter().chain([first]) {
            section.wake_claim(location, key);
        }
        section.was_freed(location);
    }
}

impl Section<'_> {
    /// Finds the first claim and its request. Notifies waiters without a claim before it; returns whether there were
    /// any.
    pub(super) fn notify_up_to_first_claim(&mut self, location: Location) -> Option<(WaiterKey, Request, bool)> {
        let mut others_before = false;
        while self.lists.policy.line(location).is_some() {
            let key = self.expire_to_front(location)?;
            if let Some(request) = self.claim(key) {
                return Some((key, request, others_before));
            }
            others_before = true;
            let _ = self.dequeue(key, WaitResult::Ok);
        }
        None
    }

    /// Finds the first thread with a claim behind a promise's first claim. Notifies threads before it; returns if any.
    pub(super) fn notify_up_to_first_thread(&mut self, location: Location) -> Option<(WaiterKey, bool)> {
        let mut others_before = false;
        loop {
            let key = self.lists.policy.line(location)?.threads().next()?;
            if self.is_due(key) {
                let _ = self.dequeue(key, WaitResult::TimedOut);
            } else if self.claim(key).is_some() {
                return Some((key, others_before));
            } else {
                others_before = true;
                let _ = self.dequeue(key, WaitResult::Ok);
            }
        }
    }

    /// Wakes a claim so that it retries, unless it is awake already.
    fn wake_claim(&mut self, location: Location, key: WaiterKey) {
        let blocks = self.blocks(key);
        if self.lists.policy.line_mut(location).is_some_and(|line| line.begins_to_wake(key, blocks)) {
            self.wake_to_retry(key);
        }
    }

    /// Wakes the first claim, to which the word may grant something; and if that is a promise's, whose event loop may
    /// be busy, the first blocked thread behind it, too. Without claims, notifies the first waiter.
    pub(super) fn wake_first(&mut self, location: Location) {
        if let Some((first, ..)) = self.notify_up_to_first_claim(location) {
            if !self.blocks(first)
                && let Some((thread, _)) = self.notify_up_to_first_thread(location)
            {
                let now = self.now();
                if let Some(line) = self.lists.policy.line_mut(location) {
                    line.overtaken.note_unready(first, now);
                }
                self.wake_claim(location, thread);
            }
            self.wake_claim(location, first);
        } else if let Some(key) = self.expire_to_front(location) {
            let _ = self.dequeue(key, WaitResult::Ok);
        }
    }

    /// Whether a claim's thread is ready for a hand-over: it blocks, runs this, or ran a moment ago.
    pub(super) fn is_ready(&self, location: Location, key: WaiterKey) -> bool {
        self.blocks(key) || self.has_run(location, key)
    }

    /// Whether a claim's thread runs this, or has retried in vain.
    fn has_run(&self, location: Location, key: WaiterKey) -> bool {
        self.is_of_runner(key, true) || self.lists.policy.line(location).is_some_and(|line| line.has_tried(key))
    }

    /// Finds the claim whose turn it is as the lock is released. Sets the next step of the releasing thread.
    pub(super) fn turn(&mut self, location: Location, released: &mut Released) -> Option<WaiterKey> {
        let (mut key, _, mut behind_others) = self.notify_up_to_first_claim(location)?;
        if !self.is_ready(location, key) {
            let now = self.now();
            *released = self.lists.policy.line_mut(location)?.overtaken.promise_is_unready(key, now);
            let thread_behind_others;
            (key, thread_behind_others) = self.notify_up_to_first_thread(location)?;
            behind_others |= thread_behind_others;
        }
        let is_its_turn = self.has_run(location, key) || {
            let now = self.now();
            self.lists.policy.line_mut(location)?.overtaken.thread_is_late(key, now)
        };
        (is_its_turn && !behind_others).then_some(key)
    }

    /// Serves the line of a word that has changed: a strict line's first claims are granted, or a lock's first is
    /// woken.
    pub(super) fn word_changed(&mut self, location: Location, word: &(impl Word + ?Sized)) {
        while let Some((key, request, _)) = self.notify_up_to_first_claim(location)
            && request.is_strict()
        {
            match self.take(location, request, word) {
                Some(result) => self.grant(key, location, result),
                None => return,
            }
        }
        self.was_freed(location);
        self.wake_first(location);
    }

    #[inline]
    pub(super) fn take(
        &mut self,
        location: Location,
        request: Request,
        word: &(impl Word + ?Sized),
    ) -> Option<WaitResult> {
        word.take(request).then(|| self.taken(location, request.hold(), word))
    }

    /// Notes that the hold has been taken from the word.
    pub(super) fn taken(&mut self, location: Location, hold: Hold, word: &(impl Word + ?Sized)) -> WaitResult {
        let from_dead = self.take_note_of_death(location, hold, word);
        if let Some(id) = hold.id() {
            self.note_holder(location, id, from_dead);
        }
        if from_dead { WaitResult::AcquiredFromDead } else { WaitResult::Acquired }
    }

    /// Grants the claim with this key its request: it leaves the line.
    pub(super) fn grant(&mut self, key: WaiterKey, location: Location, result: WaitResult) {
        // Whoever grants it wakes the next one.
        let (Listed { waiter, claim }, _) = self.unlist(key);
        if claim.expect("only claims are granted").is_for_lock() {
            self.lists.policy.granted.insert(location, waiter.clone());
        }
        self.settle(waiter, result);
        self.was_taken(location);
    }
}

/// At most one claim of a promise, and one of a thread.
type OneOfEach = [Option<WaiterKey>; 2];

/// The index of a promise's.
const PROMISE: usize = 0;

/// Returns whether it was one of the two.
fn remove(each: &mut OneOfEach, key: WaiterKey) -> bool {
    each.iter_mut().any(|claim| claim.take_if(|claim| *claim == key).is_some())
}

/// A line that has claims. `blocks`: whether a claim is a blocked thread's.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// Never 0: the line is removed with its last claim.
    pub(super) claims: u32,
    promises: u32,
    /// The blocked threads, with and without claims, that came while a promise's claim was in the line; in their order.
    /// If the first claim is a promise's, then these are all the threads behind it.
    threads: VecDeque<WaiterKey>,
    /// The claims that have been woken and have not retried yet.
    awake: OneOfEach,
    /// The claims that have been woken and have retried in vain.
    tried: OneOfEach,
    pub(super) overtaken: Overtaken,
    /// Since when at least whoever holds the word has held it, if that is known: see `inspection`.
    pub(super) held_since: Option<Timestamp>,
}

impl Line {
    pub(super) fn append(&mut self, key: WaiterKey, blocks: bool) {
        self.claims += 1;
        if blocks {
            self.append_thread(key);
        } else {
            self.promises += 1;
        }
    }

    pub(super) fn append_thread(&mut self, key: WaiterKey) {
        if self.promises > 0 {
            self.threads.push_back(key);
        }
    }

    /// Removes a claim. If it has retried, it may have left the lock free: a panic may have ended the retry.
    pub(super) fn remove(&mut self, key: WaiterKey, blocks: bool) -> Successor {
        self.claims -= 1;
        if blocks {
            self.remove_thread(key);
        } else {
            self.promises -= 1;
        }
        self.overtaken.remove(key);
        let (was_awake, has_tried) = (remove(&mut self.awake, key), remove(&mut self.tried, key));
        if was_awake || has_tried { Successor::ToBeWoken } else { Successor::Unconcerned }
    }

    pub(super) fn remove_thread(&mut self, key: WaiterKey) {
        // Mostly the first; and there are no more of them than threads.
        if let Some(index) = self.threads.iter().position(|thread| *thread == key) {
            self.threads.remove(index);
        }
    }

    /// Returns the blocked threads behind the first claim, in their order: if that is a promise's.
    pub(super) fn threads(&self) -> impl Iterator<Item = WaiterKey> {
        self.threads.iter().copied()
    }

    /// Notes that the claim is being woken. Returns false if it is awake already.
    #[must_use]
    pub(super) fn begins_to_wake(&mut self, key: WaiterKey, blocks: bool) -> bool {
        self.awake[usize::from(blocks)].replace(key) != Some(key)
    }

    /// Notes that the claim is about to retry. Returns false if it has not been woken to do so.
    #[must_use]
    pub(super) fn retries(&mut self, key: WaiterKey, blocks: bool) -> bool {
        let was_woken = remove(&mut self.awake, key);
        if was_woken {
            // If it succeeds, it leaves.
            self.tried[usize::from(blocks)] = Some(key);
        }
        was_woken
    }

    /// Whether the first claim is a promise's, woken and without a retry.
    pub(super) fn awaits_promise(&self) -> bool {
        self.awake[PROMISE].is_some()
    }

    pub(super) fn head_start(&self, thread: WaiterKey) -> Option<Timestamp> {
        let is_awake = |promise| self.awake == [Some(promise), Some(thread)];
        self.overtaken.head_start_of(is_awake)
    }

    pub(super) fn has_tried(&self, key: WaiterKey) -> bool {
        self.tried.contains(&Some(key))
    }
}
