//! The queue against a plain model of it, and under load: through its public interface, without Node.

#![cfg(not(feature = "model"))]

mod random;

use std::sync::Arc;

use waitasync_core::clock::{Timestamp, now};
use waitasync_core::lock::{Mail, Outbox, Waiter, WaiterListStore};
use waitasync_core::queue::location::Location;
use waitasync_core::queue::parker::{BlockedThread, Woken};
use waitasync_core::queue::result::WaitResult;
use waitasync_core::queue::store::Withdrawal;
use waitasync_core::queue::waiter_list::Ticket;

const LOCATIONS: usize = 4;

/// Some share a cache line, and with that a bucket.
fn location(index: usize) -> Location {
    Location::from_address(0x1000 + 36 * index)
}

mod property {
    use std::cell::Cell;
    use std::collections::BTreeSet;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use proptest::prelude::*;

    use super::*;

    const BUCKETS: usize = 2;
    const AGENTS: usize = 2;
    const THREADS: usize = 4;

    thread_local! {
        static CLOCK: Cell<u64> = const { Cell::new(0) };
    }

    fn now() -> Timestamp {
        Timestamp::from_nanos(CLOCK.get())
    }

    #[derive(Debug, Clone)]
    enum Operation {
        Block {
            thread: usize,
            at: usize,
            timeout: Option<u64>,
            is_equal: bool,
        },
        Await {
            agent: usize,
            at: usize,
            timeout: Option<u64>,
            is_equal: bool,
        },
        /// By one of the agents, or by another thread.
        Notify {
            at: usize,
            count: usize,
            runs: Option<usize>,
        },
        /// Withdraws a wait of an agent, be it over or not.
        Withdraw(prop::sample::Index),
        /// A thread wakes up without reason, or because its time is over.
        Look(usize),
        Tick(u64),
        Expire,
        Take(usize),
    }

    fn operation() -> impl Strategy<Value = Operation> {
        let timeout = || prop::option::of(1..20_u64);
        prop_oneof![
            3 => (0..THREADS, 0..LOCATIONS, timeout(), prop::bool::weighted(0.9))
                .prop_map(|(thread, at, timeout, is_equal)| Operation::Block { thread, at, timeout, is_equal }),
            6 => (0..AGENTS, 0..LOCATIONS, timeout(), prop::bool::weighted(0.9))
                .prop_map(|(agent, at, timeout, is_equal)| Operation::Await { agent, at, timeout, is_equal }),
            4 => (0..LOCATIONS, prop_oneof![4 => 0..4_usize, 1 => Just(usize::MAX)], prop::option::of(0..AGENTS))
                .prop_map(|(at, count, runs)| Operation::Notify { at, count, runs }),
            2 => any::<prop::sample::Index>().prop_map(Operation::Withdraw),
            2 => (0..THREADS).prop_map(Operation::Look),
            2 => (1..8_u64).prop_map(Operation::Tick),
            2 => Just(Operation::Expire),
            1 => (0..AGENTS).prop_map(Operation::Take),
        ]
    }

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Who {
        Thread(usize),
        Agent(usize, u32),
    }

    /// The store is meant to behave as one sequence in the order of arrival.
    struct Waiting {
        who: Who,
        at: usize,
        deadline: Timestamp,
        /// The timer has told its agent that the deadline has come.
        told: bool,
    }

    struct Agent {
        outbox: Arc<Outbox>,
        rings: Arc<AtomicUsize>,
        tickets: Vec<Ticket>,
        /// The contents of the outbox, by slot: results, and deadlines that the timer has reported.
        mail: BTreeSet<(u32, u8)>,
    }

    impl Agent {
        fn new() -> Self {
            let rings = Arc::new(AtomicUsize::new(0));
            let counter = Arc::clone(&rings);
            let ring = move || {
                counter.fetch_add(1, Ordering::Relaxed);
            };
            Self { outbox: Arc::new(Outbox::new(Box::new(ring))), rings, tickets: Vec::new(), mail: BTreeSet::new() }
        }
    }

    struct Thread {
        record: Arc<BlockedThread>,
        ticket: Option<Ticket>,
        deadline: Timestamp,
        outcome: Option<WaitResult>,
    }

    /// The store, the model, and all waiters.
    struct Queue {
        store: WaiterListStore,
        waiting: Vec<Waiting>,
        agents: Vec<Agent>,
        threads: Vec<Thread>,
    }

