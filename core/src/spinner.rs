//! Spinning: before a thread sleeps, it looks for a moment whether its wait is over.

use std::cell::Cell;
use std::thread;
use std::time::Duration;

use crate::clock::{Timestamp, now};

/// Spins while spinning pays.
///
/// Waking a sleeping thread costs tens of microseconds, longer than most critical sections last. But spinning pays only
/// if another core can bring the result meanwhile. So a thread stops spinning after a few waits in a row in which it
/// found nothing, but for an occasional try; each that finds nothing doubles the number of waits until the next one, up
/// to a limit.
///
/// A spin always lasts as long as it may: of two threads that answer each other, both asleep, the first one to spin
/// gets the other's answer only a wake-up later.
#[derive(Debug)]
pub struct Spinner {
    /// Nanoseconds.
    longest: u32,
    /// In waits.
    longest_pause: u32,
    /// How many more spins may find nothing.
    credit: Cell<u32>,
    /// How many more waits do not spin; none while there is credit.
    pause: Cell<u32>,
    next_pause: Cell<u32>,
}

impl Spinner {
    /// The credit after a spin that found something.
    const CREDIT: u32 = 3;
    /// The first pause, in waits.
    const PAUSE: u32 = 32;

    /// Makes one that spins up to `longest` nanoseconds. It tries at least once in about `longest_pause` waits.
    pub const fn new(longest: u32, longest_pause: u32) -> Self {
        Self { longest, longest_pause, credit: Cell::new(0), pause: Cell::new(0), next_pause: Cell::new(Self::PAUSE) }
    }

    /// Calls `look` again and again for a moment.
    pub fn spin<T>(&self, look: impl Fn() -> Option<T>) -> Option<T> {
        if self.pause.get() > 0 {
            self.pause.set(self.pause.get() - 1);
            return None;
        }
        let start = now();
        loop {
            for _ in 0..16 {
                let found = look();
                if found.is_some() {
                    self.credit.set(Self::CREDIT);
                    self.next_pause.set(Self::PAUSE);
                    return found;
                }
                std::hint::spin_loop();
            }
            if now().duration_since(start) >= Duration::from_nanos(self.longest.into()) {
                self.credit.set(self.credit.get().saturating_sub(1));
                if self.credit.get() == 0 {
                    self.pause.set(self.next_pause.get());
                    self.next_pause.set((2 * self.next_pause.get()).min(self.longest_pause));
                }
                return None;
            }
        }
    }
}

/// Spins for a lock, for a share of the thread's time.
///
/// Where threads do little else than take a lock, each finds it free soon whenever it spins: they take turns, and keep
/// several processors busy with the work of one. So a thread may spend only a share of its time spinning. A thread that
/// has used up its spin budget sleeps outside the queue for a moment, while another takes the lock again and again
/// without interference. A thread that does so in vain joins the line.
#[derive(Debug)]
pub struct BudgetedSpinner {
    /// Spins whatever the budget: for a thread that has just been woken to retry.
    pub spinner: Spinner,
    /// Nanoseconds that may be spent. Negative after a spin that took longer.
    budget: Cell<i64>,
    /// When the budget was computed.
    counted: Cell<Timestamp>,
}

impl BudgetedSpinner {
    /// One nanosecond of so many may be spent spinning.
    const SHARE: i64 = 16;
    /// Shorter spins, in nanoseconds, cost no budget: the lock was being released when the thread came.
    const FREE: i64 = 500;
    /// How often a thread sleeps outside the queue before it joins the line.
    const SLEEPS: u32 = 2;
    /// Systems make it twice as long: they let sleepers wake up together.
    const SLEEP: Duration = Duration::from_micros(50);

    /// Makes a spinner that spins for up to `longest` nanoseconds each time.
    pub fn new(longest: u32) -> Self {
        let spinner = Spinner::new(longest, Spinner::PAUSE);
        Self { budget: Cell::new(longest.into()), spinner, counted: Cell::new(now()) }
    }

    /// Adds the share of the time that has passed. Returns the budget.
    fn earn(&self) -> i64 {
        let earned = self.count() / Self::SHARE;
        self.budget.set(self.budget.get().saturating_add(earned).min(self.spinner.longest.into()));
        self.budget.get()
    }

