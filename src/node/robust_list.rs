//! The robust list: what a thread holds, in memory that outlives the thread's JavaScript, so that its end can pass it on.
//!
//! An entry is the address and the request of a lock, of a share of a read-write lock, or of permits; the entries have no order.
//! JavaScript adds an entry by the same run of instructions that takes the lock, and removes it likewise: at whatever moment
//! the thread is terminated, the list is right.
//!
//! Behind the last entry there may be an *announcement*: the lock that the thread is about to try to take, or is just
//! releasing. It counts if its serial number is not 0. As it is written before the word changes, there is no moment at which
//! a lock is taken and its holder unknown. Other threads read the list to tell who holds a lock.

use std::cell::Cell;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use napi::{Result, sys};

use crate::lock::request::Request;
use crate::node::environment::{Environment, pin_buffer};
use crate::node::registers::{RegistersRef, from_number, to_number};
use crate::queue::location::Location;

/// An entry: two JavaScript numbers.
#[repr(C)]
struct Entry {
    address: AtomicU64,
    request: AtomicU64,
}

impl Entry {
    fn set(&self, location: Location, request: Request) {
        let (kind, amount) = request.to_code();
        self.address.store(to_number(location).to_bits(), Ordering::Relaxed);
        self.request.store((f64::from(kind) + f64::from(amount) * 8.0).to_bits(), Ordering::Relaxed);
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "what `set` or `lib/` wrote")]
    fn get(&self) -> Option<(Location, Request)> {
        let request = f64::from_bits(self.request.load(Ordering::Relaxed)) as u64;
        let location = from_number(f64::from_bits(self.address.load(Ordering::Relaxed)))?;
        Some((location, Request::from_code((request % 8) as u32, (request / 8) as u32)))
    }
}

/// What tells whether a list has changed.
#[derive(PartialEq, Eq)]
struct State {
    /// Of the entries and of the place behind them.
    serials: Vec<u32>,
    releasing: Option<Location>,
}

/// The memory of a robust list, as every thread may read it: only the list's own thread writes.
#[derive(Clone, Copy)]
pub(super) struct Table {
    registers: RegistersRef,
    /// The entries. As many serial numbers follow: `lib/`'s, but for [`Table::ANNOUNCED`] and 0.
    start: NonNull<Entry>,
    capacity: usize,
}

/// An entry of a robust list, as another thread reads it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Held {
    pub(super) location: Location,
    pub(super) request: Request,
    /// Tells this hold from earlier and later ones of its thread, unless it is 0.
    pub(super) serial: u32,
}

/// What a robust list says of a lock.
pub(super) enum Hold {
    /// The thread holds it, or is certain to.
    Certain,
    /// The thread holds it, or is finding out whether it does, or has just released it.
    Possible,
}

impl Table {
    /// How often a list that changes meanwhile is read at most.
    const MOST_READINGS: usize = 8;

    /// The serial number of an announcement of native code. No token has it.
    const ANNOUNCED: u32 = 0x7fff_ffff;

    fn len(&self) -> usize {
        self.registers.held.load(Ordering::Acquire) as usize
    }

    fn entries(&self) -> &[Entry] {
        // SAFETY: `RobustList::enlarge` checked the size and keeps the memory, which does not move; another thread reads it
        // under the lock of the registry, under which the memory is exchanged and the agent leaves.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.capacity) }
    }

    fn serial(&self, index: usize) -> Option<&AtomicU32> {
        // SAFETY: as for `entries`.
        let serials =
            unsafe { std::slice::from_raw_parts(self.start.add(self.capacity).cast().as_ptr(), self.capacity) };
        serials.get(index)
    }

    /// The index of the first of `len` entries that is for `location`.
    fn position(&self, len: usize, location: Location) -> Option<usize> {
        let wanted = to_number(location).to_bits();
        self.entries().iter().take(len).position(|entry| entry.address.load(Ordering::Relaxed) == wanted)
    }

    /// What the thread holds, but for what it is just releasing.
    ///
    /// An entry that is about to be released changes places with the last one, and is announced meanwhile: then it counts as
    /// released. The last one may be there twice, and then the original is right.
    pub(super) fn held(&self) -> Vec<Held> {
        let mut before = self.state();
        for _ in 0..Self::MOST_READINGS {
            let held = self.read(&before);
            // What was read comes before this.
            fence(Ordering::Acquire);
            let after = self.state();
            if after == before {
                return held;
            }
            before = after;
        }
        self.read(&before)
    }

