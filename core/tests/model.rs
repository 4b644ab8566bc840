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

use loom::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use loom::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, fence};
use loom::sync::{Arc, Notify};
use loom::thread::{JoinHandle, spawn};
use waitasync_core::clock::Timestamp;
use waitasync_core::lock::fairness::FAIRNESS;
use waitasync_core::lock::memories::{Left, Memories};
use waitasync_core::lock::request::{LOCKED, Request, UNLOCKED, WRITING, Word};
use waitasync_core::lock::wait_for_graph::{Blocked, Keeper, Obstacle, WaitForGraph};
use waitasync_core::lock::{Claimed, Freed, Mail, Outbox, Waiter, WaiterListStore};
use waitasync_core::queue::location::Location;
use waitasync_core::queue::parker::{BlockedThread, Woken};
use waitasync_core::queue::result::WaitResult;
use waitasync_core::queue::store::Withdrawal;
use waitasync_core::queue::waiter_list::Ticket;
use waitasync_core::service::alarm::Alarm;
use waitasync_core::service::rest::Rest;

const HERE: Location = Location::from_address(0x1000);
const NEVER: Timestamp = Timestamp::NEVER;
const DEADLINE: Timestamp = Timestamp::from_nanos(20);

loom::lazy_static! {
    static ref CLOCK: AtomicU64 = AtomicU64::new(0);
}

fn now() -> Timestamp {
    Timestamp::from_nanos(CLOCK.load(SeqCst))
}

/// Checks a model with too many interleavings for all of them to be run: those with up to three preemptions.
fn bounded_model(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(3));
    builder.check(model);
}

fn store() -> Arc<WaiterListStore> {
    Arc::new(WaiterListStore::new(1, now))
}

/// An agent whose ring wakes the thread that awaits its settlements.
#[derive(Clone)]
struct Agent {
    outbox: Arc<Outbox>,
    bell: Arc<Notify>,
}

impl Agent {
    fn new() -> Self {
        let bell = Arc::new(Notify::new());
        let ring = Arc::clone(&bell);
        Self { outbox: Arc::new(Outbox::new(Box::new(move || ring.notify()))), bell }
    }

    /// One that looks into its outbox by itself when the race is over, which makes for fewer interleavings.
    fn deaf() -> Self {
        Self { outbox: Arc::new(Outbox::new(Box::new(|| ()))), bell: Arc::new(Notify::new()) }
    }

    fn wait(&self, store: &WaiterListStore, slot: u32, deadline: Timestamp) -> Ticket {
        store.enqueue(HERE, Waiter::Agent(Arc::clone(&self.outbox), slot), deadline, || true).unwrap()
    }

    fn mail(&self) -> Mail {
        let mut mail = Mail::default();
        self.outbox.take(&mut mail);
        mail
    }

    /// A job of the agent: the settlements in the outbox, those of `waits` timed out that are overdue.
    fn run(&self, store: &WaiterListStore, waits: &[(u32, Ticket)]) -> Vec<(u32, WaitResult)> {
        let mut settlements = self.mail().settlements;
        let ticket = |slot| waits.iter().find(|wait| wait.0 == slot).map(|wait| wait.1);
        store.decide(&self.outbox, &mut settlements, ticket);
        settlements.iter().map(|settlement| (settlement.slot, settlement.result)).collect()
    }

    /// The settlements in the outbox, by slot and result.
    fn settled(&self) -> Vec<(u32, WaitResult)> {
        self.mail().settlements.iter().map(|settlement| (settlement.slot, settlement.result)).collect()
    }

    /// As the event loop does: looks into the outbox when it was rung, until there were `count` settlements.
    fn await_settlements(&self, count: usize) -> Vec<(u32, WaitResult)> {
        let mut settled = Vec::new();
        while settled.len() < count {
            self.bell.wait();
            settled.extend(self.settled());
        }
        settled
    }
}

/// Waits as `Atomics.wait` does, without a timeout.
fn block(store: &WaiterListStore, thread: &Arc<BlockedThread>, is_equal: impl FnOnce() -> bool) -> WaitResult {
    let Some(ticket) = store.enqueue(HERE, Waiter::Thread(Arc::clone(thread)), NEVER, is_equal) else {
        return WaitResult::NotEqual;
    };
    match store.park(ticket, thread, NEVER, NEVER) {
        Woken::Settled(result) => result,
        woken => panic!("{woken:?} from a wait without a timeout"),
    }
}

fn this_thread() -> Arc<BlockedThread> {
    Arc::new(BlockedThread::current())
}