    impl Queue {
        fn new() -> Self {
            CLOCK.set(0);
            let thread = || Thread {
                record: Arc::new(BlockedThread::current()),
                ticket: None,
                deadline: Timestamp::NEVER,
                outcome: None,
            };
            Self {
                store: WaiterListStore::new(BUCKETS, now),
                waiting: Vec::new(),
                agents: (0..AGENTS).map(|_| Agent::new()).collect(),
                threads: (0..THREADS).map(|_| thread()).collect(),
            }
        }

        fn settle(&mut self, place: usize, result: WaitResult) {
            match self.waiting.remove(place).who {
                Who::Thread(thread) => self.threads[thread].outcome = Some(result),
                Who::Agent(agent, slot) => assert!(self.agents[agent].mail.insert((slot, result as u8))),
            }
        }

        fn notify(&mut self, at: usize, count: usize, runs: Option<usize>) -> usize {
            let (mut place, mut woken) = (0, 0);
            while place < self.waiting.len() && woken < count {
                let Waiting { at: there, deadline, who, .. } = self.waiting[place];
                let is_its_own = matches!(who, Who::Agent(agent, _) if Some(agent) == runs);
                if there != at {
                    place += 1;
                } else if deadline <= now() && !is_its_own {
                    self.settle(place, WaitResult::TimedOut);
                } else {
                    self.settle(place, WaitResult::Ok);
                    woken += 1;
                }
            }
            woken
        }

        fn expire(&mut self) {
            for wait in &mut self.waiting {
                if let Who::Agent(agent, slot) = wait.who
                    && wait.deadline <= now()
                    && !std::mem::replace(&mut wait.told, true)
                {
                    assert!(self.agents[agent].mail.insert((slot, WaitResult::Due as u8)));
                }
            }
        }

        /// A job of the agent times out those of its promises that are overdue. The settlements in its outbox then.
        fn decide(&mut self, agent: usize) -> BTreeSet<(u32, u8)> {
            let mail = std::mem::take(&mut self.agents[agent].mail);
            let (due, mut settled): (BTreeSet<_>, BTreeSet<_>) =
                mail.into_iter().partition(|&(_, result)| result == WaitResult::Due as u8);
            for (slot, _) in due {
                if let Some(place) = self.place_of(Who::Agent(agent, slot)) {
                    self.waiting.remove(place);
                    assert!(settled.insert((slot, WaitResult::TimedOut as u8)));
                }
            }
            settled
        }

        fn place_of(&self, who: Who) -> Option<usize> {
            self.waiting.iter().position(|wait| wait.who == who)
        }

        fn earliest_deadline(&self) -> Timestamp {
            let is_timed = |wait: &&Waiting| matches!(wait.who, Who::Agent(..)) && !wait.told;
            let deadlines = self.waiting.iter().filter(is_timed).map(|wait| wait.deadline);
            deadlines.min().unwrap_or(Timestamp::NEVER)
        }

