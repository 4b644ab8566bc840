//! The profile: how long was waited, by the stacks of the waiting calls (`ATOMICS_WAITASYNC_PROFILE`).
//!
//! JavaScript tells of each wait that it records when it begins, with its stack, and when it is over
//! (`lib/observe/profile.js`). A wait that is not over counts for its time so far, and the waits of a thread end with
//! it: so the file shows those who wait for ever, too.
//!
//! The tables have bounds: stacks (see [`stacks`]), and of each stack the first locks.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex};

use napi_derive::napi;

use crate::observe::profile_file::ProfileFile;
use waitasync_core::clock::{Timestamp, now};
use waitasync_core::held::stacks::{self, StackId};
use waitasync_core::observe::cpuprofile::{Counts, Line};
use waitasync_core::sync::lock;

/// How many locks are told apart of each stack. One line may request any number of names.
const MOST_LEAVES: usize = 16;

const OTHER_LOCKS: &str = "other locks";

/// Nanoseconds of waits, by noun.
type Leaves = Vec<(Arc<str>, u64)>;

#[derive(Clone, Default)]
struct Totals(HashMap<StackId, Leaves>);

impl Totals {
    fn add(&mut self, stack: StackId, leaf: &Arc<str>, nanos: u64) {
        let leaves = self.0.entry(stack).or_default();
        let known = leaves.iter().position(|(known, _)| known == leaf);
        let other = || leaves.iter().position(|(known, _)| **known == *OTHER_LOCKS);
        let index = known.or_else(|| (leaves.len() >= MOST_LEAVES).then(other).flatten()).unwrap_or_else(|| {
            let is_full = leaves.len() >= MOST_LEAVES;
            leaves.push((if is_full { OTHER_LOCKS.into() } else { Arc::clone(leaf) }, 0));
            leaves.len() - 1
        });
        leaves[index].1 += nanos;
    }
}

/// A wait that is recorded and is not over.
struct Waited {
    stack: StackId,
    leaf: Arc<str>,
    /// How many waits it stands for.
    factor: u32,
    since: Timestamp,
}

impl Waited {
    fn nanos(&self, now: Timestamp) -> u64 {
        now.as_nanos().saturating_sub(self.since.as_nanos()).saturating_mul(self.factor.into())
    }
}

/// The number of the wait for which a thread blocks: there is one at a time. Promises have others.
const BLOCKED: u32 = 0;

/// The contents of one file.
#[derive(Default)]
pub(crate) struct Profile {
    totals: Totals,
    /// By thread, and by their numbers.
    waits: HashMap<usize, HashMap<u32, Waited>>,
    last_promise: u32,
    counts: Counts,
    /// Whether a wait has ended since the file was written.
    is_news: bool,
}

impl Profile {
    fn begin(&mut self, thread: usize, number: u32, wait: Waited) {
        self.counts.recorded += 1;
        self.counts.all += u64::from(wait.factor);
        if let Some(former) = self.waits.entry(thread).or_default().insert(number, wait) {
            self.add(&former);
        }
    }

    fn begin_promise(&mut self, thread: usize, wait: Waited) -> u32 {
        self.last_promise = self.last_promise.wrapping_add(1).max(BLOCKED + 1);
        self.begin(thread, self.last_promise, wait);
        self.last_promise
    }

    fn end(&mut self, thread: usize, number: u32) {
        if let Some(wait) = self.waits.get_mut(&thread).and_then(|waits| waits.remove(&number)) {
            self.add(&wait);
        }
    }

    fn end_thread(&mut self, thread: usize) {
        for wait in self.waits.remove(&thread).unwrap_or_default().values() {
            self.add(wait);
        }
    }

    fn add(&mut self, wait: &Waited) {
        self.is_news = true;
        self.totals.add(wait.stack, &wait.leaf, wait.nanos(now()));
    }

    /// Returns the waits so far, if changed since the last call.
    fn news(&mut self) -> Option<(Totals, Counts)> {
        let is_news = std::mem::take(&mut self.is_news);
        let mut totals = self.totals.clone();
        let now = now();
        let mut pending = self.waits.values().flat_map(HashMap::values).peekable();
        if !is_news && pending.peek().is_none() {
            return None;
        }
        for wait in pending {
            totals.add(wait.stack, &wait.leaf, wait.nanos(now));
        }
        Some((totals, self.counts))
    }
}

fn lines(totals: Totals) -> Vec<Line> {
    let lines_of = |(number, leaves): (StackId, Leaves)| {
        let stack = stacks::text_of(number);
        leaves.into_iter().map(move |(leaf, nanos)| Line { stack: stack.clone(), leaf, micros: (nanos + 500) / 1000 })
    };
    totals.0.into_iter().flat_map(lines_of).collect()
}

/// A file and its contents.
struct Kept {
    file: ProfileFile,
    profile: LazyLock<Mutex<Profile>>,
}

impl Kept {
    const fn new(file: ProfileFile) -> Self {
        Self { file, profile: LazyLock::new(Mutex::default) }
    }

