//! Waiters and claims against a plain model of them, and under load: through the public interface, without Node. The
//! words are taken and given back as `lib/holding/` does it.

#![cfg(not(feature = "model"))]

mod fixtures;

use std::sync::Arc;
use std::sync::atomic::AtomicI32;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::Duration;

use fixtures::{
    Guard, HERE, NEVER, agent_with_bell, any_abandoned_near, mail, permits, promise, results, settled, this_thread,
    wait,
};
use waitasync_core::clock::Timestamp;
use waitasync_core::lock::{Claimed, LOCKED, Outbox, Request, UNLOCKED, WRITING, Waiter, WaiterListStore};
use waitasync_core::queue::{BlockedThread, Location, Ticket, WaitResult, Withdrawal, Woken};

const LOCATIONS: usize = 4;

/// The first is [`HERE`]. Some share a cache line, and with that a bucket.
fn location(index: usize) -> Location {
    Location::from_address(HERE.address() + 36 * index)
}

mod property {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;
    use proptest::sample::Index;
    use waitasync_core::lock::FAIRNESS;
    use waitasync_core::queue::Settlement;

    use super::fixtures::clock::now;
    use super::fixtures::{look, pass};
    use super::*;

    const BUCKETS: usize = 2;
    const AGENTS: usize = 2;

