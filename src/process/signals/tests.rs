//! Two signals, two threads, handlers that call one another, and flags.

use std::time::{Duration, Instant};

use super::*;

/// A handler that somebody installs.
type Handler = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);

/// The signal listened to; and one that other handlers have, too. Only these tests use them.
const SIGNAL: c_int = libc::SIGURG;
const OTHER: c_int = libc::SIGWINCH;

static HAS_BEGUN: AtomicBool = AtomicBool::new(false);
/// How often the thread was told of a signal; and whether of one before it had begun.
static TOLD: AtomicUsize = AtomicUsize::new(0);
static TOLD_EARLY: AtomicBool = AtomicBool::new(false);

/// A process has one thread that is told: all tests give it these.
fn begin() {
    HAS_BEGUN.store(true, Ordering::SeqCst);
}

fn told() {
    TOLD_EARLY.fetch_or(!HAS_BEGUN.load(Ordering::SeqCst), Ordering::SeqCst);
    TOLD.fetch_add(1, Ordering::SeqCst);
}

/// Lets one test use the signals.
fn alone() -> impl Drop {
    static ALONE: Mutex<()> = Mutex::new(());
    let alone = lock(&ALONE);
    begin_anew();
    alone
}

fn begin_anew() {
    for signal in [SIGNAL, OTHER] {
        set(signal, libc::SIG_DFL, 0, false);
    }
    lock(&RECORDS).clear();
    TOP.store(ptr::null_mut(), Ordering::Relaxed);
}

fn set(signal: c_int, handler: usize, flags: c_int, masks_all: bool) {
    // SAFETY: zeros are a valid record, and this is a live one.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = handler;
        action.sa_flags = flags;
        if masks_all {
            libc::sigfillset(&raw mut action.sa_mask);
        }
        exchange(signal, Some(&action)).unwrap();
    }
}

/// Lets `handler` be replaced by ours.
fn replace(handler: Handler, flags: c_int, masks_all: bool) {
    set(SIGNAL, handler as *const () as usize, flags | libc::SA_SIGINFO, masks_all);
    listen(SIGNAL, begin, told).unwrap();
}

/// Sends the calling thread a signal. It has been handled when this returns, unless it is masked.
fn raise(signal: c_int) {
    // SAFETY: this thread is alive.
    assert_eq!(unsafe { libc::pthread_kill(libc::pthread_self(), signal) }, 0);
}

fn wait_until(is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() && start.elapsed() < Duration::from_secs(20) {
        thread::yield_now();
    }
    assert!(is_so());
}

#[test]
fn the_thread_has_begun_before_it_is_told_of_a_signal() {
    let _alone = alone();
    listen(SIGNAL, begin, told).unwrap();
    let before = TOLD.load(Ordering::SeqCst);
    raise(SIGNAL);
    wait_until(|| TOLD.load(Ordering::SeqCst) > before);
    assert!(HAS_BEGUN.load(Ordering::SeqCst) && !TOLD_EARLY.load(Ordering::SeqCst));
}

#[test]
fn another_signal_waits_until_a_handler_that_masks_it_is_over() {
    static INSIDE: AtomicBool = AtomicBool::new(false);
    static WERE_NESTED: AtomicBool = AtomicBool::new(false);
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    /// As libuv's: for all signals, and with a lock that it cannot take twice.
    extern "C" fn locking(signal: c_int, _: *mut libc::siginfo_t, _: *mut c_void) {
        CALLS.fetch_add(1, Ordering::Relaxed);
        WERE_NESTED.fetch_or(INSIDE.swap(true, Ordering::Relaxed), Ordering::Relaxed);
        if signal == SIGNAL {
            raise(OTHER);
        }
        INSIDE.store(false, Ordering::Relaxed);
    }
    let _alone = alone();
    for (masks_all, nested) in [(true, false), (false, true), (true, false)] {
        begin_anew();
        set(OTHER, locking as *const () as usize, libc::SA_SIGINFO, true);
        CALLS.store(0, Ordering::Relaxed);
        WERE_NESTED.store(false, Ordering::Relaxed);
        replace(locking, libc::SA_RESTART, masks_all);
        raise(SIGNAL);
        assert_eq!(CALLS.load(Ordering::Relaxed), 2);
        assert_eq!(WERE_NESTED.load(Ordering::Relaxed), nested);
    }
}

