//! Models of the locks in mapped memory: loom's threads are the processes.
//!
//! Run as `tests/model.rs` is. A process that nobody rings is a deadlock, so "is woken" needs no assertion.

#![cfg(feature = "model")]

use loom::sync::atomic::AtomicU64;
use loom::sync::atomic::Ordering::SeqCst;
use loom::sync::{Arc, Notify};
use loom::thread::{JoinHandle, spawn};
use waitasync_core::mapped::ProcessId;
use waitasync_core::mapped::names::{
    Entry, Head, Key, Mode, Names, Permit, Place, Refusal, TURN_MILLISECONDS, Way, World,
};

/// Bells, and a clock that stands still unless a model moves it: until then, no turn is over.
struct Bells {
    bells: [Notify; 3],
    clock: std::sync::atomic::AtomicU64,
}

impl World for &Bells {
    fn now(&self) -> u64 {
        self.clock.load(SeqCst)
    }

    fn ring(&self, index: usize) {
        self.bells[index].notify();
    }

    fn come(&self, _position: usize, _moment: u64) {}
}

struct Memory {
    head: Head,
    titles: Vec<AtomicU64>,
    entries: Vec<Entry>,
    bells: Bells,
    /// What the lock protects: written in two steps.
    inside: [AtomicU64; 2],
}

impl Memory {
    fn new(entries: usize) -> Arc<Self> {
        let titles: Vec<_> = (0..entries).map(|_| AtomicU64::new(0)).collect();
        // To loom, the initial value of a word is no `SeqCst` store.
        for title in &titles {
            title.store(0, SeqCst);
        }
        Arc::new(Self {
            head: Head::default(),
            titles,
            entries: (0..entries).map(|_| Entry::default()).collect(),
            bells: Bells { bells: std::array::from_fn(|_| Notify::new()), clock: 0.into() },
            inside: std::array::from_fn(|_| AtomicU64::new(0)),
        })
    }

    fn names(&self) -> Names<'_, &Bells> {
        Names::new(&self.head, &self.titles, &self.entries, &self.bells)
    }

    /// Waits as a process does whose requests wait, and returns whether the last holder died.
    fn lock(&self, place: Place, index: usize, mode: Mode) -> bool {
        let (names, me) = (self.names(), process(index));
        if let Ok(died) = names.take(place, me, mode, Way::New) {
            return died;
        }
        self.go_on(place, index, mode)
    }

    fn go_on(&self, place: Place, index: usize, mode: Mode) -> bool {
        let (names, me) = (self.names(), process(index));
        loop {
            names.wait(place, me, mode);
            match names.take(place, me, mode, Way::First) {
                Ok(died) => {
                    names.leave(place, me);
                    return died;
                }
                Err(Refusal::Taken) => self.sleep(place, index),
                Err(_) => unreachable!("it is awaited"),
            }
        }
    }

    /// Sleeps until a ring that concerns it.
    fn sleep(&self, place: Place, index: usize) {
        self.bells.bells[index].wait();
        while !self.names().is_rung_for(place, process(index)) {
            self.bells.bells[index].wait();
        }
    }

    /// Checks that nobody else is inside, and changes it in two steps.
    fn visit(&self) {
        let before = self.inside[0].load(SeqCst);
        assert_eq!(self.inside[1].load(SeqCst), before);
        self.inside[0].store(before + 1, SeqCst);
        self.inside[1].store(before + 1, SeqCst);
    }
}

const fn process(index: usize) -> ProcessId {
    ProcessId::new(index, 1).unwrap()
}

const KEY: Key = [1, 0, 0, 0];
const OTHER: Key = [2, 0, 0, 0];

fn place(memory: &Memory, key: &Key) -> Place {
    memory.names().name(key, "", process(0)).unwrap()
}

fn beside<T: 'static>(memory: &Arc<Memory>, run: impl FnOnce(&Memory) -> T + 'static) -> JoinHandle<T> {
    let memory = Arc::clone(memory);
    spawn(move || run(&memory))
}

fn bounded(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(3));
    builder.check(model);
}

