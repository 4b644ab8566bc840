//! A thread that is told of a signal, beside other handlers.
//!
//! The handler here writes a byte to a pipe, from which that thread reads, and calls the handler that it has replaced.
//! libuv installs its own when a program gets its first listener of a signal, and the system's default when that loses
//! its last one; then [`listen`] is called again.
//!
//! # Rules
//! 1. **What a handler needs while it runs, it has here.** libuv's takes a lock, so it blocks all other signals
//!    meanwhile: if one came, its handler would wait for that lock for ever. So ours has the masks of those that it
//!    calls, and the flags that change how a handler runs.
//! 2. **No handler is called within itself.** A handler that has replaced ours may call ours, and may then be replaced
//!    by ours. So a [`Replaced`] knows the one before it, and our handler, called by one of these, calls that one. Which
//!    one the calling thread is in is in a [`Slot`] of its own: threads handle a signal at the same time.
//! 3. **A handler calls only functions that are async-signal-safe by POSIX**, since it may interrupt any code of any
//!    thread. A variable of a thread is none: in a loaded library its first use allocates memory.
//! 4. What a handler may be reading is never freed; there is one record of each action with the same ones below.

use std::ffi::{c_int, c_void};
use std::io::{self, ErrorKind, PipeReader, Read};
use std::os::fd::{AsRawFd, IntoRawFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicUsize, Ordering};
use std::{mem, ptr, thread};

use waitasync_core::panics::contained;
use waitasync_core::sync::lock;

#[cfg(test)]
mod tests;

/// The end of the pipe to which the handler writes; -1 before there is a pipe.
static PIPE: AtomicI32 = AtomicI32::new(-1);

/// Calls `told` after each signal, in a thread of its own; several that come while it runs may be one. Before the first
/// it calls `begin`.
///
/// A further call, for the same signal, installs the handler anew where another has replaced it.
pub(crate) fn listen(signal: c_int, begin: fn(), told: fn()) -> io::Result<()> {
    static LISTENING: Mutex<()> = Mutex::new(());
    let _listening = lock(&LISTENING);
    if PIPE.load(Ordering::Relaxed) == -1 {
        let (reader, writer) = io::pipe()?;
        // SAFETY: a descriptor that is open. The handler must not wait until there is room in the pipe.
        checked(unsafe { libc::fcntl(writer.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) })?;
        thread::Builder::new().name("atomics-dump".into()).spawn(move || {
            _ = contained(begin);
            tell(reader, told);
        })?;
        PIPE.store(writer.into_raw_fd(), Ordering::Release);
    }
    install(signal)
}

fn tell(mut reader: PipeReader, told: fn()) {
    let mut signals = [0; 64];
    loop {
        match reader.read(&mut signals) {
            Ok(1..) => _ = contained(told),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            _ => return,
        }
    }
}

fn checked(result: c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

// ——— Installing ———

/// The flags that change how a handler runs, and that ours takes over.
const FLAGS: c_int = libc::SA_RESTART | libc::SA_ONSTACK | libc::SA_NODEFER;
/// Those that tell actions apart: C libraries set others in a record that they return.
const ALL_FLAGS: c_int = FLAGS | libc::SA_SIGINFO | libc::SA_RESETHAND;

/// An action that ours has replaced.
struct Replaced {
    action: libc::sigaction,
    /// What ours had replaced before; null: nothing.
    below: *const Replaced,
    /// Whether an action for one signal has had it.
    is_spent: AtomicBool,
}

// SAFETY: a record is not changed but for its atomic, and lives for ever.
unsafe impl Send for Replaced {}
// SAFETY: as above.
unsafe impl Sync for Replaced {}

/// The action that ours replaced last.
static TOP: AtomicPtr<Replaced> = AtomicPtr::new(ptr::null_mut());

/// All records.
static RECORDS: Mutex<Vec<&'static Replaced>> = Mutex::new(Vec::new());

/// Installs the handler for the signal, unless it is installed. One thread at a time.
fn install(signal: c_int) -> io::Result<()> {
    let mut current = exchange(signal, None)?;
    while current.sa_sigaction != handler_address() {
        let replaced = record_of(current);
        // Before the handler calls it.
        TOP.store(ptr::from_ref(replaced).cast_mut(), Ordering::Release);
        let before = exchange(signal, Some(&replaced.ours()))?;
        if are_equal(&before, &current) {
            break;
        }
        // Another thread has installed it meanwhile.
        current = before;
    }
    Ok(())
}

fn exchange(signal: c_int, new: Option<&libc::sigaction>) -> io::Result<libc::sigaction> {
    // SAFETY: zeros are a valid record; and the pointers are null or to live ones.
    unsafe {
        let mut before: libc::sigaction = mem::zeroed();
        checked(libc::sigaction(signal, new.map_or(ptr::null(), ptr::from_ref), &raw mut before))?;
        Ok(before)
    }
}

/// Returns the record of an action that ours is about to replace. One that it has replaced already was installed again:
/// that was replaced, too, with those that came after it.
fn record_of(action: libc::sigaction) -> &'static Replaced {
    let top = TOP.load(Ordering::Relaxed).cast_const();
    // SAFETY: records live for ever.
    let below = |record: &*const Replaced| unsafe { record.as_ref() }.map(|record| record.below);
    let chain = std::iter::successors(Some(top), below);
    // SAFETY: as above.
    let mut chain = chain.filter_map(|record| unsafe { record.as_ref() });
    let mut records = lock(&RECORDS);
    let known = chain.find(|record| are_equal(&record.action, &action));
    let known = known.or_else(|| {
        let is_same = |record: &&&Replaced| record.below == top && are_equal(&record.action, &action);
        records.iter().find(is_same).copied()
    });
    let record = known.unwrap_or_else(|| {
        let record = &*Box::leak(Box::new(Replaced { action, below: top, is_spent: AtomicBool::new(false) }));
        records.push(record);
        record
    });
    record.is_spent.store(false, Ordering::Relaxed);
    record
}

