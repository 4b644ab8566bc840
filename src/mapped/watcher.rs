//! The thread that sleeps until another process rings, or dies.
//!
//! It is one for all files of this process, starts with the first, and ends with the process. So its end is the alarm: the kernel
//! marks the word `alive` of each slot of this process, and wakes one that sleeps there. That one wakes the others.

use std::io::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

use waitasync_core::sync::lock;

use super::mapping::{BELL, Mapping};
use super::open_error::OpenError;
use super::system::{self, MOST_WORDS, OWNER_DIED, WAITERS, Watcher};

/// How often it looks at all that others have: one who was to pass an alarm on may have died, or be suspended before it rings.
const BACKSTOP: Duration = Duration::from_secs(1);
/// How often it looks at the byte of a process whose alarm has come: at first, and at least. Some take long to end.
const LOOK: Duration = Duration::from_micros(500);
const RARE_LOOK: Duration = Duration::from_millis(20);
/// How often it looks at words at which it cannot sleep, since they are too many, or the kernel is older than 5.16.
const ROUND: Duration = Duration::from_millis(5);

/// Starts the thread, unless it runs.
pub(crate) fn start() -> Result<Watcher, OpenError> {
    static WATCHER: Mutex<Option<Watcher>> = Mutex::new(None);
    let mut watcher = lock(&WATCHER);
    if let Some(watcher) = *watcher {
        return Ok(watcher);
    }
    let (sender, receiver) = mpsc::channel();
    std::thread::Builder::new().name("atomics-watcher".into()).spawn(move || {
        system::block_signals();
        let made = Watcher::of_this_thread();
        let is_made = made.is_ok();
        let _ = sender.send(made);
        if is_made {
            watch();
        }
    })?;
    let made = receiver.recv().map_err(Error::other)?;
    // Emulators have none.
    *watcher = Some(made.map_err(|error| {
        OpenError::Unavailable(format!("Memory of several processes needs Linux with robust lists of futexes: {error}"))
    })?);
    Ok(watcher.expect("it has been made"))
}

fn watch() {
    let (mut last_look, mut next_look, mut sleeps_at_many) = (Instant::now(), LOOK, true);
    loop {
        // Before anything is looked at: a ring that comes later changes it, and then nobody sleeps.
        let own = BELL.load(Ordering::SeqCst);
        let (mut words, mut times) = (vec![(&BELL, own)], Vec::new());
        let is_due = last_look.elapsed() >= BACKSTOP;
        if is_due {
            last_look = Instant::now();
        }
        for mapping in Mapping::all() {
            let bell = &mapping.slot(mapping.me().index()).doorbell;
            let count = bell.load(Ordering::SeqCst);
            words.push((bell, count));
            if mapping.served.swap(count, Ordering::SeqCst) != count {
                guarded(|| mapping.client().rung());
            }
            if is_due {
                guarded(|| mapping.sweep());
                guarded(|| mapping.client().look_again());
            }
            times.extend(guarded(|| mapping.client().due()).flatten());
        }
        let (mut is_alone, mut is_ending) = (true, false);
        for (mapping, process) in Mapping::all().flat_map(|mapping| mapping.others().map(move |other| (mapping, other)))
        {
            is_alone = false;
            let alive = &mapping.slot(process.index()).alive;
            let value = alive.fetch_or(WAITERS, Ordering::SeqCst) | WAITERS;
            if value & OWNER_DIED == 0 {
                words.push((alive, value));
            } else {
                system::wake(alive);
                is_ending |= guarded(|| mapping.sweep_if_gone(process)) != Some(true);
            }
        }
        next_look = if is_ending { (next_look + next_look / 16).min(RARE_LOOK) } else { LOOK };
        times.extend(is_ending.then_some(next_look));
        times.extend((!is_alone).then(|| BACKSTOP.saturating_sub(last_look.elapsed())));
        times.extend((words.len() > MOST_WORDS || !sleeps_at_many).then_some(ROUND));
        let time = times.into_iter().min();
        sleeps_at_many = sleeps_at_many && system::sleep_at(&words, time);
        if !sleeps_at_many {
            // Most programs have one file, and are rung there.
            let (word, value) = words.get(1).copied().unwrap_or((&BELL, own));
            system::sleep_at_one(word, value, time.unwrap_or(ROUND));
        }
    }
}

/// Goes on after a panic.
fn guarded<T>(work: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(work)).ok()
}
