//! Words of memory that several processes share: who has what of them, and who waits.
//!
//! Each word that a lock is on, or that somebody awaits, has a record in the file's table. The line in front is the
//! process's own; its record says which processes have one, and what each of them has of the word.
//!
//! # What a death leaves
//! | word of a | truth | written | after a death |
//! |---|---|---|---|
//! | lock | `owner`: HELD and the process | by one exchange | the word is freed, `died` is set |
//! | read-write lock, semaphore | `shares`: of the word's value, what each process has | while `owner` is the process | the
//! dead one's is 0, the word is the sum |
//!
//! So a death at any step leaves either what was before it or what was to come. `owner` without HELD is held for some
//! instructions; who finds that its process is gone takes it over, and makes the word the sum.
//!
//! # Why no release is missed
//! A process raises its bit in `waiting` before it tries for the last time. One that frees the word does so before it
//! reads `waiting`, and then rings the process whose turn it is ([`super::turn`]). That one takes the word and later frees
//! it, or finds it held by one that will free it, or leaves `waiting` and then passes the turn on itself. If it dies, who
//! sweeps rings all that wait.
//!
//! # Notifications
//! `waits[p]` has how many waiters process p has, and how many of them other processes have notified. A notification
//! raises the latter by one exchange, never above the former; so it is counted once, and p delivers it. A waiter that
//! gives up while all that are left are notified is itself notified.

#![allow(unsafe_code, reason = "a table in mapped memory")]

use super::turn::{TENURE, Turn, next_in};
use super::{MOST_PROCESSES, ProcessId};
use crate::lock::{Hold, LOCKED, Mode, Request, UNLOCKED, WRITING, Word};
use crate::sync::{AtomicI32, AtomicU32, AtomicU64, Ordering, fence};

/// Marks an `owner` that has a lock, for longer than it takes to change a record.
const HELD: u32 = 1 << ProcessId::BITS;

const SHORTEST_TABLE: usize = 64;
const LONGEST_TABLE: usize = 1024;
/// How many masks tell a process which records have news.
const NEWS: usize = LONGEST_TABLE / 64;
/// In a model fewer, since each is an object of it.
const SLOTS: usize = if cfg!(feature = "model") { 3 } else { MOST_PROCESSES };

/// How often a process looks at a record that another one changes before it asks whether that is dead.
const LOOKS: u32 = if cfg!(feature = "model") { 2 } else { 200 };

/// The other processes, and the clock that all have.
pub trait Peers: Sync {
    fn me(&self) -> ProcessId;
    /// Wakes the process in this slot: it then looks at its news.
    fn ring(&self, index: usize);
    /// Whether a process is certainly dead.
    fn is_gone(&self, process: ProcessId) -> bool;
    /// The time in microseconds, the same for all processes.
    fn now(&self) -> u64;
}

/// What the processes know of a word.
#[repr(C, align(64))]
pub struct Record {
    /// The word's offset in words, and one; 0: nobody uses the record.
    key: AtomicU64,
    owner: AtomicU32,
    /// Whether an exclusive holder has died, and nobody has seen it.
    died: AtomicU32,
    /// The processes that have claims.
    waiting: AtomicU64,
    turn: AtomicU64,
    /// The process that a notification begins with.
    first_notified: AtomicU32,
    shares: [AtomicI32; SLOTS],
    waits: [AtomicU64; SLOTS],
}

/// The records of a file.
#[derive(Clone, Copy)]
pub struct Table<'a> {
    /// For each process, which records have news for it.
    news: &'a [AtomicU64],
    records: &'a [Record],
}

const NEWS_BYTES: usize = SLOTS * NEWS * size_of::<AtomicU64>();

/// Returns how many records there are for so many bytes of data.
const fn records_for(data_bytes: usize) -> usize {
    let wanted = data_bytes / 64;
    let most = if wanted < LONGEST_TABLE { wanted } else { LONGEST_TABLE };
    if most < SHORTEST_TABLE { SHORTEST_TABLE } else { most.next_power_of_two() }
}

/// Returns the bytes of the table for so many bytes of data.
pub const fn table_bytes(data_bytes: usize) -> usize {
    NEWS_BYTES + records_for(data_bytes) * size_of::<Record>()
}

/// Takes the number of waiters and of notifications apart.
const fn unpacked(waits: u64) -> (u32, u32) {
    (waits as u32, (waits >> 32) as u32)
}

const fn packed(waiters: u32, notified: u32) -> u64 {
    (notified as u64) << 32 | waiters as u64
}