    /// What the word at location 0 is. The words at the others are no locks: nobody makes claims there.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Kind {
        /// No lock either.
        Plain,
        Lock,
        ReadWriteLock,
        Semaphore,
        /// A semaphore with a limit; or with two, by the view.
        Limit,
    }

    #[derive(Debug, Clone)]
    enum Operation {
        /// A waiter without a claim, at a location; whether the word there has the value that it expects.
        Wait(usize, Arrival, bool),
        /// At a location, up to so many; by one of the agents, or by another thread.
        Notify(usize, usize, Option<usize>),
        /// One of the latest waits is withdrawn, be it over or not.
        Withdraw(Index),
        /// A blocked thread wakes up without reason, or because its time is over.
        Look(Index),
        Tick(Duration),
        Expire,
        /// A job of an agent.
        Run(usize),
        /// A claim that waits if it has to.
        Claim(u32, Arrival),
        /// A claim that does not wait; for a promise of an agent, or of a thread that could block.
        Take(u32, Option<usize>),
        /// A holder gives back what it holds.
        Give(Index),
        /// A holder that locks by means of `Atomics.compareExchange` and `notify` frees the lock.
        GiveBare,
        /// Whoever has the word writes that it is free and tells nobody; the service looks.
        Reset,
        /// The service looks at the word.
        Check,
        /// A holder dies.
        Die(Index),
        /// Permits are added.
        Add(u32),
        /// A claim that is awake tries, or one that is not: by a late call of the claim that had its slot before.
        Try(Index, bool),
    }

    /// How one waits: as a promise of an agent, or as a blocked thread.
    #[derive(Debug, Clone, Copy)]
    struct Arrival {
        agent: Option<usize>,
        timeout: Option<Duration>,
    }

    fn arrival() -> impl Strategy<Value = Arrival> {
        let timeout = prop::option::weighted(0.4, (1..3000_u64).prop_map(Duration::from_micros));
        (prop::option::of(0..AGENTS), timeout).prop_map(|(agent, timeout)| Arrival { agent, timeout })
    }

    /// What needs no claims.
    fn plain() -> impl Strategy<Value = Operation> {
        let at = || prop_oneof![Just(0), 0..LOCATIONS];
        let wait = (at(), arrival(), prop::bool::weighted(0.9));
        let notify = (at(), prop_oneof![4 => 0..4_usize, 1 => Just(usize::MAX)], prop::option::of(0..AGENTS));
        prop_oneof![
            6 => wait.prop_map(|(at, arrival, is_equal)| Operation::Wait(at, arrival, is_equal)),
            3 => notify.prop_map(|(at, count, runs)| Operation::Notify(at, count, runs)),
            2 => any::<Index>().prop_map(Operation::Withdraw),
            2 => any::<Index>().prop_map(Operation::Look),
            3 => (1..800_u64).prop_map(|micros| Operation::Tick(Duration::from_micros(micros))),
            2 => Just(Operation::Expire),
            1 => (0..AGENTS).prop_map(Operation::Run),
        ]
    }

    fn with_claims() -> impl Strategy<Value = Operation> {
        let index = any::<Index>;
        prop_oneof![
            15 => plain(),
            6 => (0..6_u32, arrival()).prop_map(|(what, arrival)| Operation::Claim(what, arrival)),
            2 => (0..6_u32, prop::option::of(0..AGENTS)).prop_map(|(what, agent)| Operation::Take(what, agent)),
            5 => index().prop_map(Operation::Give),
            1 => index().prop_map(Operation::Die),
            2 => (1..4_u32).prop_map(Operation::Add),
            5 => (index(), prop::bool::weighted(0.8)).prop_map(|(index, awake)| Operation::Try(index, awake)),
            1 => Just(Operation::GiveBare),
            1 => Just(Operation::Reset),
            1 => Just(Operation::Check),
        ]
    }

    /// One in a list.
    struct Entrant {
        at: usize,
        /// `None`: a plain waiter.
        request: Option<Request>,
        party: Waiter,
        agent: Option<usize>,
        ticket: Ticket,
        /// Unlike its ticket, never given again: a promise's slot.
        number: u32,
        deadline: Timestamp,
        /// The timer has notified its agent that the deadline has come.
        was_rung: bool,
        awake: bool,
        /// Whether it has been awake and tried in vain.
        tried: bool,
    }

    impl Entrant {
        fn blocks(&self) -> bool {
            self.agent.is_none()
        }

        fn is_live(&self) -> bool {
            self.deadline > now()
        }

        /// Whether its claim, the first, may be handed the lock: its thread blocks, or ran when the claim tried.
        fn is_ready(&self) -> bool {
            self.blocks() || self.tried
        }
    }

    struct Agent {
        outbox: Arc<Outbox>,
        rings: Arc<AtomicI32>,
        /// For its next job.
        settlements: Vec<Settlement>,
    }

    /// The location and number of a wait, and how it ended.
    type End = (usize, u32, WaitResult);

    /// A word and its line, other words, and all waiters and holders.
    struct World {
        kind: Kind,
        guard: Guard,
        agents: Vec<Agent>,
        /// The records of threads that do not wait.
        idle: Vec<Arc<BlockedThread>>,
        /// Of all waits, by number. Those of an agent with it.
        tickets: Vec<(Ticket, Option<usize>)>,
        /// In the order of arrival. The store is meant to behave as this one sequence.
        entrants: Vec<Entrant>,
        holders: Vec<Request>,
        /// Permits that are neither held nor used up.
        permits: i32,
        /// An exclusive holder has died, and no holder has seen it yet.
        left_behind: bool,
        /// Since when the first claim of a lock has been overtaken.
        overtaken: Option<(u32, Timestamp)>,
    }

    impl World {
        fn new(kind: Kind) -> Self {
            let agent = |(outbox, rings)| Agent { outbox, rings, settlements: Vec::new() };
            Self {
                kind,
                guard: Guard::of(WaiterListStore::new(BUCKETS, now), 0),
                agents: (0..AGENTS).map(|_| agent(agent_with_bell())).collect(),
                idle: Vec::new(),
                tickets: Vec::new(),
                entrants: Vec::new(),
                holders: Vec::new(),
                permits: 0,
                left_behind: false,
                overtaken: None,
            }
        }

        fn request(&self, what: u32) -> Request {
            match (self.kind, what) {
                (Kind::Plain, _) => unreachable!(),
                (Kind::Lock, _) => Request::Lock,
                (Kind::ReadWriteLock, 0..4) => Request::Shared,
                (Kind::ReadWriteLock, _) => Request::Exclusive,
                (Kind::Semaphore, 0..3) => Request::Permits(1 + what),
                (Kind::Semaphore, _) => Request::Signals(what - 2),
                (Kind::Limit, 0..4) => Request::Limited { amount: 1 + what, limit: 4 },
                (Kind::Limit, _) => Request::Limited { amount: what - 3, limit: 2 },
            }
        }

        /// The value that the word should have.
        fn value(&self) -> i32 {
            match self.kind {
                Kind::Plain => 0,
                Kind::Lock if self.holders.is_empty() => UNLOCKED,
                Kind::Lock => LOCKED,
                Kind::ReadWriteLock if self.holders.contains(&Request::Exclusive) => WRITING,
                Kind::ReadWriteLock => i32::try_from(self.holders.len()).unwrap(),
                Kind::Semaphore => self.permits,
                Kind::Limit => self.holders.iter().copied().map(permits).sum(),
            }
        }

        fn grants(&self, request: Request) -> bool {
            match request {
                Request::Lock | Request::Inner | Request::Exclusive => self.value() == UNLOCKED,
                Request::Shared => self.value() >= 0,
                Request::Permits(_) | Request::Signals(_) => self.value() >= permits(request),
                Request::Limited { limit, .. } => self.value() + permits(request) <= i32::try_from(limit).unwrap(),
                Request::Named(..) => unreachable!("tests/names.rs has them"),
            }
        }

        /// Those who wait for the word of which claims are made.
        fn line(&self) -> impl Iterator<Item = &Entrant> {
            self.entrants.iter().filter(|entrant| entrant.at == 0)
        }

        fn place_of(&self, number: u32) -> Option<usize> {
            self.entrants.iter().position(|entrant| entrant.number == number)
        }

        fn first_claim(&self) -> Option<usize> {
            self.entrants.iter().position(|entrant| entrant.request.is_some())
        }

        /// One leaves its list.
        fn remove(&mut self, place: usize) -> Entrant {
            let entrant = self.entrants.remove(place);
            if let Waiter::Thread(thread) = &entrant.party {
                self.idle.push(Arc::clone(thread));
            }
            entrant
        }

        fn acquired(&mut self, request: Request, result: WaitResult) {
            assert!(self.grants(request), "{request:?} beside {:?}", self.holders);
            if self.kind == Kind::Semaphore {
                self.permits -= permits(request);
            }
            if !matches!(request, Request::Signals(_)) {
                self.holders.push(request);
            }
            let alone = matches!(request, Request::Lock | Request::Exclusive);
            let saw_death = self.left_behind && (alone || request == Request::Shared);
            // Readers cannot repair what was left half done.
            self.left_behind &= !alone;
            assert_eq!(result, if saw_death { WaitResult::AcquiredFromDead } else { WaitResult::Acquired });
        }

        /// A holder is none any more. What it held.
        fn remove_holder(&mut self, holder: usize) -> Request {
            let request = self.holders.remove(holder);
            if self.kind == Kind::Semaphore {
                self.permits += permits(request);
            }
            request
        }

        fn give(&mut self, holder: usize) {
            let request = self.remove_holder(holder);
            if request == Request::Lock { self.release_lock() } else { self.guard.give(request) }
        }

        /// Agents take their mail, threads look what has come: the results by number.
        fn results(&mut self) -> BTreeMap<u32, WaitResult> {
            let (mut ended, mut retries, mut grants) = (BTreeMap::new(), BTreeSet::new(), 0);
            for agent in &mut self.agents {
                grants += agent.outbox.granted();
                let mail = mail(&agent.outbox);
                let has_mail = !(mail.settlements.is_empty() && mail.retries.is_empty());
                assert_eq!(agent.rings.swap(0, Relaxed), i32::from(has_mail), "one ring per batch");
                retries.extend(mail.retries);
                for (number, result) in results(&mail.settlements) {
                    if result == WaitResult::Due {
                        let mut due = self.entrants.iter_mut().filter(|entrant| entrant.number == number);
                        assert!(due.all(
                            |entrant| entrant.deadline <= now() && !std::mem::replace(&mut entrant.was_rung, true)
                        ));
                    } else {
                        assert_eq!(ended.insert(number, result), None, "settled twice");
                    }
                }
                agent.settlements.extend(mail.settlements);
            }
            assert_eq!(
                grants,
                ended.values().filter(|result| result.is_acquired()).count(),
                "what a dying agent has to pass on"
            );
            for entrant in &self.entrants {
                if let Waiter::Thread(thread) = &entrant.party {
                    match look(&self.guard, thread, entrant.ticket) {
                        Woken::Retry => _ = retries.insert(entrant.number),
                        Woken::Settled(result) => _ = ended.insert(entrant.number, result),
                        Woken::TimeOver | Woken::Interrupted => {}
                    }
                }
            }
            for entrant in self.entrants.iter_mut().filter(|entrant| retries.contains(&entrant.number)) {
                assert!(entrant.request.is_some(), "a waiter without a claim does not retry");
                assert!(!entrant.awake, "it is woken once");
                entrant.awake = true;
            }
            ended
        }

        /// Takes note of all wake-ups since the last time. The waits that have ended without a grant.
        fn hear(&mut self) -> Vec<End> {
            let (mut results, mut ended, mut acquired, mut place) = (self.results(), Vec::new(), 0, 0);
            while place < self.entrants.len() {
                let Some(result) = results.remove(&self.entrants[place].number) else {
                    place += 1;
                    continue;
                };
                let first =
                    self.first_claim().map(|first| (self.entrants[first].number, self.entrants[first].is_ready()));
                let entrant = self.remove(place);
                match (entrant.request, result) {
                    (_, WaitResult::TimedOut) => assert!(entrant.deadline <= now(), "timed out early"),
                    (None, WaitResult::Ok) => {}
                    (Some(request), result) if result.is_acquired() => {
                        let is_first = first.is_some_and(|(number, _)| number == entrant.number);
                        let is_behind_promise = self.kind == Kind::Lock
                            && entrant.blocks()
                            && first.is_some_and(|(_, is_ready)| !is_ready)
                            && !self.entrants[..place].iter().any(|one| one.request.is_some() && one.blocks());
                        assert!(is_first || is_behind_promise, "granted to another claim than the first");
                        assert!(entrant.deadline > now(), "granted to one whose time is over");
                        self.acquired(request, result);
                        acquired += 1;
                    }
                    (request, result) => panic!("{request:?} ended as {result:?}"),
                }
                if !result.is_acquired() {
                    ended.push((entrant.at, entrant.number, result));
                }
            }
            assert!(results.is_empty(), "an end of what does not wait: {results:?}");
            assert!(acquired <= 1 || self.kind != Kind::Lock);
            ended
        }

        /// The same. Away from the line, waits have ended only if something was done there.
        fn hear_line(&mut self) {
            let ended = self.hear();
            assert!(ended.iter().all(|end| end.0 == 0 && self.kind != Kind::Plain), "{ended:?}");
        }

        fn line_up(
            &mut self,
            at: usize,
            request: Option<Request>,
            Arrival { agent, timeout }: Arrival,
            is_equal: bool,
        ) {
            let number = u32::try_from(self.tickets.len()).unwrap();
            let party = match agent {
                Some(agent) => promise(&self.agents[agent].outbox, number),
                None => Waiter::Thread(self.idle.pop().unwrap_or_else(this_thread)),
            };
            let deadline = timeout.map_or(NEVER, |timeout| now().after(timeout));
            let (store, waiter) = (&self.guard.store, party.clone());
            let claimed = match request {
                Some(request) => Some(store.claim(HERE, waiter, request, deadline, &self.guard.word)),
                None => store.enqueue(location(at), waiter, deadline, || is_equal).map(Claimed::Pending),
            };
            // Those before it may have been given something on the way.
            self.hear_line();
            match (claimed, request) {
                (Some(Claimed::Now(result)), Some(request)) => {
                    assert!(self.kind == Kind::Lock || self.first_claim().is_none(), "it has overtaken a claim");
                    assert!(!self.is_behind_own(agent), "it has overtaken a promise of its agent");
                    self.acquired(request, result);
                }
                (Some(Claimed::Pending(ticket)), _) => {
                    assert!(is_equal);
                    let is_free = self.kind == Kind::Lock && request.is_some_and(|request| self.grants(request));
                    assert!(!is_free || self.is_behind_own(agent), "it waits for a lock that is free");
                    self.tickets.push((ticket, agent));
                    let (was_rung, awake, tried) = (false, false, false);
                    self.entrants.push(Entrant {
                        at,
                        request,
                        party,
                        agent,
                        ticket,
                        number,
                        deadline,
                        was_rung,
                        awake,
                        tried,
                    });
                }
                _ => assert!(!is_equal),
            }
        }

        fn retry(&mut self, place: usize) {
            let entrant = &mut self.entrants[place];
            let Some(request) = entrant.request else { return };
            let was_nudged = std::mem::take(&mut entrant.awake);
            if let Some(result) = self.guard.store.retry(entrant.ticket, &entrant.party, &self.guard.word) {
                assert!(was_nudged, "it has overtaken the first");
                let is_known = self.kind != Kind::Lock || self.entrants[place].blocks();
                let is_noted = is_known || self.guard.store.with_grant(HERE, |granted| granted.is_some());
                assert!(is_noted, "the lock is on its way to a promise");
                self.remove(place);
                self.acquired(request, result);
            } else if was_nudged {
                self.entrants[place].tried = true;
            }
        }

        /// How many a notification wakes: those without a claim, and one claim at most, which it is. And the waits that
        /// end: an agent that runs wakes its own promises also when they are overdue.
        fn notified(&self, at: usize, count: usize, runs: Option<usize>) -> (usize, Option<u32>, Vec<End>) {
            let (mut woken, mut claim, mut ended) = (0, None, Vec::new());
            for entrant in self.entrants.iter().filter(|entrant| entrant.at == at) {
                let claims = entrant.request.is_some();
                if woken == count || (claims && claim.is_some()) {
                    continue;
                }
                let is_its_own = entrant.agent.is_some() && entrant.agent == runs && !claims;
                if !entrant.is_live() && !is_its_own {
                    ended.push((at, entrant.number, WaitResult::TimedOut));
                    continue;
                }
                woken += 1;
                if claims {
                    claim = Some(entrant.number);
                } else {
                    ended.push((at, entrant.number, WaitResult::Ok));
                }
            }
            (woken, claim, ended)
        }

        fn notify(&mut self, at: usize, count: usize, runs: Option<usize>) {
            let (woken, claim, expected) = self.notified(at, count, runs);
            let claims =
                |number: u32| self.place_of(number).is_some_and(|place| self.entrants[place].request.is_some());
            let ends_claim = expected.iter().any(|&(_, number, _)| claims(number));
            let outbox = runs.map(|agent| &self.agents[agent].outbox);
            assert_eq!(self.guard.store.notify(location(at), count, outbox), woken);
            let ended = self.hear();
            // A claim that times out may leave the word to waiters behind it.
            assert!(
                ended == expected || (ends_claim && expected.iter().all(|end| ended.contains(end))),
                "{ended:?} {expected:?}"
            );
            let is_awake = |number| self.place_of(number).is_some_and(|place| self.entrants[place].awake);
            assert!(claim.is_none_or(is_awake), "not the first one was woken");
        }

        /// The first claim of these, and how many plain waiters stand before it.
        fn first_claim_of<'a>(mut these: impl Iterator<Item = &'a Entrant>) -> (Option<&'a Entrant>, usize) {
            let mut plain = 0;
            let claim = these.find(|entrant| {
                plain += usize::from(entrant.request.is_none());
                entrant.request.is_some()
            });
            (claim, plain)
        }

        fn live(&self) -> impl Iterator<Item = &Entrant> {
            self.line().filter(|entrant| entrant.is_live())
        }

        /// Whether the first claim is a promise of this agent.
        fn is_behind_own(&self, agent: Option<usize>) -> bool {
            agent.is_some() && self.first_live_claim().0.is_some_and(|first| first.agent == agent)
        }

        fn first_live_claim(&self) -> (Option<&Entrant>, usize) {
            Self::first_claim_of(self.live())
        }

        /// Of the blocked threads behind the first live claim.
        fn first_live_thread(&self) -> (Option<&Entrant>, usize) {
            let behind = self.live().skip_while(|entrant| entrant.request.is_none()).skip(1);
            Self::first_claim_of(behind.filter(|entrant| entrant.blocks()))
        }

        fn plain_waiters(&self) -> usize {
            self.line().filter(|entrant| entrant.request.is_none()).count()
        }

        /// Whether the next claim of a lock has been overtaken for long. Otherwise it is now.
        fn is_late(&mut self, next: u32) -> bool {
            let since = self.overtaken.filter(|&(number, _)| number == next).map(|(_, since)| since);
            self.overtaken = Some((next, since.unwrap_or_else(now)));
            since.is_some_and(|since| now().duration_since(since) >= FAIRNESS)
        }

        /// The holder of a lock frees it, or hands it over.
        fn release_lock(&mut self) {
            let plain_waiters = self.plain_waiters();
            let (first, waiters) = self.first_live_claim();
            let first_is_ready = first.is_none_or(Entrant::is_ready);
            let (thread, plain_threads) = self.first_live_thread();
            let next = if first_is_ready { first } else { thread };
            let behind_waiters = waiters > 0 || (!first_is_ready && plain_threads > 0);
            let next = next.map(|next| (next.number, next.tried));
            let nobody_claims = first.is_none();
            let hands_over = next.is_some_and(|(next, tried)| (tried || self.is_late(next)) && !behind_waiters);
            self.guard.give(Request::Lock);
            let value = if hands_over { LOCKED } else { UNLOCKED };
            assert_eq!(self.guard.value(), value, "handed over if it is somebody's turn");
            self.hear_line();
            if nobody_claims && plain_waiters > 0 {
                assert!(self.plain_waiters() < plain_waiters, "one of those who only wait gets a try");
            }
            if !first_is_ready && !hands_over {
                assert_eq!(self.first_live_thread().1, 0, "those that block and only wait behind a promise get a try");
            }
        }

        fn run(&mut self, operation: &Operation) {
            match *operation {
                Operation::Wait(at, arrival, is_equal) => self.line_up(at, None, arrival, is_equal),
                Operation::Claim(what, arrival) => self.line_up(0, Some(self.request(what)), arrival, true),
                Operation::Notify(at, count, runs) => self.notify(at, count, runs),
                Operation::Withdraw(index) if !self.tickets.is_empty() => {
                    let number = self.tickets.len() - 1 - index.index(self.tickets.len().min(12));
                    let ((ticket, agent), number) = (self.tickets[number], u32::try_from(number).unwrap());
                    if let Some(place) = self.place_of(number) {
                        self.withdraw(place);
                    } else if let Some(Agent { outbox, .. }) = agent.map(|agent| &self.agents[agent]) {
                        assert_eq!(self.guard.store.withdraw_agent(ticket, outbox, number), Withdrawal::Settled);
                    }
                }
                Operation::Look(index) => {
                    if let Some(place) = self.one_of(index, Entrant::blocks)
                        && let Entrant { ticket, deadline, party: Waiter::Thread(thread), .. } = &self.entrants[place]
                    {
                        let woken = self.guard.store.park(*ticket, thread, *deadline, Timestamp::from_nanos(0));
                        let is_over = *deadline <= now();
                        let time_out = Woken::Settled(WaitResult::TimedOut);
                        assert_eq!(woken, if is_over { time_out } else { Woken::TimeOver });
                        is_over.then(|| self.remove(place));
                    }
                }
                Operation::Tick(duration) => pass(duration),
                Operation::Expire => {
                    let next = self.guard.store.expire();
                    self.hear_line();
                    assert_eq!(next, self.earliest_deadline());
                    let is_over = |entrant: &Entrant| {
                        entrant.blocks() || entrant.is_live() || (entrant.was_rung && entrant.request.is_none())
                    };
                    assert!(self.entrants.iter().all(is_over), "a claim was due, or an agent was not rung");
                }
                Operation::Run(agent) => self.run_agent(agent),
                Operation::Take(what, agent) => {
                    let request = self.request(what);
                    let overtakes =
                        if self.kind == Kind::Lock { self.is_behind_own(agent) } else { self.first_claim().is_some() };
                    let may = self.grants(request) && !overtakes;
                    let (Guard { store, word, .. }, outbox) =
                        (&self.guard, agent.map(|agent| &self.agents[agent].outbox));
                    let taken = outbox.map_or_else(
                        || self.guard.take(request),
                        |outbox| store.try_take(HERE, request, word, Some(outbox)),
                    );
                    assert_eq!(taken.is_some(), may);
                    if let Some(result) = taken {
                        self.acquired(request, result);
                    }
                }
                Operation::Give(index) if !self.holders.is_empty() => {
                    self.give(index.index(self.holders.len()));
                }
                // Not if the first waiter has no claim: that one is woken, and has to notify the next.
                Operation::GiveBare
                    if !self.holders.is_empty()
                        && self.kind == Kind::Lock
                        && matches!(self.first_live_claim(), (None, _) | (_, 0)) =>
                {
                    self.holders.clear();
                    self.guard.word.store(UNLOCKED, SeqCst);
                    self.notify(0, 1, None);
                }
                Operation::Reset if self.kind != Kind::Semaphore => {
                    self.holders.clear();
                    self.guard.word.store(UNLOCKED, SeqCst);
                    self.check_word();
                }
                Operation::Check => self.check_word(),
                Operation::Die(index) if !self.holders.is_empty() => {
                    let request = self.remove_holder(index.index(self.holders.len()));
                    self.left_behind |= matches!(request, Request::Lock | Request::Exclusive);
                    let hands_over =
                        request == Request::Lock && self.first_live_claim().0.is_some_and(Entrant::is_ready);
                    self.guard.store.return_unused(
                        HERE,
                        request.hold(),
                        WaitResult::AcquiredFromDead,
                        &self.guard.word,
                    );
                    let is_locked = self.kind == Kind::Lock && self.guard.value() == LOCKED;
                    assert_eq!(hands_over, is_locked, "handed over to the first");
                }
                Operation::Add(amount) if self.kind == Kind::Semaphore => {
                    self.permits += i32::try_from(amount).unwrap();
                    self.guard.add_permits(amount);
                }
                Operation::Try(index, awake) => {
                    if let Some(place) = self.one_of(index, |entrant| entrant.awake == awake) {
                        self.retry(place);
                    }
                }
                _ => {}
            }
            self.hear_line();
        }

        /// The place of one of these.
        fn one_of(&self, index: Index, these: impl Fn(&Entrant) -> bool) -> Option<usize> {
            let places: Vec<_> = (0..self.entrants.len()).filter(|&place| these(&self.entrants[place])).collect();
            (!places.is_empty()).then(|| *index.get(&places))
        }

        fn check_word(&self) {
            let first = self.first_claim().and_then(|first| self.entrants[first].request);
            let found = self.guard.store.check_words(|_, look| look(&self.guard.word));
            assert_eq!(found, first.map(|request| self.grants(request)));
        }

        /// A job of the agent times out those of its promises that are overdue.
        fn run_agent(&mut self, agent: usize) {
            let mut settlements = std::mem::take(&mut self.agents[agent].settlements);
            let decided = |(slot, result)| match result {
                WaitResult::Due => self.place_of(slot).map(|_| (slot, WaitResult::TimedOut)),
                result => Some((slot, result)),
            };
            let expected: Vec<_> = results(&settlements).into_iter().filter_map(decided).collect();
            let ticket = |slot: u32| self.tickets.get(slot as usize).map(|wait| wait.0);
            self.guard.store.decide(&self.agents[agent].outbox, &mut settlements, ticket);
            assert_eq!(results(&settlements), expected);
            self.entrants.retain(|entrant| !expected.iter().any(|&(slot, _)| slot == entrant.number));
        }

        fn withdraw(&mut self, place: usize) {
            let Entrant { ticket, party, .. } = self.remove(place);
            let store = &self.guard.store;
            match party {
                Waiter::Agent(outbox, slot) => {
                    assert_eq!(store.withdraw_agent(ticket, &outbox, slot), Withdrawal::Done);
                }
                Waiter::Thread(thread) => assert_eq!(store.withdraw_thread(ticket, &thread), WaitResult::TimedOut),
            }
        }

        /// All waiters that are overdue give up.
        fn time_out(&mut self) {
            while let Some(place) = self.entrants.iter().position(|entrant| !entrant.is_live()) {
                self.withdraw(place);
                self.hear_line();
            }
        }

        fn earliest_deadline(&self) -> Timestamp {
            let timed = self.entrants.iter().filter(|entrant| !entrant.blocks() && !entrant.was_rung);
            timed.map(|entrant| entrant.deadline).min().unwrap_or(NEVER)
        }

        fn check(&self) {
            let store = &self.guard.store;
            for at in 0..LOCATIONS {
                let count =
                    |shares: &dyn Fn(usize) -> bool| self.entrants.iter().filter(|entrant| shares(entrant.at)).count();
                assert_eq!(store.count(location(at)) as usize, count(&|other| other == at));
                let counter = store.counter(location(at));
                let shares = |other| std::ptr::eq(store.counter(location(other)), counter);
                let all = usize::try_from(counter.load(Relaxed));
                assert_eq!(all, Ok(count(&shares)), "what a notification looks at before it takes the lock");
            }
            assert_eq!(store.earliest_deadline(), self.earliest_deadline());
            for (number, agent) in self.agents.iter().enumerate() {
                let waiting = self.entrants.iter().filter(|entrant| entrant.agent == Some(number)).count();
                let kept = Arc::strong_count(&agent.outbox);
                // Twice: by the store, and here.
                assert!(kept == 1 + 2 * waiting || self.kind == Kind::Lock, "kept as long as a promise of it waits");
                assert!(!agent.outbox.has_mail());
            }
            let ended =
                |entrant: &Entrant| matches!(&entrant.party, Waiter::Thread(thread) if thread.result().is_some());
            assert!(!self.entrants.iter().any(ended));
            self.check_line();
        }

        fn check_line(&self) {
            assert_eq!(self.guard.value(), self.value());
            assert!(
                self.kind == Kind::Semaphore || self.holders.len() <= 1 || !self.holders.contains(&Request::Exclusive)
            );
            assert_eq!(any_abandoned_near(&self.guard.store, HERE), self.left_behind);
            // A claim that is overdue need not be awake: the next thread that finds it times it out, and wakes its
            // successor.
            if let Some(first) = self.first_claim()
                && self.entrants[first].deadline > now()
                && self.entrants[first].request.is_some_and(|request| self.grants(request))
            {
                assert!(self.entrants[first].awake, "the word grants what the first one asks for, and it sleeps");
                if !self.entrants[first].blocks() {
                    let thread = self.entrants.iter().find(|entrant| entrant.request.is_some() && entrant.blocks());
                    let sleeps = thread.is_some_and(|thread| thread.is_live() && !thread.awake);
                    assert!(!sleeps, "a blocked thread sleeps behind a promise, whose event loop may be busy");
                }
            }
            for blocks in [true, false] {
                let awake = self.entrants.iter().filter(|entrant| entrant.awake && entrant.blocks() == blocks);
                assert!(awake.count() <= 1);
            }
        }

        /// All waiters get what they wait for, one after the other.
        fn drain(&mut self) {
            let add = |world: &mut Self| {
                if world.kind == Kind::Semaphore {
                    world.run(&Operation::Add(8));
                }
            };
            add(self);
            self.time_out();
            for _ in 0..3 * (self.entrants.len() + self.holders.len()) {
                while let Some(place) = self.entrants.iter().position(|entrant| entrant.awake) {
                    self.retry(place);
                    self.hear_line();
                    self.check();
                }
                match self.holders.len().checked_sub(1) {
                    Some(last) => self.give(last),
                    None if self.first_claim().is_none() => break,
                    None => add(self),
                }
                self.hear_line();
                self.check();
            }
            assert!(self.first_claim().is_none(), "one is left in the line");
            for at in 0..LOCATIONS {
                self.notify(at, usize::MAX, None);
            }
            assert!(self.entrants.is_empty());
            self.check();
        }
    }

    /// The key of the first promise's waiter is that of the second one's when its timeout is decided.
    #[test]
    fn a_time_out_that_comes_too_late_does_not_end_the_wait_that_has_its_key() {
        let mut world = World::new(Kind::Plain);
        let arrival = Arrival { agent: Some(0), timeout: Some(Duration::ZERO) };
        let due_at_once = || Operation::Wait(0, arrival, true);
        let own_notify = Operation::Notify(0, 1, Some(0));
        for operation in [due_at_once(), Operation::Expire, own_notify, due_at_once(), Operation::Run(0)] {
            world.run(&operation);
            world.check();
        }
        assert_eq!(world.tickets[0], world.tickets[1], "otherwise this shows nothing");
        assert_eq!(world.entrants.len(), 1);
    }

    #[test]
    fn an_agent_is_rung_once_until_it_takes_its_mail() {
        let (store, (agent, rings)) = (WaiterListStore::new(1, now), agent_with_bell());
        (0..3).for_each(|slot| _ = wait(&store, promise(&agent, slot), NEVER));
        for (rung, mail) in [(1, 0), (1, 2), (2, 1)] {
            store.notify(HERE, 1, None);
            assert_eq!(rings.load(Relaxed), rung);
            assert_eq!(if mail > 0 { settled(&agent).len() } else { 0 }, mail);
        }
    }

    fn runs() -> impl Strategy<Value = (Kind, Vec<Operation>)> {
        const KINDS: &[Kind] = &[Kind::Plain, Kind::Lock, Kind::ReadWriteLock, Kind::Semaphore, Kind::Limit];
        prop::sample::select(KINDS).prop_flat_map(|kind| {
            let operation = if kind == Kind::Plain { plain().boxed() } else { with_claims().boxed() };
            (Just(kind), prop::collection::vec(operation, 0..150))
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1500) })]

        #[test]
        fn behaves_as_one_sequence_of_waiters((kind, operations) in runs()) {
            let mut world = World::new(kind);
            for operation in operations {
                world.run(&operation);
                world.check();
            }
            world.drain();
        }
    }
}

