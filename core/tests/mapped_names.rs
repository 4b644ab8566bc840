//! Locks by name in mapped memory, beside a plain model, with deaths between any two steps.

#![cfg(not(feature = "model"))]

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use proptest::prelude::*;
use waitasync_core::mapped::ProcessId;
use waitasync_core::mapped::names::{
    Entry, Head, Key, Mode, Names, Place, Refusal, Row, TURN_MILLISECONDS, Way, World,
};

/// A clock that a test moves, and bells that it hears.
#[derive(Default)]
struct Hand {
    now: AtomicU64,
    rung: Mutex<BTreeSet<usize>>,
    /// The entries that are to be looked at, and when.
    visits: Mutex<BTreeSet<(u64, usize)>>,
}

impl Hand {
    /// Whether a process was rung since the last call.
    fn has_rung(&self, index: usize) -> bool {
        self.rung.lock().unwrap().remove(&index)
    }

    /// Returns an entry that is to be looked at by now.
    fn due(&self) -> Option<usize> {
        let mut visits = self.visits.lock().unwrap();
        let first = *visits.first()?;
        (first.0 <= self.now() && visits.remove(&first)).then_some(first.1)
    }
}

impl World for &Hand {
    fn now(&self) -> u64 {
        self.now.load(Ordering::SeqCst)
    }

    fn ring(&self, index: usize) {
        self.rung.lock().unwrap().insert(index);
    }

    fn come(&self, position: usize, moment: u64) {
        self.visits.lock().unwrap().insert((moment, position));
    }
}

/// The memory of a table.
struct Memory {
    head: Head,
    titles: Vec<AtomicU64>,
    entries: Vec<Entry>,
}

impl Memory {
    fn new(entries: usize) -> Self {
        let titles = (0..entries).map(|_| AtomicU64::new(0)).collect();
        Self { head: Head::default(), titles, entries: (0..entries).map(|_| Entry::default()).collect() }
    }

    fn names<'a>(&'a self, hand: &'a Hand) -> Names<'a, &'a Hand> {
        Names::new(&self.head, &self.titles, &self.entries, hand)
    }
}

const fn process(index: usize) -> ProcessId {
    ProcessId::new(index, 1).unwrap()
}

/// Names with the same fingerprint and home.
const fn key(number: u64) -> Key {
    [7 << 32 | number, 0, 0, number]
}

fn place(names: &Names<'_, &Hand>, number: u64) -> Place {
    names.name(&key(number), "a name", process(0)).unwrap()
}

#[test]
fn names_with_the_same_fingerprint_are_different_and_a_full_table_says_its_size() {
    let (memory, hand) = (Memory::new(4), Hand::default());
    let names = memory.names(&hand);
    let places: BTreeSet<usize> = (0..4).map(|number| place(&names, number).position).collect();
    assert_eq!(places.len(), 4);
    for number in 0..4 {
        assert_eq!(names.find(&key(number)), Some(place(&names, number)));
        let taken = names.take(place(&names, number), process(0), Mode::Exclusive, Way::New);
        assert_eq!(taken, Ok(false));
    }
    assert_eq!(names.find(&key(4)), None);
    assert_eq!(names.name(&key(4), "", process(0)), Err(Refusal::Full(4)));
}

#[test]
fn a_name_that_is_not_in_use_gives_way_and_its_tokens_grow_although_the_clock_is_set_back() {
    let (memory, hand) = (Memory::new(2), Hand::default());
    let names = memory.names(&hand);
    let grant = |number: u64, clock: u64| {
        let place = place(&names, number);
        assert_eq!(names.take(place, process(0), Mode::Exclusive, Way::New), Ok(false));
        let token = names.entry(place).note_holder(process(0), 1, "", clock);
        assert!(names.release(place, process(0), Mode::Exclusive, false));
        (place, token)
    };
    let (old, first) = grant(0, 1_000_000);
    for number in 1..10 {
        grant(number, 5);
    }
    assert_eq!(names.find(&key(0)), None);
    assert_eq!(names.take(old, process(0), Mode::Exclusive, Way::New), Err(Refusal::Renamed));
    assert!(!names.release(old, process(0), Mode::Exclusive, false));
    assert!(grant(0, 7).1 > first);
}