#[test]
fn two_exclusive_holders_come_one_after_the_other_and_both_come() {
    bounded(|| {
        let memory = Memory::new(1);
        let place = place(&memory, &KEY);
        let visit = move |index| {
            move |memory: &Memory| {
                memory.lock(place, index, Mode::Exclusive);
                memory.visit();
                assert!(memory.names().release(place, process(index), Mode::Exclusive, false));
            }
        };
        let other = beside(&memory, visit(1));
        visit(0)(&memory);
        other.join().unwrap();
        assert_eq!(memory.inside[0].load(SeqCst), 2);
    });
}

#[test]
fn readers_come_together_or_one_by_one_and_never_beside_a_writer() {
    bounded(|| {
        let memory = Memory::new(1);
        let place = place(&memory, &KEY);
        let read = move |index| {
            move |memory: &Memory| {
                memory.lock(place, index, Mode::Shared);
                assert_eq!(memory.inside[0].load(SeqCst), memory.inside[1].load(SeqCst));
                assert!(memory.names().release(place, process(index), Mode::Shared, false));
            }
        };
        let others = [1, 2].map(|index| beside(&memory, read(index)));
        memory.lock(place, 0, Mode::Exclusive);
        memory.visit();
        memory.names().release(place, process(0), Mode::Exclusive, false);
        for other in others {
            other.join().unwrap();
        }
    });
}

#[test]
fn a_dead_holder_is_swept_and_whoever_waits_is_told() {
    bounded(|| {
        let memory = Memory::new(1);
        let place = place(&memory, &KEY);
        memory.lock(place, 2, Mode::Exclusive);
        let sweeper = beside(&memory, |memory| memory.names().sweep(process(2)));
        assert!(memory.lock(place, 0, Mode::Exclusive));
        sweeper.join().unwrap();
    });
}

/// Process 2 frees the lock, and dies before it rings anybody; or has the turn, and dies.
#[test]
fn a_death_between_the_release_and_the_ring_is_made_good_by_the_sweep() {
    for has_turn in [false, true] {
        bounded(move || {
            let memory = Memory::new(1);
            let place = place(&memory, &KEY);
            let names = memory.names();
            if has_turn {
                names.wait(place, process(2), Mode::Exclusive);
                names.stir(place, process(1));
            }
            let sweeper = beside(&memory, |memory| memory.names().sweep(process(2)));
            memory.lock(place, 0, Mode::Exclusive);
            sweeper.join().unwrap();
        });
    }
}

#[test]
fn who_gives_up_leaves_its_turn_to_the_next() {
    bounded(|| {
        let memory = Memory::new(1);
        let place = place(&memory, &KEY);
        memory.lock(place, 2, Mode::Exclusive);
        memory.names().wait(place, process(1), Mode::Exclusive);
        let holder = beside(&memory, move |memory| memory.names().release(place, process(2), Mode::Exclusive, false));
        let quitter = beside(&memory, move |memory| {
            memory.names().leave(place, process(1));
            memory.names().stir(place, process(1));
        });
        memory.lock(place, 0, Mode::Exclusive);
        assert!(holder.join().unwrap());
        quitter.join().unwrap();
    });
}

/// Process 1 has the turn and is suspended, or goes on just then. Whoever has given the turn comes back.
#[test]
fn a_turn_that_is_not_used_is_passed_on_and_both_have_the_lock_in_the_end() {
    for goes_on in [false, true] {
        bounded(move || {
            let memory = Memory::new(1);
            let place = place(&memory, &KEY);
            memory.names().wait(place, process(1), Mode::Exclusive);
            memory.names().stir(place, process(2));
            memory.bells.clock.store(TURN_MILLISECONDS, SeqCst);
            let visit = move |index| {
                move |memory: &Memory| {
                    if index == 0 {
                        memory.lock(place, index, Mode::Exclusive);
                    } else {
                        memory.go_on(place, index, Mode::Exclusive);
                    }
                    memory.visit();
                    assert!(memory.names().release(place, process(index), Mode::Exclusive, false));
                }
            };
            let suspended = goes_on.then(|| beside(&memory, visit(1)));
            let giver = beside(&memory, move |memory| memory.names().heed(place.position));
            visit(0)(&memory);
            giver.join().unwrap();
            // Otherwise its bell has rung, and it waits anew.
            suspended.map_or_else(|| memory.bells.bells[1].wait(), |other| other.join().unwrap());
        });
    }
}