mod stress {
    use std::sync::atomic::AtomicU64;
    use std::thread;

    use waitasync_core::clock::now;

    use super::fixtures::random::{Random, RngExt, deadline};
    use super::fixtures::storm::Storm;
    use super::*;

    /// All the permits of the semaphore.
    const PERMITS: i32 = 4;
    const HANGS: Duration = Duration::from_secs(10);
    /// The promises that an agent awaits at a time.
    const SLOTS: usize = 50;

    /// The state that all threads share.
    struct Scene {
        guard: Guard,
        /// Without any, threads wait for notifications, at all locations.
        requests: Vec<Request>,
        storm: Storm,
        counts: Counts,
    }

    #[derive(Default)]
    struct Counts {
        writers: AtomicI32,
        readers: AtomicI32,
        permits: AtomicI32,
        /// Counted up by exclusive holders: the first without an atomic increment.
        count: AtomicU64,
        alone: AtomicU64,
        /// Deaths to be seen, and deaths that were seen.
        deaths: AtomicU64,
        seen: AtomicU64,
        /// How many waiters notifications have woken, and how many waits ended so.
        woken: AtomicU64,
        notified: AtomicU64,
    }

    /// A wait that has not ended, as far as its thread knows.
    #[derive(Clone, Copy)]
    struct Pending {
        request: Option<Request>,
        ticket: Ticket,
        deadline: Timestamp,
        began: Timestamp,
    }

