//! `ATOMICS_WAITASYNC_DUMP`: at a signal, a thread of its own writes a snapshot's text to the standard error.
//!
//! That thread reads one end of a pipe, so no other thread has to go on for it: all of JavaScript may be blocked or
//! busy. The handler writes a byte to the pipe, and calls the handler that it has replaced. Node (libuv) sets a handler
//! of its own when the program gets its first listener of the signal, and the system's default when it loses its last
//! one; then JavaScript has ours set again.

use napi::Result;
use napi_derive::napi;

/// Lets the signal of `ATOMICS_WAITASYNC_DUMP` write a snapshot from now on.
///
/// Returns the signal's name; undefined without one. Throws, in the process's first call, why there is no dump.
#[napi(catch_unwind)]
pub fn arm_dumps() -> Result<Option<&'static str>> {
    signals::arm()
}

/// Makes the error that says why the signal cannot be had.
fn refused(reason: &str) -> napi::Error {
    napi::Error::from_reason(format!("ATOMICS_WAITASYNC_DUMP {reason}"))
}

#[cfg(unix)]
mod signals {
    use std::env;
    use std::ffi::{c_int, c_void};
    use std::io::{self, ErrorKind, PipeReader, Read, Write};
    use std::mem;
    use std::os::fd::{AsRawFd, IntoRawFd};
    use std::process;
    use std::ptr;
    use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicUsize, Ordering};
    use std::sync::{LazyLock, Mutex};
    use std::thread;

    use super::refused;
    use crate::environment::contained;
    use crate::observe::profile;
    use crate::observe::snapshot::Snapshot;
    use crate::observe::table;
    use waitasync_core::sync::lock;

    /// A signal that programs may use, and its number.
    type Signal = (&'static str, c_int);

    /// Node and V8 need the others themselves, or they end the process.
    const ALLOWED: [Signal; 6] = [
        ("SIGQUIT", libc::SIGQUIT),
        ("SIGUSR2", libc::SIGUSR2),
        ("SIGHUP", libc::SIGHUP),
        ("SIGALRM", libc::SIGALRM),
        ("SIGURG", libc::SIGURG),
        ("SIGWINCH", libc::SIGWINCH),
    ];

    /// The signal that the variable names. Read once, from the process's environment: a Worker may have another one.
    static SIGNAL: LazyLock<Result<Option<Signal>, String>> = LazyLock::new(|| {
        let Some(name) = env::var_os("ATOMICS_WAITASYNC_DUMP").filter(|name| !name.is_empty()) else { return Ok(None) };
        let signal = ALLOWED.into_iter().find(|(allowed, _)| *allowed == name);
        signal.map(Some).ok_or_else(|| {
            let allowed = ALLOWED.map(|(name, _)| name).join(", ");
            format!("must be one of {allowed}, not {:?}", name.to_string_lossy())
        })
    });

    pub(super) fn arm() -> napi::Result<Option<&'static str>> {
        static IS_TOLD: AtomicBool = AtomicBool::new(false);
        let armed = match &*SIGNAL {
            Ok(None) => return Ok(None),
            Ok(Some((name, number))) => {
                set_handler(*number).map(|()| *name).map_err(|error| format!("cannot use {name}: {error}"))
            }
            Err(reason) => Err(reason.clone()),
        };
        match armed {
            Ok(name) => Ok(Some(name)),
            Err(reason) if !IS_TOLD.swap(true, Ordering::Relaxed) => Err(refused(&reason)),
            Err(_) => Ok(None),
        }
    }

    /// The end of the pipe to which the handler writes; -1 before there is a pipe.
    static PIPE: AtomicI32 = AtomicI32::new(-1);

    /// The handler that ours has replaced. Those are never freed: a thread may be about to call one.
    static REPLACED: AtomicPtr<libc::sigaction> = AtomicPtr::new(ptr::null_mut());

    fn set_handler(signal: c_int) -> io::Result<()> {
        static SETTING: Mutex<()> = Mutex::new(());
        let _setting = lock(&SETTING);
        if PIPE.load(Ordering::Relaxed) == -1 {
            start()?;
        }
        // SAFETY: zeros are a valid record; and the pointers are null or to live ones.
        unsafe {
            let mut current: libc::sigaction = mem::zeroed();
            checked(libc::sigaction(signal, ptr::null(), &raw mut current))?;
            if current.sa_sigaction == handler_address() {
                return Ok(());
            }
            REPLACED.store(Box::leak(Box::new(current)), Ordering::Release);
            let mut ours: libc::sigaction = mem::zeroed();
            ours.sa_sigaction = handler_address();
            ours.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
            checked(libc::sigemptyset(&raw mut ours.sa_mask))?;
            checked(libc::sigaction(signal, &raw const ours, ptr::null_mut()))
        }
    }

    fn checked(result: c_int) -> io::Result<()> {
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    fn start() -> io::Result<()> {
        let (reader, writer) = io::pipe()?;
        // SAFETY: a descriptor that is open. The handler must not wait until there is room in the pipe.
        checked(unsafe { libc::fcntl(writer.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) })?;
        thread::Builder::new().name("atomics-dump".into()).spawn(|| serve(reader))?;
        PIPE.store(writer.into_raw_fd(), Ordering::Release);
        Ok(())
    }

    fn handler_address() -> usize {
        handle as *const () as usize
    }

    /// Handles the signal. It may interrupt any code of any thread, so it calls only functions that are
    /// async-signal-safe by POSIX.
    extern "C" fn handle(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
        // SAFETY: the location of this thread's own variable; and a byte that lives on.
        unsafe {
            let errno = *errno();
            libc::write(PIPE.load(Ordering::Acquire), b"!".as_ptr().cast(), 1);
            call_replaced(signal, info, context);
            *self::errno() = errno;
        }
    }

    /// Calls the handler that ours replaced, unless that one called this: it may have replaced ours before.
    ///
    /// # Safety
    /// In a handler of a signal, with its arguments.
    unsafe fn call_replaced(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
        static CALLER: AtomicUsize = AtomicUsize::new(0);
        // SAFETY: the record was leaked; and its function has the signature that its flag tells.
        unsafe {
            let Some(replaced) = REPLACED.load(Ordering::Acquire).as_ref() else { return };
            let address = replaced.sa_sigaction;
            let thread = libc::pthread_self() as usize;
            if address == libc::SIG_DFL || address == libc::SIG_IGN || CALLER.load(Ordering::Relaxed) == thread {
                return;
            }
            let before = CALLER.swap(thread, Ordering::Relaxed);
            if replaced.sa_flags & libc::SA_SIGINFO == 0 {
                mem::transmute::<usize, extern "C" fn(c_int)>(address)(signal);
            } else {
                mem::transmute::<usize, extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void)>(address)(
                    signal, info, context,
                );
            }
            CALLER.store(before, Ordering::Relaxed);
        }
    }

    #[cfg(not(any(target_vendor = "apple", target_os = "freebsd")))]
    use libc::__errno_location as errno;
    #[cfg(any(target_vendor = "apple", target_os = "freebsd"))]
    use libc::__error as errno;

    fn serve(mut reader: PipeReader) {
        let mut signals = [0; 64];
        loop {
            match reader.read(&mut signals) {
                Ok(1..) => _ = contained(dump),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                _ => return,
            }
        }
    }

    fn dump() {
        let text = table::text_of(&Snapshot::take());
        write_error(format!("(node:{}) [ATOMICS_WAITASYNC_DUMP] {text}", process::id()).as_bytes());
        profile::write_now();
    }

    /// Writes to the standard error, which Node may have made non-blocking.
    fn write_error(mut bytes: &[u8]) {
        while !bytes.is_empty() {
            match io::stderr().write(bytes) {
                Ok(written @ 1..) => bytes = &bytes[written..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let mut room = libc::pollfd { fd: libc::STDERR_FILENO, events: libc::POLLOUT, revents: 0 };
                    // SAFETY: one live record.
                    unsafe { libc::poll(&raw mut room, 1, -1) };
                }
                _ => return,
            }
        }
    }
}

#[cfg(not(unix))]
mod signals {
    use std::env;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::refused;

    pub(super) fn arm() -> napi::Result<Option<&'static str>> {
        static IS_TOLD: AtomicBool = AtomicBool::new(false);
        let is_set = env::var_os("ATOMICS_WAITASYNC_DUMP").is_some_and(|name| !name.is_empty());
        if is_set && !IS_TOLD.swap(true, Ordering::Relaxed) {
            return Err(refused("has no effect: this system has no such signals"));
        }
        Ok(None)
    }
}