#[test]
fn two_processes_that_name_an_entry_get_the_same() {
    bounded(|| {
        let memory = Memory::new(2);
        let other = beside(&memory, |memory| memory.names().name(&KEY, "", process(1)).unwrap());
        let mine = place(&memory, &KEY);
        assert_eq!(other.join().unwrap(), mine);
        assert_eq!(memory.names().find(&KEY), Some(mine));
    });
}

/// Each finds no entry that was never used. One may take the name from the other's, while nobody uses it.
#[test]
fn they_never_use_two_although_others_have_to_lose_their_names_first() {
    bounded(|| {
        let memory = Memory::new(2);
        for other in 2..4 {
            place(&memory, &[other, 0, 0, 0]);
        }
        let other = beside(&memory, |memory| memory.names().name(&KEY, "", process(1)).unwrap());
        let mine = place(&memory, &KEY);
        let take = |place, index| memory.names().take(place, process(index), Mode::Exclusive, Way::New);
        let taken = [take(mine, 0), take(other.join().unwrap(), 1)];
        let granted = taken.iter().filter(|taken| taken.is_ok()).count();
        assert_eq!(granted, 1, "{taken:?}");
    });
}

#[test]
fn an_entry_is_taken_or_gets_another_name_never_both() {
    bounded(|| {
        let memory = Memory::new(1);
        let old = place(&memory, &KEY);
        let other = beside(&memory, |memory| {
            let names = memory.names();
            let Ok(place) = names.name(&OTHER, "", process(1)) else { return false };
            let taken = names.take(place, process(1), Mode::Exclusive, Way::Attempt);
            assert!(taken == Err(Refusal::Taken) || names.release(place, process(1), Mode::Exclusive, false));
            true
        });
        let names = memory.names();
        let taken = names.take(old, process(0), Mode::Exclusive, Way::New);
        if taken != Err(Refusal::Renamed) {
            assert_eq!(taken, Ok(false));
            assert!(
                names.release(old, process(0), Mode::Exclusive, false),
                "it has got another name while it was held"
            );
        }
        let is_named = other.join().unwrap();
        assert!(is_named || taken != Err(Refusal::Renamed));
    });
}

/// Process 0 has the lock until moment 1, and gives it back about then. Whoever takes it over has it alone.
#[test]
fn a_late_holder_gives_back_nothing_of_the_next() {
    bounded(|| {
        let memory = Memory::new(1);
        let place = place(&memory, &KEY);
        let limited = Mode::Until(1);
        assert_eq!(memory.names().take(place, process(0), limited, Way::New), Ok(false));
        let first = memory.names().entry(place).note_holder(process(0), 0, "", 7);
        let clock = beside(&memory, |memory| memory.bells.clock.store(1, SeqCst));
        let next = beside(&memory, move |memory| {
            let names = memory.names();
            // As a watcher that comes when the limit is over.
            names.heed(place.position);
            match names.take(place, process(1), Mode::Exclusive, Way::New) {
                Ok(died) => {
                    let token = names.entry(place).note_holder(process(1), 0, "", 1);
                    memory.visit();
                    assert!(names.release(place, process(1), Mode::Exclusive, false), "it was taken from the next");
                    Some((died, token))
                }
                _ => None,
            }
        });
        let was_held = memory.names().release(place, process(0), limited, false);
        clock.join().unwrap();
        if let Some((died, token)) = next.join().unwrap() {
            assert!(token > first);
            assert_ne!(died, was_held, "one of them was told the wrong thing");
        } else if !was_held {
            // Nobody has had it since: the death is told later.
            let taken = memory.names().take(place, process(2), Mode::Exclusive, Way::New);
            assert_eq!(taken, Ok(true));
        }
    });
}

