//! Named locks against a plain model: who holds a name, who awaits it, who sees a death or a steal, and which
//! names are kept.

#![cfg(not(feature = "model"))]
#![allow(unsafe_code, reason = "reaching a name's word, as the node side does")]

mod fixtures;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use fixtures::random::{Random, RngExt, SeedableRng};
use fixtures::{NEVER, agent, mail, promise, results, settled, this_thread};
use waitasync_core::clock::{Timestamp, now};
use waitasync_core::lock::names::{Mode, Names, Refusal, Requester, Waits};
use waitasync_core::lock::{Claimed, Hold, Outbox, Request, Waiter, WaiterListStore};
use waitasync_core::queue::{Location, Ticket, WaitResult, Withdrawal};

const AGENTS: usize = 3;
const NAMES: usize = 3;

/// A name's holder has repaired what it protects, or not; its word is not looked at.
fn set_saw_death(store: &WaiterListStore, (location, hold): (Location, Hold), saw: bool) -> bool {
    store.set_saw_death(location, hold, &AtomicI32::new(0), saw)
}

fn text(name: usize) -> Vec<u16> {
    format!("name {name}").encode_utf16().collect()
}

fn random_mode(random: &mut Random) -> Mode {
    if random.random_ratio(1, 2) { Mode::Shared } else { Mode::Exclusive }
}

fn blocks(deadline: Timestamp) -> Waits {
    Waits::As(Waiter::Thread(this_thread()), deadline)
}

fn awaits(agent: &Arc<Outbox>, slot: u32) -> Waits {
    Waits::As(promise(agent, slot), NEVER)
}

type Answer = (Location, Request, Result<Claimed, Refusal>);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Expected {
    at: (Location, Hold),
    mode: Mode,
    agent: usize,
    /// While it is pending.
    pending: Option<(u32, Ticket)>,
    /// Whether its holder saw a death.
    saw_death: bool,
}

impl Expected {
    fn id(&self) -> u32 {
        self.at.1.id().unwrap()
    }
}

/// What is known of a name: its requests in the order in which they were made, and whether a dead holder is still to be
/// reported.
#[derive(Default, Debug)]
struct Line {
    requests: Vec<Expected>,
    left_behind: bool,
}

impl Line {
    fn held(&self) -> impl Iterator<Item = &Expected> {
        self.requests.iter().filter(|request| request.pending.is_none())
    }

    fn grants(&self, mode: Mode) -> bool {
        match mode {
            Mode::Exclusive => self.held().next().is_none(),
            Mode::Shared => self.held().all(|holder| holder.mode == Mode::Shared),
        }
    }

    /// The result of a grant.
    fn result_of(&mut self, mode: Mode) -> WaitResult {
        let saw_death = self.left_behind;
        self.left_behind &= mode == Mode::Shared;
        if saw_death { WaitResult::AcquiredFromDead } else { WaitResult::Acquired }
    }
}

struct World {
    store: WaiterListStore,
    names: Names,
    outboxes: Vec<Arc<Outbox>>,
    model: BTreeMap<usize, Line>,
    /// What agents are to find in their outboxes: the slots' results, and what was stolen.
    expected_mail: BTreeMap<(usize, u32), WaitResult>,
    expected_steals: BTreeSet<(usize, u32)>,
    slots: u32,
    /// Of the promises, by their slots.
    tickets: BTreeMap<u32, (Location, Ticket)>,
}

impl World {
    fn new() -> Self {
        Self {
            store: WaiterListStore::new(4, now),
            names: Names::default(),
            outboxes: (0..AGENTS).map(|_| agent()).collect(),
            model: (0..NAMES).map(|name| (name, Line::default())).collect(),
            expected_mail: BTreeMap::new(),
            expected_steals: BTreeSet::new(),
            slots: 0,
            tickets: BTreeMap::new(),
        }
    }

    fn requester(&self, agent: usize) -> Requester {
        Requester { outbox: Arc::clone(&self.outboxes[agent]), thread_id: u32::try_from(agent).unwrap() }
    }

    fn ask(&self, name: usize, mode: Mode, agent: usize, waits: Waits) -> Answer {
        self.names.request(&self.store, &text(name), mode, self.requester(agent), waits)
    }

    /// A writer that takes a free name: its number, and whether it saw a death.
    fn take(&self, name: usize) -> (u32, WaitResult) {
        let answer = self.ask(name, Mode::Exclusive, 0, Waits::Never);
        let (_, request, Ok(Claimed::Now(result))) = answer else { panic!("{answer:?}") };
        (request.id().unwrap(), result)
    }

    fn line(&mut self, name: usize) -> &mut Line {
        self.model.get_mut(&name).unwrap()
    }