/// Its title goes back to what it was: of an entry that is named last, that was decided, and of others it was not.
#[test]
fn who_dies_while_it_names_an_entry_has_named_it_once_that_is_decided() {
    for (is_decided, is_swept) in [(true, true), (true, false), (false, true)] {
        let (memory, hand) = (Memory::new(2), Hand::default());
        let names = memory.names(&hand);
        let place = names.name(&key(0), "", process(1)).unwrap();
        if !is_decided {
            names.name(&key(1), "", process(0)).unwrap();
        }
        let (title, dead) = (&memory.titles[place.position], process(1));
        let version = title.load(Ordering::SeqCst) as u32 >> 2;
        title.store(u64::from(version) << 32 | u64::from(dead.packed()) << 2 | 1, Ordering::SeqCst);
        assert_eq!(names.find(&key(0)), None);
        if is_swept {
            names.sweep(dead);
            assert_eq!(names.find(&key(0)), is_decided.then_some(place));
        }
        let again = names.name(&key(0), "", process(0)).unwrap();
        assert_eq!((again == place, again.position), (is_decided, place.position));
    }
}

#[test]
fn a_name_that_is_held_awaited_or_left_by_a_dead_holder_keeps_its_entry() {
    let (memory, hand) = (Memory::new(3), Hand::default());
    let names = memory.names(&hand);
    let places = [0, 1, 2].map(|number| place(&names, number));
    assert_eq!(names.take(places[0], process(0), Mode::Exclusive, Way::New), Ok(false));
    names.wait(places[1], process(0), Mode::Exclusive);
    assert_eq!(names.take(places[2], process(1), Mode::Exclusive, Way::New), Ok(false));
    names.sweep(process(1));
    assert_eq!(names.name(&key(3), "", process(0)), Err(Refusal::Full(3)));
    assert_eq!(names.take(places[2], process(0), Mode::Exclusive, Way::New), Ok(true));
    names.release(places[2], process(0), Mode::Exclusive, false);
    assert!(names.name(&key(3), "", process(0)).is_ok());
}

#[test]
fn a_turn_that_is_not_used_is_passed_over_and_its_process_waits_anew() {
    let (memory, hand) = (Memory::new(1), Hand::default());
    let names = memory.names(&hand);
    let place = place(&names, 0);
    let take = |index, way| names.take(place, process(index), Mode::Exclusive, way);
    assert_eq!(take(0, Way::New), Ok(false));
    names.wait(place, process(1), Mode::Exclusive);
    names.wait(place, process(2), Mode::Exclusive);
    names.release(place, process(0), Mode::Exclusive, false);
    assert_eq!([1, 2].map(|index| hand.has_rung(index)), [true, false]);
    assert_eq!(take(2, Way::First), Err(Refusal::Taken));
    hand.now.store(1, Ordering::SeqCst);
    assert_eq!([take(2, Way::First), take(0, Way::New)], [Err(Refusal::Taken); 2]);
    hand.now.store(TURN_MILLISECONDS, Ordering::SeqCst);
    assert_eq!(take(2, Way::First), Ok(false));
    // It looks again, if it is not suspended: its bit was taken from it.
    assert!(hand.has_rung(1));
    names.leave(place, process(2));
    names.release(place, process(2), Mode::Exclusive, false);
    assert_eq!([1, 2].map(|index| hand.has_rung(index)), [false, false]);
    names.wait(place, process(1), Mode::Exclusive);
    assert_eq!(take(1, Way::First), Ok(false));
}