/// Replaces a number by `next` of it, unless that is `None`. Returns the number before.
fn update(number: &AtomicU64, next: impl Fn(u64) -> Option<u64>) -> Option<u64> {
    number.fetch_update(Ordering::SeqCst, Ordering::SeqCst, next).ok()
}

impl<'a> Table<'a> {
    /// Makes the view of a table.
    ///
    /// # Safety
    /// `start` begins so many bytes as [`table_bytes`] says, aligned to 64 and 0 at first, that live as long as `'a` and
    /// are only written by this module.
    #[cfg(not(feature = "model"))]
    pub const unsafe fn from_raw(start: *const u8, data_bytes: usize) -> Self {
        // SAFETY: as the caller promises; both arrays are within these bytes, and of atomics, for which any bytes do.
        unsafe {
            let news = std::slice::from_raw_parts(start.cast(), SLOTS * NEWS);
            let records = std::slice::from_raw_parts(start.add(NEWS_BYTES).cast(), records_for(data_bytes));
            Self { news, records }
        }
    }

    /// Makes a table of memory that this process has alone.
    pub const fn of_parts(news: &'a [AtomicU64], records: &'a [Record]) -> Self {
        Self { news, records }
    }

    /// Looks at the records from that of an offset on: the index of its own, or of the first free one.
    fn search(self, key: u64) -> Option<(usize, bool)> {
        let length = self.records.len();
        let start = (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as usize;
        (0..length).map(|step| start.wrapping_add(step) % length).find_map(|index| {
            match self.records[index].key.load(Ordering::SeqCst) {
                0 => Some((index, false)),
                found => (found == key).then_some((index, true)),
            }
        })
    }

    /// Finds the record of the word at an offset, in words.
    pub fn find(self, offset: usize) -> Option<usize> {
        self.search(offset as u64 + 1).and_then(|(index, is_its)| is_its.then_some(index))
    }

    /// Finds or makes the record of a word. `None`: there are too many.
    pub fn find_or_make(self, offset: usize) -> Option<usize> {
        let key = offset as u64 + 1;
        loop {
            match self.search(key)? {
                (index, true) => return Some(index),
                (index, false) => {
                    let free = &self.records[index].key;
                    match free.compare_exchange(0, key, Ordering::SeqCst, Ordering::SeqCst) {
                        Ok(_) => return Some(index),
                        Err(found) if found == key => return Some(index),
                        Err(_) => {}
                    }
                }
            }
        }
    }

    /// Returns the offset of a record's word, in words: it is input.
    fn offset(self, index: usize) -> Option<usize> {
        usize::try_from(self.records[index].key.load(Ordering::SeqCst)).ok()?.checked_sub(1)
    }

    /// Takes the news for a process: the offsets of words.
    pub fn take_news(self, process: ProcessId) -> Vec<usize> {
        let mut offsets = Vec::new();
        for (nth, mask) in self.news_of(process.index()).iter().enumerate() {
            let mut mask = if mask.load(Ordering::SeqCst) == 0 { 0 } else { mask.swap(0, Ordering::SeqCst) };
            while mask != 0 {
                let index = 64 * nth + mask.trailing_zeros() as usize;
                mask &= mask - 1;
                offsets.extend((index < self.records.len()).then(|| self.offset(index)).flatten());
            }
        }
        offsets
    }

    fn news_of(self, process: usize) -> &'a [AtomicU64] {
        let each = self.news.len() / SLOTS;
        &self.news[process * each..][..each]
    }

    /// Tells a process that a record has news for it.
    fn tell(self, record: usize, process: usize, peers: &dyn Peers) {
        let bit = 1 << (record % 64);
        let before = self.news_of(process)[record / 64].fetch_or(bit, Ordering::SeqCst);
        // If it was told before, it has not looked yet.
        if before & bit == 0 {
            peers.ring(process);
        }
    }

    /// Takes back all that a dead process has. `word` gives the word at an offset, if it is one of the data. It can be
    /// called again.
    pub fn sweep(self, dead: ProcessId, peers: &'a dyn Peers, word: impl Fn(usize) -> Option<&'a AtomicI32>) {
        for index in 0..self.records.len() {
            if let Some(word) = self.offset(index).and_then(&word) {
                SharedWord { table: self, index, word, peers }.sweep(dead);
            }
        }
        for mask in self.news_of(dead.index()) {
            mask.store(0, Ordering::SeqCst);
        }
    }
}