    impl Pending {
        fn assert_does_not_hang(&self) {
            assert!(now().duration_since(self.began) < HANGS, "it hangs");
        }
    }

    impl Scene {
        /// The calling thread has been granted `request`: does what that allows, and gives it back or dies.
        fn hold(&self, request: Request, result: WaitResult, dies: bool, random: &mut Random) {
            let Counts { writers, readers, permits: all, count, alone, deaths, seen, .. } = &self.counts;
            assert!(result.is_acquired(), "{result:?}");
            if result == WaitResult::AcquiredFromDead && request != Request::Shared {
                seen.fetch_add(1, Relaxed);
            }
            let is_alone = matches!(request, Request::Lock | Request::Exclusive);
            let (reads, permits) = (i32::from(request == Request::Shared), permits(request));
            if is_alone {
                assert_eq!(writers.swap(1, Relaxed), 0, "two at once");
                count.store(count.load(Relaxed) + 1, Relaxed);
                alone.fetch_add(1, Relaxed);
            }
            readers.fetch_add(reads, Relaxed);
            assert!(all.fetch_add(permits, Relaxed) + permits <= PERMITS);
            if random.random_ratio(1, 8) {
                thread::yield_now();
            }
            if is_alone {
                assert_eq!(readers.load(Relaxed), 0, "a reader beside a writer");
                writers.store(0, Relaxed);
            }
            readers.fetch_sub(reads, Relaxed);
            all.fetch_sub(permits, Relaxed);
            if dies {
                deaths.fetch_add(u64::from(is_alone), Relaxed);
                self.guard.store.return_unused(HERE, request.hold(), WaitResult::AcquiredFromDead, &self.guard.word);
            } else {
                self.guard.give(request);
            }
        }

