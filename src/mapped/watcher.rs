//! The thread that sleeps until another process rings, or dies.
//!
//! It is one for all files of this process, starts with the first, and ends with the process. So its end is the alarm: the kernel
//! marks the word `alive` of each slot of this process, and wakes one that sleeps there. That one wakes the others.

use std::io::{Error, Result};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{LazyLock, Mutex, mpsc};
use std::time::{Duration, Instant};

use waitasync_core::mapped::ProcessId;
use waitasync_core::service::idle_flag::IdleFlag;
use waitasync_core::sync::lock;

use super::mapping::Mapping;
use super::system::{self, MOST_WORDS, OWNER_DIED, RobustList, WAITERS, Watcher};

/// How often it looks at all deaths while this process waits for others: in case that one who was to pass an alarm on has died.
const BACKSTOP: Duration = Duration::from_secs(1);
/// For how long it does so after the last wait: so most waits need not ring it.
const CALM: Duration = Duration::from_secs(2);
/// How often it looks at the byte of a process whose alarm has come: at first, and once [`PATIENCE`] is over.
const LOOK: Duration = Duration::from_micros(500);
const RARE_LOOK: Duration = Duration::from_millis(20);
const PATIENCE: Duration = Duration::from_secs(5);
/// How often it looks at words at which it cannot sleep, since they are too many, or the kernel is older than 5.16.
const ROUND: Duration = Duration::from_millis(5);

/// Starts the thread, unless it runs.
pub(super) fn start() -> Result<Watcher> {
    static WATCHER: Mutex<Option<Watcher>> = Mutex::new(None);
    let mut watcher = lock(&WATCHER);
    if let Some(watcher) = *watcher {
        return Ok(watcher);
    }
    let (sender, receiver) = mpsc::channel();
    std::thread::Builder::new().name("atomics-watcher".into()).spawn(move || {
        system::block_signals();
        let made = RobustList::of_this_thread().ok_or_else(Error::last_os_error);
        let is_made = made.is_ok();
        let _ = sender.send(made.map(|robust_list| Watcher { thread_id: system::thread_id(), robust_list }));
        if is_made {
            watch();
        }
    })?;
    let started = receiver.recv().map_err(Error::other)??;
    *watcher = Some(started);
    Ok(started)
}

static REST: LazyLock<IdleFlag> = LazyLock::new(IdleFlag::default);

/// Lets the thread look now and then. Called once a wait is counted: see [`IdleFlag`].
pub(crate) fn wait_begins(mapping: &Mapping) {
    if REST.wake() {
        mapping.ring_own();
    }
}

/// A process whose alarm has come: since then its byte is looked at.
struct Suspect {
    mapping: &'static Mapping,
    process: ProcessId,
    since: Instant,
}

fn watch() {
    let mut suspects: Vec<Suspect> = Vec::new();
    let mut last_look = Instant::now();
    let mut last_wait = None;
    let mut sleeps_at_many = true;
    loop {
        let mappings = Mapping::all();
        let (mut words, mut wakes, mut waits, mut polls) = (Vec::new(), Vec::new(), false, false);
        let mut due: Option<Duration> = None;
        for mapping in &mappings {
            // Before the table is looked at: a ring that comes later changes it, and then nobody sleeps.
            let bell = &mapping.slot(mapping.me().index()).doorbell;
            let count = bell.load(Ordering::SeqCst);
            if mapping.served.swap(count, Ordering::SeqCst) != count {
                guarded(|| mapping.client().rung());
            }
            words.push((bell, count));
            waits |= mapping.client().waits();
            due = due.into_iter().chain(guarded(|| mapping.client().due()).flatten()).min();
            polls |= guarded(|| mapping.client().polls()).unwrap_or(true);
        }
        for mapping in &mappings {
            for process in mapping.others() {
                let alive = &mapping.slot(process.index()).alive;
                let value = alive.fetch_or(WAITERS, Ordering::SeqCst) | WAITERS;
                if value & OWNER_DIED == 0 {
                    words.push((alive, value));
                } else if !suspects.iter().any(|suspect| suspect.is(mapping, process)) {
                    suspects.push(Suspect { mapping, process, since: Instant::now() });
                    wakes.push(alive);
                }
            }
        }
        wakes.into_iter().for_each(system::wake);
        suspects.retain(|suspect| {
            let is_swept = guarded(|| suspect.mapping.sweep_if_gone(suspect.process));
            !is_swept.unwrap_or(false)
        });
        if waits {
            last_wait = Some(Instant::now());
        }
        waits = last_wait.is_some_and(|wait| wait.elapsed() < CALM)
            || !REST.try_idle(|| mappings.iter().any(|mapping| mapping.client().waits()));
        if waits && last_look.elapsed() >= BACKSTOP {
            last_look = Instant::now();
            for mapping in &mappings {
                guarded(|| mapping.sweep());
                guarded(|| mapping.client().look_again());
            }
        }
        let next_look = waits.then(|| BACKSTOP.saturating_sub(last_look.elapsed()));
        let time = pause(&suspects, due, next_look, polls || words.len() > MOST_WORDS || !sleeps_at_many);
        sleeps_at_many = sleeps_at_many && sleep(&words, time);
        if !sleeps_at_many {
            sleep_simply(&words, time);
        }
    }
}

impl Suspect {
    fn is(&self, mapping: &'static Mapping, process: ProcessId) -> bool {
        std::ptr::eq(self.mapping, mapping) && self.process == process
    }
}

/// For how long it may sleep at most.
fn pause(
    suspects: &[Suspect],
    due: Option<Duration>,
    next_look: Option<Duration>,
    goes_round: bool,
) -> Option<Duration> {
    let looks = suspects.iter().map(|suspect| if suspect.since.elapsed() < PATIENCE { LOOK } else { RARE_LOOK });
    let others = [due, next_look, goes_round.then_some(ROUND)];
    looks.chain(others.into_iter().flatten()).min()
}

fn sleep(words: &[(&AtomicU32, u32)], time: Option<Duration>) -> bool {
    system::sleep_at(&words[..words.len().min(MOST_WORDS)], time)
}

/// Sleeps as an older kernel can.
fn sleep_simply(words: &[(&AtomicU32, u32)], time: Option<Duration>) {
    match words.first() {
        Some(&(bell, count)) => system::sleep_at_one(bell, count, time.unwrap_or(ROUND)),
        None => std::thread::sleep(ROUND),
    }
}

/// Goes on after a panic.
fn guarded<T>(work: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(work)).ok()
}