        fn run(&mut self, operation: &Operation) {
            let deadline_in = |timeout: Option<u64>| {
                timeout.map_or(Timestamp::NEVER, |timeout| Timestamp::from_nanos(CLOCK.get() + timeout))
            };
            match *operation {
                Operation::Block { thread, at, timeout, is_equal } => {
                    let this = &mut self.threads[thread];
                    if this.ticket.is_some() {
                        return;
                    }
                    let deadline = deadline_in(timeout);
                    let ticket =
                        self.store
                            .enqueue(location(at), Waiter::Thread(Arc::clone(&this.record)), deadline, || is_equal);
                    assert_eq!(ticket.is_some(), is_equal);
                    *this = Thread { record: Arc::clone(&this.record), ticket, deadline, outcome: None };
                    if is_equal {
                        self.waiting.push(Waiting { who: Who::Thread(thread), at, deadline, told: false });
                    }
                }
                Operation::Await { agent, at, timeout, is_equal } => {
                    let this = &mut self.agents[agent];
                    let slot = u32::try_from(this.tickets.len()).unwrap();
                    let deadline = deadline_in(timeout);
                    let ticket = self.store.enqueue(
                        location(at),
                        Waiter::Agent(Arc::clone(&this.outbox), slot),
                        deadline,
                        || is_equal,
                    );
                    assert_eq!(ticket.is_some(), is_equal);
                    if let Some(ticket) = ticket {
                        this.tickets.push(ticket);
                        self.waiting.push(Waiting { who: Who::Agent(agent, slot), at, deadline, told: false });
                    }
                }
                Operation::Notify { at, count, runs } => {
                    let outbox = runs.map(|agent| &self.agents[agent].outbox);
                    let woken = self.store.notify(location(at), count, outbox);
                    assert_eq!(woken, self.notify(at, count, runs));
                }
                Operation::Withdraw(ref index) => {
                    let all: Vec<_> = (0..)
                        .zip(&self.agents)
                        .flat_map(|(agent, Agent { tickets, .. })| {
                            (0..).zip(tickets).map(move |(slot, &ticket)| (agent, slot, ticket))
                        })
                        .collect();
                    if all.is_empty() {
                        return;
                    }
                    let (agent, slot, ticket) = *index.get(&all);
                    let place = self.place_of(Who::Agent(agent, slot));
                    let withdrawn =
                        self.store.withdraw_agent(ticket, &self.agents[agent].outbox, slot) == Withdrawal::Done;
                    assert_eq!(withdrawn, place.is_some());
                    place.map(|place| self.waiting.remove(place));
                }
                Operation::Look(thread) => {
                    let Thread { record, ticket, deadline, .. } = &self.threads[thread];
                    let Some(ticket) = *ticket else { return };
                    // A slice that is over already.
                    let woken = self.store.park(ticket, record, *deadline, Timestamp::from_nanos(0));
                    if let Some(place) = self.place_of(Who::Thread(thread))
                        && self.waiting[place].deadline <= now()
                    {
                        self.settle(place, WaitResult::TimedOut);
                    }
                    let outcome = self.threads[thread].outcome;
                    assert_eq!(woken, outcome.map_or(Woken::TimeOver, Woken::Settled));
                    if outcome.is_some() {
                        self.threads[thread].ticket = None;
                    }
                }
                Operation::Tick(nanos) => CLOCK.set(CLOCK.get() + nanos),
                Operation::Expire => {
                    let next = self.store.expire();
                    self.expire();
                    assert_eq!(next, self.earliest_deadline());
                }
                Operation::Take(agent) => {
                    let Agent { outbox, tickets, rings, .. } = &self.agents[agent];
                    let mut mail = Mail::default();
                    outbox.take(&mut mail);
                    rings.store(0, Ordering::Relaxed);
                    let ticket = |slot: u32| tickets.get(slot as usize).copied();
                    self.store.decide(outbox, &mut mail.settlements, ticket);
                    let taken: BTreeSet<_> =
                        mail.settlements.iter().map(|settlement| (settlement.slot, settlement.result as u8)).collect();
                    assert_eq!(taken.len(), mail.settlements.len(), "settled twice");
                    assert_eq!(taken, self.decide(agent));
                }
            }
        }

        fn check(&self) {
            for at in 0..LOCATIONS {
                let count = self.waiting.iter().filter(|wait| wait.at == at).count();
                assert_eq!(self.store.count(location(at)) as usize, count);
            }
            for at in 0..LOCATIONS {
                let counter = self.store.counter(location(at));
                let shares = |wait: &&Waiting| std::ptr::eq(self.store.counter(location(wait.at)), counter);
                assert_eq!(
                    usize::try_from(counter.load(Ordering::Relaxed)),
                    Ok(self.waiting.iter().filter(shares).count()),
                    "what a notification looks at before it takes the lock"
                );
            }
            assert_eq!(self.store.earliest_deadline(), self.earliest_deadline());
            for (number, agent) in self.agents.iter().enumerate() {
                let its = |wait: &&Waiting| matches!(wait.who, Who::Agent(agent, _) if agent == number);
                let waiting = self.waiting.iter().filter(its).count();
                assert_eq!(Arc::strong_count(&agent.outbox), 1 + waiting, "kept as long as a promise of it waits");
                assert_eq!(agent.outbox.has_mail(), !agent.mail.is_empty());
                assert_eq!(
                    agent.rings.load(Ordering::Relaxed),
                    usize::from(!agent.mail.is_empty()),
                    "one ring per batch"
                );
            }
            for thread in &self.threads {
                if thread.ticket.is_some() {
                    assert_eq!(thread.record.result(), thread.outcome);
                }
            }
        }
    }

