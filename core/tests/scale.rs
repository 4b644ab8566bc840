//! Operations whose cost must not grow with the number of waiters. Each test compares the best of several times with
//! few and with many, and allows for caches; a linear search would be slower by hundreds of times.

#![cfg(not(feature = "model"))]

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use waitasync_core::clock::{Timestamp, now};
use waitasync_core::lock::names::{Mode, Names, Requester, Waits};
use waitasync_core::lock::request::{LOCKED, Request};
use waitasync_core::lock::{Claimed, Outbox, Waiter, WaiterListStore};
use waitasync_core::queue::location::Location;
use waitasync_core::queue::parker::BlockedThread;
use waitasync_core::queue::waiter_list::Ticket;

const HERE: Location = Location::from_address(0x1000);
const NEVER: Timestamp = Timestamp::NEVER;

fn outbox() -> Arc<Outbox> {
    Arc::new(Outbox::new(Box::new(|| ())))
}

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

fn claim(store: &WaiterListStore, outbox: &Arc<Outbox>, slot: u32, request: Request, word: &AtomicI32) -> Ticket {
    match store.claim(HERE, Waiter::Agent(Arc::clone(outbox), slot), request, NEVER, word) {
        Claimed::Pending(ticket) => ticket,
        Claimed::Now(result) => panic!("{result:?} of a word that does not grant it"),
    }
}

#[test]
fn registering_costs_the_same_however_many_agents_take_turns() {
    assert_does_not_grow(1, 2000, |agents| {
        let store = WaiterListStore::new(1, now);
        let outboxes: Vec<_> = (0..agents).map(|_| outbox()).collect();
        let register = |slot: u32| {
            let outbox = &outboxes[slot as usize % agents];
            assert!(store.enqueue(HERE, Waiter::Agent(Arc::clone(outbox), slot), NEVER, || true).is_some());
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
            store.abandon(Location::from_address(memory.start), Request::Lock, &word);
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
        let (store, outbox, word) = (WaiterListStore::new(1, now), outbox(), AtomicI32::default());
        word.store(LOCKED, Ordering::SeqCst);
        for slot in 0..u32::try_from(claims).unwrap() {
            claim(&store, &outbox, slot, Request::Lock, &word);
        }
        timed(|| (0..100).for_each(|_| assert_eq!(store.notify(HERE, usize::MAX, None), 1)))
    });
}

#[test]
fn cancelling_a_claim_that_has_been_granted_costs_the_same_however_much_mail_there_is() {
    assert_does_not_grow(200, 50_000, |claims| {
        let (store, outbox, word) = (WaiterListStore::new(1, now), outbox(), AtomicI32::default());
        let claims = u32::try_from(claims).unwrap();
        for slot in 0..claims {
            claim(&store, &outbox, slot, Request::Signals(1), &word);
        }
        word.store(i32::try_from(claims).unwrap(), Ordering::SeqCst);
        store.word_changed(HERE, &word);
        assert!(outbox.revoke(0).is_some(), "the first time, the mail is looked through");
        // The latest ones, which a search would find last.
        timed(|| (claims - 100..claims).for_each(|slot| assert!(outbox.revoke(slot).is_some())))
    });
}

#[test]
fn blocking_for_a_name_costs_the_same_however_many_requests_for_names_there_are() {
    assert_does_not_grow(10, 100_000, |requests| {
        let (store, names, agents) = (WaiterListStore::new(1, now), Names::default(), [outbox(), outbox()]);
        let requester = |agent: usize| Requester { outbox: Arc::clone(&agents[agent]), thread_id: 0 };
        let [one, other] = [[1], [2]];
        for slot in 0..u32::try_from(requests).unwrap() {
            let promise = Waits::As(Waiter::Agent(Arc::clone(&agents[0]), slot), NEVER);
            let answer = names.request(&store, &one, Mode::Exclusive, requester(0), promise);
            assert_eq!(matches!(answer, (.., Ok(Claimed::Now(_)))), slot == 0);
        }
        timed(|| {
            for _ in 0..100 {
                let blocks = Waits::As(Waiter::Thread(Arc::new(BlockedThread::current())), NEVER);
                let answer = names.request(&store, &other, Mode::Exclusive, requester(1), blocks);
                let (_, request, Ok(Claimed::Now(_))) = answer else { panic!("nobody holds the name") };
                assert!(names.release(&store, request.id().expect("it is a named lock's")));
            }
        })
    });
}

#[test]
fn stealing_a_name_costs_the_same_however_many_are_held() {
    assert_does_not_grow(100, 100_000, |held| {
        let (store, names, agent) = (WaiterListStore::new(1, now), Names::default(), outbox());
        let requester = || Requester { outbox: Arc::clone(&agent), thread_id: 0 };
        let texts: Vec<Vec<_>> = (0..held).map(|name| name.to_string().encode_utf16().collect()).collect();
        for text in &texts {
            let answer = names.request(&store, text, Mode::Shared, requester(), Waits::Never);
            assert!(matches!(answer, (.., Ok(Claimed::Now(_)))));
        }
        timed(|| {
            for text in &texts[..100] {
                let (_, thief, ..) = names.steal(&store, text, requester());
                assert!(names.release(&store, thief.id().expect("it is a named lock's")));
            }
        })
    });
}
