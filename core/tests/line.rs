//! The lines of locks, case by case: through their public interface, without Node. `core/tests/queue.rs` has the rest.

#![cfg(not(feature = "model"))]

mod fixtures;

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use fixtures::clock::now;
use fixtures::{
    Guard, HERE, NEVER, agent, agent_with_bell, clock, mail, pass, promise, results, settled, this_thread, wait,
};
use waitasync_core::clock::Timestamp;
use waitasync_core::lock::{FAIRNESS, Hold, LOCKED, Outbox, Request, UNLOCKED, WRITING, Waiter, WaiterListStore, Word};
use waitasync_core::queue::{Ticket, WaitResult, Withdrawal, Woken};

/// The word of a semaphore with a limit, whatever a program has written there.
mod limit {
    use super::*;

    const MOST: i32 = i32::MAX;

    #[test]
    fn grants_no_more_than_its_limit_and_no_word_stops_it_for_good() {
        for value in [i32::MIN, -5, -1, 0, 1, 2, 3, MOST - 1, MOST] {
            for (amount, limit) in [(1, 1), (1, 3), (3, 3), (1, MOST), (MOST, MOST)] {
                let guard = Guard::new(value);
                let request = Request::Limited { amount: amount.unsigned_abs(), limit: limit.unsigned_abs() };
                let before = value.max(0);
                let grants = i64::from(before) + i64::from(amount) <= i64::from(limit);
                assert_eq!(guard.word.take(request), grants, "{request:?} of {value}");
                let after = guard.value();
                assert_eq!(after, if grants { before + amount } else { value });
                guard.store.return_unused(HERE, request.hold(), WaitResult::Acquired, &guard.word);
                let left = guard.value();
                assert_eq!(left, (after.max(0) - amount).max(0), "{request:?} given back to {after}");
            }
        }
    }
}

/// A word of which a process may be known to have it.
mod known_holder {
    use super::*;

    struct SharedWord<'a>(&'a AtomicI32, bool);

    impl Word for SharedWord<'_> {
        fn load(&self) -> i32 {
            Word::load(self.0)
        }

        fn compare_exchange(&self, current: i32, new: i32) -> bool {
            Word::compare_exchange(self.0, current, new)
        }

        fn has_known_holder(&self) -> bool {
            self.1
        }
    }

    #[test]
    fn is_not_polled_but_a_look_that_finds_it_free_wakes_its_line() {
        let guard = Guard::new(LOCKED);
        let outbox = agent();
        guard.line_up(promise(&outbox, 7), Request::Lock, NEVER);
        let look = |is_known| guard.store.check_words(|_, look| look(&SharedWord(&guard.word, is_known)));
        assert_eq!((look(false), look(true)), (Some(false), None));
        guard.change(UNLOCKED - LOCKED);
        assert_eq!(look(true), Some(true));
    }
}

/// A panic inside a critical section, here of the word: all decisions made before it hold.
mod panic {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::thread;

    use super::*;

