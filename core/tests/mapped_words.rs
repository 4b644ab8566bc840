//! Words that processes share: turns, notifications, and deaths of a process and of its sweeper before each change.

#![cfg(not(feature = "model"))]

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};

use waitasync_core::lock::{Hold, Mode, Request, WRITING, Word};
use waitasync_core::mapped::ProcessId;
use waitasync_core::mapped::words::{Peers, Record, SharedWord, Table};
use waitasync_core::queue::other_processes::SharedWaits;

struct Died;

/// A process of the test: it may be told to die before a change.
struct Process {
    id: ProcessId,
    world: &'static World,
    /// How many changes it has left; `u32::MAX`: it lives.
    left: AtomicU32,
}

struct World {
    table: Table<'static>,
    records: &'static [Record],
    word: AtomicI32,
    dead: [AtomicBool; 3],
    rings: [AtomicU32; 3],
    clock: AtomicU64,
}

impl Peers for Process {
    fn me(&self) -> ProcessId {
        self.id
    }

    fn ring(&self, index: usize) {
        self.world.rings[index].fetch_add(1, Ordering::SeqCst);
    }

    fn pid(&self, _: usize) -> u32 {
        0
    }

    fn is_gone(&self, process: ProcessId) -> bool {
        self.world.dead[process.index()].load(Ordering::SeqCst)
    }

    fn now(&self) -> u64 {
        self.world.clock.load(Ordering::SeqCst)
    }

    fn step(&self) {
        match self.left.load(Ordering::SeqCst) {
            u32::MAX => {}
            0 => resume_unwind(Box::new(Died)),
            left => self.left.store(left - 1, Ordering::SeqCst),
        }
    }
}

impl Process {
    fn word(&'static self) -> SharedWord<'static> {
        let index = self.world.table.find_or_make(0).expect("there is room");
        SharedWord { table: self.world.table, index, word: &self.world.word, peers: self }
    }

    /// Runs `operation`, and dies after so many changes. Returns whether it has died.
    fn dies_in(&'static self, changes: u32, operation: impl FnOnce(SharedWord<'static>)) -> bool {
        self.left.store(changes, Ordering::SeqCst);
        let ended = catch_unwind(AssertUnwindSafe(|| operation(self.word())));
        self.left.store(u32::MAX, Ordering::SeqCst);
        if let Err(error) = ended {
            assert!(error.is::<Died>(), "it panicked");
            self.world.dead[self.id.index()].store(true, Ordering::SeqCst);
            return true;
        }
        false
    }

    fn sweep(&'static self, dead: &Self) {
        self.world.table.sweep(dead.id, self, |_| Some(&self.world.word));
    }

    fn is_told(&self) -> bool {
        !self.world.table.take_news(self.id).is_empty()
    }
}

fn processes() -> [&'static Process; 3] {
    let news = Vec::leak((0..4).map(|_| AtomicU64::default()).collect());
    let records: &[Record] = Vec::leak((0..4).map(|_| Record::default()).collect());
    let world: &'static World = Box::leak(Box::new(World {
        table: Table::of_parts(news, records),
        records,
        word: AtomicI32::new(0),
        dead: Default::default(),
        rings: Default::default(),
        clock: AtomicU64::new(1_000_000),
    }));
    let process = |index| {
        let id = ProcessId::new(index, 7).expect("a slot");
        &*Box::leak(Box::new(Process { id, world, left: AtomicU32::new(u32::MAX) }))
    };
    [process(0), process(1), process(2)]
}

const REQUESTS: [Request; 4] =
    [Request::Lock, Request::Exclusive, Request::Shared, Request::Limited { amount: 2, limit: 3 }];

