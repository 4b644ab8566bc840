//! The hot paths of the queue, whose instructions callgrind counts: `npm run instructions`.
//!
//! One thread; the clock and the addresses are made up. So nothing that differs between two runs, or between two
//! machines, decides which instructions are executed.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use waitasync_core::clock::Timestamp;
use waitasync_core::lock::{Claimed, Hold, LOCKED, Mail, Outbox, Request, Waiter, WaiterListStore, Word};
use waitasync_core::queue::{Alarm, BlockedThread, Location, Ticket, WaitResult, Withdrawal, Woken};

/// How often each operation is done.
const TIMES: u32 = 1000;

static CLOCK: AtomicU64 = AtomicU64::new(0);

fn now() -> Timestamp {
    Timestamp::from_nanos(CLOCK.load(Ordering::Relaxed))
}

const HERE: Location = Location::from_address(0x1_0000);

/// Returns locations, each in a cache line of its own.
fn locations() -> impl Iterator<Item = Location> {
    (0..TIMES as usize).map(|nth| Location::from_address(HERE.address() + 64 * nth))
}

/// Returns the same place again and again.
fn here() -> impl Iterator<Item = Location> {
    (0..TIMES).map(|_| HERE)
}

/// A queue of its own for each operation, with one agent.
struct Scene {
    store: WaiterListStore,
    outbox: Arc<Outbox>,
    word: AtomicI32,
    mail: Mail,
}

impl Scene {
    fn new() -> Self {
        let outbox = Arc::new(Outbox::new(Box::new(|| {})));
        black_box(Self {
            store: WaiterListStore::new(256, now),
            outbox,
            word: AtomicI32::default(),
            mail: Mail::default(),
        })
    }

    /// Makes one whose agent waits at each of these locations already.
    fn with_waiters(at: impl Iterator<Item = Location>, deadline: Timestamp) -> (Self, Vec<(u32, Ticket)>) {
        let scene = Self::new();
        let tickets =
            (0..).zip(at).filter_map(|(slot, at)| Some((slot, scene.register(slot, at, deadline, 0)?))).collect();
        (scene, tickets)
    }

    fn register(&self, slot: u32, at: Location, deadline: Timestamp, expected: i32) -> Option<Ticket> {
        self.store.enqueue(at, Waiter::Agent(Arc::clone(&self.outbox), slot), deadline, || {
            self.word.load(Ordering::SeqCst) == expected
        })
    }

    fn party(&self, slot: u32) -> Waiter {
        Waiter::Agent(Arc::clone(&self.outbox), slot)
    }

    /// Lines up for the word.
    fn claim(&self, slot: u32, request: Request) -> Ticket {
        match self.store.claim(HERE, self.party(slot), request, Timestamp::NEVER, &self.word) {
            Claimed::Pending(ticket) => ticket,
            Claimed::Now(_) => panic!("the word is taken"),
        }
    }

    /// Takes the agent's mail: how many settlements with this result it has.
    fn take_mail(&mut self, result: WaitResult) -> usize {
        self.mail.clear();
        self.outbox.take(&mut self.mail);
        self.mail.settlements.iter().filter(|settlement| settlement.result == result).count()
    }
}

/// Calls the operation: callgrind counts the instructions between entering and leaving this function.
#[inline(never)]
fn counted(operation: &mut dyn FnMut() -> usize) -> usize {
    black_box(operation())
}

/// Counts the instructions of an operation that is done [`TIMES`] times; it has to have come off `expected` times.
fn count(name: &str, expected: u32, mut operation: impl FnMut() -> usize) {
    assert_eq!(counted(&mut operation), expected as usize, "{name}");
    println!("{TIMES} {name}");
}

fn main() {
    waits();
    notifications();
    time_outs();
    locks();
}

fn waits() {
    let scene = Scene::new();
    let register = |(slot, at)| scene.register(slot, at, Timestamp::NEVER, 0);
    count("wait", TIMES, || (0..).zip(here()).filter_map(register).count());

    let scene = Scene::new();
    let register = |(slot, at)| scene.register(slot, at, Timestamp::NEVER, 0);
    count("wait, each elsewhere", TIMES, || (0..).zip(locations()).filter_map(register).count());

    let scene = Scene::new();
    let alarm = Alarm::default();
    count("wait with a timeout", TIMES, || {
        let register = |slot| {
            let deadline = now().after_millis(f64::from(slot));
            scene.register(slot, HERE, deadline, 0).filter(|_| alarm.is_later_than(deadline))
        };
        (0..TIMES).filter_map(register).count()
    });

    let scene = Scene::new();
    let register = |slot| scene.register(slot, HERE, Timestamp::NEVER, 1);
    count("wait, not equal", 0, || (0..TIMES).filter_map(register).count());

    let (scene, tickets) = Scene::with_waiters(here(), Timestamp::NEVER);
    let cancel =
        |&&(slot, ticket): &&(u32, Ticket)| scene.store.withdraw_agent(ticket, &scene.outbox, slot) == Withdrawal::Done;
    count("cancel", TIMES, || tickets.iter().filter(cancel).count());
}