    /// The key of the first promise's waiter is that of the second one's when its timeout is decided.
    #[test]
    fn a_time_out_that_comes_too_late_does_not_end_the_wait_that_has_its_key() {
        let mut queue = Queue::new();
        let due_at_once = Operation::Await { agent: 0, at: 0, timeout: Some(0), is_equal: true };
        let own_notify = Operation::Notify { at: 0, count: 1, runs: Some(0) };
        for operation in [&due_at_once, &Operation::Expire, &own_notify, &due_at_once, &Operation::Take(0)] {
            queue.run(operation);
            queue.check();
        }
        let [first, second] = queue.agents[0].tickets[..] else { panic!("there were two waits") };
        assert_eq!(first, second, "otherwise this shows nothing");
        assert_eq!(queue.waiting.len(), 1);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn behaves_as_one_sequence_of_waiters(operations in prop::collection::vec(operation(), 0..150)) {
            let mut queue = Queue::new();
            for operation in operations {
                queue.run(&operation);
                queue.check();
            }
            for at in 0..LOCATIONS {
                queue.run(&Operation::Notify { at, count: usize::MAX, runs: None });
            }
            for agent in 0..AGENTS {
                queue.run(&Operation::Take(agent));
            }
            assert!(queue.waiting.is_empty());
            queue.check();
        }
    }
}

mod stress {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::thread::{self, Thread};
    use std::time::Duration;

    use waitasync_core::service::alarm::Alarm;

    use super::random::Random;
    use super::*;

    /// The state that all threads share.
    struct Scene {
        store: WaiterListStore,
        alarm: Alarm,
        is_over: AtomicBool,
        /// How many the agents have woken, by notifications of their own.
        woken_by_agents: AtomicUsize,
    }

    impl Scene {
        fn goes_on(&self) -> bool {
            !self.is_over.load(Ordering::Relaxed)
        }
    }

    /// Counts the waiters that were notified; none times out early.
    fn was_notified(result: WaitResult, deadline: Timestamp) -> bool {
        assert!(result == WaitResult::Ok || (result == WaitResult::TimedOut && now() >= deadline), "{result:?}");
        result == WaitResult::Ok
    }

    /// Blocks again and again. How many waits were notified.
    fn block(scene: &Scene, random: &mut Random) -> usize {
        let thread = Arc::new(BlockedThread::current());
        let mut notified = 0;
        while scene.goes_on() {
            let deadline = random.deadline();
            let ticket = scene
                .store
                .enqueue(location(random.below(LOCATIONS)), Waiter::Thread(Arc::clone(&thread)), deadline, || true)
                .unwrap();
            let gives_up = random.one_in(8);
            let result = loop {
                let slice = Timestamp::from_nanos(now().as_nanos() + 1_000_000);
                match scene.store.park(ticket, &thread, deadline, slice) {
                    Woken::Settled(result) => break result,
                    Woken::TimeOver if gives_up || !scene.goes_on() => {
                        let result = scene.store.withdraw_thread(ticket, &thread);
                        assert!(matches!(result, WaitResult::Ok | WaitResult::TimedOut));
                        notified += usize::from(result == WaitResult::Ok);
                        break WaitResult::NotEqual;
                    }
                    Woken::TimeOver | Woken::Interrupted => {}
                    Woken::Retry => panic!("a plain waiter is not awake"),
                }
            };
            notified += usize::from(result != WaitResult::NotEqual && was_notified(result, deadline));
        }
        notified
    }