/// A word that several processes share, seen by one of them. Its process changes it in one thread at a time.
#[derive(Clone, Copy)]
pub struct SharedWord<'a> {
    pub table: Table<'a>,
    /// Of its record.
    pub index: usize,
    pub word: &'a AtomicI32,
    pub peers: &'a dyn Peers,
}

impl SharedWord<'_> {
    fn record(&self) -> &Record {
        &self.table.records[self.index]
    }

    fn me(&self) -> ProcessId {
        self.peers.me()
    }

    fn others_waiting(&self) -> u64 {
        self.record().waiting.load(Ordering::SeqCst) & !self.me().mask()
    }

    // ——— The owner ———

    fn change_owner(&self, current: u32, new: u32) -> Result<u32, u32> {
        self.record().owner.compare_exchange(current, new, Ordering::SeqCst, Ordering::SeqCst)
    }

    /// Begins a change of the record. Returns false if a lock is held here: then another class uses the word.
    fn begin(&self) -> bool {
        self.begin_as(self.me().packed(), false)
    }

    /// Begins a change of the record for `owner`, which is dead if it `sweeps`: if the sweeper dies, too, it is swept
    /// again.
    fn begin_as(&self, owner: u32, sweeps: bool) -> bool {
        let mut looks = 0;
        loop {
            let Err(found) = self.change_owner(0, owner) else { return true };
            if found & HELD != 0 {
                return false;
            }
            if sweeps && found == owner {
                self.sum_up();
                return true;
            }
            looks += 1;
            if looks < LOOKS {
                std::hint::spin_loop();
                continue;
            }
            looks = 0;
            let is_gone = ProcessId::from_packed(found).is_none_or(|process| self.peers.is_gone(process));
            if is_gone && self.change_owner(found, owner).is_ok() {
                self.sum_up();
                return true;
            }
            pause();
        }
    }

    fn end(&self) {
        self.record().owner.store(0, Ordering::SeqCst);
    }

    /// Makes the word the sum of what the processes have of it.
    fn sum_up(&self) {
        let shares = self.record().shares.iter().map(|share| share.load(Ordering::SeqCst));
        self.word.store(shares.fold(0, i32::wrapping_add), Ordering::SeqCst);
    }

    /// Replaces the word's value, within a change of the record.
    fn set(&self, current: i32, next: i32) {
        let share = &self.record().shares[self.me().index()];
        share.store(share.load(Ordering::SeqCst).wrapping_add(next.wrapping_sub(current)), Ordering::SeqCst);
        self.word.store(next, Ordering::SeqCst);
    }

    fn lock(&self) -> bool {
        let held = self.me().packed() | HELD;
        if self.change_owner(0, held).is_err() {
            return false;
        }
        if Word::compare_exchange(self.word, UNLOCKED, LOCKED) {
            return true;
        }
        // Code that uses the bare word has it.
        let _ = self.change_owner(held, 0);
        false
    }

    fn unlock(&self) {
        let held = self.me().packed() | HELD;
        let owner = self.record().owner.load(Ordering::SeqCst);
        // 0: code that uses the bare word had it.
        if owner == held || owner == 0 {
            self.word.store(UNLOCKED, Ordering::SeqCst);
            let _ = self.change_owner(held, 0);
        }
    }

    /// Returns the process that has it alone: by a lock, or as a writer.
    pub fn owner(&self) -> Option<ProcessId> {
        let owner = self.record().owner.load(Ordering::SeqCst);
        if owner & HELD != 0 { ProcessId::from_packed(owner & !HELD) } else { None }
    }

    /// Turns a writer's access into a reader's.
    pub fn downgrade(&self) {
        if self.begin() {
            let current = self.word.load(Ordering::SeqCst);
            if current == WRITING {
                self.set(current, 1);
            }
            self.end();
        }
        self.pass();
    }

    // ——— Turns ———

    fn turn(&self) -> (u64, Option<Turn>) {
        let packed = self.record().turn.load(Ordering::SeqCst);
        (packed, Turn::from_packed(packed))
    }

    fn set_turn(&self, before: u64, turn: Option<Turn>) {
        let packed = turn.map_or(0, Turn::packed);
        let _ = self.record().turn.compare_exchange(before, packed, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// Whether this process may take the word: not while it is the turn of another one that waits.
    fn is_open(&self) -> bool {
        let (_, Some(turn)) = self.turn() else { return true };
        let waits = self.others_waiting() & 1 << turn.index != 0;
        let is_its_turn = || {
            let now = self.peers.now();
            turn.has_begun(now) && !turn.is_over(now)
        };
        !(waits && is_its_turn())
    }

    /// Returns the turn of a process that waits, now or soon; sets it if there is none. `None`: none waits.
    fn next_turn(&self, now: u64, frees: bool) -> Option<Turn> {
        let others = self.others_waiting();
        if others == 0 {
            return None;
        }
        let (before, turn) = self.turn();
        let next = match turn {
            Some(turn) if others & 1 << turn.index != 0 && !turn.is_over(now) => {
                // From now on there is a limit again.
                if frees && turn.answered && turn.has_begun(now) { Turn::new(turn.index, now) } else { turn }
            }
            _ => {
                let last = turn.map_or(self.me().index(), |turn| turn.index);
                Turn::new(next_in(others, last), now + TENURE)
            }
        };
        if turn != Some(next) {
            self.set_turn(before, Some(next));
        }
        Some(next)
    }

    /// Rings the process whose turn it is, since the word may grant something.
    fn pass(&self) {
        if self.others_waiting() != 0
            && let Some(turn) = self.next_turn(self.peers.now(), true)
        {
            self.table.tell(self.index, turn.index, self.peers);
        }
    }

    /// Notes that this process has found the word held, though it may be its turn.
    pub fn answer(&self) {
        let (before, turn) = self.turn();
        if let Some(turn) = turn.filter(|turn| turn.index == self.me().index() && !turn.answered) {
            self.set_turn(before, Some(Turn { answered: true, ..turn }));
        }
    }

    /// Says that this process has claims, before one of them tries for the last time. Returns whether that is new.
    pub fn begins_to_wait(&self) -> bool {
        let mask = self.me().mask();
        self.record().waiting.fetch_or(mask, Ordering::SeqCst) & mask == 0
    }

    /// Says that this process has no claim any more. If it is left with a turn, that goes on.
    pub fn ends_to_wait(&self) {
        self.record().waiting.fetch_and(!self.me().mask(), Ordering::SeqCst);
        let (before, turn) = self.turn();
        if turn.is_some_and(|turn| turn.index == self.me().index()) {
            self.set_turn(before, None);
        }
        if self.owner().is_none() {
            self.pass();
        }
    }

    // ——— Waiters without a claim ———

    fn waits(&self) -> &AtomicU64 {
        &self.record().waits[self.me().index()]
    }

    /// Counts a waiter, before it reads the word.
    pub fn enter(&self) {
        self.waits().fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// Uncounts a waiter. Returns whether it takes a notification with it: all that are left are notified.
    #[must_use]
    pub fn leave(&self) -> bool {
        let before = update(self.waits(), |waits| {
            let (waiters, notified) = unpacked(waits);
            let waiters = waiters.saturating_sub(1);
            Some(packed(waiters, notified.min(waiters)))
        });
        before.is_some_and(|waits| {
            let (waiters, notified) = unpacked(waits);
            notified > 0 && notified >= waiters
        })
    }

    pub fn is_notified(&self) -> bool {
        unpacked(self.waits().load(Ordering::SeqCst)).1 > 0
    }

    /// Uncounts a waiter that another process has notified. Returns false if there is none.
    #[must_use]
    pub fn take_notification(&self) -> bool {
        let before = update(self.waits(), |waits| {
            let (waiters, notified) = unpacked(waits);
            (waiters > 0 && notified > 0).then(|| packed(waiters - 1, notified - 1))
        });
        before.is_some()
    }

    /// Notifies up to `count` waiters of a process. Returns how many.
    fn notify_in(&self, process: usize, count: usize) -> usize {
        let waits = &self.record().waits[process];
        let free = |waits| {
            let (waiters, notified) = unpacked(waits);
            waiters.saturating_sub(notified).min(u32::try_from(count).unwrap_or(u32::MAX))
        };
        let before = update(waits, |waits| (free(waits) > 0).then(|| waits + packed(0, free(waits))));
        let Some(before) = before else { return 0 };
        self.table.tell(self.index, process, self.peers);
        free(before) as usize
    }

    /// Notifies up to `count` waiters, process by process; `here` does so in this one. Returns how many.
    pub fn notify(&self, count: usize, mut here: impl FnMut(usize) -> usize) -> usize {
        let first = self.record().first_notified.load(Ordering::Relaxed) as usize;
        let mut left = count;
        for process in (0..SLOTS).map(|step| (first + step) % SLOTS) {
            let woken = if process == self.me().index() { here(left) } else { self.notify_in(process, left) };
            left -= woken.min(left);
            if woken > 0 && left == 0 {
                self.record().first_notified.store(((process + 1) % SLOTS) as u32, Ordering::Relaxed);
                break;
            }
        }
        count - left
    }

    // ——— A death ———

    fn sweep(&self, dead: ProcessId) {
        let record = self.record();
        let (index, mask) = (dead.index(), dead.mask());
        let owner = record.owner.load(Ordering::SeqCst);
        if owner == dead.packed() | HELD {
            record.died.store(1, Ordering::SeqCst);
            self.word.store(UNLOCKED, Ordering::SeqCst);
            let _ = self.change_owner(owner, 0);
        } else if (owner == dead.packed() || record.shares[index].load(Ordering::SeqCst) != 0)
            && self.begin_as(dead.packed(), true)
        {
            if record.shares[index].load(Ordering::SeqCst) == WRITING {
                record.died.store(1, Ordering::SeqCst);
            }
            record.shares[index].store(0, Ordering::SeqCst);
            self.sum_up();
            self.end();
        }
        record.waiting.fetch_and(!mask, Ordering::SeqCst);
        let (before, turn) = self.turn();
        if turn.is_some_and(|turn| turn.index == index) {
            self.set_turn(before, None);
        }
        self.pass_on_notifications(index);
        // Whatever a sweeper that died has left undone.
        let mut waiting = record.waiting.load(Ordering::SeqCst);
        while waiting != 0 {
            let process = waiting.trailing_zeros() as usize;
            waiting &= waiting - 1;
            if process < SLOTS {
                self.table.tell(self.index, process, self.peers);
            }
        }
    }

    /// Passes on what a dead process had not delivered. A sweeper's death may repeat one, but loses none.
    fn pass_on_notifications(&self, dead: usize) {
        let waits = &self.record().waits[dead];
        // From now on nobody notifies its waiters.
        let before = update(waits, |waits| Some(packed(0, unpacked(waits).1)));
        let (_, notified) = unpacked(before.unwrap_or_default());
        for left in (0..notified).rev() {
            let given = (0..SLOTS).filter(|&process| process != dead).any(|process| self.notify_in(process, 1) > 0);
            waits.store(if given { packed(0, left) } else { 0 }, Ordering::SeqCst);
            if !given {
                break;
            }
        }
    }
}

/// Lets the thread that changes a record go on.
fn pause() {
    #[cfg(feature = "model")]
    loom::thread::yield_now();
    #[cfg(not(feature = "model"))]
    std::thread::yield_now();
}

impl Word for SharedWord<'_> {
    fn load(&self) -> i32 {
        self.word.load(Ordering::SeqCst)
    }

    fn compare_exchange(&self, current: i32, new: i32) -> bool {
        Word::compare_exchange(self.word, current, new)
    }

    fn grants(&self, request: Request) -> bool {
        request.taken_from(self.load()).is_some() && self.is_open()
    }

    fn take(&self, request: Request) -> bool {
        if !self.is_open() {
            return false;
        }
        let taken = if request.is_for_lock() {
            self.lock()
        } else {
            self.begin() && {
                let current = self.load();
                let next = request.taken_from(current);
                if let Some(next) = next {
                    self.set(current, next);
                }
                self.end();
                next.is_some()
            }
        };
        if taken {
            let (before, turn) = self.turn();
            if turn.is_some_and(|turn| turn.index == self.me().index()) {
                self.set_turn(before, None);
            }
        }
        taken
    }

    fn give_back(&self, hold: Hold) {
        if hold.is_of_lock() {
            self.unlock();
        } else if self.begin() {
            let current = self.load();
            self.set(current, hold.given_back_to(current));
            self.end();
        }
        self.pass();
    }

    fn is_due_elsewhere(&self) -> bool {
        self.others_waiting() != 0 && {
            let now = self.peers.now();
            self.next_turn(now, false).is_some_and(|turn| turn.has_begun(now))
        }
    }

    fn note_death(&self) -> bool {
        self.record().died.store(1, Ordering::SeqCst);
        true
    }

    fn take_note_of_death(&self, mode: Mode) -> bool {
        let died = &self.record().died;
        match mode {
            Mode::Exclusive => died.load(Ordering::SeqCst) != 0 && died.swap(0, Ordering::SeqCst) != 0,
            Mode::Shared => died.load(Ordering::SeqCst) != 0,
        }
    }
}