/// The holder dies, its time is over, and two others want the lock.
#[test]
fn a_limited_holder_that_dies_is_swept_or_taken_over_and_told_once() {
    bounded(|| {
        let memory = Memory::new(1);
        let place = place(&memory, &KEY);
        assert_eq!(memory.names().take(place, process(2), Mode::Until(1), Way::New), Ok(false));
        memory.bells.clock.store(1, SeqCst);
        let sweeper = beside(&memory, |memory| memory.names().sweep(process(2)));
        let visit = move |index| {
            move |memory: &Memory| {
                let died = memory.lock(place, index, Mode::Exclusive);
                memory.visit();
                assert!(memory.names().release(place, process(index), Mode::Exclusive, false));
                died
            }
        };
        let other = beside(&memory, visit(1));
        let deaths = [visit(0)(&memory), other.join().unwrap()];
        sweeper.join().unwrap();
        assert_eq!(deaths.iter().filter(|died| **died).count(), 1);
    });
}

impl Memory {
    /// Waits for the only permit, and returns it: `None` if others use the name in another way.
    fn permit(&self, place: Place, index: usize) -> Option<Permit> {
        let (names, me) = (self.names(), process(index));
        if names.take(place, me, Mode::Permits(1), Way::New).is_err() {
            return None;
        }
        loop {
            names.wait(place, me, Mode::Exclusive);
            if let Ok(permit) = names.take_permit(place, me, Way::First) {
                names.leave(place, me);
                names.stir(place, me);
                return Some(permit);
            }
            self.sleep(place, index);
        }
    }

    fn give_back(&self, place: Place, permit: Permit, index: usize) {
        assert!(self.names().release(permit.place, process(index), Mode::Exclusive, false));
        self.names().stir(place, process(index));
        assert!(self.names().release(place, process(index), Mode::Shared, false));
    }
}

#[test]
fn a_permit_has_one_holder_at_a_time_and_all_that_wait_get_it() {
    bounded(|| {
        let memory = Memory::new(2);
        let place = place(&memory, &KEY);
        // There is no room for two proposals of its entry.
        let permit = memory.permit(place, 0).unwrap();
        memory.give_back(place, permit, 0);
        let visit = move |index| {
            move |memory: &Memory| {
                let permit = memory.permit(place, index).expect("all use one number");
                memory.visit();
                memory.give_back(place, permit, index);
            }
        };
        let other = beside(&memory, visit(1));
        visit(0)(&memory);
        other.join().unwrap();
        assert_eq!(memory.inside[0].load(SeqCst), 2);
    });
}

/// Its entry is behind that of the name, which a sweep comes to first.
#[test]
fn the_permit_of_a_dead_holder_comes_back_and_whoever_waits_is_told() {
    bounded(|| {
        let memory = Memory::new(2);
        let place = place(&memory, &KEY);
        memory.permit(place, 2).unwrap();
        let sweeper = beside(&memory, |memory| memory.names().sweep(process(2)));
        assert!(memory.permit(place, 0).unwrap().died);
        sweeper.join().unwrap();
    });
}

#[test]
fn a_name_is_used_with_permits_or_without_never_both() {
    bounded(|| {
        let memory = Memory::new(2);
        let place = place(&memory, &KEY);
        let other = beside(&memory, move |memory| match memory.permit(place, 1) {
            Some(permit) => {
                memory.visit();
                memory.give_back(place, permit, 1);
                true
            }
            None => false,
        });
        let names = memory.names();
        names.wait(place, process(0), Mode::Exclusive);
        let taken = names.take(place, process(0), Mode::Exclusive, Way::First);
        names.leave(place, process(0));
        match taken {
            Ok(_) => {
                memory.visit();
                assert!(names.release(place, process(0), Mode::Exclusive, false));
            }
            taken => assert_eq!(taken, Err(Refusal::Unlike(1))),
        }
        let is_used = other.join().unwrap();
        assert!(is_used || taken == (Ok(false)), "both were refused");
    });
}
