//! Models of the queue's races: loom runs each under every interleaving of its threads, and with every value that the
//! memory orderings let a load give.
//! `cargo test -p waitasync-core --features model --test model --target-dir target/model`: in a folder of its own,
//! since cargo gives the library the same file name with and without the feature.
//!
//! A model that would leave a thread waiting fails as a deadlock, so "is woken" needs no assertion.
//!
//! What loom knows of `SeqCst`: fences, exactly; of accesses, that they acquire and release, and that a load sees no
//! `SeqCst` store older than the newest one. That is the language's rule for a word with no other accesses, and less
//! than it for other words: a model may fail that should not, but does not pass that should not. So what stands on
//! fences (`wait_store_notify`) is modelled with relaxed accesses around them; and what stands on `SeqCst` accesses
//! (`register_expire`, the locks) first stores each word once, because the initial value of a word is no `SeqCst`
//! store.

#![cfg(feature = "model")]

mod fixtures;

use std::ops::Deref;
use std::sync::{Mutex as PlainMutex, PoisonError};

use fixtures::{Guard, HERE, NEVER, agent, any_abandoned_near, clock, mail, promise, settled, this_thread, wait};
use loom::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use loom::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, fence};
use loom::sync::{Arc, Notify};
use loom::thread::{JoinHandle, spawn};
use waitasync_core::clock::Timestamp;
use waitasync_core::lock::tracked_buffers::{Ended, Left, TrackedBuffers};
use waitasync_core::lock::wait_for_graph::{Blocked, Blocker, WaitForGraph};
use waitasync_core::lock::{
    Claimed, FAIRNESS, Freed, Hold, LOCKED, Outbox, Request, UNLOCKED, WRITING, Waiter, WaiterListStore, Word,
};
use waitasync_core::mapped::ProcessId;
use waitasync_core::mapped::words::{Peers, Record, SharedWord, Table};
use waitasync_core::queue::other_processes::SharedWaits;
use waitasync_core::queue::{Alarm, BlockedThread, Location, Settlement, Ticket, WaitResult, Withdrawal, Woken};

const DEADLINE: Timestamp = Timestamp::from_nanos(20);

/// Checks a model with too many interleavings for all of them to be run: those with up to three preemptions.
fn bounded_model(model: impl Fn() + Send + Sync + 'static) {
    bounded_to(3, model);
}

/// Checks a model's interleavings with up to so many preemptions.
fn bounded_to(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(preemptions));
    builder.check(model);
}

/// A test: its name, which interleavings are run, and the model.
macro_rules! model {
    ($name:ident, $check:path, $model:expr) => {
        #[test]
        fn $name() {
            $check(|| $model);
        }
    };
}

/// A thread that shares something with the others.
fn beside<S: 'static, T: 'static>(shared: &Arc<S>, run: impl FnOnce(&Arc<S>) -> T + 'static) -> JoinHandle<T> {
    let shared = Arc::clone(shared);
    spawn(move || run(&shared))
}

/// The same with two things.
fn beside_both<R: 'static, S: 'static, T: 'static>(
    one: &Arc<R>,
    other: &Arc<S>,
    run: impl FnOnce(&Arc<R>, &Arc<S>) -> T + 'static,
) -> JoinHandle<T> {
    let other = Arc::clone(other);
    beside(one, move |one| run(one, &other))
}

fn store() -> Arc<WaiterListStore> {
    Arc::new(WaiterListStore::new(1, clock::now))
}

/// A thread that notifies one waiter. How many it has woken.
fn notify_beside(store: &Arc<WaiterListStore>) -> JoinHandle<usize> {
    beside(store, |store| store.notify(HERE, 1, None))
}

/// The calling thread waits, to block there.
fn wait_thread(store: &WaiterListStore, deadline: Timestamp) -> (Arc<BlockedThread>, Ticket) {
    let thread = this_thread();
    let ticket = wait(store, Waiter::Thread(thread.clone()), deadline);
    (thread, ticket)
}

/// A promise that is due at [`DEADLINE`], and one behind it that is never.
fn wait_two(store: &WaiterListStore, agent: &Arc<Outbox>) -> [(u32, Ticket); 2] {
    [(1, DEADLINE), (2, NEVER)].map(|(slot, deadline)| (slot, wait(store, promise(agent, slot), deadline)))
}

/// An agent, and the bell that wakes the thread which awaits its settlements.
fn bell_and_agent() -> (Arc<Notify>, Arc<Outbox>) {
    let bell = Arc::new(Notify::new());
    let ring = bell.clone();
    (bell, Arc::new(Outbox::new(Box::new(move || ring.notify()))))
}

/// An agent, and whether it has ended: then it may not be rung.
fn mortal_agent() -> (Arc<Outbox>, Arc<AtomicBool>) {
    let ended = Arc::new(AtomicBool::new(false));
    let has_ended = ended.clone();
    (Arc::new(Outbox::new(Box::new(move || assert!(!has_ended.load(Relaxed), "rung after its end")))), ended)
}

fn end(outbox: &Outbox, ended: &AtomicBool) {
    outbox.close();
    ended.store(true, Relaxed);
}

/// A job of the agent: the settlements in the outbox, those of `waits` timed out that are overdue.
fn run(store: &WaiterListStore, agent: &Arc<Outbox>, waits: &[(u32, Ticket)]) -> Vec<(u32, WaitResult)> {
    let mut mail = mail(agent);
    let ticket = |slot| waits.iter().find(|wait| wait.0 == slot).map(|wait| wait.1);
    store.decide(agent, &mut mail.settlements, ticket);
    fixtures::results(&mail.settlements)
}

/// As the event loop does: looks into the outbox when it was rung, until there were `count` settlements.
fn await_settlements(bell: &Notify, agent: &Outbox, count: usize) -> Vec<(u32, WaitResult)> {
    let mut all = Vec::new();
    while all.len() < count {
        bell.wait();
        all.extend(settled(agent));
    }
    all
}

/// Waits as `Atomics.wait` does, without a timeout.
fn block(store: &WaiterListStore, is_equal: impl FnOnce() -> bool) -> WaitResult {
    let thread = this_thread();
    let Some(ticket) = store.enqueue(HERE, Waiter::Thread(thread.clone()), NEVER, is_equal) else {
        return WaitResult::NotEqual;
    };
    match store.park(ticket, &thread, NEVER, NEVER) {
        Woken::Settled(result) => result,
        woken => panic!("{woken:?} from a wait without a timeout"),
    }
}

