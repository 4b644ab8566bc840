//! The registry: the agents of all threads of this process, and the workers that are going to be agents.
//!
//! An untimed promise keeps its event loop alive only while another thread could notify it: while there is an agent in
//! another thread, or a worker that will be one. When that changes, the registry rings every agent, which decides anew.
//!
//! A worker that is going to load the addon counts from the moment at which its parent has made it: as one that its
//! parent's agent is starting. It becomes an agent in the critical section in which it ceases to be that, so it counts
//! at every moment in between. A worker that ends earlier is removed by its parent, or with its parent.
//!
//! # Grants on their way to the robust lists
//! A grant lies in its agent's outbox, or is the result for which the agent's thread sleeps, until that has it in its
//! robust list. Meanwhile the thread may hold more of the same word. So whether a grant is in a list that has been read
//! is not seen by its word and agent: it was not, if it is on its way *afterwards*, too.
//!
//! An outbox is read for one bucket after the other, and may have a hundred thousand grants. So each grant is read once,
//! and kept with those of its bucket ([`Incoming`]).

#![allow(unsafe_code, reason = "tables of other threads, read under a lock")]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;

use rustc_hash::FxHashMap;

use super::notes::{Noted, SharedNotes};
use super::robust_list::{Held, Holds};
use super::stacks::StackId;
use crate::clock::Timestamp;
use crate::lock::{Hold, Outbox, Request, Waiter, WaiterListStore};
use crate::queue::{BlockedThread, Location, Reading};
use crate::sync::lock;

/// An agent, as every thread knows it.
pub struct Registered {
    pub thread: ThreadId,
    pub known: Known,
    pub robust_list: Holds,
    /// The workers of its thread that are going to be agents, by their `threadId`.
    pub starting: Vec<u32>,
}

// SAFETY: the table's targets are read under the lock of the registry only, which an agent leaves before they go; and
// only atomics are read there.
unsafe impl Send for Registered {}

/// An agent, without its holds. A copy may be used while the registry is not locked.
#[derive(Clone)]
pub struct Known {
    pub thread_id: u32,
    /// Its `worker_threads.threadName`, if a program has given it one.
    pub thread_name: Option<Arc<str>>,
    pub outbox: Arc<Outbox>,
    pub blocked_thread: Arc<BlockedThread>,
    /// The waits of its thread and its promises, and where it took its holds.
    pub notes: SharedNotes,
}

impl Known {
    /// Lists the grants that are in the agent's outbox.
    pub fn grants(&self) -> Vec<(Location, Request)> {
        let mut slots = Vec::new();
        self.outbox.read_grants(&mut Reading::default(), |slot, _| slots.push(slot));
        slots.into_iter().filter_map(|slot| self.notes.of_slot(slot)?.claim()).collect()
    }

    pub fn is(&self, waiter: &Waiter) -> bool {
        match waiter {
            Waiter::Thread(thread) => Arc::ptr_eq(thread, &self.blocked_thread),
            Waiter::Agent(outbox, _) => Arc::ptr_eq(outbox, &self.outbox),
        }
    }
}

#[derive(Default)]
pub struct Registry {
    agents: Mutex<Vec<Registered>>,
    /// Whether an agent's thread is not the only one: kept here so that reading it takes no lock.
    several_threads: AtomicBool,
    /// How many threads have loaded the package, and have no agent yet.
    loaded: AtomicUsize,
}

impl Registry {
    /// Runs `change`; rings every agent where one thread becomes several, or the reverse.
    fn change(&self, change: impl FnOnce(&mut Vec<Registered>)) {
        let mut agents = lock(&self.agents);
        change(&mut agents);
        let is_other = |agent: &Registered| agent.thread != agents[0].thread || !agent.starting.is_empty();
        let is_loaded = !agents.is_empty() && self.loaded.load(Ordering::Relaxed) > 0;
        let several = is_loaded || agents.iter().any(is_other);
        let changed = self.several_threads.swap(several, Ordering::AcqRel) != several;
        let to_ring: Vec<_> = agents.iter().filter(|_| changed).map(|agent| Arc::clone(&agent.known.outbox)).collect();
        drop(agents);
        for outbox in to_ring {
            outbox.ring();
        }
    }