    /// Awaits many promises at a time, and ends with some of them pending. How many were notified.
    fn wait_async(scene: &Scene, random: &mut Random, timer: &Thread) -> usize {
        let this = thread::current();
        let outbox = Arc::new(Outbox::new(Box::new(move || this.unpark())));
        let mut pending: Vec<Option<(Ticket, Timestamp)>> = vec![None; 100];
        let mut mail = Mail::default();
        let mut notified = 0;
        let mut take = |pending: &mut Vec<Option<(Ticket, Timestamp)>>| {
            mail.clear();
            outbox.take(&mut mail);
            let ticket = |slot: u32| pending[slot as usize].map(|(ticket, _)| ticket);
            scene.store.decide(&outbox, &mut mail.settlements, ticket);
            for settlement in &mail.settlements {
                let (_, deadline) = pending[settlement.slot as usize].take().expect("a promise is settled once");
                notified += usize::from(was_notified(settlement.result, deadline));
            }
            !mail.settlements.is_empty()
        };
        while scene.goes_on() {
            let slot = random.below(pending.len());
            let number = u32::try_from(slot).unwrap();
            match pending[slot] {
                None => {
                    let deadline = random.deadline();
                    let at = location(random.below(LOCATIONS));
                    let ticket =
                        scene.store.enqueue(at, Waiter::Agent(Arc::clone(&outbox), number), deadline, || true).unwrap();
                    pending[slot] = Some((ticket, deadline));
                    if deadline != Timestamp::NEVER && scene.alarm.is_later_than(deadline) {
                        timer.unpark();
                    }
                }
                Some(_) if random.one_in(8) => {
                    // Wakes its own also when they are overdue.
                    let woken = scene.store.notify(location(random.below(LOCATIONS)), 1, Some(&outbox));
                    scene.woken_by_agents.fetch_add(woken, Ordering::Relaxed);
                }
                Some((ticket, _)) if random.one_in(4) => {
                    if scene.store.withdraw_agent(ticket, &outbox, number) == Withdrawal::Done {
                        pending[slot] = None;
                    }
                }
                Some(_) => {
                    // A ring that was missed would leave the outbox full until the next one.
                    if !take(&mut pending) && pending.iter().flatten().count() > 50 {
                        thread::park_timeout(Duration::from_micros(50));
                    }
                }
            }
        }
        for (number, wait) in (0..).zip(&mut pending) {
            if let Some((ticket, _)) = *wait
                && scene.store.withdraw_agent(ticket, &outbox, number) == Withdrawal::Done
            {
                *wait = None;
            }
        }
        outbox.close();
        take(&mut pending);
        assert!(pending.iter().all(Option::is_none), "a promise is lost");
        notified
    }

    /// How many it has woken.
    fn notify(scene: &Scene, random: &mut Random) -> usize {
        let mut woken = 0;
        while scene.goes_on() {
            let count = if random.one_in(10) { usize::MAX } else { random.below(4) };
            woken += scene.store.notify(location(random.below(LOCATIONS)), count, None);
            if random.one_in(4) {
                thread::yield_now();
            }
        }
        woken
    }

    /// As `src/timer.rs` does.
    fn expire(scene: &Scene) {
        while scene.goes_on() {
            let next = scene.alarm.set(&scene.store);
            thread::park_timeout(next.duration_since(now()));
        }
    }

    #[test]
    fn as_many_are_woken_as_notifications_say() {
        let scene = &Scene {
            store: WaiterListStore::new(2, now),
            alarm: Alarm::default(),
            is_over: AtomicBool::new(false),
            woken_by_agents: AtomicUsize::new(0),
        };
        let (woken, notified) = thread::scope(|scope| {
            let timer = scope.spawn(|| expire(scene));
            let wake_timer = timer.thread();
            let mut waiters = Vec::new();
            for seed in 0..2 {
                waiters.push(scope.spawn(move || block(scene, &mut Random::new(seed))));
                let wake_timer = wake_timer.clone();
                waiters.push(scope.spawn(move || wait_async(scene, &mut Random::new(10 + seed), &wake_timer)));
            }
            let notifiers: Vec<_> =
                (20..22).map(|seed| scope.spawn(move || notify(scene, &mut Random::new(seed)))).collect();
            thread::sleep(Duration::from_millis(1500));
            scene.is_over.store(true, Ordering::Relaxed);
            wake_timer.unpark();
            let sum = |threads: Vec<thread::ScopedJoinHandle<'_, usize>>| -> usize {
                threads.into_iter().map(|thread| thread.join().unwrap()).sum()
            };
            (sum(notifiers), sum(waiters))
        });
        assert_eq!(woken + scene.woken_by_agents.load(Ordering::Relaxed), notified);
        assert!(woken > 1000, "{woken}");
        assert!((0..LOCATIONS).all(|at| scene.store.count(location(at)) == 0));
        assert!(scene.store.counters().iter().all(|counter| counter.load(Ordering::Relaxed) == 0));
        assert_eq!(scene.store.earliest_deadline(), Timestamp::NEVER);
    }
}
