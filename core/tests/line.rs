//! The lines of locks against their promises, and under load: through its public interface, without Node. The words are
//! taken and given back as `lib/locks/hold/` does it.

#![cfg(not(feature = "model"))]

mod fixtures;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use fixtures::clock::now;
use fixtures::{Guard, HERE, NEVER, agent, clock, mail, permits, promise, results, settled, this_thread, wait};
use proptest::prelude::*;
use waitasync_core::clock::Timestamp;
use waitasync_core::lock::fairness::FAIRNESS;
use waitasync_core::lock::request::{LOCKED, Request, UNLOCKED, WRITING, Word};
use waitasync_core::lock::{Claimed, Mail, Outbox, Waiter, WaiterListStore};
use waitasync_core::queue::parker::{BlockedThread, Woken};
use waitasync_core::queue::result::WaitResult;
use waitasync_core::queue::store::Withdrawal;
use waitasync_core::queue::waiter_list::Ticket;

/// Lets this much time pass.
fn pass(duration: Duration) {
    clock::set(now().after(duration));
}

/// What a blocked thread finds that wakes up for a moment.
fn look(guard: &Guard, thread: &Arc<BlockedThread>, ticket: Ticket) -> Woken {
    guard.store.park(ticket, thread, NEVER, Timestamp::from_nanos(0))
}

mod property {
    use super::*;

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Kind {
        Lock,
        ReadWriteLock,
        Semaphore,
        /// A semaphore with a limit; or with two, by the view.
        Limit,
    }

    #[derive(Debug, Clone)]
    enum Operation {
        /// A claim that waits if it has to.
        Claim(u32, Arrival),
        /// A claim that does not wait.
        Take(u32),
        /// A holder gives back what it holds.
        Give(prop::sample::Index),
        /// A holder that locks by means of `Atomics.compareExchange` and `notify` frees the lock.
        GiveBare,
        /// A holder dies.
        Die(prop::sample::Index),
        /// Permits are added.
        Add(u32),
        /// A awake claim tries.
        Try(prop::sample::Index),
        /// A claim that is not awake retries: a late call of the claim that had its slot before.
        TryUnasked(prop::sample::Index),
        Withdraw(prop::sample::Index),
        /// A waiter without a claim.
        Wait(Arrival),
        Notify(usize),
        Tick(Duration),
        Expire,
    }

    /// How one waits: as a blocked thread or a promise.
    #[derive(Debug, Clone, Copy)]
    struct Arrival {
        blocks: bool,
        timeout: Option<Duration>,
    }

    fn operation() -> impl Strategy<Value = Operation> {
        let index = any::<prop::sample::Index>;
        let micros = |range: Range<u64>| range.prop_map(Duration::from_micros);
        let arrival = || {
            let timeout = prop::option::weighted(0.3, micros(1..3000));
            (any::<bool>(), timeout).prop_map(|(blocks, timeout)| Arrival { blocks, timeout })
        };
        prop_oneof![
            6 => (0..6_u32, arrival()).prop_map(|(what, arrival)| Operation::Claim(what, arrival)),
            2 => (0..6_u32).prop_map(Operation::Take),
            5 => index().prop_map(Operation::Give),
            1 => index().prop_map(Operation::Die),
            2 => (1..4_u32).prop_map(Operation::Add),
            4 => index().prop_map(Operation::Try),
            1 => index().prop_map(Operation::TryUnasked),
            2 => index().prop_map(Operation::Withdraw),
            2 => arrival().prop_map(Operation::Wait),
            2 => (1..3_usize).prop_map(Operation::Notify),
            1 => Just(Operation::GiveBare),
            3 => micros(1..800).prop_map(Operation::Tick),
            2 => Just(Operation::Expire),
        ]
    }

    /// One in the list.
    struct Entrant {
        /// `None`: a plain waiter.
        request: Option<Request>,
        party: Waiter,
        ticket: Ticket,
        /// Unlike its ticket, never given again.
        number: u32,
        deadline: Timestamp,
        awake: bool,
        /// Whether it has been awake and tried in vain.
        tried: bool,
    }

    impl Entrant {
        fn blocks(&self) -> bool {
            matches!(self.party, Waiter::Thread(_))
        }

        fn is_live(&self) -> bool {
            self.deadline > now()
        }

        /// Whether its claim, the first, may be handed the lock: its thread blocks, or ran when the claim tried.
        fn is_ready(&self) -> bool {
            self.blocks() || self.tried
        }
    }

    /// A word, its line, and the state of all waiters and holders.
    struct Line {
        kind: Kind,
        guard: Guard,
        outbox: Arc<Outbox>,
        arrivals: u32,
        /// In the order of arrival.
        entrants: Vec<Entrant>,
        holders: Vec<Request>,
        /// Permits that are neither held nor used up.
        permits: i32,
        /// An exclusive holder has died, and no holder has been told yet.
        left_behind: bool,
        /// Since when the first claim of a lock has been overtaken.
        overtaken: Option<(u32, Timestamp)>,
    }

    impl Line {
        fn new(kind: Kind) -> Self {
            Self {
                kind,
                guard: Guard::new(0),
                outbox: agent(),
                arrivals: 0,
                entrants: Vec::new(),
                holders: Vec::new(),
                permits: 0,
                left_behind: false,
                overtaken: None,
            }
        }