/// Nobody else comes: only whoever has given the turn.
#[test]
fn a_turn_that_is_over_goes_to_the_next_that_waits_if_the_first_could_have_used_it() {
    const SOME: [usize; 3] = [0, 1, 2];
    for (modes, passes) in [
        ([Mode::Exclusive, Mode::Exclusive, Mode::Exclusive], true),
        ([Mode::Shared, Mode::Shared, Mode::Shared], true),
        ([Mode::Shared, Mode::Exclusive, Mode::Shared], false),
        ([Mode::Permits(1); 3], true),
    ] {
        let (memory, hand) = (Memory::new(4), Hand::default());
        let names = memory.names(&hand);
        let place = place(&names, 0);
        let rung = || SOME.map(|index| hand.has_rung(index));
        let pass_time = || {
            hand.now.fetch_add(TURN_MILLISECONDS, Ordering::SeqCst);
            assert_eq!((hand.due(), hand.due()), (Some(place.position), None));
            assert_eq!(names.heed(place.position), None);
        };
        let is_permit = modes[0] == Mode::Permits(1);
        for index in SOME.into_iter().filter(|_| is_permit) {
            assert_eq!(names.take(place, process(index), modes[index], Way::New), Ok(false));
        }
        let permit = is_permit.then(|| names.take_permit(place, process(0), Way::New).unwrap());
        let taken = if is_permit { Ok(false) } else { names.take(place, process(0), modes[0], Way::New) };
        assert_eq!(taken, Ok(false));
        names.wait(place, process(1), modes[1]);
        names.wait(place, process(2), modes[2]);
        if let Some(permit) = permit {
            names.stir(place, process(0));
            pass_time();
            assert_eq!(rung(), [false, true, false], "there is no permit for the next one");
            names.release(permit.place, process(0), Mode::Exclusive, false);
        } else if modes[0] == Mode::Exclusive {
            names.release(place, process(0), modes[0], false);
        }
        names.stir(place, process(0));
        assert_eq!(rung(), [false, true, false]);
        assert_eq!(hand.due(), None);
        assert!(names.heed(place.position).is_some_and(|left| left > 0));
        pass_time();
        // The first one waits anew.
        assert_eq!(rung(), [false, passes, passes]);
        names.wait(place, process(1), modes[1]);
        let is_taken = match modes[2] {
            Mode::Permits(_) => names.take_permit(place, process(2), Way::First).is_ok(),
            mode => names.take(place, process(2), mode, Way::First).is_ok(),
        };
        assert_eq!(is_taken, passes);
    }
}

#[test]
fn a_ring_concerns_no_lock_that_another_has_alone_if_the_process_has_its_bit_there() {
    let (memory, hand) = (Memory::new(1), Hand::default());
    let names = memory.names(&hand);
    let place = place(&names, 0);
    let concerns = |place| names.is_rung_for(place, process(1));
    assert_eq!(names.take(place, process(0), Mode::Exclusive, Way::New), Ok(false));
    assert!(concerns(place));
    names.wait(place, process(1), Mode::Exclusive);
    assert!(!concerns(place));
    names.release(place, process(0), Mode::Exclusive, false);
    assert!(concerns(place));
    names.leave(place, process(1));
    let next = names.name(&key(1), "", process(0)).unwrap();
    assert_eq!(names.take(next, process(0), Mode::Exclusive, Way::New), Ok(false));
    names.wait(next, process(1), Mode::Exclusive);
    assert_eq!([place, next].map(concerns), [true, false]);
}

#[test]
fn newcomers_pass_a_turn_in_its_first_millisecond_unless_it_is_given_again() {
    let (memory, hand) = (Memory::new(1), Hand::default());
    let names = memory.names(&hand);
    let place = place(&names, 0);
    let take = |index, way| names.take(place, process(index), Mode::Exclusive, way);
    assert_eq!(take(0, Way::New), Ok(false));
    names.wait(place, process(1), Mode::Exclusive);
    for (length, passes) in [(0, true), (0, true), (TURN_MILLISECONDS, false)] {
        hand.now.fetch_add(length, Ordering::SeqCst);
        names.release(place, process(0), Mode::Exclusive, false);
        assert!(hand.has_rung(1));
        assert_eq!(take(0, Way::New).is_ok(), passes);
    }
    assert_eq!(take(1, Way::First), Ok(false));
}