fn notifications() {
    let scene = Scene::new();
    count("notify, nobody waits", 0, || here().map(|at| scene.store.notify(at, 1, None)).sum());

    let (scene, _) = Scene::with_waiters(here(), Timestamp::NEVER);
    count("notify one of many", TIMES, || here().map(|at| scene.store.notify(at, 1, None)).sum());

    let (scene, _) = Scene::with_waiters(here(), Timestamp::NEVER);
    count("notify all", TIMES, || scene.store.notify(HERE, usize::MAX, None));

    let (scene, _) = Scene::with_waiters(locations(), Timestamp::NEVER);
    count("notify each elsewhere", TIMES, || locations().map(|at| scene.store.notify(at, 1, None)).sum());

    let scene = Scene::new();
    let thread = Arc::new(BlockedThread::current());
    count("block and be notified", TIMES, || {
        let block = |at| {
            let ticket = scene.store.enqueue(at, Waiter::Thread(Arc::clone(&thread)), Timestamp::NEVER, || {
                scene.word.load(Ordering::SeqCst) == 0
            })?;
            scene.store.notify(at, 1, None);
            Some(scene.store.park(ticket, &thread, Timestamp::NEVER, Timestamp::NEVER))
        };
        here().filter_map(block).filter(|&woken| woken == Woken::Settled(WaitResult::Ok)).count()
    });
}

fn time_outs() {
    let (mut scene, tickets) = Scene::with_waiters(here(), now().after_millis(1.0));
    let alarm = Alarm::default();
    count("the timer's turn, nothing is due", TIMES, || (0..TIMES).filter(|_| alarm.set(&scene.store) > now()).count());

    CLOCK.fetch_add(1_000_000, Ordering::Relaxed);
    count("time out", TIMES, || {
        alarm.set(&scene.store);
        scene.take_mail(WaitResult::Due);
        let ticket = |slot: u32| tickets.get(slot as usize).map(|&(_, ticket)| ticket);
        scene.store.decide(&scene.outbox, &mut scene.mail.settlements, ticket);
        scene.mail.settlements.iter().filter(|settlement| settlement.result == WaitResult::TimedOut).count()
    });
}

fn locks() {
    let scene = Scene::new();
    count("lock and unlock, nobody waits", TIMES, || {
        let lock = |&slot: &u32| {
            let claimed = scene.store.claim(HERE, scene.party(slot), Request::Lock, Timestamp::NEVER, &scene.word);
            scene.store.return_unused(HERE, Hold::Lock, WaitResult::Acquired, &scene.word);
            claimed == Claimed::Now(WaitResult::Acquired)
        };
        (0..TIMES).filter(lock).count()
    });

    let mut scene = Scene::new();
    scene.word.store(LOCKED, Ordering::SeqCst);
    count("wait for a lock, be woken, take it", TIMES, || {
        let pass = |&slot: &u32| {
            let ticket = scene.claim(slot, Request::Lock);
            scene.store.return_unused(HERE, Hold::Lock, WaitResult::Acquired, &scene.word);
            scene.take_mail(WaitResult::Acquired);
            scene.mail.retries == [slot] && scene.store.retry(ticket, &scene.party(slot), &scene.word).is_some()
        };
        (0..TIMES).filter(pass).count()
    });

    let mut scene = Scene::new();
    scene.word.store(LOCKED, Ordering::SeqCst);
    count("wait for a lock, try in vain, be handed it", TIMES, || {
        let hand_over = |slot| {
            let ticket = scene.claim(slot, Request::Lock);
            scene.store.return_unused(HERE, Hold::Lock, WaitResult::Acquired, &scene.word);
            scene.word.take(Request::Lock);
            scene.store.retry(ticket, &scene.party(slot), &scene.word);
            scene.store.return_unused(HERE, Hold::Lock, WaitResult::Acquired, &scene.word);
            let taken = scene.take_mail(WaitResult::Acquired);
            scene.store.delivered(HERE, &scene.party(slot));
            taken
        };
        (0..TIMES).map(hand_over).sum()
    });

    let mut scene = Scene::new();
    count("wait for a permit, be given it", TIMES, || {
        let signal = |slot| {
            scene.claim(slot, Request::Signals(1));
            scene.word.store(1, Ordering::SeqCst);
            scene.store.word_changed(HERE, &scene.word);
            scene.take_mail(WaitResult::Acquired)
        };
        (0..TIMES).map(signal).sum()
    });
}