        fn request(&self, what: u32) -> Request {
            match (self.kind, what) {
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
                Request::Lease(_) | Request::Debt => unreachable!("no claim requests them"),
            }
        }

        fn first_claim(&self) -> Option<usize> {
            self.entrants.iter().position(|entrant| entrant.request.is_some())
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
            let told = self.left_behind && (alone || request == Request::Shared);
            // Readers cannot repair what was left half done.
            self.left_behind &= !alone;
            assert_eq!(result, if told { WaitResult::AcquiredFromDead } else { WaitResult::Acquired });
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

        /// Takes note of all wake-ups since the last time.
        fn hear(&mut self) {
            let mail = mail(&self.outbox);
            // That a plain waiter is due changes nothing before its agent decides, which it never does here.
            let ended = results(&mail).into_iter().filter(|&(_, result)| result != WaitResult::Due);
            let ended: BTreeMap<_, _> = ended.collect();
            let mut settled = Vec::new();
            for (place, entrant) in self.entrants.iter_mut().enumerate() {
                let (awake, result) = match &entrant.party {
                    Waiter::Agent(_, slot) => (mail.retries.contains(slot), ended.get(slot).copied()),
                    Waiter::Thread(thread) => match look(&self.guard, thread, entrant.ticket) {
                        Woken::Retry => (true, None),
                        Woken::Settled(result) => (false, Some(result)),
                        Woken::TimeOver | Woken::Interrupted => (false, None),
                    },
                };
                assert!(!awake || entrant.request.is_some(), "a waiter without a claim does not retry");
                entrant.awake |= awake;
                settled.extend(result.map(|result| (place, result)));
            }
            let acquired = settled.iter().filter(|(_, result)| result.is_acquired()).count();
            let agents = |&&(place, result): &&(usize, WaitResult)| {
                result.is_acquired() && matches!(self.entrants[place].party, Waiter::Agent(..))
            };
            assert_eq!(mail.grants.len(), settled.iter().filter(agents).count(), "what a dying agent has to pass on");
            for (gone, (place, result)) in settled.into_iter().enumerate() {
                let first =
                    self.first_claim().map(|first| (self.entrants[first].number, self.entrants[first].is_ready()));
                let entrant = self.entrants.remove(place - gone);
                match (entrant.request, result) {
                    (_, WaitResult::TimedOut) => assert!(entrant.deadline <= now(), "timed out early"),
                    (None, WaitResult::Ok) => {}
                    (Some(request), result) if result.is_acquired() => {
                        let is_first = first.is_some_and(|(number, _)| number == entrant.number);
                        let is_behind_promise = self.kind == Kind::Lock
                            && entrant.blocks()
                            && first.is_some_and(|(_, is_ready)| !is_ready)
                            && !self.entrants[..place - gone].iter().any(|one| one.request.is_some() && one.blocks());
                        assert!(is_first || is_behind_promise, "granted to another claim than the first");
                        assert!(entrant.deadline > now(), "granted to one whose time is over");
                        self.acquired(request, result);
                    }
                    (request, result) => panic!("{request:?} ended as {result:?}"),
                }
            }
            assert!(acquired <= 1 || self.kind != Kind::Lock);
        }

        fn line_up(&mut self, request: Option<Request>, Arrival { blocks, timeout }: Arrival) {
            self.arrivals += 1;
            let number = self.arrivals;
            let party = if blocks { Waiter::Thread(this_thread()) } else { promise(&self.outbox, number) };
            let deadline = timeout.map_or(NEVER, |timeout| now().after(timeout));
            let store = &self.guard.store;
            let claimed = match request {
                Some(request) => store.claim(HERE, party.clone(), request, deadline, &self.guard.word),
                None => Claimed::Pending(wait(store, party.clone(), deadline)),
            };
            // Those before it may have been given something on the way.
            self.hear();
            match (claimed, request) {
                (Claimed::Now(result), Some(request)) => {
                    assert!(self.kind == Kind::Lock || self.first_claim().is_none(), "it has overtaken a claim");
                    self.acquired(request, result);
                }
                (Claimed::Pending(ticket), _) => {
                    let entrant = Entrant { request, party, ticket, number, deadline, awake: false, tried: false };
                    self.entrants.push(entrant);
                }
                (Claimed::Now(_), None) => unreachable!(),
            }
        }

        fn retry(&mut self, place: usize) {
            let entrant = &mut self.entrants[place];
            let Some(request) = entrant.request else { return };
            let was_nudged = std::mem::take(&mut entrant.awake);
            if let Some(result) = self.guard.store.retry(entrant.ticket, &entrant.party, &self.guard.word) {
                assert!(was_nudged, "it has overtaken the first");
                self.entrants.remove(place);
                self.acquired(request, result);
            } else if was_nudged {
                self.entrants[place].tried = true;
            }
        }

        /// The numbers of the waiters that a notification wakes if none is overdue: those without a claim, and one
        /// claim at most.
        fn notified(&self, count: usize) -> Vec<u32> {
            let first_claim = self.first_claim();
            let wakes = |&(place, entrant): &(usize, &Entrant)| entrant.request.is_none() || Some(place) == first_claim;
            self.entrants.iter().enumerate().filter(wakes).map(|(_, entrant)| entrant.number).take(count).collect()
        }

        /// The first claim that is not due, and whether plain waiters stand before it.
        fn first_live_claim(&self) -> Option<(&Entrant, bool)> {
            let mut behind_waiters = false;
            for entrant in self.entrants.iter().filter(|entrant| entrant.is_live()) {
                if entrant.request.is_some() {
                    return Some((entrant, behind_waiters));
                }
                behind_waiters = true;
            }
            None
        }

        /// Of the blocked threads behind the first live claim the first one with a claim, and how many before it have
        /// none.
        fn first_live_thread(&self) -> (Option<&Entrant>, usize) {
            let threads = self.entrants.iter().filter(|entrant| entrant.is_live());
            let mut behind =
                threads.skip_while(|entrant| entrant.request.is_none()).skip(1).filter(|entrant| entrant.blocks());
            let mut plain = 0;
            let claim = behind.find(|entrant| {
                plain += usize::from(entrant.request.is_none());
                entrant.request.is_some()
            });
            (claim, plain)
        }

        fn plain_waiters(&self) -> usize {
            self.entrants.iter().filter(|entrant| entrant.request.is_none()).count()
        }

        /// The holder of a lock frees it, or hands it over.
        fn release_lock(&mut self) {
            let plain_waiters = self.plain_waiters();
            let (first, behind_waiters) = self.first_live_claim().unzip();
            let first_is_ready = first.is_none_or(Entrant::is_ready);
            let (thread, plain_threads) = self.first_live_thread();
            let next = if first_is_ready { first } else { thread };
            let behind_waiters = behind_waiters == Some(true) || (!first_is_ready && plain_threads > 0);
            let next = next.map(|next| (next.number, next.tried));
            let nobody_claims = first.is_none();
            let mut hands_over = false;
            if let Some((next, tried)) = next {
                let is_late = !tried
                    && match self.overtaken {
                        Some((number, since)) if next == number => now().duration_since(since) >= FAIRNESS,
                        _ => {
                            self.overtaken = Some((next, now()));
                            false
                        }
                    };
                hands_over = (tried || is_late) && !behind_waiters;
            }
            self.guard.give(Request::Lock);
            let value = if hands_over { LOCKED } else { UNLOCKED };
            assert_eq!(self.guard.value(), value, "handed over if it is somebody's turn");
            self.hear();
            if nobody_claims && plain_waiters > 0 {
                assert!(self.plain_waiters() < plain_waiters, "one of those who only wait gets a try");
            }
            if !first_is_ready && !hands_over {
                assert_eq!(self.first_live_thread().1, 0, "those that block and only wait behind a promise get a try");
            }
        }

        fn run(&mut self, operation: &Operation) {
            match *operation {
                Operation::Claim(what, arrival) => self.line_up(Some(self.request(what)), arrival),
                Operation::Wait(arrival) => self.line_up(None, arrival),
                Operation::Take(what) => {
                    let request = self.request(what);
                    let may = self.grants(request) && (self.kind == Kind::Lock || self.first_claim().is_none());
                    let taken = self.guard.take(request);
                    assert_eq!(taken.is_some(), may);
                    if let Some(result) = taken {
                        self.acquired(request, result);
                    }
                }
                Operation::Give(ref index) if !self.holders.is_empty() => {
                    self.give(index.index(self.holders.len()));
                }
                // Not if the first waiter has no claim: that one is woken, and has to notify the next.
                Operation::GiveBare
                    if !self.holders.is_empty()
                        && self.kind == Kind::Lock
                        && self.first_live_claim().is_none_or(|(_, behind_waiters)| !behind_waiters) =>
                {
                    self.holders.clear();
                    self.guard.word.store(UNLOCKED, Ordering::SeqCst);
                    self.guard.store.notify(HERE, 1, None);
                }
                Operation::Die(ref index) if !self.holders.is_empty() => {
                    let request = self.remove_holder(index.index(self.holders.len()));
                    self.left_behind |= matches!(request, Request::Lock | Request::Exclusive);
                    let hands_over =
                        request == Request::Lock && self.first_live_claim().is_some_and(|(first, _)| first.is_ready());
                    self.guard.store.abandon(HERE, request, &self.guard.word);
                    let is_locked = self.kind == Kind::Lock && self.guard.value() == LOCKED;
                    assert_eq!(hands_over, is_locked, "handed over to the first");
                }
                Operation::Add(amount) if self.kind == Kind::Semaphore => {
                    self.permits += i32::try_from(amount).unwrap();
                    self.guard.add_permits(amount);
                }
                Operation::Try(ref index) => {
                    let awake: Vec<_> = (0..self.entrants.len()).filter(|&place| self.entrants[place].awake).collect();
                    if !awake.is_empty() {
                        self.retry(*index.get(&awake));
                    }
                }
                Operation::TryUnasked(ref index) if !self.entrants.is_empty() => {
                    let place = index.index(self.entrants.len());
                    if !self.entrants[place].awake {
                        self.retry(place);
                    }
                }
                Operation::Withdraw(ref index) if !self.entrants.is_empty() => {
                    self.withdraw(index.index(self.entrants.len()));
                }
                Operation::Notify(count) => {
                    let expected = self.notified(count);
                    let woken = self.guard.store.notify(HERE, count, None);
                    assert!(woken <= count);
                    if self.entrants.iter().all(Entrant::is_live) {
                        assert_eq!(woken, expected.len());
                        self.hear();
                        let is_left = |number: &u32| {
                            self.entrants.iter().any(|entrant| entrant.number == *number && !entrant.awake)
                        };
                        assert!(!expected.iter().any(is_left), "not the first ones were woken");
                    }
                }
                Operation::Tick(duration) => pass(duration),
                Operation::Expire => {
                    self.guard.store.expire();
                    self.hear();
                    let is_promise = |entrant: &&Entrant| entrant.request.is_some() && !entrant.blocks();
                    assert!(self.entrants.iter().filter(is_promise).all(Entrant::is_live), "a claim was due");
                }
                _ => {}
            }
            self.hear();
        }

        fn withdraw(&mut self, place: usize) {
            let entrant = self.entrants.remove(place);
            match &entrant.party {
                Waiter::Agent(outbox, slot) => {
                    assert_eq!(self.guard.store.withdraw_agent(entrant.ticket, outbox, *slot), Withdrawal::Done);
                }
                Waiter::Thread(thread) => {
                    let result = self.guard.store.withdraw_thread(entrant.ticket, thread);
                    assert_eq!(result, WaitResult::TimedOut);
                }
            }
        }

        /// All waiters that are overdue give up.
        fn time_out(&mut self) {
            while let Some(place) = self.entrants.iter().position(|entrant| !entrant.is_live()) {
                self.withdraw(place);
                self.hear();
            }
        }

        fn check(&self) {
            assert_eq!(self.guard.value(), self.value());
            assert!(
                self.kind == Kind::Semaphore || self.holders.len() <= 1 || !self.holders.contains(&Request::Exclusive)
            );
            assert_eq!(self.guard.store.count(HERE) as usize, self.entrants.len());
            let counter = self.guard.store.counter(HERE).load(Ordering::Relaxed);
            assert_eq!(usize::try_from(counter), Ok(self.entrants.len()));
            assert_eq!(self.guard.store.any_abandoned_near(HERE), self.left_behind);
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
                assert!(
                    self.entrants.iter().filter(|entrant| entrant.awake && entrant.blocks() == blocks).count() <= 1
                );
            }
        }

