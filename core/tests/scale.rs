//! Operations whose cost must not grow with the number of waiters. Tables give back the memory that they needed once. A
//! test of time compares the best of several times with few and with many, and allows for caches; a linear search would
//! be slower by hundreds of times.

#![cfg(not(feature = "model"))]
#![allow(unsafe_code, reason = "an allocator that counts")]

mod fixtures;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::AtomicI32;
use std::time::{Duration, Instant};

use fixtures::players::{Player, process};
use fixtures::{Guard, HERE, NEVER, agent, promise, this_thread, wait};
use waitasync_core::clock::now;
use waitasync_core::lock::cycles::{SeenHold, SeenWait, cycles};
use waitasync_core::lock::names::{Mode, Names, Refusal, Requester, Waits};
use waitasync_core::lock::tracked_buffers::{Left, TrackedBuffers};
use waitasync_core::lock::{Claimed, Hold, LOCKED, Mail, Outbox, Request, Waiter, WaiterListStore};
use waitasync_core::observe::Snapshot;
use waitasync_core::queue::{Location, Reading, WaitResult};

/// `times(many)` is no more than twenty times `times(few)`.
fn assert_does_not_grow(few: usize, many: usize, times: impl Fn(usize) -> Duration) {
    let best = |size| (0..5).map(|_| times(size)).min().expect("there are some");
    let (with_few, with_many) = (best(few), best(many));
    assert!(
        with_many < 20 * with_few.max(Duration::from_micros(1)),
        "{with_few:?} with {few}, {with_many:?} with {many}"
    );
}

fn timed(body: impl FnOnce()) -> Duration {
    let start = Instant::now();
    body();
    start.elapsed()
}

/// A word that holds `value`, and so many claims of an agent for what it does not grant.
fn line(value: i32, request: Request, claims: usize) -> (Guard, Arc<Outbox>) {
    let (guard, agent) = (Guard::new(value), agent());
    for slot in 0..u32::try_from(claims).unwrap() {
        guard.promise(&agent, slot, request);
    }
    (guard, agent)
}

#[test]
fn registering_costs_the_same_however_many_agents_take_turns() {
    assert_does_not_grow(1, 2000, |agents| {
        let store = WaiterListStore::new(1, now);
        let outboxes: Vec<_> = (0..agents).map(|_| agent()).collect();
        let register = |slot: u32| {
            wait(&store, promise(&outboxes[slot as usize % agents], slot), NEVER);
        };
        (0..4000).for_each(register);
        timed(|| (4000..8000).for_each(register))
    });
}

#[test]
fn forgetting_a_memory_costs_the_same_however_many_locks_are_abandoned_elsewhere() {
    assert_does_not_grow(1000, 100_000, |locks| {
        let (store, word) = (WaiterListStore::new(256, now), AtomicI32::new(LOCKED));
        let memories = (0..locks).map(|nth| 0x10_0000 + 256 * nth).map(|base| base..base + 128);
        for memory in memories.clone() {
            store.return_unused(Location::from_address(memory.start), Hold::Lock, WaitResult::AcquiredFromDead, &word);
        }
        timed(|| {
            for memory in memories.step_by(locks / 500) {
                assert!(store.any_abandoned_in(&memory));
                store.forget_abandoned(&memory);
            }
        })
    });
}

/// The first claim is awake, and the only waiter that a notification concerns.
#[test]
fn notifying_costs_the_same_however_many_claims_are_in_the_line() {
    assert_does_not_grow(10, 100_000, |claims| {
        let (guard, _agent) = line(LOCKED, Request::Lock, claims);
        timed(|| (0..100).for_each(|_| assert_eq!(guard.store.notify(HERE, usize::MAX, None), 1)))
    });
}

#[test]
fn cancelling_a_claim_that_has_been_granted_costs_the_same_however_much_mail_there_is() {
    assert_does_not_grow(200, 50_000, |claims| {
        let (guard, outbox) = line(0, Request::Signals(1), claims);
        let claims = u32::try_from(claims).unwrap();
        guard.add_permits(claims);
        assert!(outbox.revoke(0).is_some(), "the first time, the mail is looked through");
        // The latest ones, which a search would find last.
        timed(|| (claims - 100..claims).for_each(|slot| assert!(outbox.revoke(slot).is_some())))
    });
}