    /// Subtracts the time since, which was spent spinning: or, if the system suspended the thread, one spin.
    fn spend(&self) {
        let spent = self.count().min(self.spinner.longest.into());
        if spent > Self::FREE {
            self.budget.set(self.budget.get().saturating_sub(spent));
        }
    }

    /// Returns the nanoseconds since the last call.
    fn count(&self) -> i64 {
        let now = now();
        let passed = now.duration_since(self.counted.replace(now));
        i64::try_from(passed.as_nanos()).unwrap_or(i64::MAX)
    }

    /// Calls `look`, spinning and sleeping, until `deadline` or one spin longer.
    pub fn spin<T>(&self, deadline: Timestamp, look: impl Fn() -> Option<T>) -> Option<T> {
        let mut sleeps = 0;
        // Only if spinning has paid lately.
        while self.earn() < 0 && self.spinner.credit.get() > 0 {
            if sleeps == Self::SLEEPS {
                return None;
            }
            sleeps += 1;
            thread::sleep(Self::SLEEP.min(deadline.duration_since(now())));
            let found = look();
            if found.is_some() {
                return found;
            }
        }
        self.spend_on(look)
    }

    /// Spins if the budget allows it, and never sleeps: for event loops.
    pub fn spin_without_sleep<T>(&self, look: impl Fn() -> Option<T>) -> Option<T> {
        if self.earn() < 0 { None } else { self.spend_on(look) }
    }

    fn spend_on<T>(&self, look: impl Fn() -> Option<T>) -> Option<T> {
        let found = self.spinner.spin(look);
        self.spend();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks that find nothing, counted.
    fn in_vain(looks: &Cell<u32>) -> impl Fn() -> Option<()> {
        || {
            looks.set(looks.get() + 1);
            None
        }
    }

    /// Whether it looks at all, when there is nothing to be seen.
    fn looks(spinner: &Spinner) -> bool {
        let looks = Cell::new(0);
        assert_eq!(spinner.spin(in_vain(&looks)), None);
        looks.get() > 0
    }

    #[test]
    fn tries_in_vain_become_rare_until_one_finds_something() {
        let spinner = Spinner::new(2000, 1024);
        for _ in 0..2 {
            let tries: Vec<u32> = (0..5000).filter(|_| looks(&spinner)).collect();
            let pauses: Vec<u32> = tries.windows(2).map(|pair| pair[1] - pair[0] - 1).collect();
            assert_eq!(pauses, [32, 64, 128, 256, 512, 1024, 1024, 1024]);
            while spinner.spin(|| Some(())).is_none() {}
            // Spinning that pays goes on, also after a few spins in vain; and the pauses are short again.
            assert!((0..10).all(|_| spinner.spin(|| Some(())).is_some()));
            assert!((1..Spinner::CREDIT).all(|_| looks(&spinner)));
        }
    }

    #[test]
    fn without_budget_a_thread_sleeps_outside_the_queue_if_spinning_has_paid_and_an_event_loop_does_nothing() {
        for (has_paid, sleeps) in [(true, BudgetedSpinner::SLEEPS), (false, 0)] {
            let budgeted = BudgetedSpinner::new(2000);
            let looks = Cell::new(0);
            assert_eq!(budgeted.spin_without_sleep(|| has_paid.then_some(7)), has_paid.then_some(7));
            // This takes seconds to earn again.
            budgeted.budget.set(-1_000_000_000);
            let begin = now();
            assert_eq!(budgeted.spin(Timestamp::NEVER, in_vain(&looks)), None);
            assert_eq!(looks.get(), sleeps);
            assert!(now().duration_since(begin) >= BudgetedSpinner::SLEEP * sleeps);
            assert_eq!(budgeted.spin_without_sleep(in_vain(&looks)), None);
            assert_eq!(looks.get(), sleeps);
            assert_eq!(budgeted.spin(Timestamp::NEVER, || Some(7)), has_paid.then_some(7));
        }
    }

    #[test]
    fn the_spin_budget_grows_with_other_time() {
        let budgeted = BudgetedSpinner::new(2000);
        // Longer than a spin that costs nothing.
        let begin = now();
        while now().duration_since(begin).as_nanos() <= BudgetedSpinner::FREE.unsigned_abs().into() {}
        budgeted.spend();
        assert!(budgeted.budget.get() < 2000);
        budgeted.budget.set(-1);
        while budgeted.earn() < 2000 {}
        assert_eq!(budgeted.earn(), 2000);
    }
}
