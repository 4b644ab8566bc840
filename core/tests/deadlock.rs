//! Cycles of blocked threads, under every order of their steps: each is found, by one thread, and none that is not
//! there.
//!
//! A run is a sequence of choices, which thread makes the next step. All sequences are run, one after the other, but
//! for those that come to a state from which all has been run before. A step is what is done under one lock; loom
//! (`core/tests/model.rs`) takes these apart for two threads.

#![cfg(not(feature = "model"))]

mod fixtures;

use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::AtomicI32;
use std::thread;

use fixtures::{NEVER, this_thread};
use waitasync_core::clock::Timestamp;
use waitasync_core::lock::Hold;
use waitasync_core::lock::Request::{self, Exclusive, Lock, Permits, Shared};
use waitasync_core::lock::wait_for_graph::{Blocked, Blocker, CycleLink, Obstacle, WaitForGraph};
use waitasync_core::lock::wait_for_graph::{beside_own, is_kept_by};
use waitasync_core::lock::{Claimed, Waiter, WaiterListStore, Word};
use waitasync_core::queue::{BlockedThread, Location, Ticket, WaitResult, Woken};

const NOW: Timestamp = Timestamp::from_nanos(0);
/// Of a thread that gives up: that happens by a step of its own.
const LATER: Timestamp = Timestamp::from_nanos(1 << 62);

fn location(word: usize) -> Location {
    Location::from_address(0x1000 + 4 * word)
}

/// How a thread may end a wait without its lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Temper {
    /// It does not.
    Patient,
    /// Its claims have a timeout, which may come at any moment.
    GivesUp,
    /// It may die at any moment.
    Mortal,
}
use Temper::{GivesUp, Mortal, Patient};