    /// Returns the contents, if there is news, or `anyway`.
    fn news(&self, anyway: bool) -> Option<(Vec<Line>, Counts)> {
        let news = lock(&self.profile).news();
        let (totals, counts) = news.or_else(|| anyway.then(Default::default))?;
        Some((lines(totals), Counts { other_stacks: stacks::refused(), ..counts }))
    }
}

static WAITS: Kept = Kept::new(ProfileFile::new(
    "ATOMICS_WAITASYNC_PROFILE",
    "waits",
    |anyway| WAITS.news(anyway),
    || WAITS.file.write_now(),
));

/// Records a promise's wait that begins. Returns its number.
pub(crate) fn begin(thread: usize, stack: StackId, leaf: Arc<str>, factor: u32) -> u32 {
    lock(&WAITS.profile).begin_promise(thread, Waited { stack, leaf, factor, since: now() })
}

pub(crate) fn end(thread: usize, number: u32) {
    lock(&WAITS.profile).end(thread, number);
}

/// Records the wait for which a thread blocks, until [`end_block`].
pub(crate) fn begin_block(thread: usize, stack: StackId, leaf: Arc<str>, factor: u32, milliseconds: f64) {
    let age = (milliseconds.max(0.0) * 1e6) as u64;
    let since = Timestamp::from_nanos(now().as_nanos().saturating_sub(age));
    lock(&WAITS.profile).begin(thread, BLOCKED, Waited { stack, leaf, factor, since });
}

pub(crate) fn end_block(thread: usize) {
    if WAITS.file.is_on() {
        end(thread, BLOCKED);
    }
}

pub(crate) fn end_thread(thread: usize) {
    if WAITS.file.is_on() {
        lock(&WAITS.profile).end_thread(thread);
    }
}

/// Has the file written, if there is one: a full table takes longer than timeouts may be late.
pub(crate) fn write_aside() {
    WAITS.file.write_aside();
}

/// Begins to record, if the variable asks for that. A text: a warning, which is given once in the process.
#[napi(catch_unwind)]
pub fn start_profile() -> Option<String> {
    WAITS.file.start()
}

/// Whether waits are recorded.
#[napi(catch_unwind)]
pub fn profiles() -> bool {
    WAITS.file.is_on()
}

/// Returns the number of a stack: one line for each frame, the innermost first.
#[napi(catch_unwind)]
#[allow(clippy::needless_pass_by_value, reason = "Node-API gives a string of its own")]
pub fn stack_number(text: String) -> StackId {
    stacks::number_of(&text)
}

/// Returns true to the process's first caller that cannot take stacks.
#[napi(catch_unwind)]
pub fn tells_of_missing_stack() -> bool {
    static IS_TOLD: AtomicBool = AtomicBool::new(false);
    !IS_TOLD.swap(true, Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nanos(totals: &Totals) -> Vec<(StackId, String, u64)> {
        let mut all: Vec<_> = totals
            .0
            .iter()
            .flat_map(|(stack, leaves)| leaves.iter().map(|(leaf, nanos)| (*stack, leaf.to_string(), *nanos)))
            .collect();
        all.sort();
        all
    }

    #[test]
    fn times_add_up_and_the_locks_of_a_stack_have_a_bound() {
        let mut totals = Totals::default();
        for n in 0..MOST_LEAVES as u64 + 3 {
            totals.add(1, &format!("lock {n:02}").into(), 10);
        }
        totals.add(1, &"lock 00".into(), 5);
        totals.add(2, &"lock 00".into(), 7);
        let all = nanos(&totals);
        assert_eq!(all.len(), MOST_LEAVES + 2);
        assert_eq!(all[0], (1, "lock 00".into(), 15));
        assert_eq!(all[MOST_LEAVES], (1, OTHER_LOCKS.into(), 30));
        assert_eq!(all[MOST_LEAVES + 1], (2, "lock 00".into(), 7));
    }

    fn wait(factor: u32) -> Waited {
        Waited { stack: factor, leaf: "lock".into(), factor, since: Timestamp::from_nanos(0) }
    }

    #[test]
    fn a_wait_counts_while_it_lasts_and_ends_with_its_thread() {
        let mut profile = Profile::default();
        assert!(profile.news().is_none());
        let number = profile.begin_promise(7, wait(4));
        profile.begin(8, BLOCKED, wait(1));
        for _ in 0..2 {
            let (totals, counts) = profile.news().unwrap();
            let all = nanos(&totals);
            assert_eq!(all.len(), 2);
            assert_eq!(4 * all[0].2, all[1].2);
            assert_eq!((counts.recorded, counts.all), (2, 5));
        }
        profile.end(7, number);
        profile.end(7, number);
        profile.end_thread(8);
        profile.end_thread(8);
        assert!(profile.waits.values().all(HashMap::is_empty));
        assert!(profile.news().is_some());
        assert!(profile.news().is_none());
    }

    #[test]
    fn a_thread_blocks_once_at_a_time() {
        let mut profile = Profile::default();
        for factor in 1..=2 {
            profile.begin(7, BLOCKED, wait(factor));
            assert_ne!(profile.begin_promise(7, wait(9)), BLOCKED);
        }
        assert_eq!(profile.totals.0.keys().collect::<Vec<_>>(), [&1], "the first has ended, and counts");
    }
}
