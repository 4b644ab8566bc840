//! Looking for what a thread waits for, before it goes to sleep.

use std::cell::Cell;
use std::thread;
use std::time::Duration;

use crate::clock::{Timestamp, now};
use crate::thread::processor;

/// Looks for what a thread waits for, for a moment before it sleeps.
///
/// Waking a sleeping thread costs tens of microseconds, more than what most critical sections last; but spinning pays only
/// where another core can bring the outcome meanwhile. So whether it is done follows what it brought lately: given up after
/// a few waits in a row in which it brought nothing, but for an occasional try.
///
/// It is always as long as can be: two threads that answer each other, both asleep, get each other's answer only a wake-up
/// later, and the first one to spin must stand that.
#[derive(Debug)]
pub struct Spinner {
    /// Nanoseconds; 0 if there is only one processor.
    longest: u32,
    /// Whether what is waited for can come while this thread spins.
    pays: Cell<bool>,
    /// How often it may bring nothing before it is given up.
    credit: Cell<u32>,
    skipped: Cell<u32>,
}

impl Spinner {
    /// The credit of one that has brought something.
    const CREDIT: u32 = 3;
    /// Every so many waits, one is tried again.
    const TRY_AGAIN: u32 = 32;

    /// One that spins for up to `longest` nanoseconds.
    pub fn new(longest: u32) -> Self {
        let longest = if processor::is_single() { 0 } else { longest };
        Self { longest, pays: Cell::new(true), credit: Cell::new(0), skipped: Cell::new(0) }
    }

    /// The last outcome came from the processor that this thread runs on, or did not. If it did, whoever brings the next one
    /// cannot run while this thread spins.
    #[cfg(not(feature = "model"))]
    pub(crate) fn came_from_here(&self, here: bool) {
        self.pays.set(!here);
    }

    /// Whether spinning has paid lately.
    fn is_hopeful(&self) -> bool {
        self.pays.get() && self.longest > 0 && self.credit.get() > 0
    }

    /// Asks `look` again and again for a short while.
    pub fn spin<T>(&self, look: impl Fn() -> Option<T>) -> Option<T> {
        if !self.pays.get() || self.longest == 0 {
            return None;
        }
        if self.credit.get() == 0 {
            self.skipped.set((self.skipped.get() + 1) % Self::TRY_AGAIN);
            if self.skipped.get() != 1 {
                return None;
            }
        }
        let start = now();
        loop {
            for _ in 0..16 {
                let found = look();
                if found.is_some() {
                    self.credit.set(Self::CREDIT);
                    return found;
                }
                std::hint::spin_loop();
            }
            if now().duration_since(start) >= Duration::from_nanos(self.longest.into()) {
                self.credit.set(self.credit.get().saturating_sub(1));
                return None;
            }
        }
    }
}

/// Looks for a lock to become free, before the thread lines up for it.
///
/// Where threads do little else than take a lock, each finds it free soon whenever it spins, and they take turns, all of them
/// busy, at what one could do alone. So only a share of a thread's time may be spent spinning. Who has spent it naps: out of
/// the line, so that the others need not care, while one of them takes the lock again and again without being disturbed.
/// Then it may spin again, and as a nap is a bounded time, nobody naps for ever: who naps in vain lines up.
#[derive(Debug)]
pub struct SparingSpinner {
    spinner: Spinner,
    /// Nanoseconds that may be spent. Negative after a spin that took longer.
    allowance: Cell<i64>,
    /// When the allowance was that.
    counted: Cell<Timestamp>,
}

impl SparingSpinner {
    /// One nanosecond of so many may be spent spinning.
    const SHARE: i64 = 16;
    /// Nanoseconds that do not count: whoever finds the lock so soon came while it was being given back, and perhaps the others
    /// wait for what is done under it.
    const FREE: i64 = 500;
    const NAPS: u32 = 2;
    /// Systems make it twice as long: they let sleepers wake up together.
    const NAP: Duration = Duration::from_micros(50);

    /// One that spins for up to `longest` nanoseconds each time.
    pub fn new(longest: u32) -> Self {
        let spinner = Spinner::new(longest);
        Self { allowance: Cell::new(longest.into()), spinner, counted: Cell::new(now()) }
    }

    /// Time has passed since: the allowance, as it is by now.
    fn earn(&self) -> i64 {
        let earned = self.count() / Self::SHARE;
        self.allowance.set(self.allowance.get().saturating_add(earned).min(self.spinner.longest.into()));
        self.allowance.get()
    }

    /// It was spent spinning.
    fn spend(&self) {
        let spent = self.count();
        if spent > Self::FREE {
            self.allowance.set(self.allowance.get().saturating_sub(spent));
        }
    }

    /// How many nanoseconds have passed since the last count.
    fn count(&self) -> i64 {
        let now = now();
        let passed = now.duration_since(self.counted.replace(now));
        i64::try_from(passed.as_nanos()).unwrap_or(i64::MAX)
    }

