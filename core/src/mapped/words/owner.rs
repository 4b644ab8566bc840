//! Taking and giving back: who changes a record, or has its lock. Taking back from the dead.

use super::{SLOTS, SharedWord};
use crate::lock::{Hold, LOCKED, Mode, Request, UNLOCKED, WRITING, Word};
use crate::mapped::ProcessId;
use crate::sync::{AtomicI32, Ordering, yield_now};

/// Marks an `owner` that has a lock, for longer than it takes to change a record.
const HELD: u32 = 1 << ProcessId::BITS;

/// The process in an `owner`.
const OF_PROCESS: u32 = HELD - 1;
/// The first of the numbers by which sweepers of the same process differ, in the bits above.
const SWEEPER: u32 = HELD << 1;

/// Returns the `owner` of a word whose lock a process has.
pub const fn held_by(process: ProcessId) -> u32 {
    process.packed() | HELD
}

/// Whether an `owner` without HELD is the process, or who sweeps it.
const fn is_changing(owner: u32, process: ProcessId) -> bool {
    owner & OF_PROCESS == process.packed()
}

/// How often a process looks at a record that another one changes before it asks whether that is dead.
const LOOKS: u32 = if cfg!(feature = "model") { 2 } else { 200 };

/// Lets the thread that changes a record go on. Its process may be suspended.
fn pause(times: u32) {
    if cfg!(feature = "model") || times < 50 {
        yield_now();
    } else {
        std::thread::sleep(std::time::Duration::from_micros(200));
    }
}

impl SharedWord<'_> {
    fn change_owner(&self, current: u32, new: u32) -> Result<u32, u32> {
        self.step();
        self.record().owner.compare_exchange(current, new, Ordering::SeqCst, Ordering::SeqCst)
    }

    /// Begins a change of the record. Returns false if a lock is held here: then another class uses the word.
    fn begin(&self) -> bool {
        self.begin_as(|_| self.me().packed(), |_| false)
    }

    /// Begins a change of a record that a dead process has left. If the sweeper dies, too, it is swept again.
    ///
    /// Each sweeper writes another number: a process that found the dead one gone, and goes on only now, does not take
    /// over from it.
    fn begin_sweep(&self, dead: ProcessId) -> bool {
        let is_its = |owner| is_changing(owner, dead);
        let next = |found| if is_its(found) { found.wrapping_add(SWEEPER) } else { dead.packed() | SWEEPER };
        self.begin_as(next, is_its)
    }

    /// Begins a change by writing `next` of the owner that is found; at once if it `is_its`.
    fn begin_as(&self, next: impl Fn(u32) -> u32, is_its: impl Fn(u32) -> bool) -> bool {
        let (mut looks, mut current): (u32, u32) = (0, 0);
        loop {
            let Err(found) = self.change_owner(current, next(current)) else {
                if current != 0 {
                    self.sum_up();
                }
                return true;
            };
            current = 0;
            if found & HELD != 0 {
                return false;
            }
            if is_its(found) {
                current = found;
                continue;
            }
            looks = looks.wrapping_add(1);
            if !looks.is_multiple_of(LOOKS) {
                std::hint::spin_loop();
                continue;
            }
            if ProcessId::from_packed(found & OF_PROCESS).is_none_or(|process| self.peers.is_gone(process)) {
                current = found;
            }
            pause(looks / LOOKS);
        }
    }

    fn end(&self) {
        self.step();
        self.record().owner.store(0, Ordering::SeqCst);
    }

    /// Makes the word the sum of the shares of all processes.
    fn sum_up(&self) {
        self.step();
        let shares = self.record().shares.iter().map(|share| share.load(Ordering::SeqCst));
        self.word.store(shares.fold(0, i32::wrapping_add), Ordering::SeqCst);
    }

    /// Replaces the word's value, within a change of the record.
    fn set(&self, current: i32, next: i32) {
        let share = &self.record().shares[self.me().index()];
        self.step();
        share.store(share.load(Ordering::SeqCst).wrapping_add(next.wrapping_sub(current)), Ordering::SeqCst);
        self.step();
        self.word.store(next, Ordering::SeqCst);
    }

    fn lock(&self) -> bool {
        let held = held_by(self.me());
        if self.change_owner(0, held).is_err() {
            return false;
        }
        self.step();
        if Word::compare_exchange(self.word, UNLOCKED, LOCKED) {
            return true;
        }
        // Code that uses the bare word has it.
        let _ = self.change_owner(held, 0);
        false
    }

    fn unlock(&self) {
        let held = held_by(self.me());
        let owner = self.record().owner.load(Ordering::SeqCst);
        // 0: code that uses the bare word had it.
        if owner == held || owner == 0 {
            self.step();
            self.word.store(UNLOCKED, Ordering::SeqCst);
            let _ = self.change_owner(held, 0);
        }
    }

    /// Returns the slot of the process that has it alone: by a lock, or as a writer.
    pub fn owner(&self) -> Option<usize> {
        let is_writing = |share: &AtomicI32| Word::load(share) == WRITING;
        self.locker().map(ProcessId::index).or_else(|| self.record().shares.iter().position(is_writing))
    }

    /// Returns the process that has locked it.
    pub(super) fn locker(&self) -> Option<ProcessId> {
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

    /// Takes back what a dead process has left in the record.
    pub(super) fn sweep(&self, dead: ProcessId) {
        let record = self.record();
        let (index, mask) = (dead.index(), dead.mask());
        let owner = record.owner.load(Ordering::SeqCst);
        if owner == dead.packed() | HELD {
            record.died.store(1, Ordering::SeqCst);
            self.step();
            self.word.store(UNLOCKED, Ordering::SeqCst);
            let _ = self.change_owner(owner, 0);
        } else if (is_changing(owner, dead) || record.shares[index].load(Ordering::SeqCst) != 0)
            && self.begin_sweep(dead)
        {
            if record.shares[index].load(Ordering::SeqCst) == WRITING {
                record.died.store(1, Ordering::SeqCst);
            }
            self.step();
            record.shares[index].store(0, Ordering::SeqCst);
            self.sum_up();
            self.end();
        }
        record.waiting.fetch_and(!mask, Ordering::SeqCst);
        self.step();
        self.end_turn(index);
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
            self.end_turn(self.me().index());
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
        // If another process has it, which only a mistake can ask for, there is nothing to hand over.
        self.locker() != Some(self.me()) || self.has_turn_elsewhere()
    }

    fn has_known_holder(&self) -> bool {
        self.locker().is_some() || self.record().shares.iter().any(|share| Word::load(share) != 0)
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