model!(wait_notify, loom::model, {
    let (store, word, data) = (store(), Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let notifier = beside(&store, {
        let (word, data) = (word.clone(), data.clone());
        move |store| {
            word.store(1, SeqCst);
            data.store(1, Relaxed);
            store.notify(HERE, 1, None)
        }
    });
    let result = block(&store, || word.load(SeqCst) == 0);
    if result == WaitResult::Ok {
        assert_eq!(data.load(Relaxed), 1, "what was written before the notification is seen after it");
    }
    assert_eq!(notifier.join().unwrap(), usize::from(result == WaitResult::Ok));
    assert_eq!(store.count(HERE), 0);
});

// The word is written without an atomic operation, so only the two fences order it and the bucket's occupancy. Without
// either of them this model deadlocks.
model!(wait_store_notify, loom::model, wait_while_stored(&[]));

// The same with a waiter that is counted already, so that the notifier passes no fence.
model!(wait_store_notify_two, loom::model, wait_while_stored(&[6]));

/// A promise waits, behind those that have these slots, while another thread writes the word and notifies all.
fn wait_while_stored(before: &'static [u32]) {
    let (store, word, (bell, agent)) = (store(), Arc::new(AtomicU32::new(0)), bell_and_agent());
    for &slot in before {
        wait(&store, promise(&agent, slot), NEVER);
    }
    let notifier = beside_both(&store, &word, |store, word| {
        word.store(1, Relaxed);
        store.notify(HERE, usize::MAX, None)
    });
    let ticket = store.enqueue(HERE, promise(&agent, 7), NEVER, || word.load(Relaxed) == 0);
    let expected: Vec<_> = before.iter().copied().chain(ticket.map(|_| 7)).map(|slot| (slot, WaitResult::Ok)).collect();
    assert_eq!(await_settlements(&bell, &agent, expected.len()), expected);
    assert_eq!(notifier.join().unwrap(), expected.len());
}

// A thread that gives up takes no notification along: either it or the one behind it is woken.
model!(wait_timeout_notify_thread, loom::model, {
    let (store, agent) = (store(), agent());
    let (thread, ticket) = wait_thread(&store, DEADLINE);
    wait(&store, promise(&agent, 7), NEVER);
    let notifier = notify_beside(&store);
    let result = store.withdraw_thread(ticket, &thread);
    assert_eq!(notifier.join().unwrap(), 1);
    let behind = settled(&agent);
    match result {
        WaitResult::Ok => assert_eq!(behind, []),
        WaitResult::TimedOut => assert_eq!(behind, [(7, WaitResult::Ok)]),
        other => panic!("{other:?}"),
    }
    assert_eq!(store.count(HERE), 1 - u32::try_from(behind.len()).unwrap());
});

/// The timer thread's turn when [`DEADLINE`] has come.
fn expire_beside(store: &Arc<WaiterListStore>) -> JoinHandle<()> {
    beside(store, |store| {
        clock::set(DEADLINE);
        assert_eq!(store.expire(), NEVER);
    })
}

// A promise is settled once, by its agent's job or by the notification of another thread, and one that is due does not
// absorb the latter.
model!(wait_timeout_notify_promise, loom::model, {
    let (store, agent) = (store(), agent());
    let waits = wait_two(&store, &agent);
    let timer = expire_beside(&store);
    let is_due = clock::now() >= DEADLINE;
    assert_eq!(store.notify(HERE, 1, None), 1);
    timer.join().unwrap();
    let settled = run(&store, &agent, &waits);
    assert!(!is_due || settled[0].1 == WaitResult::TimedOut, "{settled:?}");
    assert_one_notified(&store, &settled);
});

/// Of two promises the first was notified, or has timed out and the second was notified.
fn assert_one_notified(store: &WaiterListStore, settled: &[(u32, WaitResult)]) {
    let is_behind = settled == [(1, WaitResult::TimedOut), (2, WaitResult::Ok)];
    assert!(is_behind || settled == [(1, WaitResult::Ok)], "{settled:?}");
    assert_eq!(store.count(HERE), u32::from(!is_behind));
}

// Whatever the timer has come to, an agent's notification wakes its own promise, which came first: no job of the agent
// has timed it out yet.
model!(wait_timeout_notify_own_promise, loom::model, {
    let (store, agent) = (store(), agent());
    let waits = wait_two(&store, &agent);
    let timer = expire_beside(&store);
    assert_eq!(store.notify(HERE, 1, Some(&agent)), 1);
    timer.join().unwrap();
    assert_eq!(run(&store, &agent, &waits), [(1, WaitResult::Ok)]);
    assert_eq!(store.count(HERE), 1);
});

// The timer tells the agent, a job of which decides, while another thread notifies: the promise is settled once, and
// the notification wakes it or the one behind it.
model!(timeout_decide_notify, bounded_model, {
    let (store, agent) = (store(), agent());
    let waits = wait_two(&store, &agent);
    let (timer, notifier) = (expire_beside(&store), notify_beside(&store));
    let mut settled = run(&store, &agent, &waits);
    assert_eq!(notifier.join().unwrap(), 1);
    timer.join().unwrap();
    settled.extend(run(&store, &agent, &waits));
    settled.sort_by_key(|&(slot, _)| slot);
    assert_one_notified(&store, &settled);
});

// An agent cancels its promise and gives the slot to another one while the timer tells it of the first: the second
// waits on.
model!(timeout_cancel_wait, loom::model, {
    let (store, agent) = (store(), agent());
    let first = wait(&store, promise(&agent, 1), DEADLINE);
    let timer = expire_beside(&store);
    assert_eq!(store.withdraw_agent(first, &agent, 1), Withdrawal::Done);
    let second = wait(&store, promise(&agent, 1), NEVER);
    assert_eq!(run(&store, &agent, &[(1, second)]), []);
    timer.join().unwrap();
    assert_eq!(run(&store, &agent, &[(1, second)]), []);
    assert_eq!(store.count(HERE), 1);
});

// An agent cancels its promise, which is due, while the timer tells it so and another thread notifies: the
// notification is the promise's, which then is not cancelled, or the next one's.
model!(cancel_timeout_notify, bounded_model, {
    let (store, agent) = (store(), agent());
    let waits = wait_two(&store, &agent);
    let (timer, notifier) = (expire_beside(&store), notify_beside(&store));
    // As `cancel` in `src/agent/waiting.rs` does it.
    let cancelled = store.withdraw_agent(waits[0].1, &agent, 1) == Withdrawal::Done || agent.revoke(1).is_some();
    assert_eq!(notifier.join().unwrap(), 1);
    timer.join().unwrap();
    // The slot of a cancelled wait has no ticket.
    let settled = run(&store, &agent, &waits[usize::from(cancelled)..]);
    assert_eq!(settled, [(if cancelled { 2 } else { 1 }, WaitResult::Ok)]);
    assert_eq!(store.count(HERE), u32::from(!cancelled));
});

// An agent ends while the timer tells it of a deadline and another thread notifies: nothing of it stays, and the
// notification is either its or the next one's.
model!(timeout_end_notify, bounded_model, {
    let (store, mortal, other) = (store(), agent(), agent());
    let ticket = wait(&store, promise(&mortal, 1), DEADLINE);
    wait(&store, promise(&other, 2), NEVER);
    let (timer, notifier) = (expire_beside(&store), notify_beside(&store));
    let withdrawn = store.withdraw_agent(ticket, &mortal, 1) == Withdrawal::Done;
    let mail = settled(&mortal);
    mortal.close();
    assert_eq!(notifier.join().unwrap(), 1);
    timer.join().unwrap();
    let is_over = |&(_, result): &(u32, WaitResult)| result != WaitResult::Due;
    let ended: Vec<_> = mail.into_iter().filter(is_over).collect();
    assert_eq!(ended.len(), usize::from(!withdrawn));
    let was_notified = ended == [(1, WaitResult::Ok)];
    let behind: &[_] = if was_notified { &[] } else { &[(2, WaitResult::Ok)] };
    assert_eq!(settled(&other), behind);
    assert_eq!(store.count(HERE), u32::from(was_notified));
});

// An agent lines up and ends at once: nothing of it stays, and a notification is either its or the next one's.
model!(add_end_notify, loom::model, {
    let (store, other) = (store(), agent());
    let (outbox, ended) = mortal_agent();
    let mortal = beside(&store, move |store| {
        let ticket = wait(store, promise(&outbox, 1), NEVER);
        let withdrawn = store.withdraw_agent(ticket, &outbox, 1) == Withdrawal::Done;
        end(&outbox, &ended);
        let settled = settled(&outbox).len();
        assert_eq!(settled, usize::from(!withdrawn));
        settled
    });
    let notifier = notify_beside(&store);
    wait(&store, promise(&other, 2), NEVER);
    let (died_notified, woken) = (mortal.join().unwrap(), notifier.join().unwrap());
    let others = settled(&other).len();
    assert_eq!(died_notified + others, woken);
    assert_eq!(store.count(HERE) as usize, 1 - others);
});

// Each notification wakes one, and those first that came first, blocked or not.
model!(notify_notify, loom::model, {
    let (store, agent) = (store(), agent());
    wait(&store, promise(&agent, 1), NEVER);
    let (thread, ticket) = wait_thread(&store, NEVER);
    wait(&store, promise(&agent, 3), NEVER);
    let notifiers = [(); 2].map(|()| notify_beside(&store));
    assert_eq!(store.park(ticket, &thread, NEVER, NEVER), Woken::Settled(WaitResult::Ok));
    for notifier in notifiers {
        assert_eq!(notifier.join().unwrap(), 1);
    }
    assert_eq!(settled(&agent), [(1, WaitResult::Ok)]);
    assert_eq!(store.count(HERE), 1);
});

// The unpark of the first wait may come when the thread sleeps in its second one, and must not end that.
model!(park_late_unpark, bounded_model, {
    let (store, thread, second) = (store(), this_thread(), Arc::new(AtomicBool::new(false)));
    for round in [false, true] {
        let ticket = wait(&store, Waiter::Thread(thread.clone()), NEVER);
        beside_both(&store, &second, move |store, second| {
            second.store(round, Relaxed);
            assert_eq!(store.notify(HERE, 1, None), 1);
        });
        assert_eq!(store.park(ticket, &thread, NEVER, NEVER), Woken::Settled(WaitResult::Ok));
        assert_eq!(second.load(Relaxed), round, "woken by its own notification");
    }
});

// A thread that is interrupted while it goes to sleep returns, and waits on.
model!(park_interrupt, loom::model, {
    let store = store();
    let (thread, ticket) = wait_thread(&store, NEVER);
    let watcher = beside(&thread, |thread| thread.interrupt());
    assert_eq!(store.park(ticket, &thread, NEVER, NEVER), Woken::Interrupted);
    watcher.join().unwrap();
    assert_eq!(store.withdraw_thread(ticket, &thread), WaitResult::TimedOut);
});

// Interruptions come while a thread is notified: however often it comes back meanwhile, it has the notification.
model!(notify_interrupt, bounded_model, {
    let store = store();
    let (thread, ticket) = wait_thread(&store, NEVER);
    let service = beside(&thread, |thread| [(); 2].map(|()| thread.interrupt()));
    let notifier = notify_beside(&store);
    let woken = loop {
        match store.park(ticket, &thread, NEVER, NEVER) {
            Woken::Interrupted => {}
            woken => break woken,
        }
    };
    assert_eq!(woken, Woken::Settled(WaitResult::Ok));
    assert_eq!(notifier.join().unwrap(), 1);
    service.join().unwrap();
});

// Two stores, so that the outbox's lock is all that its two pushers share. No settlement is left without a ring.
model!(push_take_ring, bounded_model, {
    let (stores, (bell, agent)) = ([store(), store()], bell_and_agent());
    for (slot, store) in (0..).zip(&stores) {
        wait(store, promise(&agent, slot), NEVER);
    }
    for store in stores {
        spawn(move || store.notify(HERE, 1, None));
    }
    let mut settled = await_settlements(&bell, &agent, 2);
    settled.sort_by_key(|&(slot, _)| slot);
    assert_eq!(settled, [(0, WaitResult::Ok), (1, WaitResult::Ok)]);
    assert!(!agent.has_mail());
});

// Mail holds the event loop: from the notification until the agent has taken the result.
model!(push_take_mail, loom::model, {
    let (store, agent) = (store(), agent());
    for slot in [1, 2] {
        wait(&store, promise(&agent, slot), NEVER);
    }
    let notifier = beside(&store, |store| store.notify(HERE, 1, None) + store.notify(HERE, 1, None));
    let first = settled(&agent).len();
    assert_eq!(notifier.join().unwrap(), 2);
    assert_eq!(agent.has_mail(), first < 2);
    assert_eq!(first + settled(&agent).len(), 2);
    assert!(!agent.has_mail());
});

model!(ring_close, loom::model, {
    let (outbox, ended) = mortal_agent();
    let ringer = beside(&outbox, |outbox| outbox.ring());
    end(&outbox, &ended);
    ringer.join().unwrap();
    outbox.ring();
});

// A promise is appended while the timer thread times another one out: it sleeps until the new deadline at most, or is
// rung.
model!(register_expire, loom::model, {
    const EARLIER: Timestamp = Timestamp::from_nanos(10);
    let (store, alarm, agent) = (store(), Arc::new(Alarm::default()), agent());
    let first = wait(&store, promise(&agent, 1), EARLIER);
    assert_eq!(alarm.set(&store), EARLIER);
    clock::set(EARLIER);
    let bell = Arc::new(Notify::new());
    let timer = beside(&store, {
        let (alarm, bell) = (alarm.clone(), bell.clone());
        move |store| {
            while alarm.set(store) > DEADLINE {
                bell.wait();
            }
        }
    });
    wait(&store, promise(&agent, 2), DEADLINE);
    if alarm.is_later_than(DEADLINE) {
        bell.notify();
    }
    timer.join().unwrap();
    assert_eq!(run(&store, &agent, &[(1, first)]), [(1, WaitResult::TimedOut)]);
});

/// A word that excludes and its line: used as `lib/holding/` and the addon use them.
struct Lock {
    guard: Guard,
    request: Request,
    /// Counted up by every holder without an atomic increment: right in the end only if they excluded each other, and
    /// each saw the writes of the one before it.
    holders: AtomicU32,
}

impl Deref for Lock {
    type Target = Guard;

    fn deref(&self) -> &Guard {
        &self.guard
    }
}

impl Lock {
    /// A word that holds `value`, and whose claims all ask for `request`.
    fn new(request: Request, value: i32) -> Arc<Self> {
        let guard = Guard::new(value);
        // So that the newest stores of the counter and of the word are `SeqCst` ones, see above.
        assert!(guard.store.enqueue(HERE, Waiter::Thread(this_thread()), NEVER, || false).is_none());
        assert!(Word::compare_exchange(&guard.word, value, value));
        Arc::new(Self { guard, request, holders: AtomicU32::new(0) })
    }

    /// A lock that the calling thread holds.
    fn held() -> Arc<Self> {
        Self::new(Request::Lock, LOCKED)
    }

    /// A lock that the calling thread holds, and claims, the first of which has tried in vain.
    fn held_before(claims: &[&Arc<Outbox>]) -> (Arc<Self>, Vec<Ticket>) {
        let lock = Self::held();
        let tickets: Vec<_> = claims.iter().map(|agent| lock.line_up_promise(agent, NEVER)).collect();
        lock.be_passed_over();
        assert_eq!(lock.deliver(claims[0], tickets[0]), None);
        (lock, tickets)
    }

    /// The holder frees the lock and takes it again, which is long ago at the next release.
    fn be_passed_over(&self) {
        self.store.return_unused(HERE, Hold::Lock, WaitResult::Acquired, &self.word);
        assert!(Word::compare_exchange(&self.word, UNLOCKED, LOCKED));
        clock::set(Timestamp::from_nanos(0).after(FAIRNESS));
    }

    /// Takes the lock if it is free, without a native call. Whether it was, and had been abandoned.
    fn try_take(&self) -> Option<WaitResult> {
        self.take(self.request)
    }

    /// Gives back what was taken, without a native call if no waiter is counted.
    fn give_back(&self) {
        self.give(self.request);
    }

    /// Gives a lock back by a plain write, which `x64` and `ia32` make a releasing one, and a fence after it.
    fn give_back_plainly(&self) {
        if self.is_anybody_counted() {
            self.store.return_unused(HERE, self.request.hold(), WaitResult::Acquired, &self.word);
            return;
        }
        self.word.store(UNLOCKED, Release);
        fence(SeqCst);
        if self.store.counter(HERE).load(Relaxed) != 0 {
            self.store.word_changed(HERE, &self.word);
        }
    }

    /// `agent`, which holds the lock, gives it back at the end of a job. Whether it is to look into its outbox.
    fn hand_over(&self, agent: &Arc<Outbox>) -> bool {
        self.store.release_unrung(HERE, self.request.hold(), &self.word, agent, true).1
    }

    /// Gives how many held the lock before.
    fn use_and_give(&self) -> u32 {
        self.use_and(Self::give_back)
    }

    /// The same. How often.
    fn hold(&self) -> u32 {
        self.use_and_give();
        1
    }

    fn use_and(&self, give: fn(&Self)) -> u32 {
        let former = self.holders.load(Relaxed);
        self.holders.store(former + 1, Relaxed);
        give(self);
        former
    }

    /// Blocks until the calling thread has what is asked for.
    fn acquire(&self) -> WaitResult {
        self.acquire_and(|| ())
    }

    /// The same; calls `lined_up` before it sleeps.
    fn acquire_and(&self, lined_up: impl Fn()) -> WaitResult {
        let thread = this_thread();
        let party = Waiter::Thread(thread.clone());
        let ticket = match self.store.claim(HERE, party.clone(), self.request, NEVER, &self.word) {
            Claimed::Now(result) => return result,
            Claimed::Pending(ticket) => ticket,
        };
        lined_up();
        loop {
            match self.store.park(ticket, &thread, NEVER, NEVER) {
                Woken::Settled(result) => return result,
                Woken::Retry => {
                    if let Some(result) = self.store.retry(ticket, &party, &self.word) {
                        return result;
                    }
                }
                woken => panic!("{woken:?} from a claim without a timeout"),
            }
        }
    }

    /// The same, and gives it back. How many held the lock before, and the result of that.
    fn acquire_and_use(&self) -> (u32, WaitResult) {
        let result = self.acquire();
        (self.use_and_give(), result)
    }

    /// Lines a promise up: slot 0 of `agent`.
    fn line_up_promise(&self, agent: &Arc<Outbox>, deadline: Timestamp) -> Ticket {
        self.line_up(promise(agent, 0), self.request, deadline)
    }

    /// The event loop of `agent` handles its mail: the result of its claim, if it has one now.
    fn deliver(&self, agent: &Arc<Outbox>, ticket: Ticket) -> Option<WaitResult> {
        let mail = mail(agent);
        let granted = mail.settlements.first().map(|settlement| settlement.result);
        granted.or_else(|| {
            mail.retries.first()?;
            self.store.retry(ticket, &promise(agent, 0), &self.word)
        })
    }

    /// The same of a claim that has the lock then, and gives it back.
    fn deliver_and_use(&self, agent: &Arc<Outbox>, ticket: Ticket, result: WaitResult) {
        assert_eq!(self.deliver(agent, ticket), Some(result));
        self.use_and_give();
    }

    /// Blocks for the lock that the next release hands over, and gives it back.
    fn park_and_use(&self, thread: &Arc<BlockedThread>, ticket: Ticket) {
        while self.store.park(ticket, thread, NEVER, NEVER) == Woken::Retry {}
        self.use_and_give();
    }

    /// The agent ends with this in its mail: the locks that it has been granted. Whether there are any.
    fn abandon_grants(&self, agent: &Outbox) -> bool {
        let grants = settled(agent).into_iter().filter(|(_, result)| result.is_acquired()).count();
        (0..grants).for_each(|_| self.abandon(self.request));
        grants > 0
    }

    /// The holder dies.
    fn abandon(&self, request: Request) {
        self.store.return_unused(HERE, request.hold(), WaitResult::AcquiredFromDead, &self.word);
    }

    /// The lock has been held so often; it is free, and no waiter is counted.
    fn assert_free_after(&self, holders: u32) {
        assert_eq!(self.holders.load(Relaxed), holders);
        self.assert_holds(UNLOCKED);
    }

    /// The same as soon as these threads are through. They tell how often each has held the lock.
    fn assert_free_beside<const N: usize>(&self, own: u32, others: [JoinHandle<u32>; N]) {
        self.assert_free_after(others.into_iter().fold(own, |sum, other| sum + other.join().unwrap()));
    }

    fn assert_holds(&self, value: i32) {
        assert_eq!(self.value(), value);
        assert_eq!(self.store.count(HERE), 0);
        assert!(self.store.counters().iter().all(|counter| counter.load(SeqCst) == 0));
    }
}

/// A thread that claims the lock, which no holder has left behind, and gives it back.
fn claim_beside(lock: &Arc<Lock>) -> JoinHandle<u32> {
    beside(lock, |lock| {
        assert_eq!(lock.acquire(), WaitResult::Acquired);
        lock.hold()
    })
}

/// A thread that takes the lock only if it is free. How often.
fn newcomer_beside(lock: &Arc<Lock>) -> JoinHandle<u32> {
    beside(lock, |lock| lock.try_take().map_or(0, |_| lock.hold()))
}

/// A thread whose promise gives up, and has not been granted anything.
fn give_up_beside(lock: &Arc<Lock>, agent: Arc<Outbox>, ticket: Ticket) -> JoinHandle<()> {
    beside(lock, move |lock| assert_eq!(lock.store.withdraw_agent(ticket, &agent, 0), Withdrawal::Done))
}

// Without the second look at the counter after the word has been freed, this model deadlocks.
model!(unlock_claim, loom::model, unlock_while_claimed(Lock::give_back));

// The same where the host's queue is in use: the fence is that of the host's `notify`. Without it, this model
// deadlocks.
model!(unlock_plainly_claim, loom::model, unlock_while_claimed(Lock::give_back_plainly));

fn unlock_while_claimed(give: fn(&Lock)) {
    let lock = Lock::held();
    let claimant = beside(&lock, move |lock| {
        assert_eq!(lock.acquire(), WaitResult::Acquired);
        lock.use_and(give);
    });
    lock.use_and(give);
    claimant.join().unwrap();
    lock.assert_free_after(2);
}

// The holder gives the lock back while one thread claims it in the line and another without a native call: they
// exclude each other, and the claim in the line does not sleep beside a free lock.
model!(unlock_newcomer_claim, bounded_model, give_while_claimed_and_taken(Lock::held));

// The same with the only permit of a limit.
model!(limit_newcomer_claim, bounded_model, {
    give_while_claimed_and_taken(|| Lock::new(Request::Limited { amount: 1, limit: 1 }, 1));
});

fn give_while_claimed_and_taken(held: fn() -> Arc<Lock>) {
    let lock = held();
    let others = [claim_beside(&lock), newcomer_beside(&lock)];
    lock.assert_free_beside(lock.hold(), others);
}

// Promises of one agent claim a lock while it is given back, and a newcomer takes it if it is free. The second leaves
// it to the first, of which the release may not have heard yet: neither sleeps beside a free lock.
model!(unlock_newcomer_promises, bounded_model, {
    let (lock, bell) = (Lock::held(), Arc::new(Notify::new()));
    let rung = bell.clone();
    let agent = Arc::new(Outbox::new(Box::new(move || rung.notify())));
    let promises = beside(&lock, move |lock| {
        let claim = |slot| lock.store.claim(HERE, promise(&agent, slot), Request::Lock, NEVER, &lock.word);
        let mut tickets = [claim(0), claim(1)].map(|claimed| match claimed {
            Claimed::Now(_) => {
                lock.hold();
                None
            }
            Claimed::Pending(ticket) => Some(ticket),
        });
        while tickets.iter().any(Option::is_some) {
            bell.wait();
            let mail = mail(&agent);
            for Settlement { slot, result } in mail.settlements {
                assert_eq!(result, WaitResult::Acquired);
                tickets[slot as usize] = None;
                lock.hold();
            }
            for slot in mail.retries {
                let retry = |ticket| lock.store.retry(ticket, &promise(&agent, slot), &lock.word);
                if tickets[slot as usize].and_then(retry).is_some() {
                    tickets[slot as usize] = None;
                    lock.hold();
                }
            }
        }
        2
    });
    let newcomer = newcomer_beside(&lock);
    lock.assert_free_beside(lock.hold(), [promises, newcomer]);
});

/// The service looks at a word while its holder gives it back and others claim it: no two have it.
#[test]
fn look_unlock_claim() {
    for request in [Request::Lock, Request::Exclusive] {
        bounded_model(move || {
            let lock = Lock::new(request, UNLOCKED);
            assert!(lock.try_take().is_some());
            let claimant = claim_beside(&lock);
            let service = beside(&lock, |lock| lock.store.check_words(|_, look| look(&lock.word)));
            lock.use_and_give();
            claimant.join().unwrap();
            service.join().unwrap();
            lock.assert_free_after(2);
        });
    }
}

// A program that locks the word by means of `Atomics.compareExchange`, `wait` and `notify`, with one that claims it.
model!(unlock_wait_claim, bounded_model, {
    let lock = Lock::held();
    let claimant = claim_beside(&lock);
    let waiter = beside(&lock, |lock| {
        while !Word::compare_exchange(&lock.word, UNLOCKED, LOCKED) {
            block(&lock.store, || lock.value() == LOCKED);
        }
        lock.use_and(|lock| {
            lock.word.store(UNLOCKED, SeqCst);
            lock.store.notify(HERE, 1, None);
        });
        1
    });
    lock.assert_free_beside(lock.hold(), [claimant, waiter]);
});

// The lock is handed to a blocked thread: it sees what the former holder did, asleep or not yet.
model!(grant_park, loom::model, {
    let lock = Lock::held();
    let (thread, ticket) = lock.block(Request::Lock);
    lock.be_passed_over();
    let holder = beside(&lock, |lock| lock.hold());
    lock.park_and_use(&thread, ticket);
    lock.assert_free_beside(1, [holder]);
});

// The lock is handed to a blocked thread while a newcomer tries to take it: never do both have it.
model!(grant_newcomer, bounded_model, {
    let lock = Lock::held();
    let (thread, ticket) = lock.block(Request::Lock);
    lock.be_passed_over();
    let others = [beside(&lock, |lock| lock.hold()), newcomer_beside(&lock)];
    lock.park_and_use(&thread, ticket);
    lock.assert_free_beside(1, others);
});

// The lock is handed to the first claim, which gives up at the same moment: the next one gets it.
model!(grant_give_up, loom::model, {
    grant_while(|lock, first, ticket| {
        let is_granted = lock.store.withdraw_agent(ticket, first, 0) == Withdrawal::Settled;
        if is_granted {
            lock.deliver_and_use(first, ticket, WaitResult::Acquired);
        }
        (WaitResult::Acquired, u32::from(is_granted))
    });
});

// The lock is handed to the first claim, whose agent ends at the same moment: the next one gets it.
model!(grant_death, loom::model, {
    grant_while(|lock, first, ticket| {
        let _ = lock.store.withdraw_agent(ticket, first, 0);
        let died_holding = lock.abandon_grants(first);
        (if died_holding { WaitResult::AcquiredFromDead } else { WaitResult::Acquired }, 0)
    });
});

/// The first claim leaves, beside the holder: what the next one sees, and how often the first has held the lock.
fn grant_while(leave: fn(&Lock, &Arc<Outbox>, Ticket) -> (WaitResult, u32)) {
    let (first, next) = (agent(), agent());
    let (lock, tickets) = Lock::held_before(&[&first, &next]);
    let leaves = tickets[0];
    let leaving = beside(&lock, move |lock| leave(lock, &first, leaves));
    lock.use_and_give();
    let (result, held) = leaving.join().unwrap();
    lock.deliver_and_use(&next, tickets[1], result);
    lock.assert_free_after(2 + held);
}

// An agent releases the lock at the end of a job, as a thread joins the line behind its own promise: that promise has
// it first, without a ring, and then the thread.
model!(hand_over_claim, bounded_model, {
    let (lock, agent) = (Lock::held(), agent());
    lock.line_up_promise(&agent, NEVER);
    let claimant = claim_beside(&lock);
    assert!(lock.hand_over(&agent), "its promise is the first");
    assert_eq!(settled(&agent), [(0, WaitResult::Acquired)]);
    lock.assert_free_beside(lock.hold(), [claimant]);
});

// An agent releases the lock at the end of a job, as its promise times out: it has the lock, or the lock is free.
model!(hand_over_timeout, bounded_model, {
    let (lock, agent) = (Lock::held(), agent());
    lock.line_up_promise(&agent, clock::now());
    let expiring = beside(&lock, |lock| lock.store.expire());
    lock.hand_over(&agent);
    expiring.join().unwrap();
    let settled = settled(&agent);
    assert_eq!(settled.len(), 1, "it is settled once");
    if settled[0].1.is_acquired() {
        lock.use_and_give();
    }
    lock.assert_holds(UNLOCKED);
});

// An agent hands the lock to its own promise and ends before JavaScript has got it: another thread, which joins the line
// meanwhile, sees the death.
model!(hand_over_death_claim, bounded_model, {
    let (lock, agent) = (Lock::held(), agent());
    lock.line_up_promise(&agent, NEVER);
    let claimant = beside(&lock, |lock| lock.acquire_and_use().1);
    assert!(lock.hand_over(&agent));
    assert!(lock.abandon_grants(&agent));
    assert_eq!(claimant.join().unwrap(), WaitResult::AcquiredFromDead);
    lock.assert_holds(UNLOCKED);
});

// The first in line is a promise whose thread is busy: the lock goes to a thread that blocks behind it, and afterwards
// the promise's claim can still take it. Unless that thread is awake as well, this model deadlocks.
model!(unlock_busy_claim, loom::model, {
    let (lock, busy) = (Lock::held(), agent());
    let ticket = lock.line_up_promise(&busy, NEVER);
    let claimant = claim_beside(&lock);
    lock.use_and_give();
    claimant.join().unwrap();
    lock.deliver_and_use(&busy, ticket, WaitResult::Acquired);
    lock.assert_free_after(3);
});

// The same with a thread that gives up the moment it is awake: the one behind it has the lock.
model!(unlock_busy_claim_give_up, bounded_model, {
    let (lock, busy) = (Lock::held(), agent());
    let ticket = lock.line_up_promise(&busy, NEVER);
    let (quits, quitted) = lock.block(Request::Lock);
    let claimant = claim_beside(&lock);
    let holder = beside(&lock, |lock| lock.use_and_give());
    assert_eq!(lock.store.withdraw_thread(quitted, &quits), WaitResult::TimedOut);
    holder.join().unwrap();
    claimant.join().unwrap();
    lock.deliver_and_use(&busy, ticket, WaitResult::Acquired);
    lock.assert_free_after(3);
});

/// A read-write lock that one reads, and for which a promise waits to write, and another one behind that to read.
fn read_before_writer(writer: &Arc<Outbox>, reader: &Arc<Outbox>) -> (Arc<Lock>, [Ticket; 2]) {
    let lock = Lock::new(Request::Shared, 1);
    let write_ticket = lock.line_up(promise(writer, 0), Request::Exclusive, NEVER);
    let read_ticket = lock.line_up_promise(reader, NEVER);
    (lock, [write_ticket, read_ticket])
}

// A writer gives up before a reader that is a promise of a busy thread's: a thread that comes to read behind it
// enters.
model!(write_give_up_busy_read, loom::model, {
    let (writer, busy) = (agent(), agent());
    let (lock, [write_ticket, read_ticket]) = read_before_writer(&writer, &busy);
    let quitter = give_up_beside(&lock, writer, write_ticket);
    assert_eq!(lock.acquire(), WaitResult::Acquired);
    quitter.join().unwrap();
    assert_eq!(lock.deliver(&busy, read_ticket), Some(WaitResult::Acquired));
    lock.assert_holds(3);
});

/// The traces of a thread that takes locks as `lib/holding/` does: its robust list, and its register.
/// Written and read as `x64` does it, each write a releasing one.
#[derive(Default)]
struct RobustList {
    /// 0, or 1 while the entry is behind the last one, or 2 while it is the last one.
    entry: AtomicU32,
    releasing: AtomicBool,
}

impl RobustList {
    /// Of a thread that holds the lock.
    fn holding() -> Arc<Self> {
        let list = Self::default();
        list.write(2);
        Arc::new(list)
    }

    fn write(&self, entry: u32) {
        self.entry.store(entry, Release);
    }

    fn take(&self, lock: &Lock) -> bool {
        self.write(1);
        let taken = lock.try_take().is_some();
        self.write(if taken { 2 } else { 0 });
        taken
    }

    fn give(&self, lock: &Lock) {
        if lock.is_anybody_counted() {
            self.write(1);
            lock.store.return_unused(HERE, Hold::Lock, WaitResult::Acquired, &lock.word);
            self.write(0);
            return;
        }
        self.releasing.store(true, Release);
        lock.word.store(UNLOCKED, SeqCst);
        self.write(1);
        self.write(0);
        lock.tell_line();
        self.releasing.store(false, Release);
    }

    /// The agent's promise has been given the lock: it is in the table, and no longer on its way.
    fn deliver(&self, lock: &Lock, agent: &Arc<Outbox>, ticket: Ticket) {
        if lock.deliver(agent, ticket).is_some() {
            self.write(2);
            lock.store.delivered(HERE, &promise(agent, 0));
        }
    }

    /// Whether the thread may hold the lock. First its table, then its register.
    fn may_hold(&self) -> bool {
        self.entry.load(Acquire) != 0 || self.releasing.load(Acquire)
    }

    /// `unlock()` of a thread that does not hold the lock, beside threads that may hold it: it is not freed.
    fn free_beside(lock: &Lock, others: &[&Self]) {
        let freed = lock.store.free(HERE, &lock.word, |granted| {
            (granted.is_some() || others.iter().any(|other| other.may_hold())).then_some(())
        });
        assert_ne!(freed, Freed::Now);
    }
}

// One unlocks by mistake while the holder gives the lock back and another one takes it: never is it freed, for at each
// moment at which it is locked its holder is noted. Without the note before it is taken, or without the register, or
// if no waiter were counted meanwhile, this model fails.
model!(unlock_by_mistake, bounded_model, {
    let (lock, holder, newcomer) = (Lock::held(), RobustList::holding(), Arc::new(RobustList::default()));
    let gives = beside_both(&lock, &holder, |lock, holder| holder.give(lock));
    let second = beside_both(&lock, &newcomer, |lock, newcomer| newcomer.take(lock));
    RobustList::free_beside(&lock, &[&newcomer, &holder]);
    gives.join().unwrap();
    let is_taken = second.join().unwrap();
    assert_eq!(lock.value(), if is_taken { LOCKED } else { UNLOCKED });
});

// One unlocks by mistake while the lock is handed over to a promise: never is it freed. Unless it is known that it is
// on its way, this model fails.
model!(unlock_by_mistake_grant, bounded_model, {
    let (agent, holder, heir) = (agent(), RobustList::holding(), Arc::new(RobustList::default()));
    let (lock, tickets) = Lock::held_before(&[&agent]);
    let gives = beside_both(&lock, &holder, |lock, holder| holder.give(lock));
    let mistaken = beside(&lock, {
        let heir = heir.clone();
        move |lock| RobustList::free_beside(lock, &[&heir, &holder])
    });
    heir.deliver(&lock, &agent, tickets[0]);
    gives.join().unwrap();
    mistaken.join().unwrap();
    assert_eq!(lock.value(), LOCKED);
});

// The first in line has been woken to try when its time is over: it has the lock, or the next one is woken.
model!(wake_timeout, bounded_model, {
    let (lock, first, next) = (Lock::held(), agent(), agent());
    let tickets = [lock.line_up_promise(&first, DEADLINE), lock.line_up_promise(&next, NEVER)];
    let timer = beside(&lock, |lock| {
        clock::set(DEADLINE);
        lock.store.expire();
    });
    lock.use_and_give();
    let acquired = lock.deliver(&first, tickets[0]) == Some(WaitResult::Acquired);
    if acquired {
        lock.use_and_give();
    }
    timer.join().unwrap();
    lock.deliver_and_use(&next, tickets[1], WaitResult::Acquired);
    lock.assert_free_after(2 + u32::from(acquired));
});

// The holder dies while one thread claims the lock and another takes it without a native call: the first of them
// sees it.
model!(death_newcomer_claim, bounded_model, {
    let lock = Lock::held();
    let claimant = beside(&lock, |lock| lock.acquire_and_use());
    let newcomer = beside(&lock, |lock| lock.try_take().map(|result| (lock.use_and_give(), result)));
    lock.abandon(Request::Lock);
    let results = [Some(claimant.join().unwrap()), newcomer.join().unwrap()];
    for &(former_holders, result) in results.iter().flatten() {
        assert_eq!(result == WaitResult::AcquiredFromDead, former_holders == 0, "{results:?}");
    }
    lock.assert_free_after(1 + u32::from(results[1].is_some()));
});

// The holder dies, and so does a thread that has taken the lock without a native call and not yet asked whether its
// holder died: what comes after a death sees it once.
model!(death_newcomer_death, bounded_model, {
    let lock = Lock::held();
    let claimant = beside(&lock, |lock| lock.acquire_and_use().1);
    let newcomer = beside(&lock, |lock| {
        lock.word.take(Request::Lock).then(|| {
            let former_holders = lock.holders.load(Relaxed);
            lock.abandon(Request::Lock);
            former_holders
        })
    });
    lock.abandon(Request::Lock);
    assert_eq!(claimant.join().unwrap(), WaitResult::AcquiredFromDead);
    let died_last = newcomer.join().unwrap() == Some(1);
    let result = if died_last { WaitResult::AcquiredFromDead } else { WaitResult::Acquired };
    assert_eq!(lock.try_take(), Some(result));
});

// A thread is ended when it has freed the lock and not yet looked at the counter: its clean-up does.
model!(unlock_death_claim, loom::model, {
    let lock = Lock::held();
    let claimant = claim_beside(&lock);
    lock.word.store(UNLOCKED, SeqCst);
    lock.store.wake_first(HERE);
    lock.assert_free_beside(0, [claimant]);
});

// A claim for five permits gives up while one is added: the claim for one behind it has it.
model!(add_permit_give_up, loom::model, {
    let semaphore = Lock::new(Request::Signals(1), 0);
    give_while_first_gives_up(&semaphore, Request::Signals(5), Lock::give_back);
    semaphore.assert_holds(0);
});

/// The first claim, for more than there is, gives up meanwhile: the one behind it has what it wants.
fn give_while_first_gives_up(lock: &Arc<Lock>, more: Request, give: impl FnOnce(&Lock)) {
    let (first, next) = (agent(), agent());
    let quits = lock.line_up(promise(&first, 0), more, NEVER);
    let ticket = lock.line_up_promise(&next, NEVER);
    let quitter = give_up_beside(lock, first, quits);
    give(lock);
    quitter.join().unwrap();
    assert_eq!(lock.deliver(&next, ticket), Some(WaitResult::Acquired));
}

// A permit is added while one thread claims it in the line and another without a native call: one of them has it, and
// the claim in the line does not sleep beside it.
model!(add_permit_newcomer_claim, bounded_model, {
    let semaphore = Lock::new(Request::Signals(1), 0);
    let claimant = beside(&semaphore, |semaphore| semaphore.acquire());
    let newcomer = beside(&semaphore, |semaphore| {
        if semaphore.try_take().is_some() {
            semaphore.give_back();
        }
    });
    semaphore.give_back();
    assert_eq!(claimant.join().unwrap(), WaitResult::Acquired);
    newcomer.join().unwrap();
    semaphore.assert_holds(0);
});

// The holder of one of a limit's two permits dies while the claim for both gives up: the claim for one behind it has
// it.
model!(limit_death_give_up, loom::model, {
    let [one, two] = [1, 2].map(|amount| Request::Limited { amount, limit: 2 });
    let limit = Lock::new(one, 2);
    give_while_first_gives_up(&limit, two, |limit| limit.abandon(one));
    // The one that lives, and the one in the line.
    limit.assert_holds(2);
});

// The last reader leaves while the writer that waits for it gives up: the reader behind the writer enters.
model!(read_unlock_write_give_up, loom::model, {
    let (writer, reader) = (agent(), agent());
    let (lock, [write_ticket, read_ticket]) = read_before_writer(&writer, &reader);
    let quitter = beside(&lock, move |lock| {
        if lock.store.withdraw_agent(write_ticket, &writer, 0) == Withdrawal::Settled {
            assert_eq!(settled(&writer), [(0, WaitResult::Acquired)]);
            lock.store.return_unused(HERE, Hold::Exclusive, WaitResult::Acquired, &lock.word);
        }
    });
    lock.give_back();
    quitter.join().unwrap();
    assert_eq!(lock.deliver(&reader, read_ticket), Some(WaitResult::Acquired));
    lock.assert_holds(1);
});

// The writer dies while two readers wait behind it: both enter, and see the death.
model!(write_death_read, bounded_model, {
    let (lock, reader) = (Lock::new(Request::Shared, WRITING), agent());
    let ticket = lock.line_up_promise(&reader, NEVER);
    let other = beside(&lock, |lock| lock.acquire());
    lock.abandon(Request::Exclusive);
    let results = [other.join().unwrap(), lock.deliver(&reader, ticket).unwrap()];
    assert_eq!(results, [WaitResult::AcquiredFromDead; 2]);
    assert_eq!(lock.value(), 2);
    assert!(any_abandoned_near(&lock.store, HERE), "the next writer sees it, too");
});

// The last buffer object of a memory is collected while another thread makes a lock in it and dies with it: the next
// holder sees it. If abandoned locks were forgotten after the registry's lock has been released, that death might be
// forgotten.
model!(lose_register_death, loom::model, {
    let (lock, tracked_buffers) = (Lock::held(), Arc::new(TrackedBuffers::new(|memories| memories)));
    let (address, main, worker) = (HERE.address(), 1, 2);
    tracked_buffers.register(&lock.store, main, address, 4);
    // Of an earlier death: that it may be forgotten.
    lock.abandon(Request::Lock);
    let collector = beside_both(&lock, &tracked_buffers, move |lock, tracked_buffers| {
        if tracked_buffers.lose(&lock.store, main, address, 1) == Left::Unknown {
            tracked_buffers.look(&lock.store);
        }
    });
    tracked_buffers.register(&lock.store, worker, address, 4);
    assert!(lock.try_take().is_some());
    lock.abandon(Request::Lock);
    collector.join().unwrap();
    let ended = std::sync::Arc::new(Ended { thread_id: 0, thread_name: None, manner: 0, at: Timestamp::NEVER });
    assert_eq!(tracked_buffers.end(&lock.store, worker, address, 1, &ended), Left::Unknown);
    assert_eq!(lock.try_take(), Some(WaitResult::AcquiredFromDead));
});

/// One side of a queue of messages, as `lib/queue/` uses it: how many there are, and the two words of the event
/// that says so. Threads wait for the second word, promises at the first for both.
struct Events {
    store: Arc<WaiterListStore>,
    first: AtomicU32,
    second: AtomicU32,
    messages: AtomicU32,
}

impl Events {
    const PROMISES: Location = Location::from_address(HERE.address() + 4);

    fn new() -> Arc<Self> {
        let [first, second, messages] = [(); 3].map(|()| AtomicU32::new(0));
        let events = Self { store: store(), first, second, messages };
        for word in [&events.first, &events.second, &events.messages] {
            word.store(0, SeqCst);
        }
        for location in [HERE, Self::PROMISES] {
            let thread = Waiter::Thread(this_thread());
            assert!(events.store.enqueue(location, thread, NEVER, || false).is_none());
        }
        Arc::new(events)
    }

    /// Puts a message, and raises the event.
    fn put(&self) {
        self.messages.fetch_add(1, SeqCst);
        self.second.fetch_add(1, SeqCst);
        self.wake_first();
    }

    /// Raises both words, which a thread that has ended owed.
    fn raise_owed(&self) {
        self.first.fetch_add(1, SeqCst);
        self.second.fetch_add(1, SeqCst);
        self.wake_first();
    }

    fn wake_first(&self) {
        for location in [HERE, Self::PROMISES] {
            if self.store.counter(location).load(SeqCst) != 0 {
                self.store.notify(location, 1, None);
            }
        }
    }

    fn take(&self) -> bool {
        self.messages.compare_exchange(1, 0, SeqCst, SeqCst).is_ok()
    }

    /// Blocks the calling thread until there is a message, or may be.
    fn await_message(&self) {
        let seen = self.second.load(SeqCst);
        if self.messages.load(SeqCst) == 0 {
            block(&self.store, || self.second.load(SeqCst) == seen);
        }
    }

    /// A promise takes a message, which `put` puts meanwhile.
    fn take_by_promise(put: fn(&Self)) {
        let events = Self::new();
        let putter = beside(&events, move |events| put(events));
        let (bell, agent) = bell_and_agent();
        let words = || [&events.first, &events.second].map(|word| word.load(SeqCst));
        loop {
            let seen = words();
            if events.take() {
                break;
            }
            if events.store.enqueue(Self::PROMISES, promise(&agent, 0), NEVER, || words() == seen).is_some() {
                assert_eq!(await_settlements(&bell, &agent, 1), [(0, WaitResult::Ok)]);
            }
        }
        putter.join().unwrap();
    }
}

// One of two that wait for a message is woken, and ends before it has taken it: the other has it, since the first one
// owed a notification. Without that, this model deadlocks.
model!(put_owed_take, bounded_model, {
    let events = Events::new();
    let victim = beside(&events, |events| {
        events.await_message();
        events.raise_owed();
    });
    let taker = beside(&events, |events| {
        while !events.take() {
            events.await_message();
        }
    });
    events.put();
    taker.join().unwrap();
    // If it has not been woken.
    events.put();
    victim.join().unwrap();
    assert_eq!(events.messages.load(SeqCst), 1);
});

// A promise compares both words, though a message raises only the second: it is not enqueued behind a message that it
// has not seen.
model!(put_promise, bounded_model, { Events::take_by_promise(Events::put) });

// The same where the thread that has put the message ends before it has raised the event.
model!(put_death_promise, bounded_model, {
    Events::take_by_promise(|events| {
        events.messages.fetch_add(1, SeqCst);
        events.raise_owed();
    });
});

/// Two locks in one bucket, and the threads that hold them.
struct TwoLocks {
    store: WaiterListStore,
    graph: WaitForGraph,
    words: [AtomicI32; 2],
    /// By lock. Written before the lock is released and after it has been taken, as the robust lists are.
    holders: loom::sync::Mutex<[Option<Arc<BlockedThread>>; 2]>,
}

impl TwoLocks {
    const PLACES: [Location; 2] = [HERE, Location::from_address(HERE.address() + 4)];

    fn hold(&self, lock: usize, thread: Option<&Arc<BlockedThread>>) {
        self.holders.lock().unwrap()[lock] = thread.cloned();
    }

    fn release(&self, lock: usize) {
        self.hold(lock, None);
        self.store.return_unused(Self::PLACES[lock], Hold::Lock, WaitResult::Acquired, &self.words[lock]);
    }

    fn blockers(&self, blocked: &Blocked) -> Vec<Blocker> {
        let lock = usize::from(blocked.location != HERE);
        let holder = self.holders.lock().unwrap()[lock].clone();
        let held: Vec<_> = holder.into_iter().map(|thread| (thread, Hold::Lock)).collect();
        self.store.blockers(blocked, &held, |_| None, |_| true)
    }

    /// Takes `first`, blocks for `second`, and releases what it has. Whether it would have closed a cycle.
    fn run(&self, first: usize, second: usize) -> bool {
        let (thread, location) = (this_thread(), Self::PLACES[second]);
        let waiter = Waiter::Thread(thread.clone());
        if !self.words[first].take(Request::Lock) {
            return false;
        }
        self.hold(first, Some(&thread));
        let mut finds = false;
        if let Claimed::Pending(ticket) =
            self.store.claim(location, waiter.clone(), Request::Lock, NEVER, &self.words[second])
        {
            let blocked = Blocked { thread: thread.clone(), ticket, location, request: Request::Lock };
            let cycle = self.graph.block(&blocked, |_| |blocked: &Blocked| self.blockers(blocked));
            finds = cycle.is_some();
            if let Some(cycle) = cycle {
                assert_eq!(cycle.len(), 2);
                assert!(Arc::ptr_eq(&cycle[0].blocked.thread, &thread));
                assert_eq!(self.store.withdraw_thread(ticket, &thread), WaitResult::TimedOut, "it cannot be granted");
            } else {
                loop {
                    let woken = self.store.park(ticket, &thread, NEVER, NEVER);
                    if matches!(woken, Woken::Settled(_))
                        || self.store.retry(ticket, &waiter, &self.words[second]).is_some()
                    {
                        break;
                    }
                }
                self.hold(second, Some(&thread));
                self.graph.leave(&thread);
                self.release(second);
            }
        } else {
            self.release(second);
        }
        self.release(first);
        finds
    }
}

// Two threads take two locks in opposite orders. If each gets its first one before the other releases it, one of them
// finds the cycle, and then the other goes on. A thread that nobody woke would fail as a deadlock.
model!(deadlock_of_two, bounded_model, {
    let locks = Arc::new(TwoLocks {
        store: WaiterListStore::new(1, clock::now),
        graph: WaitForGraph::default(),
        words: [AtomicI32::new(UNLOCKED), AtomicI32::new(UNLOCKED)],
        holders: loom::sync::Mutex::new([None, None]),
    });
    locks.words.iter().for_each(|word| word.store(UNLOCKED, SeqCst));
    let other = beside(&locks, |locks| locks.run(1, 0));
    let found = [locks.run(0, 1), other.join().unwrap()];
    assert_ne!(found, [true, true]);
    assert_eq!(locks.words.each_ref().map(Word::load), [UNLOCKED, UNLOCKED]);
});

// ——— Words that several processes share: a thread stands for a process ———

fn lock<T>(mutex: &PlainMutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Three processes: who has died, and the bell of each.
struct Processes {
    news: Vec<AtomicU64>,
    records: Vec<Record>,
    word: AtomicI32,
    dead: [AtomicBool; 3],
    bells: [Notify; 3],
    time: AtomicU64,
}

struct Died;

/// One of them, which dies before its next change once it has made so many.
struct Process {
    all: Arc<Processes>,
    index: usize,
    /// Not one of loom's: each process is one thread.
    left: PlainMutex<Option<u32>>,
}

impl Processes {
    fn new() -> Arc<Self> {
        let all = Self {
            news: vec![AtomicU64::new(0)],
            records: vec![Record::default()],
            word: AtomicI32::new(0),
            dead: Default::default(),
            bells: std::array::from_fn(|_| Notify::new()),
            time: AtomicU64::new(0),
        };
        let all = Arc::new(all);
        // Stored once: see the head of this file.
        all.word.store(0, SeqCst);
        Process::new(&all, 2).with_word(|word| word.end_claims());
        all
    }
}

impl Peers for Process {
    fn me(&self) -> ProcessId {
        ProcessId::new(self.index, 1).unwrap()
    }

    fn ring(&self, index: usize) {
        self.all.bells[index].notify();
    }

    fn pid(&self, _: usize) -> u32 {
        0
    }

    fn is_gone(&self, process: ProcessId) -> bool {
        self.all.dead[process.index()].load(SeqCst)
    }

    /// So a turn begins and lapses after some looks.
    fn now(&self) -> u64 {
        self.all.time.fetch_add(150, SeqCst)
    }

    fn step(&self) {
        let mut left = lock(&self.left);
        let dies = *left == Some(0);
        *left = left.map(|left| left.saturating_sub(1));
        drop(left);
        if dies {
            std::panic::resume_unwind(Box::new(Died));
        }
    }
}

impl Process {
    fn new(all: &Arc<Processes>, index: usize) -> Self {
        Self { all: Arc::clone(all), index, left: None.into() }
    }

    fn with_word<R>(&self, body: impl FnOnce(SharedWord<'_>) -> R) -> R {
        let table = Table::of_parts(&self.all.news, &self.all.records);
        let index = table.find_or_make(0).unwrap();
        body(SharedWord { table, index, word: &self.all.word, peers: self })
    }

    fn lock(&self, request: Request) {
        self.with_word(|word| {
            word.begin_claims();
            let table = word.table;
            while !{
                let _ = table.take_news(self.me());
                self.sweep();
                word.take(request)
            } {
                word.answer();
                self.all.bells[self.index].wait();
            }
            word.end_claims();
        });
    }

    fn sweep(&self) {
        let table = Table::of_parts(&self.all.news, &self.all.records);
        for index in (0..3).filter(|&index| index != self.index && self.all.dead[index].load(SeqCst)) {
            table.sweep(ProcessId::new(index, 1).unwrap(), self, |_| Some(&self.all.word));
        }
    }

    /// Takes and gives back, and dies in that once it has made so many changes.
    fn lock_and_unlock(&self, request: Request, changes: Option<u32>) {
        *lock(&self.left) = changes;
        let visit = || {
            self.lock(request);
            assert_ne!(self.all.word.load(SeqCst), 0);
            self.with_word(|word| word.give_back(request.hold()));
        };
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(visit));
        *lock(&self.left) = None;
        if let Err(error) = ended {
            if !error.is::<Died>() {
                std::panic::resume_unwind(error);
            }
            self.all.dead[self.index].store(true, SeqCst);
            // The alarm.
            self.all.bells.iter().for_each(Notify::notify);
        }
    }
}

const SHARED_REQUESTS: [Request; 2] = [Request::Lock, Request::Limited { amount: 1, limit: 1 }];

/// Two processes take a word in turns. Each gets it, also if the other dies at any step.
#[test]
fn process_lock_death() {
    for request in SHARED_REQUESTS {
        for changes in [None].into_iter().chain((0..24).map(Some)) {
            bounded_to(2, move || {
                let all = Processes::new();
                let victim = beside(&all, move |all| Process::new(all, 0).lock_and_unlock(request, changes));
                let other = Process::new(&all, 1);
                other.lock_and_unlock(request, None);
                victim.join().unwrap();
                other.sweep();
                assert_eq!(all.word.load(SeqCst), 0);
                other.with_word(|word| assert!(word.take(request)));
            });
        }
    }
}

/// A notification that is counted ends one wait, and one that is not counted none, while the waiter gives up.
#[test]
fn process_notify_leave() {
    bounded_model(|| {
        let all = Processes::new();
        Process::new(&all, 0).with_word(|word| word.enter());
        let waiter = beside(&all, |all| Process::new(all, 0).with_word(|word| word.leave()));
        let notified = Process::new(&all, 1).with_word(|word| word.notify(1, &mut |_| 0));
        assert_eq!(waiter.join().unwrap(), notified == 1);
    });
}

/// A waiter that has read the old value is notified by a process that writes the new one.
#[test]
fn process_wait_store_notify() {
    bounded_model(|| {
        let all = Processes::new();
        let waiter = beside(&all, |all| {
            let process = Process::new(all, 0);
            process.with_word(|word| {
                word.enter();
                if process.all.word.load(Relaxed) == 1 {
                    return word.leave();
                }
                while !word.take_notification() {
                    process.all.bells[0].wait();
                }
                true
            })
        });
        all.word.store(1, Relaxed);
        fence(SeqCst);
        let notified = Process::new(&all, 1).with_word(|word| word.notify(1, &mut |_| 0));
        assert_eq!(waiter.join().unwrap(), notified == 1);
    });
}
