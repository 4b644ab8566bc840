//! Tests of the robust list, read while its thread changes it.

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::*;

const CAPACITY: usize = 100;

/// The list of a thread that plays JavaScript: it changes the list as `lib/` and [`RobustList`] do.
struct Player {
    table: Holds,
    serial: u32,
}

// SAFETY: all that other threads read is atomic.
unsafe impl Send for Player {}

impl Player {
    fn new() -> Self {
        const BYTES: usize = CAPACITY * (size_of::<Entry>() + size_of::<u32>());
        // Of numbers, so that it is aligned. It is never freed.
        let memory = (0..BYTES / 8).map(|_| AtomicU64::new(0)).collect::<Vec<_>>().leak();
        let table =
            Holds { registers: RegistersRef::of_test(), start: NonNull::from(memory).cast(), capacity: CAPACITY };
        Self { table, serial: 0 }
    }

    fn serial(&self, index: usize) -> &AtomicU32 {
        self.table.serial(index).unwrap()
    }

    fn set_len(&self, len: usize) {
        self.table.registers.held.store(u32::try_from(len).unwrap(), Ordering::SeqCst);
    }

    /// Announces the lock, has `change` lock its word, and adds the entry.
    fn take(&mut self, location: Location, change: impl FnOnce()) {
        self.take_hold(location, Hold::Lock, change);
    }

    fn take_hold(&mut self, location: Location, hold: Hold, change: impl FnOnce()) {
        let len = self.table.count();
        self.serial += 1;
        self.table.entries()[len].set(location, hold);
        self.serial(len).store(self.serial, Ordering::SeqCst);
        change();
        self.set_len(len + 1);
    }

    /// Moves an entry to the end, as `toEnd` does. After each write others look.
    fn to_end(&self, index: usize, looks: &dyn Fn()) {
        let (moves, entries, last) = (&self.table.registers.moves, self.table.entries(), self.table.count() - 1);
        if index == last {
            return;
        }
        let fields = |entry: &Entry| [&entry.address, &entry.hold].map(|field| field.load(Ordering::SeqCst));
        let [serial, last_serial] = [index, last].map(|index| self.serial(index).load(Ordering::SeqCst));
        let (ours, others) = (fields(&entries[index]), fields(&entries[last]));
        let steps: [&dyn Fn(); 10] = [
            &|| entries[last + 1].address.store(ours[0], Ordering::SeqCst),
            &|| self.serial(last + 1).store(serial, Ordering::SeqCst),
            &|| entries[index].address.store(others[0], Ordering::SeqCst),
            &|| entries[index].hold.store(others[1], Ordering::SeqCst),
            &|| self.serial(index).store(last_serial, Ordering::SeqCst),
            &|| entries[last].address.store(ours[0], Ordering::SeqCst),
            &|| entries[last].hold.store(ours[1], Ordering::SeqCst),
            &|| self.serial(last).store(serial, Ordering::SeqCst),
            &|| self.serial(last + 1).store(0, Ordering::SeqCst),
            &|| moves.store(moves.load(Ordering::SeqCst) + 1, Ordering::SeqCst),
        ];
        moves.fetch_add(1, Ordering::SeqCst);
        for step in steps {
            looks();
            step();
        }
    }

    /// Releases a lock in whose line others are, which `change` does: the entry is an announcement meanwhile.
    fn release_in_line(&self, location: Location, change: impl FnOnce()) {
        self.to_end(self.table.position(self.table.count(), location).unwrap(), &|| ());
        self.set_len(self.table.count() - 1);
        change();
        self.serial(self.table.count()).store(0, Ordering::SeqCst);
    }

    fn set_releasing(&self, number: f64) {
        self.table.registers.set_releasing(number);
    }

