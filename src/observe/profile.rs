//! `ATOMICS_WAITASYNC_PROFILE`: how long was waited, by the stacks of the waiting calls, in a file that profilers open.
//!
//! JavaScript tells of each wait that it records when it begins, with its stack, and when it is over
//! (`lib/waiting/profile.js`). A wait that is not over counts for its time so far, and the waits of a thread end with
//! it: so the file shows those who wait for ever, too.
//!
//! The service has the file written now and then, beside its place, and renamed: so it is whole at every moment. It is
//! written once more when the process ends. A thread of its own writes, for which nobody waits longer than [`LIMIT`]: a
//! file system may hang. What is beside its place is a new file: whatever else is there may be a link to another one.
//! The tables have bounds: stacks (see [`crate::observe::stacks`]), and of
//! each stack the first locks.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, OnceLock, mpsc};
use std::time::Duration;
use std::{env, fs, io, process, thread};

use napi_derive::napi;

use crate::environment::contained;
use crate::observe::aside::Aside;
use crate::observe::cpuprofile::{self, Counts, Line};
use crate::observe::stacks::{self, StackId};
use crate::process::service;
use waitasync_core::clock::{Timestamp, now};
use waitasync_core::sync::lock;

const VARIABLE: &str = "ATOMICS_WAITASYNC_PROFILE";

const PERIOD: Duration = Duration::from_secs(10);

/// How long the first caller and the process's end wait for the file.
const LIMIT: Duration = Duration::from_secs(5);

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

#[derive(Default)]
struct Profile {
    totals: Totals,
    /// By thread, and by their numbers.
    waits: HashMap<usize, HashMap<u32, Waited>>,
    number: u32,
    counts: Counts,
    /// Whether a wait has ended since the file was written.
    is_news: bool,
}

static PROFILE: LazyLock<Mutex<Profile>> = LazyLock::new(Mutex::default);