    /// The model's grants, after something has been given back or withdrawn.
    fn grant(&mut self, name: usize) {
        let line = self.model.get_mut(&name).unwrap();
        while let Some(index) = line.requests.iter().position(|request| request.pending.is_some()) {
            let Expected { mode, agent, pending, .. } = line.requests[index];
            if !line.grants(mode) {
                return;
            }
            let result = line.result_of(mode);
            line.requests[index].pending = None;
            line.requests[index].saw_death = result == WaitResult::AcquiredFromDead;
            self.expected_mail.insert((agent, pending.unwrap().0), result);
        }
    }

    fn request(&mut self, name: usize, mode: Mode, agent: usize, waits: bool) {
        let line = &self.model[&name];
        let at_once = line.requests.iter().all(|request| request.pending.is_none()) && line.grants(mode);
        let slot = self.slots;
        self.slots += 1;
        let waits = if waits { awaits(&self.outboxes[agent], slot) } else { Waits::Never };
        match self.ask(name, mode, agent, waits.clone()) {
            (location, request, Ok(Claimed::Now(result))) => {
                assert!(at_once);
                let line = self.line(name);
                assert_eq!(result, line.result_of(mode));
                let saw_death = result == WaitResult::AcquiredFromDead;
                line.requests.push(Expected { at: (location, request.hold()), mode, agent, pending: None, saw_death });
            }
            (location, request, Ok(Claimed::Pending(ticket))) => {
                self.tickets.insert(slot, (location, ticket));
                assert!(!at_once && matches!(waits, Waits::As(..)));
                let pending = Some((slot, ticket));
                self.line(name).requests.push(Expected {
                    at: (location, request.hold()),
                    mode,
                    agent,
                    pending,
                    saw_death: false,
                });
            }
            (_, _, Err(refusal)) => {
                assert!(!at_once && matches!(waits, Waits::Never));
                assert_eq!(refusal, Refusal::NotAvailable);
            }
        }
    }

    fn steal(&mut self, name: usize, agent: usize) {
        let (location, request, result, took_over) = self.names.steal(&self.store, &text(name), self.requester(agent));
        let line = self.model.get_mut(&name).unwrap();
        assert_eq!(took_over, line.requests.iter().any(|request| request.pending.is_none()));
        for stolen in line.requests.extract_if(.., |request| request.pending.is_none()) {
            self.expected_steals.insert((stolen.agent, stolen.id()));
            assert!(![true, false].into_iter().any(|saw| set_saw_death(&self.store, stolen.at, saw)));
            // It may not have repaired anything yet.
            line.left_behind |= stolen.saw_death;
        }
        assert_eq!(result, line.result_of(Mode::Exclusive));
        let saw_death = result == WaitResult::AcquiredFromDead;
        let taken = Expected { at: (location, request.hold()), mode: Mode::Exclusive, agent, pending: None, saw_death };
        line.requests.push(taken);
    }

    /// A writer that holds the name repairs what it protects, or abandons it.
    fn mark(&mut self, name: usize, index: usize, abandons: bool) {
        let Expected { at, mode, pending, saw_death, .. } = &mut self.model.get_mut(&name).unwrap().requests[index];
        if *mode == Mode::Exclusive && pending.is_none() {
            assert!(set_saw_death(&self.store, *at, abandons));
            *saw_death = abandons;
        }
    }

    /// A request ends, and how.
    fn end(&mut self, name: usize, index: usize, dies: bool) {
        let ended = self.line(name).requests.remove(index);
        let (id, Expected { mode, agent, pending, .. }) = (ended.id(), ended);
        match pending {
            None if dies => {
                self.names.end_grant(&self.store, id, WaitResult::AcquiredFromDead);
                self.line(name).left_behind |= mode == Mode::Exclusive;
            }
            None => assert!(self.names.end_grant(&self.store, id, WaitResult::Acquired)),
            Some((slot, ticket)) => {
                assert_eq!(self.store.withdraw_agent(ticket, &self.outboxes[agent], slot), Withdrawal::Done);
                self.names.forget(&self.store, id);
            }
        }
        // An ended request is not given back again.
        assert!(!self.names.end_grant(&self.store, id, WaitResult::Acquired));
        self.grant(name);
        self.take_mail();
    }

    fn end_agent(&mut self, agent: usize) {
        for name in 0..NAMES {
            while let Some(index) = self.model[&name].requests.iter().position(|request| request.agent == agent) {
                self.end(name, index, true);
            }
        }
        self.names.end(&self.store, &self.outboxes[agent]);
    }