#[test]
fn blocking_for_a_name_costs_the_same_however_many_requests_for_names_there_are() {
    assert_does_not_grow(10, 100_000, |requests| {
        let (store, names, agents) = (WaiterListStore::new(1, now), Names::default(), [agent(), agent()]);
        let requester = |agent: usize| Requester { outbox: Arc::clone(&agents[agent]), thread_id: 0 };
        let [one, other, third] = [[1], [2], [3]];
        let held = names.request(&store, &third, Mode::Exclusive, requester(1), Waits::Never);
        assert!(matches!(held, (.., Ok(Claimed::Now(_)))));
        for slot in 0..u32::try_from(requests).unwrap() {
            let promise = Waits::As(promise(&agents[0], slot), NEVER);
            let answer = names.request(&store, &one, Mode::Exclusive, requester(0), promise);
            assert_eq!(matches!(answer, (.., Ok(Claimed::Now(_)))), slot == 0);
        }
        timed(|| {
            for _ in 0..100 {
                let blocks = Waits::As(Waiter::Thread(this_thread()), NEVER);
                let answer = names.request(&store, &other, Mode::Exclusive, requester(1), blocks);
                let (_, request, Ok(Claimed::Now(_))) = answer else { panic!("nobody holds the name") };
                assert!(names.end_grant(&store, request.id().expect("it is a named lock's"), WaitResult::Acquired));
                // Those that the agent has requested itself, and many others or one.
                for (agent, name) in [(0, &one), (1, &third)] {
                    let blocks = Waits::As(Waiter::Thread(this_thread()), NEVER);
                    let answer = names.request(&store, name, Mode::Exclusive, requester(agent), blocks);
                    assert!(matches!(answer, (.., Err(Refusal::HeldHere))));
                }
            }
        })
    });
}

#[test]
fn registering_a_memory_costs_the_same_however_many_earlier_ones_were_at_its_addresses() {
    assert_does_not_grow(10, 100_000, |earlier| {
        const LENGTH: usize = 1024;
        let (store, tracked_buffers) = (WaiterListStore::new(256, now), TrackedBuffers::new(|_| Vec::new()));
        let bases = (0..earlier).map(|n| 0x10_0000 + n * LENGTH);
        // Their objects have not been collected.
        bases.clone().for_each(|base| tracked_buffers.register(&store, 1, base, LENGTH));
        tracked_buffers.register(&store, 1, 0x10_0000 - 64, earlier * LENGTH);
        let next = 0x10_0000 + earlier * LENGTH;
        let timed = timed(|| {
            for n in 0..100 {
                tracked_buffers.register(&store, 1, next + n * LENGTH, LENGTH);
            }
        });
        bases.for_each(|base| assert_eq!(tracked_buffers.lose(&store, 1, base, 1), Left::Nothing));
        timed
    });
}

#[test]
fn reading_the_grants_in_an_outbox_again_costs_the_same_however_many_there_are() {
    assert_does_not_grow(10, 100_000, |claims| {
        let (guard, outbox) = line(0, Request::Signals(1), claims + 100);
        guard.add_permits(claims.try_into().unwrap());
        let mut reading = Reading::default();
        let mut found = Vec::with_capacity(claims + 100);
        assert!(outbox.read_grants(&mut reading, |slot, place| found.push((slot, place))));
        assert_eq!(found.len(), claims);
        let each = (1..=100).map(|n| {
            guard.add_permits(1);
            let mut is_same = false;
            let time = timed(|| is_same = outbox.read_grants(&mut reading, |slot, place| found.push((slot, place))));
            assert!(is_same && found.len() == claims + n);
            time
        });
        let timed = each.sum();
        assert!(outbox.revoke(3).is_some());
        let there = |reading: &Reading| {
            let still_has = outbox.still_has(reading);
            found.iter().filter(|(_, place)| still_has(*place)).map(|&(slot, _)| slot).collect::<Vec<_>>()
        };
        let slots = 0..u32::try_from(claims).unwrap() + 100;
        assert_eq!(there(&reading), slots.filter(|slot| *slot != 3).collect::<Vec<_>>());
        outbox.take(&mut Mail::default());
        assert_eq!(there(&reading), []);
        assert!(!outbox.read_grants(&mut reading, |_, _| panic!("there are none")));
        timed
    });
}

#[test]
fn stealing_a_name_costs_the_same_however_many_are_held() {
    assert_does_not_grow(100, 100_000, |held| {
        let (store, names, agent) = (WaiterListStore::new(1, now), Names::default(), agent());
        let requester = || Requester { outbox: Arc::clone(&agent), thread_id: 0 };
        let texts: Vec<Vec<_>> = (0..held).map(|name| name.to_string().encode_utf16().collect()).collect();
        for text in &texts {
            let answer = names.request(&store, text, Mode::Shared, requester(), Waits::Never);
            assert!(matches!(answer, (.., Ok(Claimed::Now(_)))));
        }
        timed(|| {
            for text in &texts[..100] {
                let (_, thief, ..) = names.steal(&store, text, requester());
                assert!(names.end_grant(&store, thief.id().expect("it is a named lock's"), WaitResult::Acquired));
            }
        })
    });
}