        /// Begins a wait, unless what it claims is free: that is used at once.
        fn wait(&self, party: &Waiter, random: &mut Random) -> Option<Pending> {
            let (Guard { store, word }, deadline, began) = (&self.guard, deadline(random), now());
            let request = self.requests.get(random.random_range(0..self.requests.len().max(1))).copied();
            let Some(request) = request else {
                let ticket = store
                    .enqueue(location(random.random_range(0..LOCATIONS)), party.clone(), deadline, || true)
                    .unwrap();
                return Some(Pending { request, ticket, deadline, began });
            };
            let taken = if random.random_ratio(1, 2) { self.guard.take(request) } else { None };
            let claimed = taken.map_or_else(|| store.claim(HERE, party.clone(), request, deadline, word), Claimed::Now);
            match claimed {
                Claimed::Now(result) => {
                    self.hold(request, result, random.random_ratio(1, 16), random);
                    None
                }
                Claimed::Pending(ticket) => Some(Pending { request: Some(request), ticket, deadline, began }),
            }
        }

        /// A wait has ended. Whoever dies never knew what it was granted.
        fn end(&self, wait: &Pending, result: WaitResult, dies: bool, random: &mut Random) {
            match (wait.request, result) {
                (_, WaitResult::TimedOut) => assert!(now() >= wait.deadline, "timed out early"),
                (None, WaitResult::Ok) => _ = self.counts.notified.fetch_add(1, Relaxed),
                (Some(request), result) => self.hold(request, result, dies, random),
                (None, result) => panic!("{result:?} of a waiter without a claim"),
            }
        }