        /// All waiters get what they wait for, one after the other.
        fn drain(&mut self) {
            let add = |line: &mut Self| {
                if line.kind == Kind::Semaphore {
                    line.run(&Operation::Add(8));
                }
            };
            add(self);
            self.time_out();
            for _ in 0..3 * (self.entrants.len() + self.holders.len()) {
                while let Some(place) = self.entrants.iter().position(|entrant| entrant.awake) {
                    self.retry(place);
                    self.hear();
                    self.check();
                }
                match self.holders.len().checked_sub(1) {
                    Some(last) => self.give(last),
                    None if self.first_claim().is_none() => break,
                    None => add(self),
                }
                self.hear();
                self.check();
            }
            assert!(self.first_claim().is_none(), "one is left in the line");
        }
    }

    fn behaves(kind: Kind, operations: Vec<Operation>) {
        let mut line = Line::new(kind);
        for operation in operations {
            line.run(&operation);
            line.check();
        }
        line.drain();
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn lock(operations in prop::collection::vec(operation(), 0..120)) {
            behaves(Kind::Lock, operations);
        }

        #[test]
        fn read_write_lock(operations in prop::collection::vec(operation(), 0..120)) {
            behaves(Kind::ReadWriteLock, operations);
        }

        #[test]
        fn semaphore(operations in prop::collection::vec(operation(), 0..120)) {
            behaves(Kind::Semaphore, operations);
        }

        #[test]
        fn limit(operations in prop::collection::vec(operation(), 0..120)) {
            behaves(Kind::Limit, operations);
        }
    }
}

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
                assert_eq!(request.take(&guard.word), grants, "{request:?} of {value}");
                let after = guard.value();
                assert_eq!(after, if grants { before + amount } else { value });
                guard.store.release(HERE, request, &guard.word);
                let left = guard.value();
                assert_eq!(left, (after.max(0) - amount).max(0), "{request:?} given back to {after}");
            }
        }
    }

    #[test]
    fn each_view_is_judged_by_its_own_limit_in_the_order_of_the_line() {
        let guard = Guard::new(3);
        let [low, high] = [2, 5].map(|limit| Request::Limited { amount: 1, limit });
        let blocked = [low, high].map(|request| guard.block(request));
        let result = |index: usize| look(&guard, &blocked[index].0, blocked[index].1);
        guard.give(high);
        // Two are taken: enough room for the second, which waits behind the first.
        assert!(matches!((result(0), result(1)), (Woken::TimeOver, Woken::TimeOver)));
        assert_eq!(guard.take(high), None, "no newcomer overtakes");
        guard.give(high);
        let acquired = Woken::Settled(WaitResult::Acquired);
        assert_eq!([result(0), result(1)], [acquired; 2]);
        assert_eq!(guard.value(), 3);
    }
}