    /// Whether another thread has loaded the addon, or is going to.
    pub fn has_several_threads(&self) -> bool {
        self.several_threads.load(Ordering::Acquire)
    }

    /// Counts a thread without an agent among those that may notify; or uncounts it.
    pub fn count_loaded(&self, counts: bool) {
        // Wrapping, the largest number is -1.
        self.change(|_| _ = self.loaded.fetch_add(if counts { 1 } else { usize::MAX }, Ordering::Relaxed));
    }

    pub fn join(&self, agent: Registered) {
        self.change(|agents| {
            for each in agents.iter_mut() {
                each.starting.retain(|&thread_id| thread_id != agent.known.thread_id);
            }
            agents.push(agent);
        });
    }

    pub fn leave(&self, outbox: &Arc<Outbox>) {
        self.change(|agents| agents.retain(|agent| !Arc::ptr_eq(&agent.known.outbox, outbox)));
    }

    pub fn worker_starts(&self, outbox: &Arc<Outbox>, thread_id: u32) {
        self.change(|agents| {
            // The worker may be an agent already.
            if agents.iter().any(|agent| agent.known.thread_id == thread_id) {
                return;
            }
            if let Some(parent) = find(agents, outbox) {
                parent.starting.push(thread_id);
            }
        });
    }

    /// Notes the end of a worker, which may have been no agent.
    pub fn worker_ended(&self, outbox: &Arc<Outbox>, thread_id: u32) {
        self.change(|agents| {
            if let Some(parent) = find(agents, outbox) {
                parent.starting.retain(|&each| each != thread_id);
            }
        });
    }

    pub fn set_robust_list(&self, outbox: &Arc<Outbox>, table: Holds) {
        if let Some(agent) = find(&mut lock(&self.agents), outbox) {
            agent.robust_list = table;
        }
    }

    pub fn interrupt(&self) {
        let agents = lock(&self.agents);
        let threads = agents.iter().map(|agent| &agent.known.blocked_thread);
        let blocked: Vec<_> = threads.filter(|thread| thread.is_blocked()).cloned().collect();
        drop(agents);
        for thread in blocked {
            thread.interrupt();
        }
    }

    /// Returns the result of `of` for the first agent that matches.
    pub fn find<R>(&self, is_so: impl Fn(&Registered) -> bool, of: impl FnOnce(&Registered) -> R) -> Option<R> {
        lock(&self.agents).iter().find(|agent| is_so(agent)).map(of)
    }

    pub fn thread_of(&self, is_so: impl Fn(&Registered) -> bool) -> Option<u32> {
        self.find(is_so, |agent| agent.known.thread_id)
    }

    /// Marks the entry at `index` of an agent's robust list, a [`Hold::Putter`]: its thread is about to block. If
    /// then all `capacity` messages of the queue were in use by such threads, it marks nothing and returns their
    /// `threadId`s, this one's first. So of the threads of such a cycle only the last gets an error.
    ///
    /// A thread changes nothing that it holds while it is marked. Messages that are counted stay in use until this
    /// returns, so all of them are in use at one moment. Two readings show whether a thread was marked throughout.
    pub fn block_putter(
        &self,
        outbox: &Arc<Outbox>,
        index: usize,
        queue: Location,
        capacity: usize,
    ) -> Option<Vec<u32>> {
        let agents = lock(&self.agents);
        let is_own = |agent: &Registered| Arc::ptr_eq(&agent.known.outbox, outbox);
        let own = agents.iter().find(|agent| is_own(agent))?;
        let entry = own.robust_list.entries().get(index)?;
        let (location, Hold::Putter(words)) = entry.get()? else { return None };
        entry.set(location, Hold::BlockedPutter(words));
        let read = || agents.iter().map(|agent| agent.robust_list.used_by_putter(queue)).collect::<Vec<_>>();
        let used = read();
        if used.iter().map(Vec::len).sum::<usize>() < capacity || read() != used {
            return None;
        }
        entry.set(location, Hold::Putter(words));
        let users = agents.iter().zip(&used).filter(|(agent, used)| !used.is_empty() && !is_own(agent));
        let others = users.map(|(agent, _)| agent.known.thread_id);
        Some([own.known.thread_id].into_iter().chain(others).collect())
    }

