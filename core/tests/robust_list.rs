//! The robust list, read while its thread changes it.

#![cfg(not(feature = "model"))]
#![allow(unsafe_code, reason = "memory that a thread of a test writes")]

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use waitasync_core::held::Holds;
use waitasync_core::held::registers::RegistersRef;
use waitasync_core::lock::Hold;
use waitasync_core::queue::Location;

const CAPACITY: usize = 100;

/// The list of a thread that plays JavaScript: it writes as `lib/holding/robust-list.js` does, and native code.
struct Player {
    table: Holds,
    /// The entries, two numbers each, and behind them the serial numbers.
    memory: &'static [AtomicU64],
    serial: u32,
}

// SAFETY: all that other threads read is atomic.
unsafe impl Send for Player {}

impl Player {
    fn new() -> Self {
        const BYTES: usize = 20 * CAPACITY;
        // Of numbers, so that it is aligned. It is never freed.
        let memory: &[_] = (0..BYTES / 8).map(|_| AtomicU64::new(0)).collect::<Vec<_>>().leak();
        // SAFETY: the memory has so many bytes, and all write there by atomic operations.
        let table = unsafe { Holds::empty(RegistersRef::of_test()).moved_to(NonNull::from(memory).cast(), BYTES) };
        Self { table, memory, serial: 0 }
    }

    fn numbers(&self, index: usize) -> [&AtomicU64; 2] {
        [&self.memory[2 * index], &self.memory[2 * index + 1]]
    }

    fn serial(&self, index: usize) -> &AtomicU32 {
        self.table.serial(index).unwrap()
    }

    fn index_of(&self, location: Location) -> usize {
        self.table.position(self.table.count(), location).unwrap()
    }

    fn set_len(&self, len: usize) {
        self.table.registers.held.store(u32::try_from(len).unwrap(), Ordering::SeqCst);
    }

    fn set_behind(&self, number: u32) {
        self.serial(self.table.count()).store(number, Ordering::SeqCst);
    }

    /// Announces the hold, has `change` take it from its word, and adds the entry. After each write others look.
    fn take(&mut self, location: Location, hold: Hold, change: impl FnOnce(), looks: &dyn Fn()) {
        let len = self.table.count();
        self.serial += 1;
        self.table.entries()[len].set(location, hold);
        looks();
        self.set_behind(self.serial);
        looks();
        change();
        self.set_len(len + 1);
        looks();
    }

    /// Moves an entry to the end, as `toEnd` does.
    fn to_end(&self, index: usize, looks: &dyn Fn()) {
        let (moves, last) = (&self.table.registers.moves, self.table.count() - 1);
        if index == last {
            return;
        }
        let [from, to, behind] = [index, last, last + 1].map(|index| self.numbers(index));
        let [ours, others] = [from, to].map(|fields| fields.map(|field| field.load(Ordering::SeqCst)));
        let [serial, last_serial] = [index, last].map(|index| self.serial(index).load(Ordering::SeqCst));
        let steps: [&dyn Fn(); 11] = [
            &|| moves.store(moves.load(Ordering::SeqCst) + 1, Ordering::SeqCst),
            &|| behind[0].store(ours[0], Ordering::SeqCst),
            &|| self.set_behind(serial),
            &|| from[0].store(others[0], Ordering::SeqCst),
            &|| from[1].store(others[1], Ordering::SeqCst),
            &|| self.serial(index).store(last_serial, Ordering::SeqCst),
            &|| to[0].store(ours[0], Ordering::SeqCst),
            &|| to[1].store(ours[1], Ordering::SeqCst),
            &|| self.serial(last).store(serial, Ordering::SeqCst),
            &|| self.set_behind(0),
            &|| moves.store(moves.load(Ordering::SeqCst) + 1, Ordering::SeqCst),
        ];
        for step in steps {
            step();
            looks();
        }
    }

    /// Releases a hold without a call, as `release` does; `change` frees the word.
    fn release(&self, index: usize, change: &dyn Fn(), looks: &dyn Fn()) {
        self.to_end(index, looks);
        let last = self.table.count() - 1;
        let location = f64::from_bits(self.numbers(last)[0].load(Ordering::SeqCst));
        let steps: [&dyn Fn(); 6] = [
            &|| self.table.registers.set_releasing(location),
            change,
            &|| self.set_len(last),
            &|| self.table.registers.set_releasing(-location),
            &|| self.set_behind(0),
            &|| self.table.registers.set_releasing(0.0),
        ];
        for step in steps {
            step();
            looks();
        }
    }

    /// Releases a hold in whose line others are, which `change` does: the entry is an announcement meanwhile.
    fn release_in_line(&self, index: usize, change: &dyn Fn(), looks: &dyn Fn()) {
        self.to_end(index, looks);
        let last = self.table.count() - 1;
        for step in [&|| self.set_len(last), change, &|| self.set_behind(0)] as [&dyn Fn(); 3] {
            step();
            looks();
        }
    }
}

