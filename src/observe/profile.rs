//! The profile: how long was waited, by the stacks of the waiting calls (`ATOMICS_WAITASYNC_PROFILE`).
//!
//! JavaScript tells of each wait that it records when it begins, with its stack, and when it is over, and writes the
//! file (`lib/observe/profile.js`). A wait that is not over counts for its time so far, and the waits of a thread end
//! with it: so the file shows those who wait for ever, too.
//!
//! The tables have bounds: stacks (see [`stacks`](waitasync_core::held::stacks)), and of each stack the first locks.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, LazyLock, Mutex};
use std::{cmp, env, process};

use napi::{Env, Result};
use napi_derive::napi;

use crate::agent::Agent;
use crate::globals::PROCESS;
use crate::observe::stalls::MAIN;
use crate::observe::variable;
use waitasync_core::clock::{Timestamp, now};
use waitasync_core::held::stacks::StackId;
use waitasync_core::json;
use waitasync_core::lock::tracked_buffers::AgentId;
use waitasync_core::sync::lock;

/// How many locks are told apart of each stack. One line may request any number of names.
const MOST_LEAVES: usize = 16;

const OTHER_LOCKS: &str = "other locks";

/// A wait that is recorded and is not over.
struct Wait {
    thread: AgentId,
    stack: StackId,
    /// Says for what.
    leaf: Arc<str>,
    /// How many waits it stands for.
    factor: u32,
    since: Timestamp,
}

impl Wait {
    fn add_to(&self, totals: &mut Totals, now: Timestamp) {
        let leaves = totals.entry(self.stack).or_default();
        let has_room = leaves.len() < MOST_LEAVES || leaves.contains_key(&self.leaf);
        let leaf = if has_room { Arc::clone(&self.leaf) } else { OTHER_LOCKS.into() };
        let nanos = now.as_nanos().saturating_sub(self.since.as_nanos()).saturating_mul(self.factor.into());
        *leaves.entry(leaf).or_default() += nanos;
    }
}

/// Nanoseconds of waits, by the stack, and by noun.
type Totals = HashMap<StackId, HashMap<Arc<str>, u64>>;

#[derive(Default)]
struct Profile {
    /// Of the waits that are over.
    totals: Totals,
    /// The others, by their numbers.
    waits: HashMap<u32, Wait>,
    /// How many waits were recorded; and how many these stand for.
    recorded: u64,
    all: u64,
}

impl Profile {
    fn text(&self) -> String {
        let (mut totals, now) = (self.totals.clone(), now());
        self.waits.values().for_each(|wait| wait.add_to(&mut totals, now));
        let of_stack = |(&stack, leaves): (&StackId, &HashMap<Arc<str>, u64>)| {
            leaves.iter().map(|(leaf, nanos)| (stack, (nanos + 500) / 1000, Arc::clone(leaf))).collect::<Vec<_>>()
        };
        let mut lines: Vec<_> = totals.iter().flat_map(of_stack).filter(|&(_, micros, _)| micros > 0).collect();
        lines.sort_by_key(|&(_, micros, _)| cmp::Reverse(micros));
        json::text(|text| {
            let Self { recorded, all, .. } = self;
            write!(text, "{{\"waits\":{all},\"recorded\":{recorded},\"lines\":")?;
            json::array(text, lines, |text, (stack, micros, leaf)| {
                write!(text, "[{stack},{micros},")?;
                json::string(text, leaf.encode_utf16())?;
                text.write_char(']')
            })?;
            text.write_char('}')
        })
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

/// Returns the file; undefined if there is to be none.
#[napi(catch_unwind)]
pub fn profile_file() -> Option<String> {
    FILE.clone()
}

/// Records a wait that begins, for `factor` waits. Returns its number. `leaf` says for what.
#[napi(catch_unwind)]
pub fn wait_begins(env: Env, stack: u32, factor: u32, leaf: String) -> Result<u32> {
    let wait = Wait { thread: Agent::of(env.raw())?.id(), stack, leaf: leaf.into(), factor, since: now() };
    let profile = &mut *lock(&PROFILE);
    profile.recorded += 1;
    profile.all += u64::from(factor);
    profile.waits.insert(profile.recorded as u32, wait);
    Ok(profile.recorded as u32)
}

/// Notes that a wait is over.
#[napi(catch_unwind)]
pub fn wait_ends(number: u32) {
    let profile = &mut *lock(&PROFILE);
    if let Some(wait) = profile.waits.remove(&number) {
        wait.add_to(&mut profile.totals, now());
    }
}

pub(crate) fn end_thread(thread: AgentId) {
    let Profile { totals, waits, .. } = &mut *lock(&PROFILE);
    waits.extract_if(|_, wait| wait.thread == thread).for_each(|(_, wait)| wait.add_to(totals, now()));
}

/// Returns the waits so far as JSON. Undefined if another thread is to write the file: the main thread is, or any
/// thread if that has not loaded the package.
///
/// `lines`: the number of the stack, microseconds and the noun of each; the heaviest first.
#[napi(catch_unwind)]
pub fn profile_text(env: Env) -> Result<Option<String>> {
    let writes = Agent::of(env.raw())?.thread_id == MAIN
        || PROCESS.registry.thread_of(|agent| agent.known.thread_id == MAIN).is_none();
    Ok(writes.then(|| lock(&PROFILE).text()))
}