/// A panic inside a critical section, here of the word: all decisions made before it hold.
mod panic {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::AtomicBool;
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

    /// An agent, and whether it has been rung.
    fn agent_with_bell() -> (Arc<Outbox>, Arc<AtomicBool>) {
        let rung = Arc::new(AtomicBool::new(false));
        let bell = Arc::clone(&rung);
        (Arc::new(Outbox::new(Box::new(move || bell.store(true, Ordering::Relaxed)))), rung)
    }

    #[test]
    fn a_waiter_that_has_been_granted_something_is_woken() {
        let guard = Guard::new(0);
        let (outbox, rung) = agent_with_bell();
        let (after, rung_after) = agent_with_bell();
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
        assert!(rung.load(Ordering::Relaxed));
        assert_eq!(settled(&outbox), [(7, WaitResult::Acquired)]);
        // The lists are as they were between two claims, and the earliest deadline is published.
        assert_eq!(guard.store.earliest_deadline(), Timestamp::NEVER);
        assert_eq!(guard.store.count(HERE), 1);
        assert_eq!(guard.store.counter(HERE).load(Ordering::Relaxed), 1);
        assert!(!rung_after.load(Ordering::Relaxed));
        // The next operation on the line grants the third claim what is left.
        guard.tell_line();
        assert!(rung_after.load(Ordering::Relaxed));
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
        assert!(rung.load(Ordering::Relaxed) && !next_rung.load(Ordering::Relaxed));
        breaks(&guard.word, 0, |word| {
            guard.store.retry(*ticket, &promise(outbox, 0), word);
        });
        assert_eq!(guard.store.withdraw_agent(*ticket, outbox, 0), Withdrawal::Done);
        assert!(next_rung.load(Ordering::Relaxed));
        let taken = guard.store.retry(*next_ticket, &promise(next, 0), &guard.word);
        assert_eq!(taken, Some(WaitResult::Acquired));
    }
}