#[test]
fn a_limit_is_over_at_its_moment_and_for_whoever_looks() {
    for (begin, limit) in [(5, 7), (0, 1), ((1 << 33) - 3, 4), ((1 << 33) - 1, 1 << 31), (u64::from(u32::MAX), 9)] {
        let (memory, hand) = (Memory::new(1), Hand::default());
        let names = memory.names(&hand);
        let place = place(&names, 0);
        hand.now.store(begin, Ordering::SeqCst);
        let mode = Mode::Until(begin + limit);
        assert_eq!(names.take(place, process(0), mode, Way::New), Ok(false));
        names.wait(place, process(1), Mode::Exclusive);
        let first = names.entry(place).note_holder(process(0), 0, "", 5);
        hand.now.store(begin + limit - 1, Ordering::SeqCst);
        assert_eq!(names.take(place, process(1), Mode::Exclusive, Way::First), Err(Refusal::Taken));
        assert!(names.is_held(place, process(0), mode));
        // A word more where the moment would be none.
        let slack = u64::from((begin + limit).trailing_zeros() >= 33);
        assert_eq!(names.heed(place.position), Some(1 + slack));
        hand.now.store(begin + limit + slack, Ordering::SeqCst);
        assert!(!names.is_held(place, process(0), mode) && !names.release(place, process(0), mode, false));
        // Whoever waits was rung, and has it, whatever the late holder does.
        assert!(hand.has_rung(1));
        assert_eq!(names.take(place, process(1), Mode::Exclusive, Way::First), Ok(true));
        let second = names.entry(place).note_holder(process(1), 0, "", 1);
        assert!(names.entry(place).note_holder(process(0), 0, "", 1) > second && second > first);
        assert!(!names.release(place, process(0), mode, true));
        assert!(names.release(place, process(1), Mode::Exclusive, false));
    }
}

#[test]
fn permits_are_of_one_number_and_are_seen_with_their_holders() {
    let (memory, hand) = (Memory::new(8), Hand::default());
    let names = memory.names(&hand);
    let place = place(&names, 0);
    let joins = |index, permits| names.take(place, process(index), Mode::Permits(permits), Way::New);
    let takes = |index| names.take_permit(place, process(index), Way::New).ok().map(|permit| permit.number);
    assert_eq!([joins(0, 2), joins(1, 2)], [Ok(false); 2]);
    assert_eq!(joins(2, 3), Err(Refusal::Unlike(2)));
    for mode in [Mode::Exclusive, Mode::Shared, Mode::Until(9)] {
        assert_eq!(names.take(place, process(2), mode, Way::Attempt), Err(Refusal::Unlike(2)));
    }
    assert_eq!([takes(0), takes(1), takes(0)], [Some(0), Some(1), None]);
    names.wait(place, process(0), Mode::Exclusive);
    let rows = names.rows(Some(&key(0)));
    let seen: Vec<_> = rows.iter().map(|row| (row.index, row.waits, row.is_shared)).collect();
    assert_eq!(seen, [(0, true, false), (0, false, false), (1, false, false)]);
    // The dead one's permit comes back, and who waits for it is rung; the name is used until all have left.
    names.sweep(process(1));
    assert!(hand.has_rung(0));
    assert_eq!(names.take_permit(place, process(0), Way::First).ok().map(|it| (it.number, it.died)), Some((1, true)));
    names.leave(place, process(0));
    assert_eq!(joins(2, 3), Err(Refusal::Unlike(2)));
    assert!(names.release(place, process(0), Mode::Shared, false));
    assert_eq!(joins(2, 3), Ok(false));
    assert!(names.release(place, process(2), Mode::Shared, false));
    names.wait(place, process(2), Mode::Exclusive);
    assert_eq!(joins(0, 3), Err(Refusal::Unlike(0)));
}