        /// Blocks again and again, and gives up sometimes.
        fn block(&self, random: &mut Random) {
            let (thread, Guard { store, word }) = (this_thread(), &self.guard);
            let party = Waiter::Thread(Arc::clone(&thread));
            while self.storm.goes_on() {
                let Some(wait) = self.wait(&party, random) else { continue };
                let gives_up = random.random_ratio(1, 8);
                let result = loop {
                    let slice = Timestamp::from_nanos(now().as_nanos() + 1_000_000);
                    match store.park(wait.ticket, &thread, wait.deadline, slice) {
                        Woken::Settled(result) => break Some(result),
                        Woken::Retry => {
                            assert!(wait.request.is_some(), "a plain waiter is not awake");
                            if let Some(result) = store.retry(wait.ticket, &party, word) {
                                break Some(result);
                            }
                        }
                        Woken::TimeOver if gives_up || (wait.request.is_none() && !self.storm.goes_on()) => {
                            let result = store.withdraw_thread(wait.ticket, &thread);
                            break Some(result).filter(|&result| result != WaitResult::TimedOut);
                        }
                        Woken::TimeOver | Woken::Interrupted => wait.assert_does_not_hang(),
                    }
                };
                if let Some(result) = result {
                    self.end(&wait, result, random.random_ratio(1, 16), random);
                }
            }
        }