#[test]
fn wait_notify() {
    loom::model(|| {
        let (store, word, data) = (store(), Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let notifier = spawn({
            let (store, word, data) = (store.clone(), word.clone(), data.clone());
            move || {
                word.store(1, SeqCst);
                data.store(1, Relaxed);
                store.notify(HERE, 1, None)
            }
        });
        let result = block(&store, &this_thread(), || word.load(SeqCst) == 0);
        if result == WaitResult::Ok {
            assert_eq!(data.load(Relaxed), 1, "what was written before the notification is seen after it");
        }
        assert_eq!(notifier.join().unwrap(), usize::from(result == WaitResult::Ok));
        assert_eq!(store.count(HERE), 0);
    });
}

/// A thread that writes the word without an atomic operation and notifies all waiters.
fn write_and_notify_all(store: &Arc<WaiterListStore>, word: &Arc<AtomicU32>) -> JoinHandle<usize> {
    let (store, word) = (store.clone(), word.clone());
    spawn(move || {
        word.store(1, Relaxed);
        store.notify(HERE, usize::MAX, None)
    })
}

/// The word is written without an atomic operation, so only the two fences order it and the bucket's occupancy. Without
/// either of them this model deadlocks.
#[test]
fn wait_store_notify() {
    loom::model(|| {
        let (store, word, agent) = (store(), Arc::new(AtomicU32::new(0)), Agent::new());
        let notifier = write_and_notify_all(&store, &word);
        let ticket =
            store.enqueue(HERE, Waiter::Agent(Arc::clone(&agent.outbox), 7), NEVER, || word.load(Relaxed) == 0);
        if ticket.is_some() {
            assert_eq!(agent.await_settlements(1), [(7, WaitResult::Ok)]);
        }
        assert_eq!(notifier.join().unwrap(), usize::from(ticket.is_some()));
    });
}

/// The same with a waiter that is counted already, so that the notifier passes no fence.
#[test]
fn wait_store_notify_two() {
    loom::model(|| {
        let (store, word, agent) = (store(), Arc::new(AtomicU32::new(0)), Agent::new());
        agent.wait(&store, 6, NEVER);
        let notifier = write_and_notify_all(&store, &word);
        let ticket =
            store.enqueue(HERE, Waiter::Agent(Arc::clone(&agent.outbox), 7), NEVER, || word.load(Relaxed) == 0);
        let settled: &[_] =
            if ticket.is_some() { &[(6, WaitResult::Ok), (7, WaitResult::Ok)] } else { &[(6, WaitResult::Ok)] };
        assert_eq!(agent.await_settlements(settled.len()), settled);
        assert_eq!(notifier.join().unwrap(), settled.len());
    });
}

/// A thread that gives up takes no notification along: either it or the one behind it is woken.
#[test]
fn wait_timeout_notify_thread() {
    loom::model(|| {
        let (store, agent, thread) = (store(), Agent::deaf(), this_thread());
        let ticket = store.enqueue(HERE, Waiter::Thread(Arc::clone(&thread)), DEADLINE, || true).unwrap();
        agent.wait(&store, 7, NEVER);
        let notifier = spawn({
            let store = store.clone();
            move || store.notify(HERE, 1, None)
        });
        let result = store.withdraw_thread(ticket, &thread);
        assert_eq!(notifier.join().unwrap(), 1);
        let behind = agent.settled();
        match result {
            WaitResult::Ok => assert_eq!(behind, []),
            WaitResult::TimedOut => assert_eq!(behind, [(7, WaitResult::Ok)]),
            other => panic!("{other:?}"),
        }
        assert_eq!(store.count(HERE), 1 - u32::try_from(behind.len()).unwrap());
    });
}

/// The timer thread's turn when [`DEADLINE`] has come.
fn expire(store: &Arc<WaiterListStore>) -> JoinHandle<()> {
    let store = store.clone();
    spawn(move || {
        CLOCK.store(DEADLINE.as_nanos(), SeqCst);
        assert_eq!(store.expire(), NEVER);
    })
}

/// A promise is settled once, by its agent's job or by the notification of another thread, and one that is due does not
/// absorb the latter.
#[test]
fn wait_timeout_notify_promise() {
    loom::model(|| {
        let (store, agent) = (store(), Agent::deaf());
        let waits = [(1, agent.wait(&store, 1, DEADLINE)), (2, agent.wait(&store, 2, NEVER))];
        let timer = expire(&store);
        let is_due = now() >= DEADLINE;
        assert_eq!(store.notify(HERE, 1, None), 1);
        timer.join().unwrap();
        let settled = agent.run(&store, &waits);
        let is_behind = settled == [(1, WaitResult::TimedOut), (2, WaitResult::Ok)];
        assert!(is_behind || (settled == [(1, WaitResult::Ok)] && !is_due), "{settled:?}");
        assert_eq!(store.count(HERE), u32::from(!is_behind));
    });
}

/// Whatever the timer has come to, an agent's notification wakes its own promise, which came first: no job of the agent
/// has timed it out yet.
#[test]
fn wait_timeout_notify_own_promise() {
    loom::model(|| {
        let (store, agent) = (store(), Agent::deaf());
        let waits = [(1, agent.wait(&store, 1, DEADLINE)), (2, agent.wait(&store, 2, NEVER))];
        let timer = expire(&store);
        assert_eq!(store.notify(HERE, 1, Some(&agent.outbox)), 1);
        timer.join().unwrap();
        assert_eq!(agent.run(&store, &waits), [(1, WaitResult::Ok)]);
        assert_eq!(store.count(HERE), 1);
    });
}

/// The timer tells the agent, a job of which decides, while another thread notifies: the promise is settled once, and
/// the notification wakes it or the one behind it.
#[test]
fn timeout_decide_notify() {
    bounded_model(|| {
        let (store, agent) = (store(), Agent::deaf());
        let waits = [(1, agent.wait(&store, 1, DEADLINE)), (2, agent.wait(&store, 2, NEVER))];
        let timer = expire(&store);
        let notifier = spawn({
            let store = store.clone();
            move || store.notify(HERE, 1, None)
        });
        let mut settled = agent.run(&store, &waits);
        assert_eq!(notifier.join().unwrap(), 1);
        timer.join().unwrap();
        settled.extend(agent.run(&store, &waits));
        settled.sort_by_key(|&(slot, _)| slot);
        let is_behind = settled == [(1, WaitResult::TimedOut), (2, WaitResult::Ok)];
        assert!(is_behind || settled == [(1, WaitResult::Ok)], "{settled:?}");
        assert_eq!(store.count(HERE), u32::from(!is_behind));
    });
}

/// An agent cancels its promise and gives the slot to another one while the timer tells it of the first: the second
/// waits on.
#[test]
fn timeout_cancel_wait() {
    loom::model(|| {
        let (store, agent) = (store(), Agent::deaf());
        let first = agent.wait(&store, 1, DEADLINE);
        let timer = expire(&store);
        assert_eq!(store.withdraw_agent(first, &agent.outbox, 1), Withdrawal::Done);
        let second = agent.wait(&store, 1, NEVER);
        assert_eq!(agent.run(&store, &[(1, second)]), []);
        timer.join().unwrap();
        assert_eq!(agent.run(&store, &[(1, second)]), []);
        assert_eq!(store.count(HERE), 1);
    });
}

/// An agent cancels its promise, which is due, while the timer tells it so and another thread notifies: the
/// notification is the promise's, which then is not cancelled, or the next one's.
#[test]
fn cancel_timeout_notify() {
    bounded_model(|| {
        let (store, agent) = (store(), Agent::deaf());
        let waits = [(1, agent.wait(&store, 1, DEADLINE)), (2, agent.wait(&store, 2, NEVER))];
        let timer = expire(&store);
        let notifier = spawn({
            let store = store.clone();
            move || store.notify(HERE, 1, None)
        });
        // As `cancel` in `src/agent/waiting.rs` does it.
        let cancelled =
            store.withdraw_agent(waits[0].1, &agent.outbox, 1) == Withdrawal::Done || agent.outbox.revoke(1).is_some();
        assert_eq!(notifier.join().unwrap(), 1);
        timer.join().unwrap();
        // The slot of a cancelled wait has no ticket.
        let settled = agent.run(&store, &waits[usize::from(cancelled)..]);
        assert_eq!(settled, [(if cancelled { 2 } else { 1 }, WaitResult::Ok)]);
        assert_eq!(store.count(HERE), u32::from(!cancelled));
    });
}

/// An agent ends while the timer tells it of a deadline and another thread notifies: nothing of it stays, and the
/// notification is either its or the next one's.
#[test]
fn timeout_end_notify() {
    bounded_model(|| {
        let (store, agent, other) = (store(), Agent::deaf(), Agent::deaf());
        let ticket = agent.wait(&store, 1, DEADLINE);
        other.wait(&store, 2, NEVER);
        let timer = expire(&store);
        let notifier = spawn({
            let store = store.clone();
            move || store.notify(HERE, 1, None)
        });
        let withdrawn = store.withdraw_agent(ticket, &agent.outbox, 1) == Withdrawal::Done;
        let mail = agent.settled();
        agent.outbox.close();
        assert_eq!(notifier.join().unwrap(), 1);
        timer.join().unwrap();
        let is_over = |&(_, result): &(u32, WaitResult)| result != WaitResult::Due;
        let settled: Vec<_> = mail.into_iter().filter(is_over).collect();
        assert_eq!(settled.len(), usize::from(!withdrawn));
        let was_notified = settled == [(1, WaitResult::Ok)];
        let behind: &[_] = if was_notified { &[] } else { &[(2, WaitResult::Ok)] };
        assert_eq!(other.settled(), behind);
        assert_eq!(store.count(HERE), u32::from(was_notified));
    });
}

/// An agent lines up and ends at once: nothing of it stays, and a notification is either its or the next one's.
#[test]
fn add_end_notify() {
    loom::model(|| {
        let (store, other) = (store(), Agent::deaf());
        let ended = Arc::new(AtomicBool::new(false));
        let agent = spawn({
            let (store, ended) = (store.clone(), ended.clone());
            move || {
                let outbox = Arc::new(Outbox::new(Box::new({
                    let ended = ended.clone();
                    move || assert!(!ended.load(Relaxed), "rung after its end")
                })));
                let ticket = store.enqueue(HERE, Waiter::Agent(Arc::clone(&outbox), 1), NEVER, || true).unwrap();
                let withdrawn = store.withdraw_agent(ticket, &outbox, 1) == Withdrawal::Done;
                outbox.close();
                ended.store(true, Relaxed);
                let mut mail = Mail::default();
                outbox.take(&mut mail);
                assert_eq!(mail.settlements.len(), usize::from(!withdrawn));
                mail.settlements.len()
            }
        });
        let notifier = spawn({
            let store = store.clone();
            move || store.notify(HERE, 1, None)
        });
        other.wait(&store, 2, NEVER);
        let (died_notified, woken) = (agent.join().unwrap(), notifier.join().unwrap());
        let others = other.settled().len();
        assert_eq!(died_notified + others, woken);
        assert_eq!(store.count(HERE) as usize, 1 - others);
    });
}

/// Each notification wakes one, and those first that came first, blocked or not.
#[test]
fn notify_notify() {
    loom::model(|| {
        let (store, agent, thread) = (store(), Agent::deaf(), this_thread());
        agent.wait(&store, 1, NEVER);
        let ticket = store.enqueue(HERE, Waiter::Thread(Arc::clone(&thread)), NEVER, || true).unwrap();
        agent.wait(&store, 3, NEVER);
        let notifiers = [(); 2].map(|()| {
            let store = store.clone();
            spawn(move || store.notify(HERE, 1, None))
        });
        assert_eq!(store.park(ticket, &thread, NEVER, NEVER), Woken::Settled(WaitResult::Ok));
        for notifier in notifiers {
            assert_eq!(notifier.join().unwrap(), 1);
        }
        assert_eq!(agent.settled(), [(1, WaitResult::Ok)]);
        assert_eq!(store.count(HERE), 1);
    });
}

/// The unpark of the first wait may come when the thread sleeps in its second one, and must not end that.
#[test]
fn park_late_unpark() {
    bounded_model(|| {
        let (store, thread, second) = (store(), this_thread(), Arc::new(AtomicBool::new(false)));
        for round in [false, true] {
            let ticket = store.enqueue(HERE, Waiter::Thread(Arc::clone(&thread)), NEVER, || true).unwrap();
            spawn({
                let (store, second) = (store.clone(), second.clone());
                move || {
                    second.store(round, Relaxed);
                    assert_eq!(store.notify(HERE, 1, None), 1);
                }
            });
            assert_eq!(store.park(ticket, &thread, NEVER, NEVER), Woken::Settled(WaitResult::Ok));
            assert_eq!(second.load(Relaxed), round, "woken by its own notification");
        }
    });
}

/// A thread that is interrupted while it goes to sleep returns, and waits on.
#[test]
fn park_interrupt() {
    loom::model(|| {
        let (store, thread) = (store(), this_thread());
        let ticket = store.enqueue(HERE, Waiter::Thread(Arc::clone(&thread)), NEVER, || true).unwrap();
        let watcher = spawn({
            let thread = thread.clone();
            move || thread.interrupt()
        });
        assert_eq!(store.park(ticket, &thread, NEVER, NEVER), Woken::Interrupted);
        watcher.join().unwrap();
        assert_eq!(store.withdraw_thread(ticket, &thread), WaitResult::TimedOut);
    });
}

/// A thread falls asleep while the service goes to rest: it is seen, or it rings, as `core/src/service/watch.rs` does.
/// Without either of the two fences this model deadlocks.
#[test]
fn sleep_rest() {
    loom::model(|| {
        let (store, thread) = (store(), this_thread());
        let (rest, bell) = (Arc::new(Rest::default()), Arc::new(Notify::new()));
        rest.try_rest(|| true);
        let wait = store.enqueue(HERE, Waiter::Thread(Arc::clone(&thread)), NEVER, || true).unwrap();
        let service = spawn({
            let (thread, rest, bell) = (thread.clone(), rest.clone(), bell.clone());
            move || {
                rest.try_rest(|| thread.is_blocked());
                while rest.is_resting() {
                    bell.wait();
                }
                thread.interrupt();
            }
        });
        thread.begin_block();
        if rest.rouse() {
            bell.notify();
        }
        assert_eq!(store.park(wait, &thread, NEVER, NEVER), Woken::Interrupted);
        thread.end_block();
        service.join().unwrap();
    });
}

/// Interruptions come while a thread is notified: however often it comes back meanwhile, it has the notification.
#[test]
fn notify_interrupt() {
    bounded_model(|| {
        let (store, thread) = (store(), this_thread());
        let wait = store.enqueue(HERE, Waiter::Thread(Arc::clone(&thread)), NEVER, || true).unwrap();
        let service = spawn({
            let thread = thread.clone();
            move || [(); 2].map(|()| thread.interrupt())
        });
        let notifier = spawn({
            let store = store.clone();
            move || store.notify(HERE, 1, None)
        });
        let woken = loop {
            match store.park(wait, &thread, NEVER, NEVER) {
                Woken::Interrupted => {}
                woken => break woken,
            }
        };
        assert_eq!(woken, Woken::Settled(WaitResult::Ok));
        assert_eq!(notifier.join().unwrap(), 1);
        service.join().unwrap();
    });
}

/// Two stores, so that the outbox's lock is all that its two pushers share. No settlement is left without a ring.
#[test]
fn push_take_ring() {
    bounded_model(|| {
        let (stores, agent) = ([store(), store()], Agent::new());
        for (slot, store) in (0..).zip(&stores) {
            agent.wait(store, slot, NEVER);
        }
        for store in stores {
            spawn(move || store.notify(HERE, 1, None));
        }
        let mut settled = agent.await_settlements(2);
        settled.sort_by_key(|&(slot, _)| slot);
        assert_eq!(settled, [(0, WaitResult::Ok), (1, WaitResult::Ok)]);
        assert!(!agent.outbox.has_mail());
    });
}

/// Mail holds the event loop: from the notification until the agent has taken the result.
#[test]
fn push_take_mail() {
    loom::model(|| {
        let (store, agent) = (store(), Agent::deaf());
        agent.wait(&store, 1, NEVER);
        agent.wait(&store, 2, NEVER);
        let notifier = spawn({
            let store = store.clone();
            move || store.notify(HERE, 1, None) + store.notify(HERE, 1, None)
        });
        let first = agent.settled().len();
        assert_eq!(notifier.join().unwrap(), 2);
        assert_eq!(agent.outbox.has_mail(), first < 2);
        assert_eq!(first + agent.settled().len(), 2);
        assert!(!agent.outbox.has_mail());
    });
}

#[test]
fn ring_close() {
    loom::model(|| {
        let ended = Arc::new(AtomicBool::new(false));
        let outbox = Arc::new(Outbox::new(Box::new({
            let ended = ended.clone();
            move || assert!(!ended.load(Relaxed), "rung after its end")
        })));
        let ringer = spawn({
            let outbox = outbox.clone();
            move || outbox.ring()
        });
        outbox.close();
        ended.store(true, Relaxed);
        ringer.join().unwrap();
        outbox.ring();
    });
}

/// A promise is appended while the timer thread times another one out: it sleeps until the new deadline at most, or is
/// rung.
#[test]
fn register_expire() {
    loom::model(|| {
        let (store, alarm, agent) = (store(), Arc::new(Alarm::default()), Agent::deaf());
        let first = agent.wait(&store, 1, Timestamp::from_nanos(10));
        assert_eq!(alarm.set(&store), Timestamp::from_nanos(10));
        CLOCK.store(10, SeqCst);
        let bell = Arc::new(Notify::new());
        let timer = spawn({
            let (store, alarm, bell) = (store.clone(), alarm.clone(), bell.clone());
            move || {
                while alarm.set(&store) > DEADLINE {
                    bell.wait();
                }
            }
        });
        agent.wait(&store, 2, DEADLINE);
        if alarm.is_later_than(DEADLINE) {
            bell.notify();
        }
        timer.join().unwrap();
        assert_eq!(agent.run(&store, &[(1, first)]), [(1, WaitResult::TimedOut)]);
    });
}

/// A word that excludes and its line, used as `lib/sync/robust list.js` and the addon use them.
struct Lock {
    store: WaiterListStore,
    word: AtomicI32,
    request: Request,
    /// Counted up by every holder without an atomic increment: right in the end only if they excluded each other, and
    /// each saw the writes of the one before it.
    holders: AtomicU32,
}

impl Lock {
    /// A word that holds `value`, and whose claims all ask for `request`.
    fn new(request: Request, value: i32) -> Arc<Self> {
        let store = WaiterListStore::new(1, now);
        let word = AtomicI32::new(value);
        // So that the newest stores of the counter and of the word are `SeqCst` ones, see above.
        assert!(store.enqueue(HERE, Waiter::Thread(this_thread()), NEVER, || false).is_none());
        assert!(Word::compare_exchange(&word, value, value));
        Arc::new(Self { store, word, request, holders: AtomicU32::new(0) })
    }

    /// A lock that the calling thread holds.
    fn held() -> Arc<Self> {
        Self::new(Request::Lock, LOCKED)
    }

    /// A lock that the calling thread holds, and claims, the first of which has tried in vain.
    fn held_before(claims: &[&Agent]) -> (Arc<Self>, Vec<Ticket>) {
        let lock = Self::held();
        let tickets: Vec<_> = claims.iter().map(|agent| lock.line_up(agent, NEVER)).collect();
        lock.be_passed_over();
        assert_eq!(lock.deliver(claims[0], tickets[0]), None);
        (lock, tickets)
    }

    /// A lock that the calling thread holds, and the claim of a thread that is handed it by the next release: the
    /// calling one's record.
    fn held_before_thread() -> (Arc<Self>, Arc<BlockedThread>, Ticket) {
        let (lock, thread) = (Self::held(), this_thread());
        let party = Waiter::Thread(thread.clone());
        let claimed = lock.store.claim(HERE, party, Request::Lock, NEVER, &lock.word);
        let Claimed::Pending(ticket) = claimed else { panic!("{claimed:?}") };
        lock.be_passed_over();
        (lock, thread, ticket)
    }

    /// The holder frees the lock and takes it again, which is long ago at the next release.
    fn be_passed_over(&self) {
        self.store.release(HERE, Request::Lock, &self.word);
        assert!(Word::compare_exchange(&self.word, UNLOCKED, LOCKED));
        CLOCK.store(u64::try_from(FAIRNESS.as_nanos()).unwrap(), SeqCst);
    }

    fn is_anybody_counted(&self) -> bool {
        self.store.counter(HERE).load(SeqCst) != 0
    }

    /// Takes the lock if it is free, without a native call. Whether it was, and had been abandoned.
    fn take(&self) -> Option<WaitResult> {
        if self.request != Request::Lock && self.is_anybody_counted() {
            return self.store.try_take(HERE, self.request, &self.word);
        }
        if !self.request.take(&self.word) {
            return None;
        }
        let inherited = self.store.any_abandoned_near(HERE) && self.store.take_note_of_death(HERE, self.request);
        Some(if inherited { WaitResult::AcquiredFromDead } else { WaitResult::Acquired })
    }

    /// Gives back what was taken, without a native call if no waiter is counted.
    fn give(&self) {
        if self.is_anybody_counted() {
            self.store.release(HERE, self.request, &self.word);
            return;
        }
        match self.request {
            Request::Lock | Request::Inner | Request::Exclusive => self.word.store(UNLOCKED, SeqCst),
            Request::Shared => drop(self.word.fetch_sub(1, SeqCst)),
            Request::Permits(amount) | Request::Signals(amount) => {
                self.word.fetch_add(i32::try_from(amount).unwrap(), SeqCst);
            }
            Request::Limited { amount, .. } => drop(self.word.fetch_sub(i32::try_from(amount).unwrap(), SeqCst)),
            Request::Named(..) => unreachable!("their words belong to native code"),
            Request::Lease(_) | Request::Debt => unreachable!("no claim requests them"),
        }
        if self.is_anybody_counted() {
            self.store.word_changed(HERE, &self.word);
        }
    }

    /// Gives a lock back by a plain write, which `x64` and `ia32` make a releasing one, and a fence after it.
    fn give_plainly(&self) {
        if self.is_anybody_counted() {
            self.store.release(HERE, self.request, &self.word);
            return;
        }
        self.word.store(UNLOCKED, Release);
        fence(SeqCst);
        if self.store.counter(HERE).load(Relaxed) != 0 {
            self.store.word_changed(HERE, &self.word);
        }
    }

    /// `agent`, which holds the lock, gives it back at the end of a job. Whether it is to look into its outbox.
    fn hand_over(&self, agent: &Agent) -> bool {
        self.store.release_unrung(HERE, self.request, &self.word, &agent.outbox, true).1
    }

    /// Gives how many held the lock before.
    fn use_and_give(&self) -> u32 {
        self.use_and(Self::give)
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
        match self.store.claim(HERE, party.clone(), self.request, NEVER, &self.word) {
            Claimed::Now(result) => result,
            Claimed::Pending(ticket) => {
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
        }
    }

    /// Lines a promise up: slot 0 of `agent`.
    fn line_up(&self, agent: &Agent, deadline: Timestamp) -> Ticket {
        self.line_up_for(self.request, agent, deadline)
    }

    fn line_up_for(&self, request: Request, agent: &Agent, deadline: Timestamp) -> Ticket {
        let party = Waiter::Agent(agent.outbox.clone(), 0);
        match self.store.claim(HERE, party, request, deadline, &self.word) {
            Claimed::Pending(ticket) => ticket,
            Claimed::Now(result) => panic!("{result:?} of a word that does not grant it"),
        }
    }

    /// The event loop of `agent` handles its mail: the result of its claim, if it has one now.
    fn deliver(&self, agent: &Agent, ticket: Ticket) -> Option<WaitResult> {
        let mail = agent.mail();
        let granted = mail.settlements.first().map(|settlement| settlement.result);
        granted.or_else(|| {
            mail.retries.first()?;
            self.store.retry(ticket, &Waiter::Agent(agent.outbox.clone(), 0), &self.word)
        })
    }

    /// All are through: the lock is free, and no waiter is counted.
    fn assert_free_after(&self, holders: u32) {
        assert_eq!(self.holders.load(Relaxed), holders);
        self.assert_holds(UNLOCKED);
    }

    fn assert_holds(&self, value: i32) {
        assert_eq!(self.word.load(SeqCst), value);
        assert_eq!(self.store.count(HERE), 0);
        assert!(self.store.counters().iter().all(|counter| counter.load(SeqCst) == 0));
    }
}

/// Without the second look at the counter after the word has been freed, this model deadlocks.
#[test]
fn unlock_claim() {
    unlock_while_claimed(Lock::give);
}

/// The same where the host's queue is in use: the fence is that of the host's `notify`. Without it, this model
/// deadlocks.
#[test]
fn unlock_plainly_claim() {
    unlock_while_claimed(Lock::give_plainly);
}

fn unlock_while_claimed(give: fn(&Lock)) {
    loom::model(move || {
        let lock = Lock::held();
        let claimant = spawn({
            let lock = lock.clone();
            move || {
                assert_eq!(lock.acquire(), WaitResult::Acquired);
                lock.use_and(give);
            }
        });
        lock.use_and(give);
        claimant.join().unwrap();
        lock.assert_free_after(2);
    });
}

#[test]
fn unlock_newcomer_claim() {
    bounded_model(|| {
        let lock = Lock::held();
        let claimant = spawn({
            let lock = lock.clone();
            move || {
                assert_eq!(lock.acquire(), WaitResult::Acquired);
                lock.use_and_give();
            }
        });
        let newcomer = spawn({
            let lock = lock.clone();
            move || {
                let taken = lock.take().is_some();
                if taken {
                    lock.use_and_give();
                }
                u32::from(taken)
            }
        });
        lock.use_and_give();
        claimant.join().unwrap();
        let newcomers = newcomer.join().unwrap();
        lock.assert_free_after(2 + newcomers);
    });
}

/// A claim is appended, and the lock freed without a call, while the service goes to rest: it sees that there is a
/// line, or it is rung. Then it looks at the word, sooner or later. Without either of the fences this model deadlocks.
#[test]
fn claim_rest() {
    bounded_model(|| {
        let lock = Lock::held();
        let (rest, bell) = (Arc::new(Rest::default()), Arc::new(Notify::new()));
        rest.try_rest(|| true);
        let service = spawn({
            let (lock, rest, bell) = (lock.clone(), rest.clone(), bell.clone());
            move || {
                rest.try_rest(|| lock.store.check_words(|_| &lock.word).is_some());
                while rest.is_resting() {
                    bell.wait();
                }
                lock.word.store(UNLOCKED, SeqCst);
                lock.store.check_words(|_| &lock.word);
            }
        });
        lock.acquire_and(|| {
            if rest.rouse() {
                bell.notify();
            }
        });
        lock.use_and_give();
        service.join().unwrap();
        lock.assert_free_after(1);
    });
}

/// The service looks at a word while its holder gives it back and others claim it: no two have it.
#[test]
fn look_unlock_claim() {
    for request in [Request::Lock, Request::Exclusive] {
        bounded_model(move || {
            let lock = Lock::new(request, UNLOCKED);
            assert!(lock.take().is_some());
            let claimant = spawn({
                let lock = lock.clone();
                move || {
                    lock.acquire();
                    lock.use_and_give();
                }
            });
            let service = spawn({
                let lock = lock.clone();
                move || lock.store.check_words(|_| &lock.word)
            });
            lock.use_and_give();
            claimant.join().unwrap();
            service.join().unwrap();
            lock.assert_free_after(2);
        });
    }
}

/// A program that locks the word by means of `Atomics.compareExchange`, `wait` and `notify`, with one that claims it.
#[test]
fn unlock_wait_claim() {
    bounded_model(|| {
        let lock = Lock::held();
        let claimant = spawn({
            let lock = lock.clone();
            move || {
                lock.acquire();
                lock.use_and_give();
            }
        });
        let waiter = spawn({
            let lock = lock.clone();
            move || {
                while !Word::compare_exchange(&lock.word, UNLOCKED, LOCKED) {
                    block(&lock.store, &this_thread(), || lock.word.load(SeqCst) == LOCKED);
                }
                lock.holders.store(lock.holders.load(Relaxed) + 1, Relaxed);
                lock.word.store(UNLOCKED, SeqCst);
                lock.store.notify(HERE, 1, None);
            }
        });
        lock.use_and_give();
        claimant.join().unwrap();
        waiter.join().unwrap();
        lock.assert_free_after(3);
    });
}

/// The lock is handed to a blocked thread: it sees what the former holder did, asleep or not yet.
#[test]
fn grant_park() {
    loom::model(|| {
        let (lock, thread, ticket) = Lock::held_before_thread();
        let holder = spawn({
            let lock = lock.clone();
            move || lock.use_and_give()
        });
        while lock.store.park(ticket, &thread, NEVER, NEVER) == Woken::Retry {}
        lock.use_and_give();
        holder.join().unwrap();
        lock.assert_free_after(2);
    });
}

/// The lock is handed to a blocked thread while a newcomer tries to take it: never do both have it.
#[test]
fn grant_newcomer() {
    bounded_model(|| {
        let (lock, thread, ticket) = Lock::held_before_thread();
        let holder = spawn({
            let lock = lock.clone();
            move || lock.use_and_give()
        });
        let newcomer = spawn({
            let lock = lock.clone();
            move || {
                let taken = lock.take().is_some();
                if taken {
                    lock.use_and_give();
                }
                u32::from(taken)
            }
        });
        while lock.store.park(ticket, &thread, NEVER, NEVER) == Woken::Retry {}
        lock.use_and_give();
        holder.join().unwrap();
        let newcomers = newcomer.join().unwrap();
        lock.assert_free_after(2 + newcomers);
    });
}

/// The lock is handed to the first claim, which gives up at the same moment: the next one gets it.
#[test]
fn grant_give_up() {
    loom::model(|| {
        let (first, next) = (Agent::deaf(), Agent::deaf());
        let (lock, tickets) = Lock::held_before(&[&first, &next]);
        let quitter = spawn({
            let (lock, ticket) = (lock.clone(), tickets[0]);
            move || {
                if lock.store.withdraw_agent(ticket, &first.outbox, 0) == Withdrawal::Settled {
                    assert_eq!(lock.deliver(&first, ticket), Some(WaitResult::Acquired));
                    lock.use_and_give();
                    return 1;
                }
                0
            }
        });
        lock.use_and_give();
        let granted = quitter.join().unwrap();
        assert_eq!(lock.deliver(&next, tickets[1]), Some(WaitResult::Acquired));
        lock.use_and_give();
        lock.assert_free_after(2 + granted);
    });
}

/// The lock is handed to the first claim, whose agent ends at the same moment: the next one gets it.
#[test]
fn grant_death() {
    loom::model(|| {
        let (first, next) = (Agent::deaf(), Agent::deaf());
        let (lock, tickets) = Lock::held_before(&[&first, &next]);
        let dying = spawn({
            let (lock, ticket) = (lock.clone(), tickets[0]);
            move || {
                let _ = lock.store.withdraw_agent(ticket, &first.outbox, 0);
                let acquired: Vec<_> = first.mail().grants.into_iter().flatten().collect();
                for &(location, request) in &acquired {
                    lock.store.abandon(location, request, &lock.word);
                }
                !acquired.is_empty()
            }
        });
        lock.use_and_give();
        let died_holding = dying.join().unwrap();
        let result = if died_holding { WaitResult::AcquiredFromDead } else { WaitResult::Acquired };
        assert_eq!(lock.deliver(&next, tickets[1]), Some(result));
        lock.use_and_give();
        lock.assert_free_after(2);
    });
}

/// An agent releases the lock at the end of a job, as a thread joins the line behind its own promise: that promise has
/// it first, without a ring, and then the thread.
#[test]
fn hand_over_claim() {
    bounded_model(|| {
        let (lock, agent) = (Lock::held(), Agent::deaf());
        lock.line_up(&agent, NEVER);
        let claimant = spawn({
            let lock = lock.clone();
            move || {
                assert_eq!(lock.acquire(), WaitResult::Acquired);
                lock.use_and_give();
            }
        });
        assert!(lock.hand_over(&agent), "its promise is the first");
        assert_eq!(agent.settled(), [(0, WaitResult::Acquired)]);
        lock.use_and_give();
        claimant.join().unwrap();
        lock.assert_free_after(2);
    });
}

/// An agent releases the lock at the end of a job, as its promise times out: it has the lock, or the lock is free.
#[test]
fn hand_over_timeout() {
    bounded_model(|| {
        let (lock, agent) = (Lock::held(), Agent::deaf());
        lock.line_up(&agent, now().after_millis(0.0));
        let expiring = spawn({
            let lock = lock.clone();
            move || lock.store.expire()
        });
        lock.hand_over(&agent);
        expiring.join().unwrap();
        let settled = agent.settled();
        assert_eq!(settled.len(), 1, "it is settled once");
        if settled[0].1.is_acquired() {
            lock.use_and_give();
        }
        lock.assert_holds(UNLOCKED);
    });
}

/// An agent hands the lock to its own promise and ends before JavaScript is told: another thread, which joins the line
/// meanwhile, is told of the death.
#[test]
fn hand_over_death_claim() {
    bounded_model(|| {
        let (lock, agent) = (Lock::held(), Agent::deaf());
        lock.line_up(&agent, NEVER);
        let claimant = spawn({
            let lock = lock.clone();
            move || {
                assert_eq!(lock.acquire(), WaitResult::AcquiredFromDead);
                lock.use_and_give();
            }
        });
        assert!(lock.hand_over(&agent));
        for (location, request) in agent.mail().grants.into_iter().flatten() {
            lock.store.abandon(location, request, &lock.word);
        }
        claimant.join().unwrap();
        lock.assert_holds(UNLOCKED);
    });
}

/// The first in line is a promise whose thread is busy: the lock goes to a thread that blocks behind it, and afterwards
/// the promise's claim can still take it. Unless that thread is awake as well, this model deadlocks.
#[test]
fn unlock_busy_claim() {
    loom::model(|| {
        let (lock, busy) = (Lock::held(), Agent::deaf());
        let ticket = lock.line_up(&busy, NEVER);
        let claimant = spawn({
            let lock = lock.clone();
            move || {
                assert_eq!(lock.acquire(), WaitResult::Acquired);
                lock.use_and_give();
            }
        });
        lock.use_and_give();
        claimant.join().unwrap();
        assert_eq!(lock.deliver(&busy, ticket), Some(WaitResult::Acquired));
        lock.use_and_give();
        lock.assert_free_after(3);
    });
}

/// The same with a thread that gives up the moment it is awake: the one behind it has the lock.
#[test]
fn unlock_busy_claim_give_up() {
    bounded_model(|| {
        let (lock, busy, quits) = (Lock::held(), Agent::deaf(), this_thread());
        let ticket = lock.line_up(&busy, NEVER);
        let party = Waiter::Thread(quits.clone());
        let claimed = lock.store.claim(HERE, party, Request::Lock, NEVER, &lock.word);
        let Claimed::Pending(quitted) = claimed else { panic!("{claimed:?}") };
        let claimant = spawn({
            let lock = lock.clone();
            move || {
                assert_eq!(lock.acquire(), WaitResult::Acquired);
                lock.use_and_give();
            }
        });
        let holder = spawn({
            let lock = lock.clone();
            move || lock.use_and_give()
        });
        assert_eq!(lock.store.withdraw_thread(quitted, &quits), WaitResult::TimedOut);
        holder.join().unwrap();
        claimant.join().unwrap();
        assert_eq!(lock.deliver(&busy, ticket), Some(WaitResult::Acquired));
        lock.use_and_give();
        lock.assert_free_after(3);
    });
}

/// A writer gives up before a reader that is a promise of a busy thread's: a thread that comes to read behind it
/// enters.
#[test]
fn write_give_up_busy_read() {
    loom::model(|| {
        let (writer, busy) = (Agent::deaf(), Agent::deaf());
        let lock = Lock::new(Request::Shared, 1);
        let write_ticket = lock.line_up_for(Request::Exclusive, &writer, NEVER);
        let read_ticket = lock.line_up(&busy, NEVER);
        let quitter = spawn({
            let lock = lock.clone();
            move || assert_eq!(lock.store.withdraw_agent(write_ticket, &writer.outbox, 0), Withdrawal::Done)
        });
        assert_eq!(lock.acquire(), WaitResult::Acquired);
        quitter.join().unwrap();
        assert_eq!(lock.deliver(&busy, read_ticket), Some(WaitResult::Acquired));
        lock.assert_holds(3);
    });
}

/// What other threads see of a thread that takes locks as `lib/locks/hold/` does: its robust list, and its register.
/// Written and read as `x64` does it, each write a releasing one.
#[derive(Default)]
struct RobustList {
    /// 0, or 1 while the entry is behind the last one, or 2 while it is the last one.
    entry: AtomicU32,
    releasing: AtomicBool,
}

impl RobustList {
    fn write(&self, entry: u32) {
        self.entry.store(entry, Release);
    }

    fn take(&self, lock: &Lock) -> bool {
        self.write(1);
        let taken = lock.take().is_some();
        self.write(if taken { 2 } else { 0 });
        taken
    }

    fn give(&self, lock: &Lock) {
        if lock.is_anybody_counted() {
            self.write(1);
            lock.store.release(HERE, Request::Lock, &lock.word);
            self.write(0);
            return;
        }
        self.releasing.store(true, Release);
        lock.word.store(UNLOCKED, SeqCst);
        self.write(1);
        self.write(0);
        if lock.is_anybody_counted() {
            lock.store.word_changed(HERE, &lock.word);
        }
        self.releasing.store(false, Release);
    }

    /// The agent's promise has been given the lock: it is in the table, and no longer on its way.
    fn deliver(&self, lock: &Lock, agent: &Agent, ticket: Ticket) {
        if lock.deliver(agent, ticket).is_some() {
            self.write(2);
            lock.store.delivered(HERE, &Waiter::Agent(agent.outbox.clone(), 0));
        }
    }

    /// Whether the thread may hold the lock. First its table, then its register.
    fn may_hold(&self) -> bool {
        self.entry.load(Acquire) != 0 || self.releasing.load(Acquire)
    }

    /// `unlock()` of a thread that does not hold the lock, beside threads that may hold it.
    fn free_beside(lock: &Lock, others: &[&Self]) -> Freed<()> {
        lock.store.free(HERE, &lock.word, |granted| {
            (granted.is_some() || others.iter().any(|other| other.may_hold())).then_some(())
        })
    }
}

/// One unlocks by mistake while the holder gives the lock back and another one takes it: never is it freed, for at each
/// moment at which it is locked its holder is noted. Without the note before it is taken, or without the register, or
/// if no waiter were counted meanwhile, this model fails.
#[test]
fn unlock_by_mistake() {
    bounded_model(|| {
        let (lock, holder, newcomer) = (Lock::held(), Arc::new(RobustList::default()), Arc::new(RobustList::default()));
        holder.write(2);
        let gives = spawn({
            let (lock, holder) = (lock.clone(), holder.clone());
            move || holder.give(&lock)
        });
        let second = spawn({
            let (lock, newcomer) = (lock.clone(), newcomer.clone());
            move || newcomer.take(&lock)
        });
        assert_ne!(RobustList::free_beside(&lock, &[&newcomer, &holder]), Freed::Now);
        gives.join().unwrap();
        let is_taken = second.join().unwrap();
        assert_eq!(lock.word.load(SeqCst), if is_taken { LOCKED } else { UNLOCKED });
    });
}

/// One unlocks by mistake while the lock is handed over to a promise: never is it freed. Unless it is known that it is
/// on its way, this model fails.
#[test]
fn unlock_by_mistake_grant() {
    bounded_model(|| {
        let (agent, holder, heir) = (Agent::deaf(), Arc::new(RobustList::default()), RobustList::default());
        let (lock, tickets) = Lock::held_before(&[&agent]);
        holder.write(2);
        let gives = spawn({
            let (lock, holder) = (lock.clone(), holder.clone());
            move || holder.give(&lock)
        });
        let heir = Arc::new(heir);
        let mistaken = spawn({
            let (lock, holder, heir) = (lock.clone(), holder.clone(), heir.clone());
            move || assert_ne!(RobustList::free_beside(&lock, &[&heir, &holder]), Freed::Now)
        });
        heir.deliver(&lock, &agent, tickets[0]);
        gives.join().unwrap();
        mistaken.join().unwrap();
        assert_eq!(lock.word.load(SeqCst), LOCKED);
    });
}

/// The first in line has been woken to try when its time is over: it has the lock, or the next one is woken.
#[test]
fn wake_timeout() {
    bounded_model(|| {
        let (first, next) = (Agent::deaf(), Agent::deaf());
        let lock = Lock::held();
        let tickets = [lock.line_up(&first, DEADLINE), lock.line_up(&next, NEVER)];
        let timer = spawn({
            let lock = lock.clone();
            move || {
                CLOCK.store(DEADLINE.as_nanos(), SeqCst);
                lock.store.expire();
            }
        });
        lock.use_and_give();
        let acquired = lock.deliver(&first, tickets[0]) == Some(WaitResult::Acquired);
        if acquired {
            lock.use_and_give();
        }
        timer.join().unwrap();
        assert_eq!(lock.deliver(&next, tickets[1]), Some(WaitResult::Acquired));
        lock.use_and_give();
        lock.assert_free_after(2 + u32::from(acquired));
    });
}

/// The holder dies while one thread claims the lock and another takes it without a native call: the first of them is
/// told.
#[test]
fn death_newcomer_claim() {
    bounded_model(|| {
        let lock = Lock::held();
        let claimant = spawn({
            let lock = lock.clone();
            move || {
                let result = lock.acquire();
                (lock.use_and_give(), result)
            }
        });
        let newcomer = spawn({
            let lock = lock.clone();
            move || lock.take().map(|result| (lock.use_and_give(), result))
        });
        lock.store.abandon(HERE, Request::Lock, &lock.word);
        let results = [Some(claimant.join().unwrap()), newcomer.join().unwrap()];
        for &(former_holders, result) in results.iter().flatten() {
            assert_eq!(result == WaitResult::AcquiredFromDead, former_holders == 0, "{results:?}");
        }
        lock.assert_free_after(1 + u32::from(results[1].is_some()));
    });
}

/// The holder dies, and so does a thread that has taken the lock without a native call and not yet asked whether its
/// holder died: what comes after a death is told of it once.
#[test]
fn death_newcomer_death() {
    bounded_model(|| {
        let lock = Lock::held();
        let claimant = spawn({
            let lock = lock.clone();
            move || {
                let result = lock.acquire();
                lock.use_and_give();
                result
            }
        });
        let newcomer = spawn({
            let lock = lock.clone();
            move || {
                Request::Lock.take(&lock.word).then(|| {
                    let former_holders = lock.holders.load(Relaxed);
                    lock.store.abandon(HERE, Request::Lock, &lock.word);
                    former_holders
                })
            }
        });
        lock.store.abandon(HERE, Request::Lock, &lock.word);
        assert_eq!(claimant.join().unwrap(), WaitResult::AcquiredFromDead);
        let died_last = newcomer.join().unwrap() == Some(1);
        let result = if died_last { WaitResult::AcquiredFromDead } else { WaitResult::Acquired };
        assert_eq!(lock.take(), Some(result));
    });
}

/// A thread is ended when it has freed the lock and not yet looked at the counter: its clean-up does.
#[test]
fn unlock_death_claim() {
    loom::model(|| {
        let lock = Lock::held();
        let claimant = spawn({
            let lock = lock.clone();
            move || {
                assert_eq!(lock.acquire(), WaitResult::Acquired);
                lock.use_and_give();
            }
        });
        lock.word.store(UNLOCKED, SeqCst);
        lock.store.wake_first(HERE);
        claimant.join().unwrap();
        lock.assert_free_after(1);
    });
}

/// A claim for five permits gives up while one is added: the claim for one behind it has it.
#[test]
fn add_permit_give_up() {
    loom::model(|| {
        let (five, one) = (Agent::deaf(), Agent::deaf());
        let semaphore = Lock::new(Request::Signals(1), 0);
        let quits = semaphore.line_up_for(Request::Signals(5), &five, NEVER);
        let ticket = semaphore.line_up(&one, NEVER);
        let quitter = spawn({
            let semaphore = semaphore.clone();
            move || assert_eq!(semaphore.store.withdraw_agent(quits, &five.outbox, 0), Withdrawal::Done)
        });
        semaphore.give();
        quitter.join().unwrap();
        assert_eq!(semaphore.deliver(&one, ticket), Some(WaitResult::Acquired));
        semaphore.assert_holds(0);
    });
}

/// A permit is added while one thread claims it in the line and another without a native call: one of them has it, and
/// the claim in the line does not sleep beside it.
#[test]
fn add_permit_newcomer_claim() {
    bounded_model(|| {
        let semaphore = Lock::new(Request::Signals(1), 0);
        let claimant = spawn({
            let semaphore = semaphore.clone();
            move || semaphore.acquire()
        });
        let newcomer = spawn({
            let semaphore = semaphore.clone();
            move || {
                if semaphore.take().is_some() {
                    semaphore.give();
                }
            }
        });
        semaphore.give();
        assert_eq!(claimant.join().unwrap(), WaitResult::Acquired);
        newcomer.join().unwrap();
        semaphore.assert_holds(0);
    });
}

/// The holder of a limit's only permit gives it back while one thread claims it in the line and another without a
/// native call: they exclude each other, and the claim in the line does not sleep beside a free permit.
#[test]
fn limit_newcomer_claim() {
    bounded_model(|| {
        let limit = Lock::new(Request::Limited { amount: 1, limit: 1 }, 1);
        let claimant = spawn({
            let limit = limit.clone();
            move || {
                assert_eq!(limit.acquire(), WaitResult::Acquired);
                limit.use_and_give();
            }
        });
        let newcomer = spawn({
            let limit = limit.clone();
            move || {
                u32::from(limit.take().is_some_and(|_| {
                    limit.use_and_give();
                    true
                }))
            }
        });
        limit.use_and_give();
        claimant.join().unwrap();
        let newcomers = newcomer.join().unwrap();
        limit.assert_free_after(2 + newcomers);
    });
}

/// The holder of one of a limit's two permits dies while the claim for both gives up: the claim for one behind it has
/// it.
#[test]
fn limit_death_give_up() {
    loom::model(|| {
        let [one, two] = [1, 2].map(|amount| Request::Limited { amount, limit: 2 });
        let (both, single) = (Agent::deaf(), Agent::deaf());
        let limit = Lock::new(one, 2);
        let quits = limit.line_up_for(two, &both, NEVER);
        let ticket = limit.line_up(&single, NEVER);
        let quitter = spawn({
            let limit = limit.clone();
            move || assert_eq!(limit.store.withdraw_agent(quits, &both.outbox, 0), Withdrawal::Done)
        });
        limit.store.abandon(HERE, one, &limit.word);
        quitter.join().unwrap();
        assert_eq!(limit.deliver(&single, ticket), Some(WaitResult::Acquired));
        // The one that lives, and the one in the line.
        limit.assert_holds(2);
    });
}

/// The last reader leaves while the writer that waits for it gives up: the reader behind the writer enters.
#[test]
fn read_unlock_write_give_up() {
    loom::model(|| {
        let (writer, reader) = (Agent::deaf(), Agent::deaf());
        let lock = Lock::new(Request::Shared, 1);
        let write_ticket = lock.line_up_for(Request::Exclusive, &writer, NEVER);
        let read_ticket = lock.line_up(&reader, NEVER);
        let quitter = spawn({
            let lock = lock.clone();
            move || {
                if lock.store.withdraw_agent(write_ticket, &writer.outbox, 0) == Withdrawal::Settled {
                    assert_eq!(writer.settled(), [(0, WaitResult::Acquired)]);
                    lock.store.release(HERE, Request::Exclusive, &lock.word);
                }
            }
        });
        lock.give();
        quitter.join().unwrap();
        assert_eq!(lock.deliver(&reader, read_ticket), Some(WaitResult::Acquired));
        lock.assert_holds(1);
    });
}

/// The writer dies while two readers wait behind it: both enter, and are told.
#[test]
fn write_death_read() {
    bounded_model(|| {
        let reader = Agent::deaf();
        let lock = Lock::new(Request::Shared, WRITING);
        let ticket = lock.line_up(&reader, NEVER);
        let other = spawn({
            let lock = lock.clone();
            move || lock.acquire()
        });
        lock.store.abandon(HERE, Request::Exclusive, &lock.word);
        let results = [other.join().unwrap(), lock.deliver(&reader, ticket).unwrap()];
        assert_eq!(results, [WaitResult::AcquiredFromDead; 2]);
        assert_eq!(lock.word.load(SeqCst), 2);
        assert!(lock.store.any_abandoned_near(HERE), "the next writer is told, too");
    });
}

/// The last buffer object of a memory is collected while another thread makes a lock in it and dies with it: the next
/// holder is told. If abandoned locks were forgotten after the registry's lock has been released, that death might be
/// forgotten.
#[test]
fn lose_register_death() {
    loom::model(|| {
        let (lock, memories) = (Lock::held(), Arc::new(Memories::new(|memories| memories)));
        let (address, main, worker) = (HERE.address(), 1, 2);
        memories.register(&lock.store, main, address, 4);
        // Of an earlier death: that it may be forgotten.
        lock.store.abandon(HERE, Request::Lock, &lock.word);
        let collector = spawn({
            let (lock, memories) = (lock.clone(), memories.clone());
            move || {
                if memories.lose(&lock.store, main, address, 1) == Left::Unknown {
                    memories.look(&lock.store);
                }
            }
        });
        memories.register(&lock.store, worker, address, 4);
        assert!(lock.take().is_some());
        lock.store.abandon(HERE, Request::Lock, &lock.word);
        collector.join().unwrap();
        assert_eq!(memories.end(&lock.store, worker, address, 1), Left::Unknown);
        assert_eq!(lock.take(), Some(WaitResult::AcquiredFromDead));
    });
}

/// One side of a queue of messages, as `lib/locks/queue/` uses it: how many there are, and the two words of the event
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

    /// Pays what a thread that has ended owed: raises both words.
    fn pay(&self) {
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
            block(&self.store, &this_thread(), || self.second.load(SeqCst) == seen);
        }
    }

    /// A promise takes a message, which `put` puts meanwhile.
    fn take_by_promise(put: fn(&Self)) {
        let events = Self::new();
        let putter = spawn({
            let events = events.clone();
            move || put(&events)
        });
        let agent = Agent::new();
        loop {
            let seen = [events.first.load(SeqCst), events.second.load(SeqCst)];
            if events.take() {
                break;
            }
            let is_equal = || [events.first.load(SeqCst), events.second.load(SeqCst)] == seen;
            let waiter = Waiter::Agent(Arc::clone(&agent.outbox), 0);
            if events.store.enqueue(Self::PROMISES, waiter, NEVER, is_equal).is_some() {
                assert_eq!(agent.await_settlements(1), [(0, WaitResult::Ok)]);
            }
        }
        putter.join().unwrap();
    }
}