#[test]
fn an_attempt_takes_what_is_free_whoever_waits() {
    let (memory, hand) = (Memory::new(1), Hand::default());
    let names = memory.names(&hand);
    let place = place(&names, 0);
    names.wait(place, process(1), Mode::Exclusive);
    names.stir(place, process(0));
    hand.now.store(1, Ordering::SeqCst);
    assert_eq!(names.take(place, process(0), Mode::Exclusive, Way::New), Err(Refusal::Taken));
    assert_eq!(names.take(place, process(0), Mode::Exclusive, Way::Attempt), Ok(false));
}

#[test]
fn a_look_tells_holders_and_waiters() {
    let (memory, hand) = (Memory::new(2), Hand::default());
    let names = memory.names(&hand);
    let long = "é".repeat(100);
    let place = names.name(&key(0), &long, process(0)).unwrap();
    let rows = || names.rows(Some(&key(0)));
    assert_eq!(rows(), []);
    assert_eq!(names.take(place, process(3), Mode::Exclusive, Way::New), Ok(false));
    assert_eq!(rows()[0].noted, None);
    names.entry(place).note_holder(process(3), 5, "a label that is too long for it", 2_000_000);
    names.wait(place, process(4), Mode::Shared);
    names.wait(place, process(5), Mode::Exclusive);
    let name = rows()[0].name.clone();
    assert_eq!(
        (name.chars().count(), name.ends_with("é…"), long.starts_with(name.trim_end_matches('…'))),
        (32, true, true)
    );
    let row = |index, waits, is_shared, noted| Row { name: name.clone(), index, waits, is_shared, noted };
    let noted = Some((2000, 5, "a label that is too long for it".into()));
    let expected = [row(3, false, false, noted), row(4, true, true, None), row(5, true, false, None)];
    assert_eq!(rows(), expected);
    assert_eq!(names.rows(None), expected);
    names.entry(place).note_holder(process(3), 5, "a label that is even longer than it", 2_000_000);
    assert_eq!(rows()[0].noted.as_ref().unwrap().2, "a label that is even longer tha…");
    assert_eq!(names.rows(Some(&key(1))), []);
    names.leave(place, process(4));
    names.leave(place, process(5));
    names.release(place, process(3), Mode::Exclusive, false);
    assert_eq!(names.take(place, process(3), Mode::Shared, Way::New), Ok(false));
    assert_eq!(rows(), [row(3, false, true, None)]);
}

/// The rules in plain words: who has the lock, who waits in each process, and whether the last holder died.
#[derive(Default)]
struct Plain {
    holder: Option<usize>,
    sharers: BTreeSet<usize>,
    died: bool,
}

impl Plain {
    fn admits(&self, mode: Mode) -> bool {
        self.holder.is_none() && (mode == Mode::Shared || self.sharers.is_empty())
    }

    fn grant(&mut self, index: usize, mode: Mode) -> bool {
        let died = self.died;
        if mode == Mode::Shared {
            self.sharers.insert(index);
        } else {
            self.holder = Some(index);
            self.died = false;
        }
        died
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// A process without a request asks.
    Ask(usize, Mode),
    Attempt(usize, Mode),
    /// A process hears its bell.
    Hear(usize),
    Release(usize, bool),
    GiveUp(usize),
    /// It dies, and is swept later.
    Die(usize),
    Sweep,
    /// Time passes, and the turns are over.
    Pass,
    /// Somebody looks at what is over.
    Look,
    /// Others use names, so that the table is full.
    Others(u64),
}

const PROCESSES: usize = 4;

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let mode = prop_oneof![Just(Mode::Exclusive), Just(Mode::Shared)];
    let (who, mode) = (0..PROCESSES, mode.boxed());
    proptest::collection::vec(
        prop_oneof![
            5 => (who.clone(), mode.clone()).prop_map(|(index, mode)| Step::Ask(index, mode)),
            2 => (who.clone(), mode).prop_map(|(index, mode)| Step::Attempt(index, mode)),
            6 => who.clone().prop_map(Step::Hear),
            6 => (who.clone(), any::<bool>()).prop_map(|(index, died)| Step::Release(index, died)),
            2 => who.clone().prop_map(Step::GiveUp),
            1 => who.prop_map(Step::Die),
            2 => Just(Step::Sweep),
            2 => Just(Step::Pass),
            1 => Just(Step::Look),
            1 => (1..9_u64).prop_map(Step::Others),
        ],
        1..200,
    )
}