mod stress {
    use std::sync::atomic::AtomicU64;
    use std::thread;

    use waitasync_core::clock::now;

    use super::fixtures::random::Random;
    use super::fixtures::storm::Storm;
    use super::*;

    /// All the permits of the semaphore.
    const PERMITS: i32 = 4;
    const HANGS: Duration = Duration::from_secs(10);

    /// The state that all threads share.
    struct Scene {
        guard: Guard,
        requests: Vec<Request>,
        storm: Storm,
        counts: Counts,
    }

    #[derive(Default)]
    struct Counts {
        writers: AtomicI32,
        readers: AtomicI32,
        permits: AtomicI32,
        /// Counted up by exclusive holders, without an atomic increment.
        count: AtomicU64,
        /// Deaths to be told of, and deaths that were told of.
        deaths: AtomicU64,
        told: AtomicU64,
    }

    impl Scene {
        /// The calling thread has been granted `request`: does what that allows, and gives it back or dies.
        fn hold(&self, request: Request, result: WaitResult, random: &mut Random) -> u64 {
            assert!(result.is_acquired(), "{result:?}");
            self.hear(request, result);
            let alone = matches!(request, Request::Lock | Request::Exclusive);
            let (readers, permits) = (i32::from(request == Request::Shared), permits(request));
            if alone {
                assert_eq!(self.counts.writers.swap(1, Ordering::Relaxed), 0, "two at once");
                self.counts.count.store(self.counts.count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            }
            self.counts.readers.fetch_add(readers, Ordering::Relaxed);
            assert!(self.counts.permits.fetch_add(permits, Ordering::Relaxed) + permits <= PERMITS);
            if random.one_in(8) {
                thread::yield_now();
            }
            if alone {
                assert_eq!(self.counts.readers.load(Ordering::Relaxed), 0, "a reader beside a writer");
                self.counts.writers.store(0, Ordering::Relaxed);
            }
            self.counts.readers.fetch_sub(readers, Ordering::Relaxed);
            self.counts.permits.fetch_sub(permits, Ordering::Relaxed);
            if random.one_in(16) {
                self.die_holding(request);
            } else {
                self.guard.give(request);
            }
            u64::from(alone)
        }

        /// Counts the deaths that exclusive holders are told of.
        fn hear(&self, request: Request, result: WaitResult) {
            if result == WaitResult::AcquiredFromDead && request != Request::Shared {
                self.counts.told.fetch_add(1, Ordering::Relaxed);
            }
        }

        fn die_holding(&self, request: Request) {
            if matches!(request, Request::Lock | Request::Exclusive) {
                self.counts.deaths.fetch_add(1, Ordering::Relaxed);
            }
            self.guard.store.abandon(HERE, request, &self.guard.word);
        }

        /// Claims by blocking, again and again. How often it held the word exclusively.
        fn block(&self, random: &mut Random) -> u64 {
            let thread = Arc::new(BlockedThread::current());
            let party = Waiter::Thread(Arc::clone(&thread));
            let Guard { store, word } = &self.guard;
            let mut alone = 0;
            while self.storm.goes_on() {
                let request = self.request(random);
                if let Some(result) = self.guard.take(request) {
                    alone += self.hold(request, result, random);
                    continue;
                }
                let (deadline, began) = (random.deadline(), now());
                let result = match store.claim(HERE, party.clone(), request, deadline, word) {
                    Claimed::Now(result) => result,
                    Claimed::Pending(ticket) => loop {
                        let slice = Timestamp::from_nanos(now().as_nanos() + 30_000_000);
                        match store.park(ticket, &thread, deadline, slice) {
                            Woken::Settled(result) => break result,
                            Woken::Retry => {
                                if let Some(result) = store.retry(ticket, &party, word) {
                                    break result;
                                }
                            }
                            Woken::TimeOver | Woken::Interrupted => {
                                assert!(now().duration_since(began) < HANGS, "it hangs");
                            }
                        }
                    },
                };
                if result != WaitResult::TimedOut {
                    alone += self.hold(request, result, random);
                }
            }
            alone
        }

        /// Claims by promises, one after the other, some of which it takes back; and its agent dies again and again.
        /// How often it held the word exclusively.
        fn wait_async(&self, random: &mut Random) -> u64 {
            let Guard { store, word } = &self.guard;
            let mut alone = 0;
            while self.storm.goes_on() {
                let this = thread::current();
                let outbox = Arc::new(Outbox::new(Box::new(move || this.unpark())));
                let mut mail = Mail::default();
                for slot in 0..20 {
                    let request = self.request(random);
                    let deadline = random.deadline();
                    let party = Waiter::Agent(Arc::clone(&outbox), slot);
                    let ticket = match store.claim(HERE, party.clone(), request, deadline, word) {
                        Claimed::Now(result) => {
                            alone += self.hold(request, result, random);
                            continue;
                        }
                        Claimed::Pending(ticket) => ticket,
                    };
                    self.storm.appended(deadline);
                    let mut patience = if random.one_in(3) { random.below(10) } else { usize::MAX };
                    let (dies, began) = (random.one_in(10), now());
                    let result = loop {
                        mail.clear();
                        outbox.take(&mut mail);
                        let awake = mail.retries.contains(&slot);
                        let tried = if awake { store.retry(ticket, &party, word) } else { None };
                        let settled = mail.settlements.iter().find(|settlement| settlement.slot == slot);
                        if let Some(result) = tried.or(settled.map(|settlement| settlement.result)) {
                            break Some(result);
                        }
                        if patience == 0 && store.withdraw_agent(ticket, &outbox, slot) == Withdrawal::Done {
                            break None;
                        }
                        patience = patience.saturating_sub(1);
                        thread::park_timeout(Duration::from_micros(if patience < 10 { 20 } else { 30_000 }));
                        assert!(now().duration_since(began) < HANGS, "it hangs");
                    };
                    match result.filter(|&result| result != WaitResult::TimedOut) {
                        Some(result) if dies => {
                            // It never knew.
                            assert!(result.is_acquired());
                            self.hear(request, result);
                            self.die_holding(request);
                        }
                        Some(result) => alone += self.hold(request, result, random),
                        None => {}
                    }
                }
                outbox.close();
            }
            alone
        }

        fn request(&self, random: &mut Random) -> Request {
            self.requests[random.below(self.requests.len())]
        }
    }