    /// Agents take their mail, and let their claims retry, until nothing is left.
    fn take_mail(&mut self) {
        while self.outboxes.iter().any(|outbox| outbox.has_mail()) {
            for (agent, outbox) in self.outboxes.iter().enumerate() {
                let mail = mail(outbox);
                let mut settled = results(&mail.settlements);
                for slot in mail.retries {
                    let (location, ticket) = self.tickets[&slot];
                    // SAFETY: the name has a request, so it has its word.
                    let word: &AtomicI32 = unsafe { location.word() };
                    let retried = self.store.retry(ticket, &promise(outbox, slot), word);
                    settled.extend(retried.map(|result| (slot, result)));
                }
                for (slot, result) in settled {
                    assert_eq!(self.expected_mail.remove(&(agent, slot)), Some(result));
                }
                assert!(mail.losses.into_iter().all(|id| self.expected_steals.remove(&(agent, id))));
            }
        }
        assert!(self.expected_mail.is_empty() && self.expected_steals.is_empty());
    }

    fn check(&mut self) {
        self.take_mail();
        let found = self.names.requests(&self.store);
        for (&name, line) in &self.model {
            let here = found.iter().filter(|info| *info.name == text(name));
            let here: Vec<_> = here.map(|info| (info.id, info.mode, info.thread_id as usize, info.held)).collect();
            let expected = line.requests.iter();
            let expected: Vec<_> = expected
                .map(|request| (request.id(), request.mode, request.agent, request.pending.is_none()))
                .collect();
            assert_eq!(here, expected);
        }
        let in_use = self.model.values().filter(|line| line.left_behind || !line.requests.is_empty()).count();
        assert_eq!(self.names.count(), in_use);
        // All of this without a look at a word.
        assert_eq!(self.store.check_words(|_, _| panic!("a look at the word of a name")), None);
    }
}

#[test]
fn names_are_granted_as_the_model_says() {
    for seed in 0..600 {
        let random = &mut Random::seed_from_u64(seed);
        let mut world = World::new();
        for _ in 0..80 {
            let (name, agent) = (random.random_range(0..NAMES), random.random_range(0..AGENTS));
            let mode = random_mode(random);
            let len = world.model[&name].requests.len();
            match random.random_range(0..12) {
                0..=3 => world.request(name, mode, agent, true),
                4 => world.request(name, mode, agent, false),
                5 if random.random_ratio(1, 2) => world.steal(name, agent),
                6 if len > 0 => world.mark(name, random.random_range(0..len), random.random_ratio(1, 2)),
                7 if random.random_ratio(1, 6) => world.end_agent(agent),
                8..=11 if len > 0 => world.end(name, random.random_range(0..len), random.random_ratio(1, 4)),
                _ => {}
            }
            world.check();
        }
    }
}

#[test]
fn a_thread_does_not_block_for_a_name_that_it_holds_itself() {
    let world = World::new();
    let request = |agent, mode, waits| world.ask(0, mode, agent, waits);
    let (_, held, Ok(Claimed::Now(_))) = request(0, Mode::Shared, blocks(NEVER)) else {
        panic!("nobody holds the name")
    };
    // A share beside a share needs no waiting.
    assert!(matches!(request(0, Mode::Shared, blocks(NEVER)), (.., Ok(Claimed::Now(_)))));
    assert!(matches!(request(0, Mode::Exclusive, blocks(NEVER)), (_, _, Err(Refusal::HeldHere))));
    assert!(matches!(held, Request::Named(Mode::Shared, _)));
}

#[test]
fn nothing_is_left_when_threads_request_release_and_steal_at_once() {
    let world = World::new();
    std::thread::scope(|scope| {
        for agent in 0..AGENTS {
            let world = &world;
            scope.spawn(move || {
                let random = &mut Random::seed_from_u64(agent as u64);
                for _ in 0..3000 {
                    let (name, mode) = (random.random_range(0..NAMES), random_mode(random));
                    let (request, is_held) = if random.random_ratio(1, 10) {
                        (world.names.steal(&world.store, &text(name), world.requester(agent)).1, true)
                    } else {
                        let (_, request, claimed) = world.ask(name, mode, agent, Waits::Never);
                        (request, claimed.is_ok())
                    };
                    if is_held {
                        let id = request.id().unwrap();
                        let held = world.names.end_grant(&world.store, id, WaitResult::Acquired);
                        // It may only be gone if it was stolen.
                        assert_eq!(held, !mail(&world.outboxes[agent]).losses.contains(&id));
                    }
                }
            });
        }
    });
    assert_eq!(world.names.count(), 0);
}