/// All hold something of a word, and request more of it. What is allocated is in proportion to the edges.
#[test]
fn cycles_cost_the_sum_of_holds_and_claims() {
    let bytes = |count: u32, in_task: bool, is_limited: bool| {
        let requests = |others| {
            let permits = move |n| Request::Limited { amount: count - n % 100, limit: count };
            (0..count).map(move |n| (n, if is_limited { permits(n) } else { others }))
        };
        // Each thread holds something, and four of them await more. Or it is one thread with its tasks.
        let taken = |(n, request): (u32, Request)| SeenHold {
            location: HERE,
            thread: if in_task { 0 } else { n },
            hold: request.hold(),
            in_task,
        };
        let held: Vec<_> = requests(Request::Shared).map(taken).collect();
        let wanted = |(n, request)| SeenWait {
            location: HERE,
            thread: if in_task { 0 } else { n % 4 },
            request: Some(request),
            blocked: false,
        };
        let waiting: Vec<_> = requests(Request::Exclusive).map(wanted).collect();
        let within: Vec<_> = (0..count as usize).map(|n| (n, n)).filter(|_| in_task).collect();
        let before = ALLOCATED.get();
        assert!(!cycles(&held, &waiting, &within).is_empty());
        ALLOCATED.get() - before
    };
    for (in_task, is_limited) in [(true, true), (true, false), (false, true), (false, false)] {
        let (few, many) = (bytes(500, in_task, is_limited), bytes(16_000, in_task, is_limited));
        assert!(many < 3 * 32 * few, "{few} bytes for 500, {many} for 32 times as many: {in_task} {is_limited}");
    }
}

/// Four threads; each holds a part of the locks, and one after the other awaits those of the next.
#[test]
fn a_snapshot_costs_the_sum_of_holds_and_waits() {
    let bytes = |locks: usize| {
        let process = process();
        let mut players: Vec<_> = (0..4).map(|thread_id| Player::new(&process, thread_id, locks)).collect();
        for n in 0..locks {
            let location = Location::from_address(0x10_0000 + 64 * n);
            players[n % 4].holds(location, Hold::Lock);
            players[(n + 3) % 4].waits(location, Request::Lock, false);
        }
        let before = ALLOCATED.get();
        let snapshot = Snapshot::take(&process);
        assert_eq!((snapshot.held.len(), snapshot.waiting.len(), snapshot.cycles.len()), (locks, locks, 1));
        ALLOCATED.get() - before
    };
    let (few, many) = (bytes(500), bytes(16_000));
    assert!(many < 3 * 32 * few, "{few} bytes for 500, {many} for 32 times as many");
}

thread_local! {
    /// The bytes that this thread has and has not freed: tests run beside one another.
    static LIVE: Cell<isize> = const { Cell::new(0) };
    /// The bytes that this thread has had.
    static ALLOCATED: Cell<usize> = const { Cell::new(0) };
}

fn count(layout: Layout, sign: isize) {
    let _ = ALLOCATED.try_with(|bytes| bytes.set(bytes.get() + if sign > 0 { layout.size() } else { 0 }));
    let _ = LIVE.try_with(|live| live.set(live.get() + sign * layout.size().cast_signed()));
}

struct Counting;

// SAFETY: the system's allocator does it all; and counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout, 1);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(layout, -1);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn locks_that_were_abandoned_and_are_locked_again_leave_no_memory_behind() {
    let (store, word) = (WaiterListStore::new(256, now), AtomicI32::new(LOCKED));
    let locations = || (0..300_000).map(|place| Location::from_address(0x10_0000 + 4 * place));
    let before = LIVE.get();
    locations().for_each(|location| store.return_unused(location, Hold::Lock, WaitResult::AcquiredFromDead, &word));
    let needed = LIVE.get() - before;
    assert!(needed > 1 << 20, "{needed}");
    locations().for_each(|location| assert!(store.take_note_of_death(location, Hold::Lock, &word)));
    let left = LIVE.get() - before;
    assert!(left < needed / 100, "of {needed} bytes {left} are left");
}

#[test]
fn waits_lines_and_grants_that_are_over_leave_no_memory_behind() {
    let (store, word, outbox) = (WaiterListStore::new(1, now), AtomicI32::new(LOCKED), agent());
    let locks = || (0..10_000).map(|nth| (nth, Location::from_address(0x10_0000 + 64 * nth as usize)));
    let before = LIVE.get();
    locks().for_each(|(slot, _)| _ = wait(&store, promise(&outbox, slot), NEVER));
    let claim = |(slot, location)| store.claim(location, promise(&outbox, slot), Request::Lock, NEVER, &word);
    let claims: Vec<_> = locks().map(|lock| (lock, claim(lock))).collect();
    let needed = LIVE.get() - before;
    assert!(needed > 1 << 20, "{needed}");
    for &((slot, location), claimed) in &claims {
        let Claimed::Pending(ticket) = claimed else { panic!("{claimed:?} of a lock that is held") };
        store.return_unused(location, Hold::Lock, WaitResult::Acquired, &word);
        assert!(store.retry(ticket, &promise(&outbox, slot), &word).is_some());
    }
    locks().for_each(|(slot, location)| store.delivered(location, &promise(&outbox, slot)));
    store.notify(HERE, usize::MAX, None);
    outbox.take(&mut Mail::default());
    drop(claims);
    let left = LIVE.get() - before;
    assert!(left < needed / 50, "of {needed} bytes {left} are left");
}