    fn storm(requests: &[Request], value: i32) {
        let scene = &Scene {
            guard: Guard { store: WaiterListStore::new(1, now), ..Guard::new(value) },
            requests: requests.to_vec(),
            storm: Storm::new(Duration::from_millis(700)),
            counts: Counts::default(),
        };
        let alone: Vec<_> = scene.storm.run(&scene.guard.store, 4, |number, random| {
            if number % 2 == 0 { scene.block(random) } else { scene.wait_async(random) }
        });
        assert_eq!(scene.counts.count.load(Ordering::Relaxed), alone.iter().sum::<u64>());
        let Guard { store, word } = &scene.guard;
        assert_eq!(word.load(Ordering::SeqCst), value, "the word is free");
        assert_eq!(store.count(HERE), 0);
        assert_eq!(store.counter(HERE).load(Ordering::Relaxed), 0);
        let untold = u64::from(store.any_abandoned_near(HERE));
        assert_eq!(scene.counts.told.load(Ordering::Relaxed) + untold, scene.counts.deaths.load(Ordering::Relaxed));
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

/// A word that became free without its line being told.
mod look {
    use super::*;

    /// A word in one of several buckets, and an agent.
    fn line(value: i32) -> (Guard, Arc<Outbox>) {
        (Guard { store: WaiterListStore::new(4, now), ..Guard::new(value) }, agent())
    }

    #[test]
    fn the_first_claim_of_a_lock_is_woken_once_the_word_is_free() {
        let (guard, outbox) = line(LOCKED);
        assert_eq!(guard.store.check_words(|_| &guard.word), None, "there are no claims");
        let ticket = guard.promise(&outbox, 1, Request::Lock);
        guard.promise(&outbox, 2, Request::Lock);
        assert_eq!(guard.store.check_words(|_| &guard.word), Some(false));
        assert_eq!(mail(&outbox).retries, [], "it is locked");
        guard.word.store(UNLOCKED, Ordering::SeqCst);
        assert_eq!(guard.store.check_words(|_| &guard.word), Some(true));
        assert_eq!(guard.store.check_words(|_| &guard.word), Some(true));
        assert_eq!(mail(&outbox).retries, [1], "once");
        assert_eq!(guard.store.retry(ticket, &promise(&outbox, 1), &guard.word), Some(WaitResult::Acquired));
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
        assert_eq!(guard.store.check_words(|_| &guard.word), Some(false));
        since(7, "the service has found it held");
        clock::set(at(8));
        guard.word.store(UNLOCKED, Ordering::SeqCst);
        assert!(guard.store.try_take(HERE, Request::Lock, &guard.word).is_some());
        since(8, "a newcomer has taken it by a native call");
        assert_eq!(guard.store.withdraw_agent(tickets[2], &outbox, 3), Withdrawal::Done);
        since(8, "a claim has given up");
        assert_eq!(guard.store.withdraw_agent(tickets[3], &outbox, 4), Withdrawal::Done);
        unknown();
    }

    #[test]
    fn a_plain_waiter_before_a_claim_is_not_notified_as_long_as_the_word_is_held() {
        let (guard, outbox) = line(LOCKED);
        wait(&guard.store, promise(&outbox, 7), NEVER);
        guard.promise(&outbox, 1, Request::Lock);
        guard.store.check_words(|_| &guard.word);
        assert_eq!(mail(&outbox).settlements, []);
        guard.word.store(UNLOCKED, Ordering::SeqCst);
        guard.store.check_words(|_| &guard.word);
        let mail = mail(&outbox);
        assert_eq!(results(&mail), [(7, WaitResult::Ok)]);
        assert_eq!(mail.retries, [1]);
    }

    #[test]
    fn the_first_claims_of_a_strict_line_are_granted_what_the_word_is_enough_for() {
        let (guard, outbox) = line(WRITING);
        for (slot, request) in (0..).zip([Request::Shared, Request::Shared, Request::Exclusive, Request::Shared]) {
            guard.promise(&outbox, slot, request);
        }
        guard.word.store(UNLOCKED, Ordering::SeqCst);
        guard.store.check_words(|_| &guard.word);
        assert_eq!(settled(&outbox), [0, 1].map(|slot| (slot, WaitResult::Acquired)));
        assert_eq!(guard.value(), 2);
        guard.word.store(UNLOCKED, Ordering::SeqCst);
        guard.store.check_words(|_| &guard.word);
        assert_eq!(settled(&outbox), [(2, WaitResult::Acquired)]);
        assert_eq!(guard.value(), WRITING);
    }

    #[test]
    fn a_thread_that_is_woken_behind_a_promise_does_not_overtake_it_in_a_strict_line() {
        let (guard, outbox) = line(1);
        let [quits, _] = [9, 5].map(|amount| guard.promise(&outbox, amount, Request::Signals(amount)));
        let (thread, ticket) = guard.block(Request::Signals(1));
        assert_eq!(guard.store.withdraw_agent(quits, &outbox, 9), Withdrawal::Done);
        assert_eq!(look(&guard, &thread, ticket), Woken::Retry);
        assert_eq!(guard.store.retry(ticket, &Waiter::Thread(thread), &guard.word), None);
        assert_eq!(guard.value(), 1);
    }

    #[test]
    fn a_grant_that_was_revoked_is_told_to_nobody() {
        let (guard, outbox) = line(0);
        guard.promise(&outbox, 5, Request::Signals(1));
        guard.add_permits(1);
        let (result, grant) = outbox.revoke(5).unwrap();
        assert_eq!(result, WaitResult::Acquired);
        assert!(grant.is_some());
        assert!(outbox.revoke(5).is_none());
        let mail = mail(&outbox);
        assert!(mail.settlements.iter().all(|settlement| settlement.result == WaitResult::Due));
        assert!(mail.grants.iter().all(Option::is_none));
    }

    /// The second one has taken the lock without a call, and dies before it asks whether the first one died.
    #[test]
    fn of_two_deaths_in_a_row_one_holder_is_told() {
        let (guard, _) = line(LOCKED);
        guard.store.abandon(HERE, Request::Lock, &guard.word);
        assert!(Request::Lock.take(&guard.word));
        let (thread, _) = guard.block(Request::Lock);
        guard.store.abandon(HERE, Request::Lock, &guard.word);
        assert_eq!(thread.result(), Some(WaitResult::AcquiredFromDead));
        guard.give(Request::Lock);
        assert_eq!(guard.take(Request::Lock), Some(WaitResult::Acquired));
    }

    #[test]
    fn a_grant_that_was_not_used_tells_the_next_holder_of_the_death() {
        let (guard, _) = line(LOCKED);
        let (thread, _) = guard.block(Request::Lock);
        guard.store.abandon(HERE, Request::Lock, &guard.word);
        assert_eq!(thread.result(), Some(WaitResult::AcquiredFromDead));
        for told in [WaitResult::AcquiredFromDead, WaitResult::Acquired] {
            guard.store.return_unused(HERE, Request::Lock, told, &guard.word);
            assert_eq!(guard.take(Request::Lock), Some(told));
        }
    }

    #[test]
    fn there_is_nothing_to_look_at_when_the_last_claim_has_left() {
        let (guard, outbox) = line(LOCKED);
        let tickets = [1, 2].map(|slot| guard.promise(&outbox, slot, Request::Lock));
        for (slot, ticket) in (1..).zip(tickets) {
            assert!(guard.store.check_words(|_| &guard.word).is_some());
            assert_eq!(guard.store.withdraw_agent(ticket, &outbox, slot), Withdrawal::Done);
        }
        assert_eq!(guard.store.check_words(|_| -> &AtomicI32 { panic!("no word to look at") }), None);
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
        let released = guard.store.release(HERE, Request::Lock, &guard.word);
        assert!(Request::Lock.take(&guard.word), "it was free");
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
        assert_eq!(guard.store.release(HERE, Request::Lock, &guard.word), Released::GoOn);
        assert_eq!(guard.value(), LOCKED, "it is handed over");
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
    use waitasync_core::lock::fairness::Released;

    use super::*;

    fn running_agent() -> Arc<Outbox> {
        Arc::new(Outbox::new(Box::new(|| panic!("the agent that runs is rung"))))
    }

    /// Whether the agent is to look into its outbox.
    fn release(guard: &Guard, outbox: &Arc<Outbox>, request: Request, hands_over: bool) -> bool {
        let (released, has_mail) = guard.store.release_unrung(HERE, request, &guard.word, outbox, hands_over);
        assert_eq!(released, Released::GoOn);
        has_mail
    }

    /// The slots that have been granted what they want, and those that are to retry.
    fn granted(outbox: &Outbox) -> (Vec<u32>, Vec<u32>) {
        let mail = mail(outbox);
        let slot = |(slot, result): (u32, WaitResult)| {
            assert!(result.is_acquired());
            slot
        };
        (results(&mail).into_iter().map(slot).collect(), mail.retries)
    }

    #[test]
    fn the_lock_goes_from_promise_to_promise() {
        let (guard, outbox) = (Guard::new(LOCKED), running_agent());
        for slot in 0..3 {
            guard.promise(&outbox, slot, Request::Lock);
        }
        for slot in 0..3 {
            assert!(release(&guard, &outbox, Request::Lock, true));
            assert!(outbox.has_only_grants());
            assert_eq!((guard.value(), granted(&outbox)), (LOCKED, (vec![slot], vec![])));
        }
        assert!(!release(&guard, &outbox, Request::Lock, true));
        assert_eq!(guard.value(), UNLOCKED);
    }

    #[test]
    fn without_a_hand_over_the_promise_is_woken_to_retry() {
        let (guard, outbox) = (Guard::new(LOCKED), running_agent());
        guard.promise(&outbox, 0, Request::Lock);
        assert!(release(&guard, &outbox, Request::Lock, false));
        assert!(!outbox.has_only_grants());
        assert_eq!((guard.value(), granted(&outbox)), (UNLOCKED, (vec![], vec![0])));
    }

    #[test]
    fn a_blocked_thread_before_the_promise_has_its_turn() {
        let (guard, outbox) = (Guard::new(LOCKED), running_agent());
        let (thread, _) = guard.block(Request::Lock);
        guard.promise(&outbox, 0, Request::Lock);
        assert!(!release(&guard, &outbox, Request::Lock, true));
        assert_eq!((guard.value(), thread.result()), (UNLOCKED, None));
        assert!(Request::Lock.take(&guard.word));
        pass(FAIRNESS);
        assert!(!release(&guard, &outbox, Request::Lock, true));
        assert_eq!((guard.value(), thread.result()), (LOCKED, Some(WaitResult::Acquired)), "it has been overtaken");
    }

    #[test]
    fn a_blocked_thread_behind_promises_waits_for_its_turn() {
        let (guard, outbox) = (Guard::new(LOCKED), running_agent());
        guard.promise(&outbox, 0, Request::Lock);
        let (thread, _) = guard.block(Request::Lock);
        guard.promise(&outbox, 1, Request::Lock);
        assert!(release(&guard, &outbox, Request::Lock, true));
        assert_eq!((granted(&outbox), thread.result()), ((vec![0], vec![]), None));
        assert!(!release(&guard, &outbox, Request::Lock, true), "the next in line is the thread");
        assert_eq!(guard.value(), UNLOCKED);
    }

    #[test]
    fn the_promise_of_another_agent_is_woken_and_not_handed_the_lock() {
        let (guard, outbox, other) = (Guard::new(LOCKED), agent(), agent());
        guard.promise(&other, 0, Request::Lock);
        guard.promise(&outbox, 0, Request::Lock);
        assert!(!release(&guard, &outbox, Request::Lock, true));
        assert_eq!((guard.value(), granted(&other)), (UNLOCKED, (vec![], vec![0])));
    }

    #[test]
    fn a_plain_waiter_before_the_promise_is_notified_and_the_word_is_free() {
        let (guard, outbox) = (Guard::new(LOCKED), running_agent());
        let plain = this_thread();
        wait(&guard.store, Waiter::Thread(Arc::clone(&plain)), NEVER);
        guard.promise(&outbox, 0, Request::Lock);
        assert!(release(&guard, &outbox, Request::Lock, true));
        assert_eq!((guard.value(), plain.result()), (UNLOCKED, Some(WaitResult::Ok)));
        assert_eq!(granted(&outbox), (vec![], vec![0]));
    }

    #[test]
    fn readers_are_granted_together_as_by_any_release() {
        let (guard, outbox) = (Guard::new(WRITING), running_agent());
        for slot in 0..2 {
            guard.promise(&outbox, slot, Request::Shared);
        }
        guard.promise(&outbox, 2, Request::Exclusive);
        assert!(release(&guard, &outbox, Request::Exclusive, true));
        assert_eq!(granted(&outbox), (vec![0, 1], vec![]));
        assert!(!release(&guard, &outbox, Request::Shared, true), "one still reads");
        assert!(release(&guard, &outbox, Request::Shared, true));
        assert_eq!((guard.value(), granted(&outbox)), (WRITING, (vec![2], vec![])));
    }

    #[test]
    fn a_claim_whose_time_is_over_is_handed_nothing() {
        let (guard, outbox) = (Guard::new(LOCKED), running_agent());
        let deadline = now().after_millis(1.0);
        guard.line_up(promise(&outbox, 0), Request::Lock, deadline);
        guard.promise(&outbox, 1, Request::Lock);
        clock::set(deadline);
        assert!(release(&guard, &outbox, Request::Lock, true));
        assert!(!outbox.has_only_grants(), "a timeout waits for a job of its own");
        assert_eq!(settled(&outbox), [(0, WaitResult::TimedOut), (1, WaitResult::Acquired)]);
    }
}