type Operation = fn(SharedWord<'_>, Request);

/// What a process does until it dies.
const OPERATIONS: [(&str, Operation); 5] = [
    ("take", |word, request| assert!(word.take(request))),
    ("take and give back", |word, request| {
        assert!(word.take(request));
        word.give_back(request.hold());
    }),
    ("take and downgrade", |word, request| {
        assert!(word.take(request));
        if request == Request::Exclusive {
            word.downgrade();
        }
    }),
    ("wait and take", |word, request| {
        word.begin_claims();
        assert!(word.take(request));
        word.end_claims();
    }),
    ("wait and give up", |word, _| {
        word.begin_claims();
        word.answer();
        word.end_claims();
    }),
];

/// Lets the victim die after so many changes, and its sweeper. Returns whether it dies at all.
fn deaths_in(request: Request, name: &str, operation: Operation, changes: u32, deaths: &mut u32) -> bool {
    for sweeps in 0.. {
        let [victim, sweeper, heir] = processes();
        heir.word().begin_claims();
        if !victim.dies_in(changes, |word| operation(word, request)) {
            return false;
        }
        *deaths += 1;
        let both_die = sweeper.dies_in(sweeps, |_| sweeper.sweep(victim));
        if both_die {
            heir.sweep(victim);
            heir.sweep(sweeper);
        }
        let case = format!("{request:?}, {name}: dies after {changes}, its sweeper after {sweeps}");
        assert!(heir.is_told(), "{case}: who waits is told");
        assert_eq!(heir.word().load(), 0, "{case}");
        assert_eq!(heir.word().owner(), None, "{case}");
        for (process, awaited) in [(heir, vec![0]), (victim, Vec::new()), (sweeper, Vec::new())] {
            assert_eq!(heir.world.table.awaited_by(process.id), awaited, "{case}");
        }
        assert!(heir.word().take(request), "{case}: it can be taken");
        let saw = request.hold().mode().is_some_and(|mode| heir.word().take_note_of_death(mode));
        if request.hold().mode() != Some(Mode::Exclusive) {
            assert!(!saw, "{case}: only exclusive holders leave a note");
        }
        heir.word().give_back(request.hold());
        heir.word().end_claims();
        assert_eq!(heir.word().load(), 0, "{case}");
        if !both_die {
            break;
        }
    }
    true
}

#[test]
fn a_death_at_any_change_leaves_a_word_that_is_free_once_it_is_swept() {
    let mut deaths = 0;
    for request in REQUESTS {
        for (name, operation) in OPERATIONS {
            // Until it does not die any more.
            let mut changes = 0;
            while deaths_in(request, name, operation, changes, &mut deaths) {
                changes += 1;
            }
        }
    }
    assert!(deaths > 100, "{deaths} deaths");
}

#[test]
fn who_dies_with_an_exclusive_hold_leaves_a_note_and_what_others_have_stays() {
    for (request, noted) in [(Request::Lock, true), (Request::Exclusive, true)] {
        let [victim, other, _] = processes();
        assert!(victim.word().take(request) && !other.word().take(request));
        victim.world.dead[0].store(true, Ordering::SeqCst);
        other.sweep(victim);
        assert!(other.word().take(request));
        assert_eq!(other.word().take_note_of_death(Mode::Exclusive), noted);
        assert!(!other.word().take_note_of_death(Mode::Exclusive), "one holder sees it");
    }
    for request in [Request::Shared, Request::Limited { amount: 1, limit: 3 }] {
        let [victim, other, third] = processes();
        for process in [victim, other, third] {
            assert!(process.word().take(request));
        }
        other.sweep(victim);
        assert_eq!(other.word().load(), 2);
        other.sweep(third);
        assert_eq!(other.word().load(), 1);
    }
}

/// Returns the `owner` in a record, as `lib/holding/shared-word.js` finds it.
#[allow(unsafe_code, reason = "a record is made of such words")]
fn owner_in(record: &Record) -> u32 {
    const OWNER: usize = 2;
    // SAFETY: it is within the record, and all that is there is atomic.
    unsafe { (*std::ptr::from_ref(record).cast::<AtomicU32>().add(OWNER)).load(Ordering::SeqCst) }
}

#[test]
fn who_saw_the_dead_one_gone_takes_nothing_over_from_a_sweeper() {
    let [victim, sweeper, heir] = processes();
    let owner = |process: &'static Process| process.world.records.iter().map(owner_in).collect::<Vec<_>>();
    assert!(victim.dies_in(1, |word| _ = word.take(Request::Exclusive)));
    let mut owners = vec![owner(heir)];
    for process in [sweeper, heir] {
        assert!(process.dies_in(2, |_| process.sweep(victim)), "in the midst");
        assert!(!owners.contains(&owner(process)), "an exchange of the value that was seen succeeds");
        owners.push(owner(process));
    }
}

#[test]
fn a_notification_is_delivered_once_whoever_dies() {
    for changes in 0..20 {
        let [victim, notifier, heir] = processes();
        victim.word().enter();
        assert_eq!(notifier.word().notify(3, &mut |_| 0), 1);
        assert_eq!(notifier.word().notify(1, &mut |_| 0), 0, "it is counted");
        heir.word().enter();
        heir.word().enter();
        let died = notifier.dies_in(changes, |_| notifier.sweep(victim));
        heir.sweep(victim);
        assert!(heir.word().take_notification(), "after {changes}");
        assert!(heir.is_told());
        if !died {
            assert!(!heir.word().take_notification());
            return;
        }
    }
    panic!("it never swept to the end");
}

#[test]
fn a_waiter_that_leaves_takes_a_notification_if_all_that_are_left_are_notified() {
    let [here, there, _] = processes();
    for _ in 0..3 {
        here.word().enter();
    }
    assert_eq!(there.word().notify(2, &mut |_| 0), 2);
    assert!(!here.word().leave(), "the third was not notified");
    assert!(here.word().leave() && here.word().take_notification());
    assert!(!here.word().take_notification());
    assert_eq!(there.word().notify(2, &mut |_| 0), 0);
}

/// Advances the clock, so that turns begin or lapse.
fn wait(process: &Process, microseconds: u64) {
    process.world.clock.fetch_add(microseconds, Ordering::SeqCst);
}

#[test]
fn a_process_that_has_waited_for_a_tenure_gets_its_turn_and_one_that_does_not_react_loses_it() {
    let [holder, next, third] = processes();
    let request = Request::Lock;
    assert!(holder.word().take(request));
    next.word().begin_claims();
    holder.word().give_back(request.hold());
    assert!(next.is_told() && !third.is_told());
    assert!(holder.word().take(request), "it may overtake for a while");
    assert!(!holder.word().is_due_elsewhere());
    wait(holder, 300);
    assert!(holder.word().is_due_elsewhere());
    holder.word().give_back(request.hold());
    assert!(!holder.word().take(request) && !third.word().take(request), "it is another one's turn");
    assert!(!third.word().grants(request));
    wait(holder, 20_000);
    assert!(holder.word().take(request), "who does not react loses it");
    third.word().begin_claims();
    holder.word().give_back(request.hold());
    assert!(third.is_told(), "the turn goes on");
    wait(holder, 300);
    assert!(!next.word().take(request) && third.word().take(request));
}

#[test]
fn a_process_that_has_answered_is_waited_for_until_the_word_is_freed() {
    let [holder, next, third] = processes();
    let (reader, writer) = (Request::Shared, Request::Exclusive);
    assert!(holder.word().take(reader) && holder.word().take(reader));
    next.word().begin_claims();
    holder.word().give_back(reader.hold());
    assert!(next.is_told() && !next.word().take(writer));
    next.word().answer();
    wait(holder, 1_000_000);
    assert!(!third.word().take(reader), "a waiting writer stops new readers");
    holder.word().give_back(reader.hold());
    assert!(next.is_told() && next.word().take(writer));
    assert_eq!(next.word().load(), WRITING);
    next.word().end_claims();
    next.word().give_back(writer.hold());
    assert!(third.word().take(reader));
    third.word().give_back(Hold::Shared);
}

#[test]
fn a_process_that_answers_before_its_turn_begins_and_stops_then_loses_it() {
    let [holder, next, third] = processes();
    assert!(holder.word().take(Request::Lock));
    next.word().begin_claims();
    holder.word().give_back(Hold::Lock);
    assert!(holder.word().take(Request::Lock), "it overtakes");
    next.word().answer();
    holder.word().give_back(Hold::Lock);
    wait(holder, 300);
    assert!(!third.word().take(Request::Lock), "it is another one's turn");
    wait(holder, 20_000);
    assert!(third.word().take(Request::Lock));
}

#[test]
fn a_process_that_answers_as_the_word_is_freed_and_stops_then_loses_its_turn() {
    let [holder, next, third] = processes();
    assert!(holder.word().take(Request::Lock));
    next.word().begin_claims();
    holder.word().give_back(Hold::Lock);
    next.word().answer();
    wait(holder, 1_000_000);
    assert!(!third.word().take(Request::Lock), "it has been told");
    wait(holder, 20_000);
    assert!(third.word().take(Request::Lock));
}

#[test]
fn a_process_that_gives_up_passes_its_turn_on() {
    let [holder, next, third] = processes();
    assert!(holder.word().take(Request::Lock));
    next.word().begin_claims();
    third.word().begin_claims();
    holder.word().give_back(Hold::Lock);
    assert!(next.is_told() && !third.is_told());
    next.word().end_claims();
    assert!(third.is_told());
    assert!(third.word().take(Request::Lock));
}

#[test]
fn a_full_table_has_no_record_for_another_word() {
    let [process, ..] = processes();
    let table = process.world.table;
    for offset in 0..4 {
        assert!(table.find_or_make(offset).is_some());
        assert_eq!(table.find(offset), table.find_or_make(offset));
    }
    assert_eq!(table.find_or_make(9), None);
    assert_eq!(table.find(9), None);
}

#[test]
fn another_class_on_the_word_of_a_lock_that_is_held_gets_nothing_and_does_not_hang() {
    let [holder, other, _] = processes();
    assert!(holder.word().take(Request::Lock));
    assert!(!other.word().take(Request::Shared));
    other.word().give_back(Hold::Shared);
    other.word().give_back(Hold::Lock);
    assert_eq!(holder.word().owner(), Some(holder.id.index()));
}
