//! The profile: how long was waited, by the stacks of the waiting calls (`ATOMICS_WAITASYNC_PROFILE`).
//!
//! JavaScript tells of each wait that it records when it begins, with its stack, and when it is over
//! (`lib/observe/profile.js`), and writes the file (`lib/observe/profile-file.js`). A wait that is not over counts for
//! its time so far, and the waits of a thread end with it: so the file shows those who wait for ever, too.
//!
//! The tables have bounds: stacks (see [`stacks`]), and of each stack the first locks.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, Once};
use std::{cmp, env, process};

use napi::{Env, Result};
use napi_derive::napi;

use crate::agent::Agent;
use crate::globals::PROCESS;
use crate::observe::stalls::MAIN;
use crate::observe::variable;
use waitasync_core::clock::{Timestamp, now};
use waitasync_core::held::stacks::{self, StackId};
use waitasync_core::json;
use waitasync_core::sync::lock;

/// How many locks are told apart of each stack. One line may request any number of names.
const MOST_LEAVES: usize = 16;

const OTHER_LOCKS: &str = "other locks";

/// Nanoseconds of waits, by the stack, and by noun.
#[derive(Clone, Default)]
struct Totals(HashMap<StackId, HashMap<Arc<str>, u64>>);

impl Totals {
    fn add(&mut self, wait: &Waited, now: Timestamp) {
        let leaves = self.0.entry(wait.stack).or_default();
        let has_room = leaves.len() < MOST_LEAVES || leaves.contains_key(&wait.leaf);
        let leaf = if has_room { Arc::clone(&wait.leaf) } else { OTHER_LOCKS.into() };
        *leaves.entry(leaf).or_default() += wait.nanos(now);
    }

