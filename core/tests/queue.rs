//! The queue against a plain model of it, and under load: through its public interface, without Node.

#![cfg(not(feature = "model"))]

mod fixtures;

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use fixtures::{NEVER, mail, promise, this_thread};
use waitasync_core::clock::Timestamp;
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
    use std::collections::BTreeSet;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use proptest::prelude::*;

    use super::fixtures::clock::{self, now};
    use super::*;

    const BUCKETS: usize = 2;
    const AGENTS: usize = 2;
    const THREADS: usize = 4;

    #[derive(Debug, Clone, Copy)]
    enum Operation {
        /// A wait of a thread that does not wait yet, or of an agent.
        Wait(Waits, Arrival),
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
        Tick(Duration),
        Expire,
        Take(usize),
    }

    #[derive(Debug, Clone, Copy)]
    enum Waits {
        Thread(usize),
        Agent(usize),
    }

    #[derive(Debug, Clone, Copy)]
    struct Arrival {
        at: usize,
        timeout: Option<Duration>,
        is_equal: bool,
    }

    fn operation() -> impl Strategy<Value = Operation> {
        let nanos = |range: Range<u64>| range.prop_map(Duration::from_nanos);
        let wait = |waits| {
            let arrival = (0..LOCATIONS, prop::option::of(nanos(1..20)), prop::bool::weighted(0.9));
            (waits, arrival)
                .prop_map(|(waits, (at, timeout, is_equal))| Operation::Wait(waits, Arrival { at, timeout, is_equal }))
        };
        prop_oneof![
            3 => wait((0..THREADS).prop_map(Waits::Thread).boxed()),
            6 => wait((0..AGENTS).prop_map(Waits::Agent).boxed()),
            4 => (0..LOCATIONS, prop_oneof![4 => 0..4_usize, 1 => Just(usize::MAX)], prop::option::of(0..AGENTS))
                .prop_map(|(at, count, runs)| Operation::Notify { at, count, runs }),
            2 => any::<prop::sample::Index>().prop_map(Operation::Withdraw),
            2 => (0..THREADS).prop_map(Operation::Look),
            2 => nanos(1..8).prop_map(Operation::Tick),
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
            clock::restart();
            let thread = || Thread { record: this_thread(), ticket: None, deadline: NEVER, outcome: None };
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
            deadlines.min().unwrap_or(NEVER)
        }

        fn wait(&mut self, waits: Waits, Arrival { at, timeout, is_equal }: Arrival) {
            let deadline = timeout.map_or(NEVER, |timeout| now().after(timeout));
            let (who, waiter) = match waits {
                Waits::Thread(thread) if self.threads[thread].ticket.is_some() => return,
                Waits::Thread(thread) => {
                    (Who::Thread(thread), Waiter::Thread(Arc::clone(&self.threads[thread].record)))
                }
                Waits::Agent(agent) => {
                    let Agent { outbox, tickets, .. } = &self.agents[agent];
                    let slot = u32::try_from(tickets.len()).unwrap();
                    (Who::Agent(agent, slot), promise(outbox, slot))
                }
            };
            let ticket = self.store.enqueue(location(at), waiter, deadline, || is_equal);
            assert_eq!(ticket.is_some(), is_equal);
            match who {
                Who::Thread(thread) => {
                    let record = Arc::clone(&self.threads[thread].record);
                    self.threads[thread] = Thread { record, ticket, deadline, outcome: None };
                }
                Who::Agent(agent, _) => self.agents[agent].tickets.extend(ticket),
            }
            if is_equal {
                self.waiting.push(Waiting { who, at, deadline, told: false });
            }
        }

        fn run(&mut self, operation: Operation) {
            match operation {
                Operation::Wait(waits, arrival) => self.wait(waits, arrival),
                Operation::Notify { at, count, runs } => {
                    let outbox = runs.map(|agent| &self.agents[agent].outbox);
                    let woken = self.store.notify(location(at), count, outbox);
                    assert_eq!(woken, self.notify(at, count, runs));
                }
                Operation::Withdraw(index) => {
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
                Operation::Tick(duration) => clock::set(now().after(duration)),
                Operation::Expire => {
                    let next = self.store.expire();
                    self.expire();
                    assert_eq!(next, self.earliest_deadline());
                }
                Operation::Take(agent) => {
                    let Agent { outbox, tickets, rings, .. } = &self.agents[agent];
                    let mut mail = mail(outbox);
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
        let at_once = Arrival { at: 0, timeout: Some(Duration::ZERO), is_equal: true };
        let due_at_once = Operation::Wait(Waits::Agent(0), at_once);
        let own_notify = Operation::Notify { at: 0, count: 1, runs: Some(0) };
        for operation in [due_at_once, Operation::Expire, own_notify, due_at_once, Operation::Take(0)] {
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
                queue.run(operation);
                queue.check();
            }
            for at in 0..LOCATIONS {
                queue.run(Operation::Notify { at, count: usize::MAX, runs: None });
            }
            for agent in 0..AGENTS {
                queue.run(Operation::Take(agent));
            }
            assert!(queue.waiting.is_empty());
            queue.check();
        }
    }
}

mod stress {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use waitasync_core::clock::now;

    use super::fixtures::random::Random;
    use super::fixtures::storm::Storm;
    use super::*;

    /// The state that all threads share.
    struct Scene {
        storm: Storm,
        store: WaiterListStore,
        /// How many the agents have woken, by notifications of their own.
        woken_by_agents: AtomicUsize,
    }

    /// Counts the waiters that were notified; none times out early.
    fn was_notified(result: WaitResult, deadline: Timestamp) -> bool {
        assert!(result == WaitResult::Ok || (result == WaitResult::TimedOut && now() >= deadline), "{result:?}");
        result == WaitResult::Ok
    }

    /// Blocks again and again. How many waits were notified.
    fn block(scene: &Scene, random: &mut Random) -> usize {
        let (thread, mut notified) = (this_thread(), 0);
        while scene.storm.goes_on() {
            let deadline = random.deadline();
            let (at, waiter) = (location(random.below(LOCATIONS)), Waiter::Thread(Arc::clone(&thread)));
            let ticket = scene.store.enqueue(at, waiter, deadline, || true).unwrap();
            let gives_up = random.one_in(8);
            let result = loop {
                let slice = Timestamp::from_nanos(now().as_nanos() + 1_000_000);
                match scene.store.park(ticket, &thread, deadline, slice) {
                    Woken::Settled(result) => break result,
                    Woken::TimeOver if gives_up || !scene.storm.goes_on() => {
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
    fn wait_async(scene: &Scene, random: &mut Random) -> usize {
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
        while scene.storm.goes_on() {
            let slot = random.below(pending.len());
            let number = u32::try_from(slot).unwrap();
            match pending[slot] {
                None => {
                    let deadline = random.deadline();
                    let at = location(random.below(LOCATIONS));
                    let ticket = scene.store.enqueue(at, promise(&outbox, number), deadline, || true).unwrap();
                    pending[slot] = Some((ticket, deadline));
                    scene.storm.appended(deadline);
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
        while scene.storm.goes_on() {
            let count = if random.one_in(10) { usize::MAX } else { random.below(4) };
            woken += scene.store.notify(location(random.below(LOCATIONS)), count, None);
            if random.one_in(4) {
                thread::yield_now();
            }
        }
        woken
    }

    #[test]
    fn as_many_are_woken_as_notifications_say() {
        let scene = &Scene {
            storm: Storm::new(Duration::from_millis(1500)),
            store: WaiterListStore::new(2, now),
            woken_by_agents: AtomicUsize::new(0),
        };
        let counts = scene.storm.run(&scene.store, 6, |number, random| {
            let run = [notify, block, wait_async][number as usize % 3];
            run(scene, random)
        });
        let sum = |first: usize| counts.iter().skip(first).step_by(3).sum::<usize>();
        let (woken, notified) = (sum(0), sum(1) + sum(2));
        assert_eq!(woken + scene.woken_by_agents.load(Ordering::Relaxed), notified);
        assert!(woken > 1000, "{woken}");
        assert!((0..LOCATIONS).all(|at| scene.store.count(location(at)) == 0));
        assert!(scene.store.counters().iter().all(|counter| counter.load(Ordering::Relaxed) == 0));
        assert_eq!(scene.store.earliest_deadline(), NEVER);
    }
}