    /// As long as it stays the same, no entry has been added, removed or moved, but for the one that is announced.
    fn state(&self) -> State {
        let (len, releasing) = (self.len(), self.registers.releasing());
        let serial = |index| self.serial(index).map_or(0, |serial| serial.load(Ordering::Acquire));
        State { serials: (0..=len).map(serial).collect(), releasing }
    }

    fn read(&self, State { serials, releasing }: &State) -> Vec<Held> {
        let len = serials.len() - 1;
        let at = |index| self.entries().get(index).and_then(Entry::get).map(|(location, _)| location);
        let (moved, last) = if serials[len] == 0 { (None, None) } else { (at(len), len.checked_sub(1)) };
        let stays = last.and_then(at);
        let held = (0..len).filter_map(|index| {
            let (location, request) = self.entries().get(index)?.get()?;
            let serial = if serials[index] == Self::ANNOUNCED { 0 } else { serials[index] };
            let is_gone = Some(location) == *releasing || Some(location) == moved;
            let is_copy = Some(location) == stays && Some(index) != last;
            (!is_gone && !is_copy).then_some(Held { location, request, serial })
        });
        held.collect()
    }

    /// What the list and the registers say of the lock at `location`. They say nothing of it only if they have stayed the same while
    /// they were read: what is moved, or becomes an announcement, meanwhile can be overlooked.
    pub(super) fn hold(&self, location: Location) -> Option<Hold> {
        let mut before = self.state();
        for _ in 0..Self::MOST_READINGS {
            let len = before.serials.len() - 1;
            let is_entry = |&index: &usize| index < len || before.serials[len] != 0;
            let position = self.position(len + 1, location).filter(is_entry);
            let is_releasing = before.releasing == Some(location);
            // What was read comes before this.
            fence(Ordering::Acquire);
            let after = self.state();
            let is_same = after == before;
            match position {
                Some(index) if index < len && is_same && !is_releasing => return Some(Hold::Certain),
                // The word is freed before the entry goes, so another thread may have it already.
                Some(_) => return Some(Hold::Possible),
                None if is_releasing => return Some(Hold::Possible),
                None if is_same => return None,
                None => before = after,
            }
        }
        Some(Hold::Possible)
    }
}

/// The robust list of the calling thread.
pub(super) struct RobustList {
    environment: Environment,
    pub(super) table: Cell<Table>,
    /// Keeps the memory.
    buffer: Cell<sys::napi_ref>,
}

impl RobustList {
    /// A list without memory.
    pub(super) fn new(environment: Environment, registers: RegistersRef) -> Self {
        let table = Table { registers, start: NonNull::dangling(), capacity: 0 };
        Self { environment, table: Cell::new(table), buffer: Cell::new(ptr::null_mut()) }
    }

    /// Moves the list to a larger buffer, into which JavaScript has copied the entries. `publish` tells other threads.
    ///
    /// # Safety
    /// On the thread of the environment, in a call from JavaScript; `buffer` is an `ArrayBuffer`.
    pub(super) unsafe fn enlarge(&self, buffer: sys::napi_value, publish: impl FnOnce(Table)) -> Result<()> {
        // SAFETY: as the caller promises.
        let (data, bytes, reference) = unsafe { pin_buffer(self.environment.env, buffer) }?;
        let capacity = bytes / (size_of::<Entry>() + size_of::<u32>());
        let table = Table { start: data.cast(), capacity, ..self.table.get() };
        publish(table);
        self.table.set(table);
        self.environment.unpin(self.buffer.replace(reference))
    }

    pub(super) fn len(&self) -> u32 {
        self.table.get().registers.held.load(Ordering::Relaxed)
    }

    /// With fewer entries than there are: removes the others, the last to be added.
    pub(super) fn set_len(&self, len: u32) {
        self.table.get().registers.held.store(len, Ordering::Relaxed);
    }

    pub(super) fn includes(&self, location: Location) -> bool {
        self.table.get().position(self.len() as usize, location).is_some()
    }

    /// Announces that the thread is about to try to take a lock. Until [`Self::add`] or [`Self::retract`].
    pub(super) fn announce(&self, location: Location, request: Request) {
        let (table, len) = (self.table.get(), self.len() as usize);
        if request == Request::Lock
            && let (Some(entry), Some(serial)) = (table.entries().get(len), table.serial(len))
        {
            entry.set(location, request);
            serial.store(Table::ANNOUNCED, Ordering::Relaxed);
        }
    }

    /// The thread did not get what it announced, or has released what it removed.
    pub(super) fn retract(&self) {
        if let Some(serial) = self.table.get().serial(self.len() as usize) {
            serial.store(0, Ordering::Relaxed);
        }
    }