    fn lines(&self) -> impl Iterator<Item = (StackId, &str, u64)> {
        self.0.iter().flat_map(|(&stack, leaves)| leaves.iter().map(move |(leaf, &nanos)| (stack, &**leaf, nanos)))
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

#[derive(Default)]
struct Profile {
    totals: Totals,
    /// By the thread and their number.
    waits: HashMap<(usize, u32), Waited>,
    last_promise: u32,
    /// How many waits were recorded; and how many these stand for.
    recorded: u64,
    all: u64,
    /// Whether no wait has ended since the file was written.
    is_written: bool,
}

impl Profile {
    fn begin(&mut self, thread: usize, number: u32, wait: Waited) {
        self.recorded += 1;
        self.all += u64::from(wait.factor);
        let former = self.waits.insert((thread, number), wait);
        self.add(former);
    }

    fn begin_promise(&mut self, thread: usize, wait: Waited) -> u32 {
        self.last_promise = self.last_promise.wrapping_add(1).max(BLOCKED + 1);
        self.begin(thread, self.last_promise, wait);
        self.last_promise
    }

    fn end(&mut self, thread: usize, number: u32) {
        let wait = self.waits.remove(&(thread, number));
        self.add(wait);
    }

    fn end_thread(&mut self, thread: usize) {
        let ended: Vec<_> = self.waits.extract_if(|&(of, _), _| of == thread).collect();
        self.add(ended.into_iter().map(|(_, wait)| wait));
    }

    fn add(&mut self, ended: impl IntoIterator<Item = Waited>) {
        for wait in ended {
            self.is_written = false;
            self.totals.add(&wait, now());
        }
    }

    /// Returns the waits so far, if changed since the last call; and the two numbers.
    fn news(&mut self) -> Option<(Totals, u64, u64)> {
        if std::mem::replace(&mut self.is_written, true) && self.waits.is_empty() {
            return None;
        }
        let (mut totals, now) = (self.totals.clone(), now());
        self.waits.values().for_each(|wait| totals.add(wait, now));
        Some((totals, self.recorded, self.all))
    }
}

static PROFILE: LazyLock<Mutex<Profile>> = LazyLock::new(Mutex::default);

/// The file. Read once, from the environment of the process: a Worker may have been given another environment, and a
/// program may change its folder.
static FILE: LazyLock<Option<String>> = LazyLock::new(|| {
    // Processes that this one starts inherit the variable.
    let own = variable("ATOMICS_WAITASYNC_PROFILE")?.replace("${pid}", &process::id().to_string());
    Some(env::current_dir().unwrap_or_default().join(own).to_string_lossy().into_owned())
});

/// Whether waits are recorded: once a thread has begun to, and as long as the file can be written.
static IS_ON: AtomicBool = AtomicBool::new(false);

fn is_on() -> bool {
    IS_ON.load(Ordering::Relaxed)
}

/// Records a promise's wait that begins. Returns its number.
pub(crate) fn begin(thread: usize, stack: StackId, leaf: Arc<str>, factor: u32) -> u32 {
    lock(&PROFILE).begin_promise(thread, Waited { stack, leaf, factor, since: now() })
}

pub(crate) fn end(thread: usize, number: u32) {
    lock(&PROFILE).end(thread, number);
}

/// Records the wait for which a thread blocks, until [`end_block`].
pub(crate) fn begin_block(thread: usize, stack: StackId, leaf: Arc<str>, factor: u32, milliseconds: f64) {
    let age = (milliseconds.max(0.0) * 1e6) as u64;
    let since = Timestamp::from_nanos(now().as_nanos().saturating_sub(age));
    lock(&PROFILE).begin(thread, BLOCKED, Waited { stack, leaf, factor, since });
}

pub(crate) fn end_block(thread: usize) {
    if is_on() {
        end(thread, BLOCKED);
    }
}

pub(crate) fn end_thread(thread: usize) {
    if is_on() {
        lock(&PROFILE).end_thread(thread);
    }
}

/// Begins to record, and returns the file; undefined if there is to be none.
#[napi(catch_unwind)]
pub fn start_profile() -> Option<String> {
    static STARTED: Once = Once::new();
    let file = FILE.clone()?;
    STARTED.call_once(|| IS_ON.store(true, Ordering::Relaxed));
    is_on().then_some(file)
}

/// Notes that the file could not be written; `ends`: nothing more is recorded. Returns true to the first caller.
#[napi(catch_unwind)]
pub fn profile_fails(ends: bool) -> bool {
    static IS_TOLD: AtomicBool = AtomicBool::new(false);
    if ends {
        IS_ON.store(false, Ordering::Relaxed);
    }
    !IS_TOLD.swap(true, Ordering::Relaxed)
}

/// Returns the waits so far as JSON. Undefined without news, or if another thread is to write the file.
///
/// The main thread is, or any thread if that has not loaded the package.
///
/// `lines`: the number of the stack, microseconds and the noun of each; the heaviest first.
#[napi(catch_unwind)]
pub fn profile_news(env: Env) -> Result<Option<String>> {
    let is_main = |thread_id| thread_id == MAIN;
    let writes = is_main(Agent::of(env.raw())?.thread_id)
        || PROCESS.registry.find(|agent| is_main(agent.known.thread_id), |_| ()).is_none();
    let news = if writes && is_on() { lock(&PROFILE).news() } else { None };
    Ok(news.map(|(totals, recorded, all)| json_of(&totals, recorded, all)))
}

fn json_of(totals: &Totals, recorded: u64, all: u64) -> String {
    let lines = totals.lines().map(|(stack, leaf, nanos)| (stack, leaf, (nanos + 500) / 1000));
    let mut lines: Vec<_> = lines.filter(|&(_, _, micros)| micros > 0).collect();
    lines.sort_by_key(|&(_, _, micros)| cmp::Reverse(micros));
    json::text(|text| {
        write!(text, "{{\"waits\":{all},\"recorded\":{recorded},\"otherStacks\":{},\"lines\":", stacks::refused())?;
        json::array(text, lines, |text, (stack, leaf, micros)| {
            write!(text, "[{stack},{micros},")?;
            json::string(text, leaf.encode_utf16())?;
            text.write_char(']')
        })?;
        text.write_char('}')
    })
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

    fn wait(stack: StackId, leaf: &str, factor: u32) -> Waited {
        Waited { stack, leaf: leaf.into(), factor, since: Timestamp::from_nanos(0) }
    }

    #[test]
    fn times_add_up_and_the_locks_of_a_stack_have_a_bound() {
        let mut totals = Totals::default();
        let names: Vec<_> = (0..MOST_LEAVES + 3).map(|n| format!("lock {n:02}")).collect();
        for (stack, leaf, factor) in
            names.iter().map(|name| (1, &**name, 10)).chain([(1, "lock 00", 5), (2, "lock 00", 7)])
        {
            totals.add(&wait(stack, leaf, factor), Timestamp::from_nanos(1));
        }
        let mut all: Vec<_> = totals.lines().collect();
        all.sort_unstable();
        assert_eq!(all.len(), MOST_LEAVES + 2);
        assert_eq!(all[0], (1, "lock 00", 15));
        assert_eq!(all[MOST_LEAVES..], [(1, OTHER_LOCKS, 30), (2, "lock 00", 7)]);
    }

    #[test]
    fn a_wait_counts_while_it_lasts_and_ends_with_its_thread() {
        let mut profile = Profile::default();
        // The first file may be empty.
        assert!(profile.news().is_some() && profile.news().is_none());
        let number = profile.begin_promise(7, wait(4, "lock", 4));
        // A thread blocks once at a time: the former wait has ended, and counts.
        profile.begin(8, BLOCKED, wait(2, "lock", 2));
        profile.begin(8, BLOCKED, wait(1, "lock", 1));
        for _ in 0..2 {
            let (totals, recorded, all) = profile.news().unwrap();
            let mut times: Vec<_> = totals.lines().collect();
            times.sort_unstable();
            assert_eq!(times.len(), 3);
            assert_eq!(4 * times[0].2, times[2].2);
            assert_eq!((recorded, all), (3, 7));
        }
        profile.end(7, number);
        profile.end(7, number);
        profile.end_thread(8);
        profile.end_thread(8);
        assert!(profile.waits.is_empty());
        assert!(profile.news().is_some() && profile.news().is_none());
    }
}