    /// Asks `look` for a while, spinning and napping, at most until `deadline` or a spin longer.
    pub fn spin<T>(&self, deadline: Timestamp, look: impl Fn() -> Option<T>) -> Option<T> {
        let mut naps = 0;
        while self.earn() < 0 && self.spinner.is_hopeful() {
            if naps == Self::NAPS {
                return None;
            }
            naps += 1;
            thread::sleep(Self::NAP.min(deadline.duration_since(now())));
            let found = look();
            if found.is_some() {
                return found;
            }
        }
        self.spend_on(look)
    }

    /// Asks `look` for a while, if that may be spent: for an event loop, which has other things to do than to nap.
    pub fn spin_without_nap<T>(&self, look: impl Fn() -> Option<T>) -> Option<T> {
        if self.earn() < 0 { None } else { self.spend_on(look) }
    }

    fn spend_on<T>(&self, look: impl Fn() -> Option<T>) -> Option<T> {
        let found = self.spinner.spin(look);
        self.spend();
        found
    }

    /// Asks `look` for a moment, whatever has been spent: for who has just been woken because of the lock.
    pub fn spin_awake<T>(&self, look: impl Fn() -> Option<T>) -> Option<T> {
        self.spinner.spin(look)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether it looks at all, when there is nothing to be seen.
    fn looks(spinner: &Spinner) -> bool {
        let looked = Cell::new(false);
        let found: Option<()> = spinner.spin(|| {
            looked.set(true);
            None
        });
        assert_eq!(found, None);
        looked.get()
    }

    #[test]
    fn spinning_that_brings_nothing_is_given_up_but_for_a_try_now_and_then() {
        let spinner = Spinner::new(2000);
        let tries = (0..10 * Spinner::TRY_AGAIN).filter(|_| looks(&spinner)).count();
        assert_eq!(tries, if processor::is_single() { 0 } else { 10 });
    }

    #[test]
    fn spinning_that_paid_is_given_up_by_and_by() {
        let spinner = Spinner::new(2000);
        spinner.spin(|| Some(()));
        let spins = (0..10).filter(|_| looks(&spinner)).count();
        assert_eq!(spins, if processor::is_single() { 0 } else { Spinner::CREDIT as usize });
    }

    #[test]
    fn spinning_that_pays_goes_on() {
        let spinner = Spinner::new(2000);
        for _ in 0..10 {
            assert_eq!(spinner.spin(|| Some(7)), (!processor::is_single()).then_some(7));
        }
    }

    #[test]
    fn who_has_spent_its_share_naps_and_then_gives_up() {
        let sparing = SparingSpinner::new(2000);
        if processor::is_single() {
            return;
        }
        sparing.spin_awake(|| Some(()));
        // What takes seconds to be earned again.
        sparing.allowance.set(-1_000_000_000);
        let looks = Cell::new(0);
        let begin = now();
        let found: Option<()> = sparing.spin(Timestamp::NEVER, || {
            looks.set(looks.get() + 1);
            None
        });
        assert_eq!((found, looks.get()), (None, SparingSpinner::NAPS));
        assert!(now().duration_since(begin) >= SparingSpinner::NAP * SparingSpinner::NAPS);
        assert_eq!(sparing.spin(Timestamp::NEVER, || Some(7)), Some(7));
    }

    #[test]
    fn who_does_not_nap_spins_for_its_share_only() {
        let sparing = SparingSpinner::new(2000);
        if processor::is_single() {
            return;
        }
        assert_eq!(sparing.spin_without_nap(|| Some(7)), Some(7));
        sparing.allowance.set(-1_000_000_000);
        assert_eq!(sparing.spin_without_nap(|| Some(7)), None);
    }

    #[test]
    fn nobody_naps_to_whom_spinning_has_brought_nothing() {
        let sparing = SparingSpinner::new(2000);
        let looks = Cell::new(0);
        let look = || -> Option<()> {
            looks.set(looks.get() + 1);
            None
        };
        // The try that is made now and then.
        sparing.spin(Timestamp::NEVER, look);
        assert_eq!(looks.replace(0) > 0, !processor::is_single());
        sparing.allowance.set(-1_000_000_000);
        sparing.spin(Timestamp::NEVER, look);
        assert_eq!(looks.get(), 0);
    }

    #[test]
    fn what_is_spent_spinning_is_earned_by_other_time() {
        let sparing = SparingSpinner::new(2000);
        if processor::is_single() {
            return;
        }
        // More than what does not count.
        let begin = now();
        while now().duration_since(begin).as_nanos() <= SparingSpinner::FREE.unsigned_abs().into() {}
        sparing.spend();
        assert!(sparing.allowance.get() < 2000);
        sparing.allowance.set(-1);
        while sparing.earn() < 2000 {}
        assert_eq!(sparing.earn(), 2000);
    }
}