/// A thread's script: it takes these one after the other, and then gives them back.
type Script = (Temper, &'static [(usize, Request)]);

#[derive(Clone, Copy, Debug)]
enum State {
    /// It is about to claim the next.
    Runs,
    /// Its claim is in the line.
    Queued(Ticket),
    /// It sleeps. Other threads know if it holds something.
    Asleep(Ticket),
    /// It has what it claimed, and is still published.
    Awake,
    /// It has found a cycle, and its claim is in the line still.
    Leaves(Ticket),
    /// It gives back what it holds.
    Ends,
    Ended,
}

struct Thread {
    script: Script,
    record: Arc<BlockedThread>,
    state: State,
    woken: Option<Woken>,
    holds: Vec<(usize, Hold)>,
    /// How many of its script it has taken.
    taken: usize,
}

impl Thread {
    fn is(&self, record: &Arc<BlockedThread>) -> bool {
        Arc::ptr_eq(&self.record, record)
    }

    fn held_at(&self, at: Location) -> impl Iterator<Item = Hold> {
        self.holds.iter().filter(move |hold| location(hold.0) == at).map(|hold| hold.1)
    }
}

struct World {
    store: WaiterListStore,
    graph: WaitForGraph,
    words: Vec<AtomicI32>,
    threads: RefCell<Vec<Thread>>,
    /// In the order in which they joined a line.
    arrived: Vec<usize>,
    found: usize,
    died: bool,
}

impl World {
    fn new(scripts: &[Script]) -> Self {
        let thread = |&script| Thread {
            script,
            record: this_thread(),
            state: State::Runs,
            woken: None,
            holds: Vec::new(),
            taken: 0,
        };
        Self {
            store: WaiterListStore::new(1, || NOW),
            graph: WaitForGraph::default(),
            words: (0..3).map(|_| AtomicI32::default()).collect(),
            threads: RefCell::new(scripts.iter().map(thread).collect()),
            arrived: Vec::new(),
            found: 0,
            died: false,
        }
    }

    /// Everything on which the further course depends.
    fn state(&self) -> String {
        let threads = self.threads.borrow();
        // Addresses differ from run to run: the graph has threads by those of their records, the counters begin at one
        // that is aligned.
        let (published, store) = (format!("{:?}", self.graph), format!("{:?}", self.store));
        let lists = store.split(", counters: ").next();
        let of = |thread: &Thread| {
            let is_published = published.contains(&format!("{}: ", Arc::as_ptr(&thread.record).addr()));
            format!("{:?}", (thread.state, thread.woken, &thread.holds, thread.taken, &thread.record, is_published))
        };
        let threads: Vec<_> = threads.iter().map(of).collect();
        let words: Vec<_> = self.words.iter().map(Word::load).collect();
        format!("{threads:?} {words:?} {:?} {} {} {lists:?}", self.arrived, self.found, self.died)
    }

    /// What keeps a thread waiting, by what each thread has written down. Of holders, only those that have one of the
    /// `waits`.
    fn blockers(&self, waits: &[Arc<BlockedThread>], blocked: &Blocked) -> Vec<Blocker> {
        let threads = self.threads.borrow();
        let waiting = threads.iter().filter(|thread| waits.iter().any(|record| thread.is(record)));
        let held = |thread: &Thread| {
            let record = Arc::clone(&thread.record);
            thread.held_at(blocked.location).map(|held| (Arc::clone(&record), held)).collect::<Vec<_>>()
        };
        let held: Vec<_> = waiting.flat_map(held).collect();
        let holds = |record: &Arc<BlockedThread>| threads.iter().any(|each| each.is(record) && !each.holds.is_empty());
        self.store.blockers(blocked, &held, |_| None, holds)
    }

    /// No thread of the cycle can go on, as far as the threads themselves know.
    fn check(&self, cycle: &[CycleLink], finder: usize) {
        let threads = self.threads.borrow();
        let thread_of = |blocked: &Blocked| threads.iter().find(|thread| thread.is(&blocked.thread)).unwrap();
        assert!(threads[finder].is(&cycle[0].blocked.thread));
        for (index, link) in cycle.iter().enumerate() {
            let thread = thread_of(&link.blocked);
            assert!(thread.script.0 != GivesUp, "its claim may time out");
            let (at, request) = thread.script.1[thread.taken];
            assert_eq!((location(at), request), (link.blocked.location, link.blocked.request));
            assert!(matches!(thread.state, State::Asleep(_) | State::Queued(_)), "{:?}", thread.state);
            assert_eq!(thread.record.result(), None);
            let before = &cycle[(index + cycle.len() - 1) % cycle.len()].blocked;
            match link.obstacle {
                Obstacle::Holds(held) => {
                    assert!(thread.held_at(before.location).any(|request| request == held));
                    let own = thread_of(before).held_at(before.location);
                    assert!(is_kept_by(beside_own(before.request, own), held));
                }
                Obstacle::IsAhead(_) => assert_eq!(before.location, link.blocked.location),
            }
        }
    }

    /// The steps that this thread can make now: how many.
    fn steps(&self, index: usize) -> usize {
        let mut threads = self.threads.borrow_mut();
        let thread = &mut threads[index];
        let ends_otherwise = usize::from(thread.script.0 != Patient);
        match thread.state {
            State::Ended => 0,
            State::Queued(_) => 1 + ends_otherwise,
            State::Asleep(ticket) => {
                if thread.woken.is_none() {
                    let woken = self.store.park(ticket, &thread.record, NEVER, NOW);
                    thread.woken = Some(woken).filter(|&woken| woken != Woken::TimeOver);
                }
                usize::from(thread.woken.is_some()) + ends_otherwise
            }
            _ => 1,
        }
    }

    fn set(&self, index: usize, state: State) {
        self.threads.borrow_mut()[index].state = state;
    }

    fn acquired(&self, index: usize) {
        let thread = &mut self.threads.borrow_mut()[index];
        let next = thread.script.1[thread.taken];
        thread.holds.push((next.0, next.1.hold()));
        thread.taken += 1;
    }

    fn step(&mut self, index: usize, choice: usize) {
        let (state, record, script, taken, woken) = {
            let thread = &mut self.threads.borrow_mut()[index];
            (thread.state, Arc::clone(&thread.record), thread.script, thread.taken, thread.woken)
        };
        let ends_otherwise = script.0 != Patient;
        // The claim or wait of the step; the last again once it has all.
        let (at, request) = script.1[taken.min(script.1.len() - 1)];
        match state {
            State::Runs if taken == script.1.len() => self.set(index, State::Ends),
            State::Runs => {
                let waiter = Waiter::Thread(Arc::clone(&record));
                let deadline = if script.0 == GivesUp { LATER } else { NEVER };
                match self.store.claim(location(at), waiter, request, deadline, &self.words[at]) {
                    Claimed::Now(_) => self.acquired(index),
                    Claimed::Pending(ticket) => {
                        self.arrived.retain(|&other| other != index);
                        self.arrived.push(index);
                        self.set(index, State::Queued(ticket));
                    }
                }
            }
            State::Queued(ticket) | State::Asleep(ticket)
                if ends_otherwise && (choice == 1 || (matches!(state, State::Asleep(_)) && woken.is_none())) =>
            {
                let result = self.store.withdraw_thread(ticket, &record);
                self.graph.leave(&record);
                if result.is_acquired() {
                    self.store.return_unused(location(at), request.hold(), result, &self.words[at]);
                }
                self.died |= script.0 == Mortal;
                self.set(index, State::Ends);
            }
            State::Queued(ticket) => {
                self.threads.borrow_mut()[index].woken = None;
                let holds = !self.threads.borrow()[index].holds.is_empty();
                let is_published = script.0 != GivesUp && !matches!(request, Permits(_)) && holds;
                let blocked = Blocked { thread: Arc::clone(&record), ticket, location: location(at), request };
                let cycle = if is_published {
                    let world = &*self;
                    world.graph.block(&blocked, |waits| {
                        let waits: Vec<_> = waits.iter().map(|wait| Arc::clone(&wait.thread)).collect();
                        move |other: &Blocked| world.blockers(&waits, other)
                    })
                } else {
                    None
                };
                match cycle {
                    None => self.set(index, State::Asleep(ticket)),
                    Some(cycle) => {
                        self.check(&cycle, index);
                        self.found += 1;
                        self.set(index, State::Leaves(ticket));
                    }
                }
            }
            State::Leaves(ticket) => {
                let result = self.store.withdraw_thread(ticket, &record);
                self.graph.leave(&record);
                if result.is_acquired() {
                    assert!(self.died, "it cannot be granted");
                    self.acquired(index);
                    self.set(index, State::Runs);
                } else {
                    self.set(index, State::Ends);
                }
            }
            State::Asleep(ticket) => {
                self.threads.borrow_mut()[index].woken = None;
                let result = match woken {
                    Some(Woken::Settled(result)) => Some(result),
                    _ => self.store.retry(ticket, &Waiter::Thread(Arc::clone(&record)), &self.words[at]),
                };
                if result.is_some_and(WaitResult::is_acquired) {
                    self.acquired(index);
                    self.set(index, State::Awake);
                }
            }
            State::Awake => {
                self.graph.leave(&record);
                self.set(index, State::Runs);
            }
            State::Ends => {
                let held = self.threads.borrow_mut()[index].holds.pop();
                match held {
                    Some((at, request)) if script.0 == Mortal && self.died => {
                        self.store.return_unused(location(at), request, WaitResult::AcquiredFromDead, &self.words[at]);
                    }
                    Some((at, request)) => {
                        self.store.return_unused(location(at), request, WaitResult::Acquired, &self.words[at]);
                    }
                    None => self.set(index, State::Ended),
                }
            }
            State::Ended => unreachable!(),
        }
    }
}

/// Runs the scripts in every order, after a step of each thread that is `first`. In how many a cycle was found, and in
/// how many none was.
fn run_all(first: &[usize], scripts: &[Script]) -> (usize, usize) {
    let (mut with, mut without) = (0, 0);
    // Which of how many choices is made, one after the other.
    let mut choices: Vec<(usize, usize)> = Vec::new();
    let mut seen = HashSet::new();
    loop {
        let mut world = World::new(scripts);
        for &thread in first {
            world.step(thread, 0);
        }
        let (mut made, mut was_seen) = (0, false);
        loop {
            let possible: Vec<_> = (0..scripts.len())
                .flat_map(|thread| (0..world.steps(thread)).map(move |step| (thread, step)))
                .collect();
            if possible.is_empty() {
                break;
            }
            if made == choices.len() {
                choices.push((0, possible.len()));
            }
            assert_eq!(choices[made].1, possible.len(), "the same choices lead to the same state");
            let (thread, step) = possible[choices[made].0];
            made += 1;
            world.step(thread, step);
            if made == choices.len() && !seen.insert(world.state()) {
                was_seen = true;
                break;
            }
        }
        if !was_seen {
            let states: Vec<_> = world.threads.borrow().iter().map(|thread| thread.state).collect();
            let ended = states.iter().all(|state| matches!(state, State::Ended));
            assert!(ended, "a cycle was not found: {states:?}, {choices:?}");
            assert!(world.found <= 1, "a cycle was found twice: {choices:?}");
            *(if world.found == 1 { &mut with } else { &mut without }) += 1;
        }
        // The next sequence.
        choices.truncate(made);
        while let Some((choice, of)) = choices.pop() {
            if choice + 1 < of {
                choices.push((choice + 1, of));
                break;
            }
        }
        if choices.is_empty() {
            return (with, without);
        }
    }
}

const A: (usize, Request) = (0, Lock);
const B: (usize, Request) = (1, Lock);
const C: (usize, Request) = (2, Lock);
const READ: (usize, Request) = (0, Shared);
const WRITE: (usize, Request) = (0, Exclusive);
const READ_OTHER: (usize, Request) = (1, Shared);
/// One and both of the permits of a limit.
const ONE: (usize, Request) = (0, Request::Limited { amount: 1, limit: 2 });
const BOTH: (usize, Request) = (0, Request::Limited { amount: 2, limit: 2 });

/// A reader that wants a lock, one that holds it, and a writer between them.
const READER: Script = (Patient, &[READ, B]);
const LOCKER: Script = (Patient, &[B, READ]);
const WRITER: Script = (Patient, &[WRITE]);

/// Two that read one of two words each, and want to write the other.
const ACROSS: Script = (Patient, &[READ, (1, Exclusive)]);
const BACK: Script = (Patient, &[READ_OTHER, WRITE]);

/// The first and the last of four threads have what they take first: four have too many orders. Of the orders of three
/// all are run.
const OUTER: &[usize] = &[0, 3];

/// The cycle, the threads that make a step first, and the scripts.
type Case = (&'static str, &'static [usize], &'static [Script]);

/// In some orders there is a cycle.
const FOUND: &[Case] = &[
    ("of two", &[], &[(Patient, &[A, B]), (Patient, &[B, A])]),
    ("of three", &[], &[(Patient, &[A, B]), (Patient, &[B, C]), (Patient, &[C, A])]),
    ("of two beside a third", &[], &[(Patient, &[A, B]), (Patient, &[B, A]), (Patient, &[A])]),
    ("with one that may die", &[], &[(Patient, &[A, B]), (Mortal, &[B, A])]),
    ("of writers and readers", &[], &[ACROSS, BACK]),
    ("of a writer and a reader", &[], &[(Patient, &[WRITE, B]), LOCKER]),
    ("a writer waits for each reader", &[], &[(Patient, &[READ]), READER, (Patient, &[B, WRITE])]),
    ("one has all of a limit", &[], &[(Patient, &[BOTH, B]), (Patient, &[B, ONE])]),
    ("one wants all of a limit", &[], &[(Patient, &[ONE, B]), (Patient, &[B, BOTH])]),
    ("the same beside a third", &[], &[(Patient, &[ONE]), (Patient, &[ONE, B]), (Patient, &[B, BOTH])]),
    ("two want more of a limit", &[], &[(Patient, &[ONE, ONE]), (Patient, &[ONE, ONE])]),
    ("through a claim of a limit ahead", &[], &[(Patient, &[ONE, B]), (Patient, &[BOTH]), (Patient, &[B, ONE])]),
    ("past another", OUTER, &[(Patient, &[ONE, B]), (Patient, &[BOTH]), (Patient, &[ONE]), (Patient, &[B, ONE])]),
    ("through a writer ahead that holds nothing", &[], &[READER, WRITER, LOCKER]),
    ("past writers ahead that hold nothing", OUTER, &[READER, WRITER, WRITER, LOCKER]),
    ("past a writer that holds nothing", &[], &[READER, WRITER, (Patient, &[B, WRITE])]),
    ("past a writer that finds another one and leaves", OUTER, &[READER, WRITER, (Patient, &[C, WRITE]), LOCKER]),
    ("a reader comes before the writer that found it has left", &[], &[ACROSS, BACK, (Patient, &[READ_OTHER, READ])]),
    ("past a writer ahead that may give up", OUTER, &[READER, WRITER, (GivesUp, &[WRITE]), LOCKER]),
];

const NEVER_FOUND: &[Case] = &[
    ("all take the locks in one order", &[], &[(Patient, &[A, B]), (Patient, &[A, B])]),
    ("the same of three", &[], &[(Patient, &[A, B]), (Patient, &[B, C]), (Patient, &[A])]),
    ("one may give up", &[], &[(Patient, &[A, B]), (GivesUp, &[B, A])]),
    ("the same of three", &[], &[(Patient, &[A, B]), (GivesUp, &[B, A]), (Patient, &[B])]),
    ("readers", &[], &[(Patient, &[READ, READ_OTHER]), (Patient, &[READ_OTHER, READ])]),
    ("one that wants more of a limit may give up", &[], &[(Patient, &[ONE, ONE]), (GivesUp, &[ONE, ONE])]),
    ("a limit has room beside its holder", &[], &[(Patient, &[ONE, B]), (Patient, &[B, ONE])]),
    ("and beside each of two", &[], &[(Patient, &[ONE]), (Patient, &[ONE, B]), (Patient, &[B, ONE])]),
    ("a claim of a limit ahead may give up", &[], &[(Patient, &[ONE, B]), (GivesUp, &[BOTH]), (Patient, &[B, ONE])]),
    ("a writer ahead may give up", &[], &[READER, (GivesUp, &[WRITE]), LOCKER]),
];

/// Some runs of each case have no cycle, and others one if there `is_found` any.
fn run_cases(cases: &'static [Case], is_found: bool) {
    thread::scope(|scope| {
        for (what, first, scripts) in cases {
            scope.spawn(move || {
                let (with, without) = run_all(first, scripts);
                assert!((with > 0) == is_found && without > 0, "{what}: {with} runs with a cycle, {without} without");
            });
        }
    });
}

#[test]
fn each_cycle_is_found() {
    run_cases(FOUND, true);
}

#[test]
fn no_cycle_is_found_where_there_is_none() {
    run_cases(NEVER_FOUND, false);
}