    /// The thread has what it asked for. Only what it then holds is written down.
    pub(super) fn add(&self, location: Location, request: Request) {
        let (table, len) = (self.table.get(), self.len());
        // JavaScript makes room before it asks for anything, so there always is some.
        if request.is_owned()
            && let Some(entry) = table.entries().get(len as usize)
        {
            entry.set(location, request);
            self.set_len(len + 1);
        }
    }

    /// Removes the entry at the index in the registers, which the caller then releases. Until [`Self::retract`] it is
    /// an announcement, with the serial number that it had.
    pub(super) fn remove(&self) -> Option<(Location, Request)> {
        let table = self.table.get();
        let entries = &table.entries()[..self.len() as usize];
        let (entry, last) = (entries.get(table.registers.index.get() as usize)?, entries.last()?);
        let removed = entry.get()?;
        let (location, request) = last.get()?;
        entry.set(location, request);
        self.set_len(self.len() - 1);
        Some(removed)
    }

    /// Calls `pass_on` with each entry, which is an announcement meanwhile: so at every moment it can be told who holds what.
    pub(super) fn drain(&self, mut pass_on: impl FnMut(Location, Request)) {
        while let Some(last) = self.len().checked_sub(1) {
            // From here on it is an announcement: the next holder may have it before `pass_on` returns.
            self.set_len(last);
            if let Some((location, request)) = self.table.get().entries().get(last as usize).and_then(Entry::get) {
                pass_on(location, request);
            }
            self.retract();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::AtomicBool;
    use std::time::{Duration, Instant};

    use super::*;

    const CAPACITY: usize = 100;

    /// The list of a thread that plays JavaScript: it changes the list as `lib/` and [`RobustList`] do.
    struct Player {
        table: Table,
        serial: u32,
    }

    // SAFETY: what other threads read is atomic.
    unsafe impl Send for Player {}

    impl Player {
        fn new() -> Self {
            // Of numbers, so that it is aligned; never freed.
            let memory = |bytes: usize| NonNull::from(vec![0_u64; bytes / 8].leak()).cast();
            let registers = RegistersRef::zeroed(memory);
            let start = memory(CAPACITY * (size_of::<Entry>() + size_of::<u32>())).cast();
            Self { table: Table { registers, start, capacity: CAPACITY }, serial: 0 }
        }

        fn serial(&self, index: usize) -> &AtomicU32 {
            self.table.serial(index).unwrap()
        }

        fn set_len(&self, len: usize) {
            self.table.registers.held.store(u32::try_from(len).unwrap(), Ordering::SeqCst);
        }

        /// Announces the lock, has `change` lock its word, and adds the entry.
        fn take(&mut self, location: Location, change: impl FnOnce()) {
            let len = self.table.len();
            self.serial += 1;
            self.table.entries()[len].set(location, Request::Lock);
            self.serial(len).store(self.serial, Ordering::SeqCst);
            change();
            self.set_len(len + 1);
        }

        /// Moves the entry to the end of the list, as `toEnd` does.
        fn to_end(&self, location: Location) {
            let last = self.table.len() - 1;
            let index = self.table.position(last + 1, location).unwrap();
            if index == last {
                return;
            }
            let (serials, entries) = (|index| self.serial(index).load(Ordering::SeqCst), self.table.entries());
            let (serial, other) = (serials(index), entries[last].get().unwrap().0);
            entries[last + 1].set(location, Request::Lock);
            self.serial(last + 1).store(serial, Ordering::SeqCst);
            entries[index].set(other, Request::Lock);
            self.serial(index).store(serials(last), Ordering::SeqCst);
            entries[last].set(location, Request::Lock);
            self.serial(last).store(serial, Ordering::SeqCst);
            self.serial(last + 1).store(0, Ordering::SeqCst);
        }

        /// Releases a lock in whose line others are, which `change` does: the entry is an announcement meanwhile.
        fn release_in_line(&self, location: Location, change: impl FnOnce()) {
            self.to_end(location);
            self.set_len(self.table.len() - 1);
            change();
            self.serial(self.table.len()).store(0, Ordering::SeqCst);
        }
    }

    #[test]
    fn whoever_holds_a_lock_is_found_while_the_list_changes() {
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
        let (mut looks, end) = (0, Instant::now() + Duration::from_millis(500));
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
            while looks < 1000 || Instant::now() < end {
                let section = bucket.lock().unwrap();
                let is_unknown = is_locked.load(Ordering::SeqCst) && table.hold(lock).is_none();
                looks += u32::from(is_locked.load(Ordering::SeqCst));
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
}