/// A process: its requests, and what it has. A dead one does nothing until it was swept.
#[derive(Clone, Default)]
struct Player {
    waits: Option<Mode>,
    has: Option<Mode>,
    is_dead: bool,
    generation: u32,
}

#[allow(clippy::too_many_lines, reason = "a case for each step")]
fn play(steps: &[Step]) {
    let (memory, hand) = (Memory::new(3), Hand::default());
    let names = memory.names(&hand);
    let plain = RefCell::new(Plain::default());
    let mut players = vec![Player { generation: 1, ..Player::default() }; PROCESSES];
    let id = |player: &Player, index| ProcessId::new(index, player.generation).unwrap();
    let here = || names.name(&key(0), "", process(60)).expect("the others use none at the moment");
    let try_take = |player: &mut Player, index: usize, mode, way| {
        let place = here();
        if way == Way::First {
            names.wait(place, id(player, index), mode);
        }
        let taken = names.take(place, id(player, index), mode, way);
        let mut plain = plain.borrow_mut();
        if let Ok(died) = taken {
            assert!(plain.admits(mode), "two have it");
            assert_eq!(died, plain.grant(index, mode));
            player.has = Some(mode);
            if player.waits.take().is_some() || way == Way::First {
                names.leave(place, id(player, index));
            }
        } else {
            assert_ne!(taken, Err(Refusal::Renamed));
            let is_free = plain.admits(mode) && plain.sharers.is_empty();
            assert!(way != Way::Attempt || !is_free, "an attempt was refused what is free");
        }
    };
    for step in steps {
        match *step {
            Step::Ask(index, mode) => {
                let player = &mut players[index];
                if !player.is_dead && player.waits.is_none() && player.has.is_none() {
                    try_take(player, index, mode, Way::New);
                    if player.has.is_none() {
                        player.waits = Some(mode);
                        try_take(player, index, mode, Way::First);
                    }
                }
            }
            Step::Attempt(index, mode) => {
                let player = &mut players[index];
                if !player.is_dead && player.waits.is_none() && player.has.is_none() {
                    try_take(player, index, mode, Way::Attempt);
                }
            }
            Step::Hear(index) => {
                let player = &mut players[index];
                if !player.is_dead
                    && hand.has_rung(index)
                    && let Some(mode) = player.waits
                    && names.is_rung_for(here(), id(player, index))
                {
                    try_take(player, index, mode, Way::First);
                }
            }
            Step::Release(index, died) => {
                let player = &mut players[index];
                if !player.is_dead
                    && let Some(mode) = player.has.take()
                {
                    let mut plain = plain.borrow_mut();
                    if mode == Mode::Exclusive {
                        (plain.holder, plain.died) = (None, died);
                    } else {
                        plain.sharers.remove(&index);
                    }
                    assert!(names.release(here(), id(player, index), mode, died));
                }
            }
            Step::GiveUp(index) => {
                let player = &mut players[index];
                if !player.is_dead && player.waits.take().is_some() {
                    names.leave(here(), id(player, index));
                    names.stir(here(), id(player, index));
                }
            }
            Step::Die(index) => players[index].is_dead = true,
            Step::Sweep => sweep(&names, &mut players, &plain),
            Step::Pass => drop(hand.now.fetch_add(TURN_MILLISECONDS, Ordering::SeqCst)),
            Step::Look => look(&names),
            Step::Others(number) => {
                // It may find no room.
                let _ = names.name(&key(number), "", process(60));
            }
        }
    }
    // All that wait have it in the end, one after the other, if the rings are heard, and the dead are swept. While the first one
    // waits, it is suspended until the others have had it.
    sweep(&names, &mut players, &plain);
    let mut quiet = 0;
    let is_done = |player: &Player| player.waits.is_none() && player.has.is_none();
    while !players.iter().all(is_done) {
        let mut has_changed = false;
        let is_last = players[1..].iter().all(is_done);
        hand.now.fetch_add(TURN_MILLISECONDS, Ordering::SeqCst);
        look(&names);
        for (index, player) in players.iter_mut().enumerate() {
            if let Some(mode) = player.has.take() {
                let mut plain = plain.borrow_mut();
                plain.sharers.remove(&index);
                if mode == Mode::Exclusive {
                    (plain.holder, plain.died) = (None, false);
                }
                assert!(names.release(here(), id(player, index), mode, false));
                has_changed = true;
            } else if let Some(mode) = player.waits
                && (index != 0 || is_last)
                && hand.has_rung(index)
                && names.is_rung_for(here(), id(player, index))
            {
                try_take(player, index, mode, Way::First);
                has_changed |= player.waits.is_none();
            }
        }
        quiet = if has_changed { 0 } else { quiet + 1 };
        assert!(quiet < 3 * PROCESSES, "a request waits for ever");
    }
}