    /// Releases a share or permits, as `release` does; after each write others look.
    fn release_part(&self, index: usize, looks: &dyn Fn()) {
        self.to_end(index, looks);
        let last = self.table.count() - 1;
        let location = to_number(self.table.entries()[last].location().unwrap());
        let steps: [&dyn Fn(); 5] = [
            &|| self.set_releasing(location),
            &|| self.set_len(last),
            &|| self.set_releasing(-location),
            &|| self.serial(last).store(0, Ordering::SeqCst),
            &|| self.set_releasing(0.0),
        ];
        for step in steps {
            step();
            looks();
        }
    }
}

#[test]
fn an_entry_says_what_its_hold_owes() {
    // As far away as user space goes.
    let [lock, condition] = [8, (usize::MAX >> 16) & !3].map(Location::from_address);
    let [entry, other] = [(); 2].map(|()| Entry { address: AtomicU64::new(0), hold: AtomicU64::new(0) });
    for hold in [Hold::Lock, Hold::Exclusive] {
        entry.set(lock, hold);
        assert_eq!((entry.get(), entry.owed()), (Some((lock, hold)), None));
        // As `lib/holding/entry.js` writes it.
        let number = -(hold.packed() as f64 + 4.0 * condition.address() as f64);
        entry.hold.store(number.to_bits(), Ordering::Relaxed);
        assert_eq!((entry.get(), entry.owed()), (Some((lock, hold)), Some(condition)));
        other.copy(&entry);
        assert_eq!((other.get(), other.owed()), (Some((lock, hold)), Some(condition)));
    }
    entry.set(lock, Hold::Permits(u32::MAX));
    assert_eq!((entry.get(), entry.owed()), (Some((lock, Hold::Permits(u32::MAX))), None));
}

#[test]
fn of_several_holds_of_a_word_only_the_one_that_is_released_is_left_out() {
    const MOST: u32 = 4;
    let word = Location::from_address(8);
    // Each has a different amount. The entry of another word is the last, or not.
    for (releases, has_other) in (1..=MOST).flat_map(|amount| [(amount, false), (amount, true)]) {
        let mut player = Player::new();
        (1..=MOST).for_each(|amount| player.take_hold(word, Hold::Permits(amount), || ()));
        if has_other {
            player.take(Location::from_address(16), || ());
        }
        let table = player.table;
        let seen = || {
            let mut seen: Vec<_> = table.held(|_| true).iter().map(|held| (held.location, held.hold)).collect();
            seen.sort_by_key(|(location, hold)| (location.address(), hold.packed()));
            seen
        };
        let before = seen();
        let after: Vec<_> = before.iter().copied().filter(|&(_, hold)| hold != Hold::Permits(releases)).collect();
        assert_eq!(before.len(), after.len() + 1);
        let looks = || {
            let now = seen();
            assert!(now == before || now == after, "{now:?} while {releases} of {before:?} are released");
        };
        player.release_part(releases as usize - 1, &looks);
        assert_eq!(seen(), after);
    }
}

#[test]
fn holder_lookup_races_with_list_changes() {
    let [lock, other] = [8, 16].map(Location::from_address);
    // The word of `lock` is freed in its bucket's critical section, in which other threads look for its holder.
    let (bucket, is_locked, is_over) = (Mutex::new(()), AtomicBool::new(false), AtomicBool::new(false));
    let mut player = Player::new();
    let table = player.table;
    // The other lock's entry is the first, and that of `lock` the last: they change places when either is released.
    player.take(other, || ());
    for n in 3..CAPACITY - 4 {
        player.take(Location::from_address(8 * n), || ());
    }
    let (mut looks, mut announced, end) = (0, 0, Instant::now() + Duration::from_millis(500));
    std::thread::scope(|scope| {
        let (bucket, is_locked, is_over) = (&bucket, &is_locked, &is_over);
        scope.spawn(move || {
            while !is_over.load(Ordering::SeqCst) {
                player.take(lock, || is_locked.store(true, Ordering::SeqCst));
                player.release_in_line(other, || ());
                player.take(other, || ());
                player.release_in_line(lock, || {
                    let _section = bucket.lock().unwrap();
                    is_locked.store(false, Ordering::SeqCst);
                });
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