/// One of two that wait for a message is woken, and ends before it has taken it: the other has it, since the first one
/// owed a notification. Without that, this model deadlocks.
#[test]
fn put_debt_take() {
    bounded_model(|| {
        let events = Events::new();
        let victim = spawn({
            let events = events.clone();
            move || {
                events.await_message();
                events.pay();
            }
        });
        let taker = spawn({
            let events = events.clone();
            move || {
                while !events.take() {
                    events.await_message();
                }
            }
        });
        events.put();
        taker.join().unwrap();
        // If it has not been woken.
        events.put();
        victim.join().unwrap();
        assert_eq!(events.messages.load(SeqCst), 1);
    });
}

/// A promise compares both words, though a message raises only the second: it is not enqueued behind a message that it
/// has not seen.
#[test]
fn put_promise() {
    bounded_model(|| Events::take_by_promise(Events::put));
}

/// The same where the thread that has put the message ends before it has raised the event.
#[test]
fn put_death_promise() {
    bounded_model(|| {
        Events::take_by_promise(|events| {
            events.messages.fetch_add(1, SeqCst);
            events.pay();
        });
    });
}

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
        let _ = self.store.release(Self::PLACES[lock], Request::Lock, &self.words[lock]);
    }

    fn keepers(&self, blocked: &Blocked) -> Vec<Keeper> {
        let lock = usize::from(blocked.location != HERE);
        let holder = self.store.while_waiting(blocked, |_, _, _| self.holders.lock().unwrap()[lock].clone()).flatten();
        let keeper = |thread| Keeper { thread, obstacle: Obstacle::Holds(Request::Lock), holds: true, claim: None };
        holder.map(keeper).into_iter().collect()
    }

    /// Takes `first`, blocks for `second`, and releases what it has. Whether it would have closed a cycle.
    fn run(&self, first: usize, second: usize) -> bool {
        let (thread, location) = (this_thread(), Self::PLACES[second]);
        let waiter = Waiter::Thread(thread.clone());
        if !Request::Lock.take(&self.words[first]) {
            return false;
        }
        self.hold(first, Some(&thread));
        let mut finds = false;
        if let Claimed::Pending(ticket) =
            self.store.claim(location, waiter.clone(), Request::Lock, NEVER, &self.words[second])
        {
            let blocked = Blocked { thread: thread.clone(), ticket, location, request: Request::Lock };
            let cycle = self.graph.block(&blocked, |_| |blocked: &Blocked| self.keepers(blocked));
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

/// Two threads take two locks in opposite orders. If each gets its first one before the other releases it, one of them
/// finds the cycle, and then the other goes on. A thread that nobody woke would fail as a deadlock.
#[test]
fn deadlock_of_two() {
    bounded_model(|| {
        let locks = Arc::new(TwoLocks {
            store: WaiterListStore::new(1, now),
            graph: WaitForGraph::default(),
            words: [AtomicI32::new(UNLOCKED), AtomicI32::new(UNLOCKED)],
            holders: loom::sync::Mutex::new([None, None]),
        });
        locks.words.iter().for_each(|word| word.store(UNLOCKED, SeqCst));
        let other = spawn({
            let locks = locks.clone();
            move || locks.run(1, 0)
        });
        let found = [locks.run(0, 1), other.join().unwrap()];
        assert_ne!(found, [true, true]);
        assert_eq!(locks.words.each_ref().map(Word::load), [UNLOCKED, UNLOCKED]);
    });
}
