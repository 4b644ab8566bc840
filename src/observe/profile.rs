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
use std::sync::{Arc, LazyLock, Mutex};
use std::{cmp, env, iter, process};

use napi::{Env, Result};
use napi_derive::napi;

use crate::agent::Agent;
use crate::globals::PROCESS;
use crate::observe::stalls::MAIN;
use crate::observe::variable;
use waitasync_core::clock::{Timestamp, now};
use waitasync_core::held::stacks::{self, StackId};
use waitasync_core::json;
use waitasync_core::lock::tracked_buffers::AgentId;
use waitasync_core::sync::lock;

/// How many locks are told apart of each stack. One line may request any number of names.
const MOST_LEAVES: usize = 16;

const OTHER_LOCKS: &str = "other locks";

/// A wait that is recorded and is not over.
struct Waited {
    stack: StackId,
    /// Says for what.
    leaf: Arc<str>,
    /// How many waits it stands for.
    factor: u32,
    since: Timestamp,
}

/// Nanoseconds of waits, by the stack, and by noun.
#[derive(Clone, Default)]
struct Totals(HashMap<StackId, HashMap<Arc<str>, u64>>);

impl Totals {
    fn add(&mut self, wait: &Waited, now: Timestamp) {
        let leaves = self.0.entry(wait.stack).or_default();
        let has_room = leaves.len() < MOST_LEAVES || leaves.contains_key(&wait.leaf);
        let leaf = if has_room { Arc::clone(&wait.leaf) } else { OTHER_LOCKS.into() };
        let nanos = now.as_nanos().saturating_sub(wait.since.as_nanos()).saturating_mul(wait.factor.into());
        *leaves.entry(leaf).or_default() += nanos;
    }
}

#[derive(Default)]
struct Profile {
    totals: Totals,
    /// By the thread and their number.
    waits: HashMap<(AgentId, u32), Waited>,
    last: u32,
    /// How many waits were recorded; and how many these stand for.
    recorded: u64,
    all: u64,
    /// Whether no wait has ended since the file was written.
    is_written: bool,
}

impl Profile {
    fn begin(&mut self, thread: AgentId, wait: Waited) -> u32 {
        self.recorded += 1;
        self.all += u64::from(wait.factor);
        self.last = self.last.wrapping_add(1);
        self.waits.insert((thread, self.last), wait);
        self.last
    }

    /// Ends a thread's wait with this number, or all of them.
    fn end(&mut self, thread: AgentId, number: Option<u32>) {
        let ended: Vec<_> = match number {
            Some(number) => self.waits.remove(&(thread, number)).into_iter().collect(),
            None => self.waits.extract_if(|&(of, _), _| of == thread).map(|(_, wait)| wait).collect(),
        };
        for wait in ended {
            self.is_written = false;
            self.totals.add(&wait, now());
        }
    }

    /// Returns the waits so far as JSON, if there are new ones.
    fn news(&mut self) -> Option<String> {
        if std::mem::replace(&mut self.is_written, true) && self.waits.is_empty() {
            return None;
        }
        let (mut totals, now) = (self.totals.clone(), now());
        self.waits.values().for_each(|wait| totals.add(wait, now));
        let lines = totals.0.iter().flat_map(|(stack, leaves)| iter::repeat(stack).zip(leaves));
        let lines = lines.map(|(stack, (leaf, nanos))| (stack, leaf, (nanos + 500) / 1000));
        let mut lines: Vec<_> = lines.filter(|&(.., micros)| micros > 0).collect();
        lines.sort_by_key(|&(.., micros)| cmp::Reverse(micros));
        Some(json::text(|text| {
            let Self { recorded, all, .. } = self;
            write!(text, "{{\"waits\":{all},\"recorded\":{recorded},\"lines\":")?;
            json::array(text, lines, |text, (stack, leaf, micros)| {
                write!(text, "[{stack},{micros},")?;
                json::string(text, leaf.encode_utf16())?;
                text.write_char(']')
            })?;
            text.write_char('}')
        }))
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

/// Whether the file cannot be written, so that no further thread begins to record.
static IS_OFF: AtomicBool = AtomicBool::new(false);

/// Records a wait that begins, for `factor` waits. Returns its number. `leaf` says for what.
#[napi(catch_unwind)]
pub fn wait_begins(env: Env, stack: u32, factor: u32, leaf: String) -> Result<u32> {
    let wait = Waited { stack, leaf: leaf.into(), factor, since: now() };
    Ok(lock(&PROFILE).begin(Agent::of(env.raw())?.id(), wait))
}

/// Notes that a wait is over.
#[napi(catch_unwind)]
pub fn wait_ends(env: Env, number: u32) -> Result<()> {
    Agent::of(env.raw()).map(|agent| lock(&PROFILE).end(agent.id(), Some(number)))
}

pub(crate) fn end_thread(thread: AgentId) {
    lock(&PROFILE).end(thread, None);
}

/// Begins to record, and returns the file; undefined if there is to be none.
#[napi(catch_unwind)]
pub fn start_profile() -> Option<String> {
    FILE.clone().filter(|_| !IS_OFF.load(Ordering::Relaxed))
}

/// Notes that the file could not be written; `ends`: for good. Returns true to the first caller.
#[napi(catch_unwind)]
pub fn profile_fails(ends: bool) -> bool {
    static IS_TOLD: AtomicBool = AtomicBool::new(false);
    if ends {
        IS_OFF.store(true, Ordering::Relaxed);
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
    Ok(if writes { lock(&PROFILE).news() } else { None })
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
        let [first, second] = [1, 2].map(|stack| &totals.0[&stack]);
        assert_eq!((first.len(), first["lock 00"], first[OTHER_LOCKS]), (MOST_LEAVES + 1, 15, 30));
        assert_eq!((second.len(), second["lock 00"]), (1, 7));
    }

    #[test]
    fn a_wait_counts_while_it_lasts_and_ends_with_its_thread() {
        let mut profile = Profile::default();
        // The first file may be empty.
        assert!(profile.news().is_some() && profile.news().is_none());
        let number = profile.begin(7, wait(4, "lock", 4));
        profile.begin(8, wait(1, "lock", 1));
        for _ in 0..2 {
            assert!(profile.news().unwrap().contains("\"waits\":5,\"recorded\":2"));
        }
        for _ in 0..2 {
            profile.end(7, Some(number));
            profile.end(8, None);
        }
        assert!(profile.waits.is_empty());
        assert!(profile.totals.0[&4]["lock"] > 3 * profile.totals.0[&1]["lock"]);
        assert!(profile.news().is_some() && profile.news().is_none());
    }
}