impl Profile {
    fn begin(&mut self, thread: usize, wait: Waited) -> u32 {
        self.counts.recorded += 1;
        self.counts.waits += u64::from(wait.factor);
        self.number = self.number.wrapping_add(1);
        self.waits.entry(thread).or_default().insert(self.number, wait);
        self.number
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

/// Returns where the file is to be; `None` if there is to be none. Read once, from the environment of the process: a
/// Worker may have been given another environment, and a program may change its folder.
fn file() -> Option<&'static Path> {
    static FILE: OnceLock<Option<PathBuf>> = OnceLock::new();
    let file = FILE.get_or_init(|| {
        let name = env::var_os(VARIABLE).filter(|name| !name.is_empty())?;
        // Processes that this one starts inherit the variable.
        let name = name.to_str().map(|name| name.replace("${pid}", &process::id().to_string()).into()).unwrap_or(name);
        Some(env::current_dir().unwrap_or_default().join(name))
    });
    file.as_deref()
}

static IS_ON: AtomicBool = AtomicBool::new(false);

/// Writes the file, if there is one and there is news.
fn write_now() {
    static IS_TOLD: AtomicBool = AtomicBool::new(false);
    if !profiles() {
        return;
    }
    if let Some(error) = write(false).err().filter(|_| !IS_TOLD.swap(true, Ordering::Relaxed)) {
        eprintln!("(node:{}) [{VARIABLE}] Warning: {}", process::id(), failure(&error));
    }
}

static WRITER: Aside = Aside::new("atomics-profile", write_now);

/// Has the file written, if there is one: a full table takes longer than timeouts may be late.
pub(crate) fn write_aside() {
    if profiles() && WRITER.ask().is_none() {
        contained(write_now);
    }
}

/// Writes the file when the process ends.
#[cfg_attr(not(unix), expect(dead_code, reason = "the main thread writes it when it ends"))]
fn write_last() {
    match WRITER.ask() {
        Some(request) => _ = WRITER.wait(request, LIMIT),
        None => _ = contained(write_now),
    }
}

/// Writes the file for the first time.
fn write_first() -> io::Result<()> {
    let (sender, receiver) = mpsc::channel();
    // Its receiver may have gone.
    let write_and_send = move || drop(sender.send(write(true)));
    if thread::Builder::new().name("atomics-profile".into()).spawn(write_and_send).is_err() {
        return write(true);
    }
    receiver.recv_timeout(LIMIT).unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

fn failure(error: &io::Error) -> String {
    format!("{VARIABLE}: cannot write {}: {error}", file().unwrap_or(Path::new("")).display())
}

/// Writes the file if there is news, or `anyway`.
fn write(anyway: bool) -> io::Result<()> {
    static WRITING: Mutex<()> = Mutex::new(());
    let Some(file) = file() else { return Ok(()) };
    let _writing = lock(&WRITING);
    let news = lock(&PROFILE).news();
    let Some((totals, counts)) = news.or_else(|| anyway.then(Default::default)) else { return Ok(()) };
    let counts = Counts { other_stacks: stacks::refused(), ..counts };
    let text = cpuprofile::write(lines(totals), counts).ok_or(io::ErrorKind::OutOfMemory)?;
    refuse_special(file)?;
    replace(file, &text)
}

fn lines(totals: Totals) -> Vec<Line> {
    let lines_of = |(number, leaves): (StackId, Leaves)| {
        let stack = stacks::text_of(number);
        leaves.into_iter().map(move |(leaf, nanos)| Line { stack: stack.clone(), leaf, micros: (nanos + 500) / 1000 })
    };
    totals.0.into_iter().flat_map(lines_of).collect()
}

/// Refuses a file that a rename must not replace.
fn refuse_special(file: &Path) -> io::Result<()> {
    match fs::metadata(file) {
        Ok(there) if !there.is_file() => Err(io::Error::other("there is something that is no file")),
        Ok(there) if there.permissions().readonly() => Err(io::ErrorKind::PermissionDenied.into()),
        _ => Ok(()),
    }
}

fn replace(file: &Path, text: &str) -> io::Result<()> {
    let mut beside = file.as_os_str().to_owned();
    beside.push(format!(".{}.tmp", process::id()));
    let written = create_new(Path::new(&beside)).and_then(|mut new| new.write_all(text.as_bytes()));
    written.and_then(|()| fs::rename(&beside, file)).inspect_err(|_| {
        // It may not be there.
        let _ = fs::remove_file(&beside);
    })
}

/// Creates a file, instead of another one of that name: that of an earlier process, or a link.
fn create_new(path: &Path) -> io::Result<File> {
    let create = || File::options().write(true).create_new(true).open(path);
    create().or_else(|error| {
        if error.kind() != io::ErrorKind::AlreadyExists {
            return Err(error);
        }
        fs::remove_file(path)?;
        create()
    })
}

pub(crate) fn begin(thread: usize, stack: StackId, leaf: Arc<str>, factor: u32, milliseconds: f64) -> u32 {
    let age = (milliseconds.max(0.0) * 1e6) as u64;
    let since = Timestamp::from_nanos(now().as_nanos().saturating_sub(age));
    lock(&PROFILE).begin(thread, Waited { stack, leaf, factor, since })
}

pub(crate) fn end(thread: usize, number: u32) {
    lock(&PROFILE).end(thread, number);
}

pub(crate) fn end_thread(thread: usize) {
    if profiles() {
        lock(&PROFILE).end_thread(thread);
    }
}

/// Begins to record, if the variable asks for that. A text: a warning, which is given once in the process.
#[napi(catch_unwind)]
pub fn start_profile() -> Option<String> {
    static STARTING: Mutex<bool> = Mutex::new(false);
    file()?;
    let mut is_started = lock(&STARTING);
    if std::mem::replace(&mut *is_started, true) {
        return None;
    }
    if let Err(error) = write_first() {
        return Some(failure(&error));
    }
    IS_ON.store(true, Ordering::Relaxed);
    at_exit();
    match service() {
        Some(service) => {
            service.every(PERIOD, write_aside);
            None
        }
        None => Some(format!(
            "{VARIABLE}: the system gives no thread, so the file is written at the end of the process only"
        )),
    }
}

/// Lets the file be written when the process ends.
#[cfg(unix)]
fn at_exit() {
    unsafe extern "C" {
        fn atexit(function: extern "C" fn()) -> i32;
    }
    extern "C" fn end() {
        contained(write_last);
    }
    // SAFETY: a function of C's own; its argument is in this library, which stays loaded, see `Agent::start`.
    let _ = unsafe { atexit(end) };
}

/// Does nothing: the main thread writes it when it ends.
#[cfg(not(unix))]
fn at_exit() {}

/// Whether waits are recorded.
#[napi(catch_unwind)]
pub fn profiles() -> bool {
    IS_ON.load(Ordering::Relaxed)
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
        let number = profile.begin(7, wait(4));
        profile.begin(8, wait(1));
        for _ in 0..2 {
            let (totals, counts) = profile.news().unwrap();
            let all = nanos(&totals);
            assert_eq!(all.len(), 2);
            assert_eq!(4 * all[0].2, all[1].2);
            assert_eq!((counts.recorded, counts.waits), (2, 5));
        }
        profile.end(7, number);
        profile.end(7, number);
        profile.end_thread(8);
        profile.end_thread(8);
        assert!(profile.waits.values().all(HashMap::is_empty));
        assert!(profile.news().is_some());
        assert!(profile.news().is_none());
    }
}