#[test]
fn an_entry_says_what_its_hold_owes() {
    // As far away as user space goes.
    let [lock, condition] = [8, (usize::MAX >> 16) & !3].map(Location::from_address);
    let player = Player::new();
    let [entry, other] = [0, 1].map(|index| &player.table.entries()[index]);
    for hold in [Hold::Lock, Hold::Exclusive] {
        entry.set(lock, hold);
        assert_eq!((entry.get(), entry.owed()), (Some((lock, hold)), None));
        // As `lib/holding/request.js` writes it.
        let number = -(hold.packed() as f64 + 4.0 * condition.address() as f64);
        player.numbers(0)[1].store(number.to_bits(), Ordering::Relaxed);
        assert_eq!((entry.get(), entry.owed()), (Some((lock, hold)), Some(condition)));
        other.copy(entry);
        assert_eq!((other.get(), other.owed()), (Some((lock, hold)), Some(condition)));
    }
    entry.set(lock, Hold::Permits(u32::MAX));
    assert_eq!((entry.get(), entry.owed()), (Some((lock, Hold::Permits(u32::MAX))), None));
}

#[test]
fn after_each_write_others_see_the_holds_before_or_after_and_know_who_has_the_word() {
    const MOST: u32 = 4;
    let [word, other] = [8, 16].map(Location::from_address);
    let reached = RefCell::new(HashSet::new());
    // Each hold has a different amount. The entry of another word is the last, or not.
    for (amount, has_other) in (1..=MOST).flat_map(|amount| [(amount, false), (amount, true)]) {
        for in_line in [false, true] {
            let (mut player, is_held) = (Player::new(), Cell::new(0));
            let table = player.table;
            let seen = || {
                let mut seen: Vec<_> = table.held(|_| true).iter().map(|held| held.hold).collect();
                seen.sort_by_key(|hold| hold.packed());
                seen
            };
            let step = RefCell::new((seen(), seen()));
            let looks = || {
                reached.borrow_mut().insert(std::mem::discriminant(&table.state()));
                let (before, after) = &*step.borrow();
                assert!([before, after].contains(&&seen()), "{:?} from {before:?} to {after:?}", seen());
                assert!(is_held.get() == 0 || table.mentions(word), "{:?}", table.state());
            };
            let expect = |holds: &[Hold]| {
                let next = std::mem::replace(&mut step.borrow_mut().1, holds.to_vec());
                step.borrow_mut().0 = next;
            };
            let mut holds = Vec::new();
            let others = has_other.then_some((other, Hold::Lock));
            for (location, hold) in (1..=MOST).map(|amount| (word, Hold::Permits(amount))).chain(others) {
                holds.push(hold);
                holds.sort_by_key(|hold| hold.packed());
                expect(&holds);
                player.take(location, hold, || is_held.set(is_held.get() + 1), &looks);
                assert_eq!(seen(), holds);
            }
            holds.retain(|&hold| hold != Hold::Permits(amount));
            expect(&holds);
            let release = if in_line { Player::release_in_line } else { Player::release };
            release(&player, amount as usize - 1, &|| is_held.set(is_held.get() - 1), &looks);
            assert_eq!(seen(), holds);
        }
    }
    assert_eq!(reached.into_inner().len(), 6, "all states of the head");
}

#[test]
fn holder_lookup_races_with_list_changes() {
    let [lock, other] = [8, 16].map(Location::from_address);
    // The word of `lock` is freed in its bucket's critical section, in which other threads look for its holder.
    let (bucket, is_locked, is_over) = (Mutex::new(()), AtomicBool::new(false), AtomicBool::new(false));
    let mut player = Player::new();
    let table = player.table;
    // The other lock's entry is the first, and that of `lock` the last: they change places when either is released.
    player.take(other, Hold::Lock, || (), &|| ());
    for n in 3..CAPACITY - 4 {
        player.take(Location::from_address(8 * n), Hold::Lock, || (), &|| ());
    }
    let (mut looks, mut announced, end) = (0, 0, Instant::now() + Duration::from_millis(500));
    std::thread::scope(|scope| {
        let (bucket, is_locked, is_over) = (&bucket, &is_locked, &is_over);
        scope.spawn(move || {
            while !is_over.load(Ordering::SeqCst) {
                player.take(lock, Hold::Lock, || is_locked.store(true, Ordering::SeqCst), &|| ());
                player.release_in_line(player.index_of(other), &|| (), &|| ());
                player.take(other, Hold::Lock, || (), &|| ());
                let free = || {
                    let _section = bucket.lock().unwrap();
                    is_locked.store(false, Ordering::SeqCst);
                };
                player.release_in_line(player.index_of(lock), &free, &|| ());
            }
        });
        // A busy machine seldom lets the threads meet while the lock is announced only.
        while looks < 1000 || announced < 10 || Instant::now() < end {
            let section = bucket.lock().unwrap();
            let is_unknown = is_locked.load(Ordering::SeqCst) && !table.mentions(lock);
            looks += u32::from(is_locked.load(Ordering::SeqCst));
            announced += u32::from(is_locked.load(Ordering::SeqCst) && !table.holds(lock));
            drop(section);
            // The other thread gets the bucket, too, and at different moments.
            (0..looks % 64).for_each(|_| std::hint::spin_loop());
            if is_unknown {
                is_over.store(true, Ordering::SeqCst);
                panic!("after {looks} looks, the list does not have a lock that its thread holds");
            }
        }
        is_over.store(true, Ordering::SeqCst);
    });
}