#[test]
fn the_news_of_a_steal_never_comes_before_that_of_the_grant() {
    let mut world = World::new();
    let agent = Arc::clone(&world.outboxes[1]);
    world.request(0, Mode::Exclusive, 0, true);
    world.request(0, Mode::Exclusive, 1, true);
    world.end(0, 0, false);
    // Now agent 1 has it, and has taken its mail.
    let World { store, names, .. } = &world;
    let answer = world.ask(0, Mode::Shared, 1, awaits(&agent, 7));
    let (_, request, Ok(Claimed::Pending(_))) = answer else { panic!("it is held") };
    let holder = names.requests(store)[0].id;
    assert!(names.end_grant(store, holder, WaitResult::Acquired));
    let _thief = names.steal(store, &text(0), world.requester(2));
    let mail = mail(&agent);
    assert_eq!(results(&mail.settlements), [(7, WaitResult::Acquired)]);
    assert_eq!(mail.losses, [request.id().unwrap()]);
    assert!(!names.end_grant(store, request.id().unwrap(), WaitResult::Acquired));
}

/// The agents that hear their bells look at the names.
#[test]
fn no_agent_is_rung_while_the_names_are_locked() {
    let (store, names) = (WaiterListStore::new(4, now), Arc::new(Names::default()));
    let rung = Arc::new(AtomicUsize::new(0));
    let bell = {
        let (names, rung) = (Arc::clone(&names), Arc::clone(&rung));
        move || {
            rung.fetch_add(1, Ordering::SeqCst);
            let (names, (looks, looked)) = (Arc::clone(&names), mpsc::channel());
            std::thread::spawn(move || looks.send(names.count()));
            assert!(looked.recv_timeout(Duration::from_secs(10)).is_ok(), "the names are locked");
        }
    };
    let outbox = Arc::new(Outbox::new(Box::new(bell)));
    let requester = || Requester { outbox: Arc::clone(&outbox), thread_id: 0 };
    let [first, second, third] = [0, 1, 2].map(|slot| {
        let answer = names.request(&store, &text(0), Mode::Exclusive, requester(), awaits(&outbox, slot));
        let (_, request, Ok(_)) = answer else { panic!("{answer:?}") };
        request.id().unwrap()
    });
    // Each of these rings the agent.
    assert!(names.end_grant(&store, first, WaitResult::Acquired));
    assert_eq!(settled(&outbox).len(), 1);
    assert!(names.end_grant(&store, second, WaitResult::AcquiredFromDead));
    assert_eq!(settled(&outbox).len(), 1);
    let (_, thief, ..) = names.steal(&store, &text(0), requester());
    assert_eq!(mail(&outbox).losses, [third]);
    assert!(names.end_grant(&store, thief.id().unwrap(), WaitResult::Acquired));
    assert_eq!(rung.load(Ordering::SeqCst), 3);
}

/// How many names that nobody requests are kept for their last holders' deaths: `MOST_LEFT`.
const MOST_LEFT: usize = 1024;
const ALL: usize = 3000;

#[test]
fn the_deaths_of_holders_of_so_many_names_are_remembered_the_latest_ones() {
    let world = World::new();
    let die = |name| world.names.end_grant(&world.store, world.take(name).0, WaitResult::AcquiredFromDead);
    for name in 0..ALL {
        assert!(die(name));
    }
    assert_eq!(world.names.count(), MOST_LEFT);
    let tells = |name| {
        let (id, result) = world.take(name);
        assert!(world.names.end_grant(&world.store, id, WaitResult::Acquired));
        result == WaitResult::AcquiredFromDead
    };
    assert!((ALL - MOST_LEFT / 2..ALL).all(tells));
    assert!(!(0..ALL - MOST_LEFT).any(tells));
    assert_eq!(world.names.count(), MOST_LEFT / 2);
}

#[test]
fn a_name_that_is_used_again_is_not_among_those_that_are_left() {
    let world = World::new();
    let die = |name| assert!(world.names.end_grant(&world.store, world.take(name).0, WaitResult::AcquiredFromDead));
    die(0);
    world.take(0);
    (1..ALL).for_each(die);
    assert_eq!(world.names.count(), 1 + MOST_LEFT);
    assert_eq!(world.ask(0, Mode::Exclusive, 1, Waits::Never).2.unwrap_err(), Refusal::NotAvailable);
}

#[test]
fn a_dead_holder_of_a_name_is_not_counted_where_locks_look() {
    let world = World::new();
    for name in 0..500 {
        assert!(world.names.end_grant(&world.store, world.take(name).0, WaitResult::AcquiredFromDead));
    }
    assert!(world.store.counters().iter().all(|counter| counter.load(Ordering::SeqCst) == 0));
}
