//! The globals of a process: queue, service, memories, names; and access to a word. Its images, signals, settings.

pub mod images;
mod memory_probe;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
pub(crate) mod shared_words;
#[cfg(unix)]
pub(crate) mod signals;

use std::env;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, LazyLock, Mutex, OnceLock};
use std::time::Duration;

use memory_probe::find_freed;
use napi_derive::napi;
use waitasync_core::held::Process;
use waitasync_core::lock::{Hold, Request, Word};
use waitasync_core::mapped::words::SharedWord;
pub(crate) use waitasync_core::mapped::words::{maps_memory, owner_of, shared_word};
pub(crate) use waitasync_core::queue::other_processes::is_shared;
use waitasync_core::queue::{Location, WaitResult};
use waitasync_core::service::Service;
use waitasync_core::sync::lock;

pub(crate) static PROCESS: LazyLock<Process> = LazyLock::new(|| Process::new(find_freed, period()));

/// Returns the service. `None` if the system gives no thread for it; each call tries to start it.
pub(crate) fn service() -> Option<&'static Arc<Service>> {
    static SERVICE: OnceLock<Arc<Service>> = OnceLock::new();
    static STARTING: Mutex<()> = Mutex::new(());
    SERVICE.get().or_else(|| {
        let _starting = lock(&STARTING);
        if SERVICE.get().is_none() {
            SERVICE.set(Service::start(&PROCESS.store, || PROCESS.store.check_words(with_word))?).ok()?;
        }
        SERVICE.get()
    })
}

/// Lets the service look at a claim's word, but not a name's.
pub(crate) fn claim_has_joined(location: Location) {
    if !location.is_of_process()
        && let Some(service) = service()
    {
        service.look_at_words();
    }
}

/// Lets the service look at the word of a claim that stays. While a process was known to have it, it did not.
pub(crate) fn claim_stays(location: Location, word: &WordAt) {
    if matches!(word, WordAt::Shared(_)) && !word.has_known_holder() {
        claim_has_joined(location);
    }
}

/// A word of this process's own memory, or of shared memory.
#[derive(Clone, Copy)]
pub(crate) enum WordAt {
    Own(&'static AtomicI32),
    Shared(SharedWord<'static>),
}

impl Deref for WordAt {
    type Target = dyn Word;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Own(word) => *word,
            Self::Shared(word) => word,
        }
    }
}

/// Returns the word of a lock.
///
/// JavaScript keeps its memory (invariant 8), for this is called with these locations only:
///
/// | the location comes from | the memory is kept by |
/// |---|---|
/// | the registers, during an operation | the lock, whose method JavaScript is in |
/// | a claim that is pending, or settled and not yet delivered | the slot's entry in `lib/agent/` |
/// | a claim for which a thread blocks, or its grant | `expected` in `lib/holding/robust-list.js` |
/// | the robust list | the list's own array of words, and `expected` |
/// | a line, in a critical section of its bucket | one of the above: its claims cannot leave meanwhile |
/// | any of these, of a named lock | the names, which has the request until its claim has left the line |
///
/// At an agent's end these still hold: the clean-up hook runs before the heap goes, and before Node 14
/// `lib/holding/tracked-buffers.js` keeps the memory. The registers' `relay` and `releasing` are not among them: nothing
/// may keep the memory there, so they only serve as keys.
pub(crate) fn word_at(location: Location) -> WordAt {
    match shared_word(location) {
        Some(word) => WordAt::Shared(word),
        None => WordAt::Own(own_word_at(location)),
    }
}

pub(crate) fn with_word(location: Location, body: &mut dyn FnMut(&dyn Word)) {
    body(&*word_at(location));
}

/// Returns a word as memory: that of a queue, or of the bare code of a program.
pub(crate) fn own_word_at(location: Location) -> &'static AtomicI32 {
    // SAFETY: the location is that of an aligned word which is there as long as it is used, see above.
    unsafe { location.word() }
}

/// What a waiter got and its thread has not used.
#[derive(Clone, Copy)]
pub(crate) enum Unused {
    /// A notification of a waiter at this location.
    Notification(Location),
    /// Its hold of this word.
    Acquired(Location, Hold),
}

impl Unused {
    /// Passes on a grant of a thread that ended or was interrupted. The next waiter sees it if a holder died.
    pub(crate) fn pass_on(self) {
        match self {
            Self::Notification(location) => _ = PROCESS.store.notify(location, 1, None),
            Self::Acquired(location, hold) => _ = return_unused(location, hold, WaitResult::AcquiredFromDead),
        }
    }
}

pub(crate) fn pass_on_notification(location: Option<Location>) {
    if let Some(location) = location {
        Unused::Notification(location).pass_on();
    }
}

/// Raises a pair of a queue's events, which a dead thread owes. Each of the two words has waiters of its own.
///
/// A waiter reads its word before it looks further. So either it finds it changed, or it is enqueued here.
pub(crate) fn raise(events: Location) {
    let both = [events, events.words_after(1)];
    for location in both {
        own_word_at(location).fetch_add(1, Ordering::SeqCst);
    }
    for location in both {
        PROCESS.store.wake_first(location);
    }
}

/// Returns a grant, with `result`, to a waiter that has given up: the next in line gets that instead, and sees it if a
/// holder died. Returns false if it had been stolen.
pub(crate) fn return_unused(location: Location, hold: Hold, result: WaitResult) -> bool {
    if let Some(id) = hold.id() {
        return PROCESS.names.end_grant(&PROCESS.store, id, result);
    }
    PROCESS.store.return_unused(location, hold, result, &*word_at(location));
    true
}

/// Rings the process whose turn it is. JavaScript has released a word that several processes have.
pub(crate) fn pass_to_other_processes(location: Location) {
    if let Some(word) = shared_word(location) {
        word.pass();
    }
}

/// Forgets a claim that has left its line with nothing.
pub(crate) fn gave_up(request: Option<Request>) {
    if let Some(id) = request.and_then(Request::id) {
        PROCESS.names.forget(&PROCESS.store, id);
    }
}

/// The variable that says after how many milliseconds a wait for a lock is reported.
pub(crate) const STALL_VARIABLE: &str = "ATOMICS_WAITASYNC_STALL";

/// Returns the variable's value; `None` if it is not allowed. Read once, from the environment of the process: a Worker
/// may have been given another environment.
fn setting() -> Option<u32> {
    /// The most that a timer of JavaScript takes.
    const MOST: u32 = i32::MAX.cast_unsigned();
    static SETTING: OnceLock<Option<u32>> = OnceLock::new();
    *SETTING.get_or_init(|| {
        let Some(text) = env::var_os(STALL_VARIABLE) else { return Some(0) };
        let text = text.to_str()?.trim();
        if text.is_empty() { Some(0) } else { text.parse().ok().filter(|&milliseconds| milliseconds <= MOST) }
    })
}

/// Returns after how long waits are reported, if they are.
pub(crate) fn period() -> Option<Duration> {
    let milliseconds = setting().filter(|&milliseconds| milliseconds > 0)?;
    Some(Duration::from_millis(milliseconds.into()))
}

/// Returns after how many milliseconds a wait is to be reported; 0: never. Undefined: the variable has a value that is
/// not allowed, and this is the first call.
#[napi(catch_unwind)]
pub fn stall_after() -> Option<u32> {
    static IS_TOLD: AtomicBool = AtomicBool::new(false);
    setting().or_else(|| IS_TOLD.swap(true, Ordering::Relaxed).then_some(0))
}