fn has(action: &libc::sigaction, signal: c_int) -> bool {
    // SAFETY: a live record; another number is answered by -1.
    unsafe { libc::sigismember(&raw const action.sa_mask, signal) == 1 }
}

/// The numbers of signals. Systems have up to 64 of them; FreeBSD 128, of which it uses half.
fn signals() -> impl Iterator<Item = c_int> {
    1..=64
}

fn are_equal(one: &libc::sigaction, other: &libc::sigaction) -> bool {
    one.sa_sigaction == other.sa_sigaction
        && (one.sa_flags ^ other.sa_flags) & ALL_FLAGS == 0
        && signals().all(|signal| has(one, signal) == has(other, signal))
}

impl Replaced {
    /// Whether it calls a function.
    fn is_handler(&self) -> bool {
        !matches!(self.action.sa_sigaction, libc::SIG_DFL | libc::SIG_IGN)
    }

    /// Makes the action that replaces it.
    fn ours(&self) -> libc::sigaction {
        let flags = if self.is_handler() { self.action.sa_flags & FLAGS } else { libc::SA_RESTART | libc::SA_ONSTACK };
        // SAFETY: zeros are a valid record, and this is a live one.
        unsafe {
            let mut ours: libc::sigaction = mem::zeroed();
            ours.sa_sigaction = handler_address();
            ours.sa_flags = flags | libc::SA_SIGINFO;
            libc::sigemptyset(&raw mut ours.sa_mask);
            let mut next = Some(self);
            while let Some(replaced) = next {
                for signal in signals().filter(|&signal| replaced.is_handler() && has(&replaced.action, signal)) {
                    libc::sigaddset(&raw mut ours.sa_mask, signal);
                }
                next = replaced.below.as_ref();
            }
            ours
        }
    }
}

// ——— Handling ———

fn handler_address() -> usize {
    handle as *const () as usize
}

extern "C" fn handle(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the location of this thread's own variable; and a byte that lives on.
    unsafe {
        let errno = *errno();
        libc::write(PIPE.load(Ordering::Acquire), b"!".as_ptr().cast(), 1);
        call_replaced(signal, info, context);
        *self::errno() = errno;
    }
}

#[cfg(not(any(target_vendor = "apple", target_os = "freebsd")))]
use libc::__errno_location as errno;
#[cfg(any(target_vendor = "apple", target_os = "freebsd"))]
use libc::__error as errno;

/// The replaced handler that a thread is in. Only that thread changes it, in its handler.
struct Slot {
    /// The thread; 0: free.
    thread: AtomicUsize,
    replaced: AtomicPtr<Replaced>,
    /// The third argument of the handler: another one in each call by the system.
    context: AtomicPtr<c_void>,
}

impl Slot {
    const fn new() -> Self {
        let (replaced, context) = (AtomicPtr::new(ptr::null_mut()), AtomicPtr::new(ptr::null_mut()));
        Self { thread: AtomicUsize::new(0), replaced, context }
    }
}

/// More threads than that do not handle a signal at once, or some do not call the replaced handler: as the system has
/// one signal where several of a kind are pending.
static SLOTS: [Slot; 64] = [const { Slot::new() }; 64];

/// Calls the handler that ours replaced; or, called by that one, the one that ours had replaced before.
///
/// # Safety
/// In a handler of a signal, with its arguments.
unsafe fn call_replaced(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: records live for ever; and a function has the signature that its flag tells.
    unsafe {
        let thread = libc::pthread_self() as usize;
        let own = SLOTS.iter().find(|slot| slot.thread.load(Ordering::Relaxed) == thread);
        let caller = own.and_then(|slot| slot.replaced.load(Ordering::Relaxed).as_ref());
        // A handler may allow that its signal interrupts it.
        let is_interrupted = |caller: &Replaced, slot: &Slot| {
            caller.action.sa_flags & libc::SA_NODEFER != 0 && slot.context.load(Ordering::Relaxed) != context
        };
        let replaced = match (caller, own) {
            (Some(caller), Some(slot)) if !is_interrupted(caller, slot) => caller.below,
            _ => TOP.load(Ordering::Acquire),
        };
        let Some(replaced) = replaced.as_ref().filter(|replaced| replaced.is_handler()) else { return };
        if replaced.action.sa_flags & libc::SA_RESETHAND != 0 && replaced.is_spent.swap(true, Ordering::Relaxed) {
            return;
        }
        let is_free =
            |slot: &&Slot| slot.thread.compare_exchange(0, thread, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        let Some(slot) = own.or_else(|| SLOTS.iter().find(is_free)) else { return };
        let before = slot.replaced.swap(ptr::from_ref(replaced).cast_mut(), Ordering::Relaxed);
        let context_before = slot.context.swap(context, Ordering::Relaxed);
        let address = replaced.action.sa_sigaction;
        if replaced.action.sa_flags & libc::SA_SIGINFO == 0 {
            mem::transmute::<usize, extern "C" fn(c_int)>(address)(signal);
        } else {
            mem::transmute::<usize, extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void)>(address)(
                signal, info, context,
            );
        }
        slot.replaced.store(before, Ordering::Relaxed);
        slot.context.store(context_before, Ordering::Relaxed);
        // One that interrupted this in its first steps has found the slot, and leaves it.
        if own.is_none() {
            slot.thread.store(0, Ordering::Relaxed);
        }
    }
}