#[test]
fn threads_that_handle_a_signal_at_once_all_call_the_replaced_handler_ever_after() {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    static GO_ON: AtomicUsize = AtomicUsize::new(0);
    extern "C" fn waiting(_: c_int, _: *mut libc::siginfo_t, _: *mut c_void) {
        let nth = CALLS.fetch_add(1, Ordering::Relaxed);
        while GO_ON.load(Ordering::Relaxed) <= nth {
            thread::yield_now();
        }
    }
    let _alone = alone();
    replace(waiting, libc::SA_RESTART, true);
    thread::scope(|scope| {
        let raise_twice = || {
            raise(SIGNAL);
            wait_until(|| GO_ON.load(Ordering::Relaxed) == usize::MAX);
            raise(SIGNAL);
        };
        let first = scope.spawn(raise_twice);
        wait_until(|| CALLS.load(Ordering::Relaxed) == 1);
        let second = scope.spawn(raise_twice);
        wait_until(|| CALLS.load(Ordering::Relaxed) == 2);
        // The first ends while the second is in the handler.
        GO_ON.store(1, Ordering::Relaxed);
        wait_until(|| SLOTS.iter().filter(|slot| slot.thread.load(Ordering::Relaxed) != 0).count() == 1);
        GO_ON.store(usize::MAX, Ordering::Relaxed);
        first.join().unwrap();
        second.join().unwrap();
    });
    assert_eq!(CALLS.load(Ordering::Relaxed), 4);
    assert!(SLOTS.iter().all(|slot| slot.thread.load(Ordering::Relaxed) == 0));
}

#[test]
fn a_handler_that_calls_ours_and_is_replaced_by_it_is_called_once_and_the_one_below_too() {
    static CALLS: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];
    extern "C" fn lower(_: c_int, _: *mut libc::siginfo_t, _: *mut c_void) {
        CALLS[0].fetch_add(1, Ordering::Relaxed);
    }
    extern "C" fn upper(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
        CALLS[1].fetch_add(1, Ordering::Relaxed);
        handle(signal, info, context);
    }
    let _alone = alone();
    for flags in [0, libc::SA_NODEFER] {
        replace(lower, flags, true);
        replace(upper, flags, false);
        // It has the mask of both.
        assert!(has(&exchange(SIGNAL, None).unwrap(), OTHER));
        for calls in &CALLS {
            calls.store(0, Ordering::Relaxed);
        }
        raise(SIGNAL);
        assert_eq!([1, 1], [0, 1].map(|n: usize| CALLS[n].load(Ordering::Relaxed)));
    }
}

#[test]
fn a_handler_has_its_flags() {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    static MOST: AtomicUsize = AtomicUsize::new(0);
    static DEPTH: AtomicUsize = AtomicUsize::new(0);
    extern "C" fn raising(_: c_int, _: *mut libc::siginfo_t, _: *mut c_void) {
        let nth = CALLS.fetch_add(1, Ordering::Relaxed);
        MOST.fetch_max(DEPTH.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
        if nth < 2 {
            raise(SIGNAL);
        }
        DEPTH.fetch_sub(1, Ordering::Relaxed);
    }
    let _alone = alone();
    // Without the flag, a signal waits until the handler of the one before is over.
    for (flags, calls, most) in
        [(0, 3, 1), (libc::SA_NODEFER, 3, 3), (libc::SA_RESETHAND, 1, 1), (libc::SA_RESETHAND, 1, 1)]
    {
        CALLS.store(0, Ordering::Relaxed);
        MOST.store(0, Ordering::Relaxed);
        replace(raising, flags, false);
        raise(SIGNAL);
        raise(SIGNAL);
        let further = usize::from(flags & libc::SA_RESETHAND == 0);
        assert_eq!([calls + further, most], [&CALLS, &MOST].map(|n| n.load(Ordering::Relaxed)), "{flags:x}");
    }
    for flags in [libc::SA_RESTART, libc::SA_ONSTACK, libc::SA_NODEFER] {
        replace(raising, flags, false);
        assert_eq!(exchange(SIGNAL, None).unwrap().sa_flags & FLAGS, flags);
    }
    set(SIGNAL, libc::SIG_IGN, 0, false);
    listen(SIGNAL, begin, told).unwrap();
    assert_eq!(exchange(SIGNAL, None).unwrap().sa_flags & FLAGS, libc::SA_RESTART | libc::SA_ONSTACK);
}

#[test]
fn a_handler_that_comes_and_goes_leaves_one_record() {
    extern "C" fn nothing(_: c_int, _: *mut libc::siginfo_t, _: *mut c_void) {}
    let _alone = alone();
    for _ in 0..1000 {
        replace(nothing, libc::SA_RESTART, true);
        set(SIGNAL, libc::SIG_DFL, 0, false);
        listen(SIGNAL, begin, told).unwrap();
    }
    assert_eq!(lock(&RECORDS).len(), 2);
}