        /// One agent after the other.
        fn wait_async(&self, random: &mut Random) {
            while self.storm.goes_on() {
                let this = thread::current();
                let outbox = Arc::new(Outbox::new(Box::new(move || this.unpark())));
                Agent { scene: self, outbox, pending: vec![None; SLOTS], ends: false }.live(random);
            }
        }

        fn notify(&self, random: &mut Random) {
            while self.storm.goes_on() {
                let count = if random.random_ratio(1, 10) { usize::MAX } else { random.random_range(0..4) };
                self.notify_some(count, None, random);
                if random.random_ratio(1, 4) {
                    thread::yield_now();
                }
            }
        }

        fn notify_some(&self, count: usize, runs: Option<&Arc<Outbox>>, random: &mut Random) {
            let woken = self.guard.store.notify(location(random.random_range(0..LOCATIONS)), count, runs);
            self.counts.woken.fetch_add(woken as u64, Relaxed);
        }
    }

    struct Agent<'a> {
        scene: &'a Scene,
        outbox: Arc<Outbox>,
        pending: Vec<Option<Pending>>,
        ends: bool,
    }

    impl Agent<'_> {
        /// A job: handles all mail. Whether there was any.
        fn run(&mut self, random: &mut Random) -> bool {
            let (mut mail, Guard { store, word }) = (mail(&self.outbox), &self.scene.guard);
            let ticket = |slot: u32| self.pending[slot as usize].map(|wait| wait.ticket);
            store.decide(&self.outbox, &mut mail.settlements, ticket);
            let retry = |&slot: &u32| Some((slot, store.retry(ticket(slot)?, &promise(&self.outbox, slot), word)?));
            let taken: Vec<_> = mail.retries.iter().filter_map(retry).collect();
            let has_mail = !mail.settlements.is_empty() || !mail.retries.is_empty();
            for (slot, result) in taken.into_iter().chain(results(&mail.settlements)) {
                let wait = self.pending[slot as usize].take().expect("a promise is settled once");
                self.scene.end(&wait, result, self.ends || random.random_ratio(1, 10), random);
            }
            has_mail
        }

        /// Awaits many promises at a time, some of which it takes back, and ends with some of them pending.
        fn live(mut self, random: &mut Random) {
            let storm = &self.scene.storm;
            for _ in 0..5000 {
                if !storm.goes_on() {
                    self.await_claims(random);
                    break;
                }
                let slot = random.random_range(0..SLOTS);
                match self.pending[slot] {
                    None => {
                        let wait = self.scene.wait(&promise(&self.outbox, slot as u32), random);
                        wait.inspect(|wait| storm.appended(wait.deadline));
                        self.pending[slot] = wait;
                    }
                    // Wakes its own also when they are overdue.
                    Some(Pending { request: None, .. }) if random.random_ratio(1, 8) => {
                        self.scene.notify_some(1, Some(&self.outbox), random);
                    }
                    Some(_) if random.random_ratio(1, 4) => self.withdraw(slot),
                    Some(_) => {
                        // A ring that was missed would leave the outbox full until the next one.
                        if !self.run(random) && self.pending.iter().flatten().count() > SLOTS / 2 {
                            thread::park_timeout(Duration::from_micros(50));
                        }
                    }
                }
            }
            (0..SLOTS).for_each(|slot| self.withdraw(slot));
            self.outbox.close();
            self.ends = true;
            self.run(random);
            assert!(self.pending.iter().all(Option::is_none), "a promise is lost");
        }

        fn withdraw(&mut self, slot: usize) {
            let withdrawn = |wait: &mut Pending| {
                self.scene.guard.store.withdraw_agent(wait.ticket, &self.outbox, slot as u32) == Withdrawal::Done
            };
            self.pending[slot].take_if(withdrawn);
        }

        fn await_claims(&mut self, random: &mut Random) {
            while let Some(wait) = self.pending.iter().flatten().find(|wait| wait.request.is_some()) {
                wait.assert_does_not_hang();
                if !self.run(random) {
                    thread::park_timeout(Duration::from_millis(30));
                }
            }
        }
    }

    fn storm(requests: &[Request], value: i32) {
        let scene = &Scene {
            guard: Guard::of(WaiterListStore::new(2, now), value),
            requests: requests.to_vec(),
            storm: Storm::new(Duration::from_millis(if requests.is_empty() { 1500 } else { 700 })),
            counts: Counts::default(),
        };
        let runs: &[fn(&Scene, &mut Random)] = &[Scene::block, Scene::wait_async, Scene::notify];
        let runs = &runs[..if requests.is_empty() { 3 } else { 2 }];
        let (Guard { store, .. }, counts) = (&scene.guard, &scene.counts);
        scene.storm.run(store, 2 * runs.len() as u64, |number, random| {
            runs[number as usize % runs.len()](scene, random);
        });
        let count = |counter: &AtomicU64| counter.load(Relaxed);
        assert_eq!(count(&counts.count), count(&counts.alone));
        assert_eq!(count(&counts.woken), count(&counts.notified));
        assert!(!requests.is_empty() || count(&counts.woken) > 1000);
        assert_eq!(scene.guard.value(), value, "the word is free");
        for at in 0..LOCATIONS {
            assert_eq!((store.count(location(at)), store.counter(location(at)).load(Relaxed)), (0, 0));
        }
        let unseen = u64::from(any_abandoned_near(store, HERE));
        assert_eq!(count(&counts.seen) + unseen, count(&counts.deaths));
        assert_eq!(store.earliest_deadline(), NEVER);
    }

    #[test]
    fn as_many_are_woken_as_notifications_say() {
        storm(&[], 0);
    }

    #[test]
    fn lock() {
        storm(&[Request::Lock], UNLOCKED);
    }

    #[test]
    fn read_write_lock() {
        storm(&[Request::Shared, Request::Shared, Request::Exclusive], UNLOCKED);
    }

    #[test]
    fn semaphore() {
        storm(&[Request::Permits(1), Request::Signals(2), Request::Permits(3), Request::Signals(4)], PERMITS);
    }

    #[test]
    fn limit() {
        storm(&[1, 2, 3, 4].map(|amount| Request::Limited { amount, limit: PERMITS.unsigned_abs() }), 0);
    }
}