    /// Panics when it is read, once it has been read so often.
    struct BrokenWord<'a> {
        word: &'a AtomicI32,
        reads: Cell<u32>,
    }

    impl Word for BrokenWord<'_> {
        fn load(&self) -> i32 {
            assert_ne!(self.reads.get(), 0, "on purpose");
            self.reads.set(self.reads.get() - 1);
            self.word.load(Ordering::SeqCst)
        }

        fn compare_exchange(&self, current: i32, new: i32) -> bool {
            Word::compare_exchange(self.word, current, new)
        }
    }

    /// `operation` panics when it reads the word for the time after `reads`.
    fn breaks(word: &AtomicI32, reads: u32, operation: impl FnOnce(&BrokenWord)) {
        let word = BrokenWord { word, reads: Cell::new(reads) };
        assert!(catch_unwind(AssertUnwindSafe(|| operation(&word))).is_err(), "it was to panic");
    }

    const PERMIT: Request = Request::Signals(1);

    #[test]
    fn a_waiter_that_has_been_granted_something_is_woken() {
        let guard = Guard::new(0);
        let ((outbox, rung), (after, rung_after)) = (agent_with_bell(), agent_with_bell());
        let rung = || rung.load(Ordering::Relaxed) > 0;
        let rung_after = || rung_after.load(Ordering::Relaxed) > 0;
        let deadline = Timestamp::from_nanos(1000);
        thread::scope(|scope| {
            let blocked = scope.spawn(|| {
                let (thread, ticket) = guard.block(PERMIT);
                guard.store.park(ticket, &thread, NEVER, NEVER)
            });
            while guard.store.count(HERE) == 0 {
                thread::yield_now();
            }
            guard.line_up(promise(&outbox, 7), PERMIT, deadline);
            guard.line_up(promise(&after, 8), PERMIT, NEVER);
            assert_eq!(guard.store.earliest_deadline(), deadline);
            guard.change(3);
            // The first two claims read the word and take from it; at the third it breaks.
            breaks(&guard.word, 2, |word| guard.store.word_changed(HERE, word));
            assert_eq!(blocked.join().unwrap(), Woken::Settled(WaitResult::Acquired));
        });
        assert!(rung());
        assert_eq!(settled(&outbox), [(7, WaitResult::Acquired)]);
        // The lists are as they were between two claims, and the earliest deadline is published.
        assert_eq!(guard.store.earliest_deadline(), Timestamp::NEVER);
        assert_eq!(guard.store.count(HERE), 1);
        assert_eq!(guard.store.counter(HERE).load(Ordering::Relaxed), 1);
        assert!(!rung_after());
        // The next operation on the line grants the third claim what is left.
        guard.tell_line();
        assert!(rung_after());
        assert_eq!(settled(&after), [(8, WaitResult::Acquired)]);
        assert_eq!(guard.value(), 0);
        assert_eq!(guard.store.count(HERE), 0);
    }

    #[test]
    fn a_claim_that_does_not_join_the_line_is_not_counted() {
        let guard = Guard::new(0);
        breaks(&guard.word, 0, |word| {
            let _ = guard.store.claim(HERE, promise(&agent(), 0), PERMIT, NEVER, word);
        });
        assert_eq!(guard.store.counter(HERE).load(Ordering::Relaxed), 0);
        assert_eq!(guard.store.count(HERE), 0);
        breaks(&guard.word, 0, |word| {
            let _ = guard.store.free(HERE, word, |_| None::<()>);
        });
        assert_eq!(guard.store.counter(HERE).load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_claim_that_panics_when_it_retries_wakes_its_successor_when_it_leaves() {
        let guard = Guard::new(LOCKED);
        let claims = [agent_with_bell(), agent_with_bell()].map(|(outbox, rung)| {
            let ticket = guard.promise(&outbox, 0, Request::Lock);
            (outbox, rung, ticket)
        });
        let [(outbox, rung, ticket), (next, next_rung, next_ticket)] = &claims;
        guard.give(Request::Lock);
        assert_eq!([rung, next_rung].map(|rung| rung.load(Ordering::Relaxed)), [1, 0]);
        breaks(&guard.word, 0, |word| {
            guard.store.retry(*ticket, &promise(outbox, 0), word);
        });
        assert_eq!(guard.store.withdraw_agent(*ticket, outbox, 0), Withdrawal::Done);
        assert_eq!(next_rung.load(Ordering::Relaxed), 1);
        let taken = guard.store.retry(*next_ticket, &promise(next, 0), &guard.word);
        assert_eq!(taken, Some(WaitResult::Acquired));
    }
}

/// Holds that are known, grants that are given back, and deaths.
mod holders {
    use super::*;

    /// A word in one of several buckets, and an agent.
    fn line(value: i32) -> (Guard, Arc<Outbox>) {
        (Guard::of(WaiterListStore::new(4, now), value), agent())
    }

    #[test]
    fn since_when_a_lock_is_held_is_known_while_claims_wait() {
        let (guard, outbox) = line(LOCKED);
        let at = |microseconds: u64| Timestamp::from_nanos(1000 * microseconds);
        let since =
            |microseconds, what: &str| assert_eq!(guard.store.held_since(HERE), Some(at(microseconds)), "{what}");
        let unknown = || assert_eq!(guard.store.held_since(HERE), None);
        unknown();
        clock::set(at(1));
        let tickets = [1, 2, 3, 4].map(|slot| {
            let ticket = guard.promise(&outbox, slot, Request::Lock);
            clock::set(at(2));
            ticket
        });
        let retry = |slot: u32| guard.store.retry(tickets[slot as usize - 1], &promise(&outbox, slot), &guard.word);
        since(1, "the first claim has found it held");
        guard.give(Request::Lock);
        unknown();
        clock::set(at(3));
        assert!(guard.take(Request::Lock).is_some());
        assert_eq!(retry(1), None);
        since(3, "a claim has found it held by a newcomer");
        clock::set(at(4));
        guard.give(Request::Lock);
        since(4, "it has been handed over");
        clock::set(at(5));
        guard.give(Request::Lock);
        unknown();
        clock::set(at(6));
        assert!(retry(2).is_some());
        since(6, "a claim has taken it");
        guard.store.notify(HERE, 1, None);
        unknown();
        clock::set(at(7));
        assert_eq!(guard.store.check_words(|_, look| look(&guard.word)), Some(false));
        since(7, "the service has found it held");
        clock::set(at(8));
        guard.word.store(UNLOCKED, Ordering::SeqCst);
        assert!(guard.store.try_take(HERE, Request::Lock, &guard.word, None).is_some());
        since(8, "a newcomer has taken it by a native call");
        assert_eq!(guard.store.withdraw_agent(tickets[2], &outbox, 3), Withdrawal::Done);
        since(8, "a claim has given up");
        assert_eq!(guard.store.withdraw_agent(tickets[3], &outbox, 4), Withdrawal::Done);
        unknown();
    }

    #[test]
    fn a_grant_that_was_revoked_is_delivered_to_nobody() {
        let (guard, outbox) = line(0);
        guard.promise(&outbox, 5, Request::Signals(1));
        guard.add_permits(1);
        assert_eq!([outbox.revoke(5), outbox.revoke(5)], [Some(WaitResult::Acquired), None]);
        let mail = mail(&outbox);
        assert!(mail.settlements.iter().all(|settlement| settlement.result == WaitResult::Due));
    }

    /// The second one has taken the lock without a call, and dies before it asks whether the first one died.
    #[test]
    fn of_two_deaths_in_a_row_one_is_seen() {
        let (guard, _) = line(LOCKED);
        guard.store.return_unused(HERE, Hold::Lock, WaitResult::AcquiredFromDead, &guard.word);
        assert!(guard.word.take(Request::Lock));
        let (thread, _) = guard.block(Request::Lock);
        guard.store.return_unused(HERE, Hold::Lock, WaitResult::AcquiredFromDead, &guard.word);
        assert_eq!(thread.result(), Some(WaitResult::AcquiredFromDead));
        guard.give(Request::Lock);
        assert_eq!(guard.take(Request::Lock), Some(WaitResult::Acquired));
    }

    #[test]
    fn a_grant_that_was_not_used_leaves_the_death_to_the_next_holder() {
        let (guard, _) = line(LOCKED);
        let (thread, _) = guard.block(Request::Lock);
        guard.store.return_unused(HERE, Hold::Lock, WaitResult::AcquiredFromDead, &guard.word);
        assert_eq!(thread.result(), Some(WaitResult::AcquiredFromDead));
        for result in [WaitResult::AcquiredFromDead, WaitResult::Acquired] {
            guard.store.return_unused(HERE, Hold::Lock, result, &guard.word);
            assert_eq!(guard.take(Request::Lock), Some(result));
        }
    }
}

/// The rules of `lock::fairness` that concern promises whose event loops are busy.
mod fairness {
    use waitasync_core::lock::fairness::{ROOM, Released};

    use super::*;

    /// A held lock, and a promise's claim that has been left waiting by one release, which another thread made use of.
    fn overtaken() -> (Guard, Arc<Outbox>, Ticket) {
        let (guard, outbox) = (Guard::new(LOCKED), agent());
        let ticket = guard.promise(&outbox, 1, Request::Lock);
        (guard, outbox, ticket)
    }

    /// Releases the lock and takes it again at once.
    fn release(guard: &Guard) -> Released {
        let released = guard.store.release_unrung(HERE, Hold::Lock, &guard.word, &agent(), false).0;
        assert!(guard.word.take(Request::Lock), "it was free");
        released
    }

    #[test]
    fn releases_make_room_for_a_promise_that_cannot_retry_but_ever_less_often() {
        let (guard, _outbox, _) = overtaken();
        assert_eq!(release(&guard), Released::GoOn);
        pass(FAIRNESS);
        assert_eq!(release(&guard), Released::MakeRoom);
        assert_eq!(release(&guard), Released::MakeRoom, "the threads that release meanwhile, too");
        pass(ROOM);
        assert_eq!(release(&guard), Released::GoOn);
        pass(FAIRNESS.saturating_sub(ROOM));
        assert_eq!(release(&guard), Released::MakeRoom, "twice as long after the first release");
        pass(FAIRNESS);
        assert_eq!(release(&guard), Released::GoOn);
        pass(FAIRNESS);
        assert_eq!(release(&guard), Released::MakeRoom, "four times as long after it");
    }

    #[test]
    fn releases_make_no_room_for_a_promise_that_has_retried() {
        let (guard, outbox, ticket) = overtaken();
        assert_eq!(release(&guard), Released::GoOn);
        assert_eq!(guard.store.retry(ticket, &promise(&outbox, 1), &guard.word), None);
        pass(FAIRNESS);
        assert_eq!(guard.store.release_unrung(HERE, Hold::Lock, &guard.word, &outbox, false).0, Released::GoOn);
        assert_eq!(guard.value(), LOCKED, "it is handed over");
    }

    #[test]
    fn a_thread_that_is_woken_behind_a_promise_does_not_overtake_it_in_a_strict_line() {
        let (guard, outbox) = (Guard::new(1), agent());
        let [quits, _] = [9, 5].map(|amount| guard.promise(&outbox, amount, Request::Signals(amount)));
        let (thread, ticket) = guard.block(Request::Signals(1));
        assert_eq!(guard.store.withdraw_agent(quits, &outbox, 9), Withdrawal::Done);
        assert_eq!(guard.store.park(ticket, &thread, NEVER, now()), Woken::Retry);
        assert_eq!(guard.store.retry(ticket, &Waiter::Thread(thread), &guard.word), None);
        assert_eq!(guard.value(), 1);
    }

    #[test]
    fn a_woken_thread_of_a_strict_line_leaves_the_rest_to_the_claims_behind_it() {
        let (guard, outbox) = (Guard::new(2), agent());
        let quits = guard.promise(&outbox, 9, Request::Signals(9));
        let (thread, ticket) = guard.block(Request::Signals(1));
        guard.promise(&outbox, 1, Request::Signals(1));
        assert_eq!(guard.store.withdraw_agent(quits, &outbox, 9), Withdrawal::Done);
        assert_eq!(guard.store.retry(ticket, &Waiter::Thread(thread), &guard.word), Some(WaitResult::Acquired));
        assert_eq!((settled(&outbox), guard.value()), (vec![(1, WaitResult::Acquired)], 0));
    }

    #[test]
    fn a_blocked_thread_gives_the_promise_before_it_a_head_start() {
        let (guard, _outbox, _) = overtaken();
        let (thread, ticket) = guard.block(Request::Lock);
        assert_eq!(guard.store.head_start(ticket, &thread), None, "neither is awake");
        assert_eq!(release(&guard), Released::GoOn);
        let until = now().after(FAIRNESS);
        assert_eq!(guard.store.head_start(ticket, &thread), Some(until));
        pass(FAIRNESS);
        assert_eq!(guard.store.head_start(ticket, &thread), None, "it is over");
    }
}

/// Releases by an agent at the end of a job: a lock goes to its own promise, if that is the first.
mod in_job {
    use waitasync_core::lock::{Claimed, Released};

    use super::*;

    /// A word, and the agent that runs.
    struct Job {
        guard: Guard,
        outbox: Arc<Outbox>,
    }

    impl Job {
        /// The agent's promises stand in the line for these.
        fn new<const N: usize>(value: i32, requests: [Request; N]) -> Self {
            let outbox = Arc::new(Outbox::new(Box::new(|| panic!("the agent that runs is rung"))));
            let job = Self { guard: Guard::new(value), outbox };
            (0..).zip(requests).for_each(|(slot, request)| job.promise(slot, request));
            job
        }

        fn promise(&self, slot: u32, request: Request) {
            self.guard.promise(&self.outbox, slot, request);
        }

        /// The word's value afterwards, how the agent's waits have ended, and its claims that are to retry.
        fn release(&self, request: Request, hands_over: bool) -> (i32, Vec<(u32, WaitResult)>, Vec<u32>) {
            let Self { guard, outbox } = self;
            let (released, looks) = guard.store.release_unrung(HERE, request.hold(), &guard.word, outbox, hands_over);
            assert_eq!((released, looks), (Released::GoOn, outbox.has_mail()));
            let has_only_successes = outbox.has_only_successes();
            let mail = mail(outbox);
            let is_grant = |end: &(u32, WaitResult)| end.1.is_acquired();
            assert_eq!(has_only_successes, results(&mail.settlements).iter().all(is_grant));
            (guard.value(), results(&mail.settlements), mail.retries)
        }
    }

    fn acquired<const N: usize>(slots: [u32; N]) -> Vec<(u32, WaitResult)> {
        slots.map(|slot| (slot, WaitResult::Acquired)).into()
    }

    #[test]
    fn the_lock_goes_from_promise_to_promise() {
        let job = Job::new(LOCKED, [Request::Lock; 3]);
        for slot in 0..3 {
            assert_eq!(job.release(Request::Lock, true), (LOCKED, acquired([slot]), vec![]));
        }
        assert_eq!(job.release(Request::Lock, true), (UNLOCKED, vec![], vec![]));
    }

    #[test]
    fn without_a_hand_over_the_promise_is_woken_to_retry() {
        let job = Job::new(LOCKED, [Request::Lock]);
        assert_eq!(job.release(Request::Lock, false), (UNLOCKED, vec![], vec![0]));
    }

    #[test]
    fn a_blocked_thread_before_the_promise_has_its_turn() {
        let job = Job::new(LOCKED, []);
        let (thread, _) = job.guard.block(Request::Lock);
        job.promise(0, Request::Lock);
        assert_eq!(job.release(Request::Lock, true), (UNLOCKED, vec![], vec![]));
        assert_eq!(thread.result(), None);
        assert!(job.guard.word.take(Request::Lock));
        pass(FAIRNESS);
        assert_eq!(job.release(Request::Lock, true), (LOCKED, vec![], vec![]), "it has been overtaken");
        assert_eq!(thread.result(), Some(WaitResult::Acquired));
    }

    #[test]
    fn a_blocked_thread_behind_promises_waits_for_its_turn() {
        let job = Job::new(LOCKED, [Request::Lock]);
        let (thread, _) = job.guard.block(Request::Lock);
        job.promise(1, Request::Lock);
        assert_eq!(job.release(Request::Lock, true), (LOCKED, acquired([0]), vec![]));
        assert_eq!(thread.result(), None);
        assert_eq!(job.release(Request::Lock, true), (UNLOCKED, vec![], vec![]), "the next in line is the thread");
    }

    #[test]
    fn the_promise_of_another_agent_is_woken_and_not_handed_the_lock() {
        let (job, other) = (Job::new(LOCKED, []), agent());
        job.guard.promise(&other, 0, Request::Lock);
        job.promise(0, Request::Lock);
        assert_eq!(job.release(Request::Lock, true), (UNLOCKED, vec![], vec![]));
        assert_eq!(mail(&other).retries, [0]);
    }

    #[test]
    fn a_plain_waiter_before_the_promise_is_notified_and_the_word_is_free() {
        let (job, plain) = (Job::new(LOCKED, []), this_thread());
        wait(&job.guard.store, Waiter::Thread(Arc::clone(&plain)), NEVER);
        job.promise(0, Request::Lock);
        assert_eq!(job.release(Request::Lock, true), (UNLOCKED, vec![], vec![0]));
        assert_eq!(plain.result(), Some(WaitResult::Ok));
    }

    #[test]
    fn readers_are_granted_together_as_by_any_release() {
        let job = Job::new(WRITING, [Request::Shared, Request::Shared, Request::Exclusive]);
        assert_eq!(job.release(Request::Exclusive, true), (2, acquired([0, 1]), vec![]));
        assert_eq!(job.release(Request::Shared, true), (1, vec![], vec![]), "one still reads");
        assert_eq!(job.release(Request::Shared, true), (WRITING, acquired([2]), vec![]));
    }

    #[test]
    fn a_promise_leaves_the_free_lock_to_an_earlier_one_of_its_agent() {
        let (job, other) = (Job::new(LOCKED, [Request::Lock]), agent());
        assert_eq!(job.release(Request::Lock, false), (UNLOCKED, vec![], vec![0]));
        let Guard { store, word, .. } = &job.guard;
        let take_for = |agent| store.try_take(HERE, Request::Lock, word, Some(agent));
        assert_eq!(take_for(&job.outbox), None);
        job.promise(1, Request::Lock);
        assert_eq!((job.guard.value(), store.count(HERE)), (UNLOCKED, 2), "it waits for its turn");
        assert!(!job.outbox.has_mail(), "the first is awake");
        // Others may overtake, and so may this thread, if it blocks.
        assert!(take_for(&other).is_some());
        job.guard.word.store(UNLOCKED, Ordering::SeqCst);
        assert!(store.try_take(HERE, Request::Lock, word, None).is_some());
        job.guard.word.store(UNLOCKED, Ordering::SeqCst);
        let blocks = Waiter::Thread(this_thread());
        assert!(matches!(store.claim(HERE, blocks, Request::Lock, NEVER, word), Claimed::Now(_)));
    }

    #[test]
    fn a_promise_wakes_the_one_to_which_it_leaves_the_free_lock() {
        let (outbox, rung) = agent_with_bell();
        let (guard, deadline) = (Guard::new(LOCKED), Timestamp::from_nanos(1));
        guard.line_up(promise(&outbox, 0), Request::Lock, deadline);
        guard.promise(&outbox, 1, Request::Lock);
        guard.store.return_unused(HERE, Hold::Lock, WaitResult::Acquired, &guard.word);
        assert_eq!(mail(&outbox).retries, [0]);
        // The first, which is awake, times out as the third looks.
        clock::set(deadline);
        rung.store(0, Ordering::SeqCst);
        guard.promise(&outbox, 2, Request::Lock);
        let mail = mail(&outbox);
        assert_eq!((results(&mail.settlements), mail.retries), (vec![(0, WaitResult::TimedOut)], vec![1]));
        assert_eq!(rung.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn a_claim_whose_time_is_over_is_handed_nothing() {
        let (job, deadline) = (Job::new(LOCKED, []), Timestamp::from_nanos(1));
        job.guard.line_up(promise(&job.outbox, 0), Request::Lock, deadline);
        job.promise(1, Request::Lock);
        clock::set(deadline);
        let ended = vec![(0, WaitResult::TimedOut), (1, WaitResult::Acquired)];
        assert_eq!(job.release(Request::Lock, true), (LOCKED, ended, vec![]));
    }
}
