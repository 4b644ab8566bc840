//! Looks at the words of lines: a word may have been freed without a call, and then nobody else wakes its first claims.
//!
//! # How soon a look comes
//! A claim is looked at [`SHORTEST`] after it has joined. Then the time between two looks is an eighth of the time
//! since a claim joined last, or a look found something; from [`SHORTEST`] to [`LONGEST`]. So the looks delay no claim
//! by more than an eighth of its wait, or [`SHORTEST`], and a wait of a day costs a look a second.
//!
//! A claim that joins rings the bell, which wakes the service once, and not again before the next look. Without lines
//! the next look comes when a claim joins.

use std::convert::Infallible;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout_at};

/// How long a claim may wait at first for a word that was freed without a call.
pub(super) const SHORTEST: Duration = Duration::from_millis(50);

/// The longest time between two looks.
pub(super) const LONGEST: Duration = Duration::from_secs(1);

/// The time between two looks where there are no lines: nothing needs the later one.
const REST: Duration = Duration::from_secs(86_400);

/// Returns the time until the next look, after so long without news.
fn pause(quiet: Duration) -> Duration {
    (quiet / 8).clamp(SHORTEST, LONGEST)
}

/// The looks of a service, as the threads with claims see them.
#[derive(Debug, Default)]
pub(super) struct WordPoller {
    bell: Notify,
}

impl WordPoller {
    pub(super) fn claim_has_joined(&self) {
        self.bell.notify_one();
    }

    /// Looks for ever. `look` returns whether it has found a word that was freed; `None` if there are no lines.
    pub(super) async fn run(&self, look: impl Fn() -> Option<bool>) -> Infallible {
        let mut news = Instant::now();
        loop {
            let found = look();
            let now = Instant::now();
            if found == Some(true) {
                news = now;
            }
            let next = now + found.map_or(REST, |_| pause(now - news));
            if timeout_at(next, self.bell.notified()).await.is_ok() {
                news = Instant::now();
                sleep_until(next.min(news + SHORTEST)).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    /// The clock is tokio's, which goes on only while all sleep.
    #[tokio::test(start_paused = true)]
    async fn looks_become_rare_and_stop_without_lines_but_a_claim_that_joins_is_looked_at_soon() {
        // To which tokio rounds up.
        const TICK: Duration = Duration::from_millis(1);
        let (looks, begin, moments) = (WordPoller::default(), Cell::new(Instant::now()), RefCell::new(Vec::new()));
        let has_lines = Cell::new(false);
        let look = || {
            moments.borrow_mut().push(Instant::now());
            has_lines.get().then_some(false)
        };
        let claims = async {
            for nth in 1..=2 {
                looks.claim_has_joined();
                tokio::time::sleep(Duration::from_secs(60)).await;
                assert_eq!(moments.borrow().len(), 1 + nth, "one look at the beginning, one for each claim");
            }
            has_lines.set(true);
            moments.borrow_mut().clear();
            begin.set(Instant::now());
            looks.claim_has_joined();
            tokio::time::sleep(Duration::from_secs(60)).await;
            let count = moments.borrow().len();
            while moments.borrow().len() == count {
                tokio::time::sleep(TICK).await;
            }
            // It is a second until the next one.
            looks.claim_has_joined();
            tokio::time::sleep(SHORTEST + TICK).await;
            count
        };
        let count = tokio::select! {
            count = claims => count,
            never = looks.run(look) => match never {},
        };
        let moments = moments.into_inner();
        for (waited, delay) in moments.windows(2).map(|two| (two[0] - begin.get(), two[1] - two[0])) {
            assert!(delay <= SHORTEST.max(waited / 8).min(LONGEST) + TICK, "{delay:?} after {waited:?}");
        }
        assert!(count < 100, "{count} looks in a minute");
        assert_eq!(moments.len(), count + 2, "the claim that has joined last is not looked at");
    }
}