    /// Lists the agents that `whose` chooses, and their holds where `concerns`. Each hold has the index of its agent.
    pub fn held(
        &self,
        whose: impl Fn(&Known) -> bool,
        concerns: impl Fn(Location) -> bool,
    ) -> (Vec<Known>, Vec<(usize, Held)>) {
        let agents = lock(&self.agents);
        let agents = agents.iter().filter(|agent| whose(&agent.known));
        let held = agents
            .clone()
            .enumerate()
            .flat_map(|(index, agent)| agent.robust_list.held(&concerns).into_iter().map(move |held| (index, held)));
        (agents.clone().map(|agent| agent.known.clone()).collect(), held.collect())
    }
}

fn find<'a>(agents: &'a mut [Registered], outbox: &Arc<Outbox>) -> Option<&'a mut Registered> {
    agents.iter_mut().find(|agent| Arc::ptr_eq(&agent.known.outbox, outbox))
}

/// A grant that may not be in its agent's robust list yet.
#[derive(Clone, Copy)]
pub struct Undelivered {
    pub location: Location,
    pub hold: Hold,
    /// The stack of the call that claimed it, if stalls are reported.
    pub call: StackId,
    /// When that claim began.
    since: Timestamp,
    /// Its place in the mail. `None`: it is the result of the thread's sleep.
    place: Option<usize>,
}

impl Undelivered {
    /// Returns a claim's grant. `None` if it will be in no robust list.
    fn of(Noted { location, request, call, since, .. }: Noted, place: Option<usize>) -> Option<Self> {
        let request = request.filter(|request| request.is_owned() && request.is_visible())?;
        Some(Self { location, hold: request.hold(), call, since, place })
    }
}

/// The grants on their way to an agent, by bucket.
#[derive(Default)]
pub struct Incoming {
    reading: Reading,
    by_bucket: FxHashMap<usize, Vec<Undelivered>>,
}

impl Incoming {
    /// Reads the new grants, and forgets those that were taken.
    pub fn read(&mut self, store: &WaiterListStore, agent: &Known) {
        let mut new = Vec::new();
        if !agent.outbox.read_grants(&mut self.reading, |slot, place| new.push((slot, place))) {
            self.by_bucket.clear();
        }
        for (slot, place) in new {
            // Without a note it has been taken out meanwhile.
            if let Some(given) = agent.notes.of_slot(slot).and_then(|noted| Undelivered::of(noted, Some(place))) {
                self.by_bucket.entry(store.index_of(given.location)).or_default().push(given);
            }
        }
    }

    pub fn locations(&self) -> impl Iterator<Item = Location> {
        self.by_bucket.values().flatten().map(|given| given.location)
    }

    /// Lists the agent's grants at words of a bucket.
    pub fn to(&mut self, store: &WaiterListStore, agent: &Known, bucket: usize) -> Vec<Undelivered> {
        self.read(store, agent);
        let slept_for = slept_for(agent).filter(|given| store.index_of(given.location) == bucket);
        let Some(given) = self.by_bucket.get_mut(&bucket) else { return slept_for.into_iter().collect() };
        let still_has = agent.outbox.still_has(&self.reading);
        given.retain(|given| given.place.is_some_and(&still_has));
        given.iter().copied().chain(slept_for).collect()
    }

    /// Calls `keep` with the grants that are not in the agent's list.
    ///
    /// The list was read after the grants. `is_listed`: whether it has a new entry for the word. Returns whether it is
    /// known of all grants.
    pub fn keep(
        &self,
        agent: &Known,
        given: Vec<Undelivered>,
        is_listed: impl Fn(Location) -> bool,
        mut keep: impl FnMut(Undelivered),
    ) -> bool {
        let slept_for = slept_for(agent);
        let still_has = agent.outbox.still_has(&self.reading);
        let mut are_known = true;
        for given in given {
            let is_there = match given.place {
                Some(place) => still_has(place),
                None => slept_for.is_some_and(|now| now.since == given.since),
            };
            are_known &= is_there;
            if is_there && (given.place.is_some() || !is_listed(given.location)) {
                keep(given);
            }
        }
        are_known
    }
}

/// Returns the grant that ends the sleep of the agent's thread.
fn slept_for(agent: &Known) -> Option<Undelivered> {
    agent.blocked_thread.result().filter(|result| result.is_acquired())?;
    Undelivered::of(agent.notes.sleep()?, None)
}