/// Looks at what is over, as a watcher does.
fn look(names: &Names<'_, &Hand>) {
    while let Some(position) = names.world.due() {
        if let Some(left) = names.heed(position) {
            names.world.come(position, names.world.now() + left);
        }
    }
}

fn sweep(names: &Names<'_, &Hand>, players: &mut [Player], plain: &RefCell<Plain>) {
    for (index, player) in players.iter_mut().enumerate().filter(|(_, player)| player.is_dead) {
        let dead = ProcessId::new(index, player.generation).unwrap();
        names.sweep(dead);
        let mut plain = plain.borrow_mut();
        if plain.holder == Some(index) {
            (plain.holder, plain.died) = (None, true);
        }
        plain.sharers.remove(&index);
        *player = Player { generation: player.generation + 1, ..Player::default() };
    }
}

/// The words of an entry, for a test that damages them.
#[allow(unsafe_code, reason = "an entry is made of such words")]
fn words_of(entry: &Entry) -> &[AtomicU64] {
    // SAFETY: an entry has this layout, in which all words are atomic.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(entry).cast(), size_of::<Entry>() / 8) }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn one_holder_or_many_readers_deaths_are_told_and_nobody_waits_for_ever(steps in steps()) {
        play(&steps);
    }

    /// Whatever is in the memory, each call ends, and nothing panics.
    #[test]
    fn any_memory_is_harmless(words in proptest::collection::vec(any::<u64>(), 32), steps in steps()) {
        let (memory, hand) = (Memory::new(3), Hand::default());
        for (at, word) in memory.titles.iter().chain(memory.entries.iter().flat_map(words_of)).enumerate() {
            word.store(words[at % words.len()] & words[at / 7 % words.len()], Ordering::SeqCst);
        }
        let names = memory.names(&hand);
        for step in steps {
            let (Step::Ask(index, mode) | Step::Attempt(index, mode)) = step else { continue };
            names.sweep(process(index));
            drop([names.rows(None), names.rows(Some(&key(index as u64)))]);
            let Ok(place) = names.name(&key(index as u64), "a", process(index)) else { continue };
            names.wait(place, process(index), mode);
            names.heed(place.position);
            names.is_rung_for(place, process(index));
            let _ = names.take(place, process(index), Mode::Permits(2), Way::New);
            let _ = names.take_permit(place, process(index), Way::Attempt);
            if names.take(place, process(index), mode, Way::Attempt).is_ok() {
                names.entry(place).note_holder(process(index), 1, "", 1);
                names.release(place, process(index), mode, false);
            }
            hand.now.fetch_add(TURN_MILLISECONDS, Ordering::SeqCst);
        }
    }
}
