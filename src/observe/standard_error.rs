//! The standard error, and the thread that writes reports there.
//!
//! Whoever should read it may stand still, and a thread that writes then waits for ever. So a thread with something to
//! report only leaves its text here. Of texts beyond [`MOST`] that wait to be written, the number is reported later.

use std::collections::VecDeque;
use std::io;
use std::process;
use std::sync::Mutex;

use crate::globals::stalls::VARIABLE;
use crate::observe::background::Background;
use waitasync_core::json;
use waitasync_core::sync::lock;

/// How many texts wait to be written.
const MOST: usize = 100;

struct Texts {
    waiting: VecDeque<String>,
    dropped: u64,
}

static TEXTS: Mutex<Texts> = Mutex::new(Texts { waiting: VecDeque::new(), dropped: 0 });

static WRITER: Background = Background::new("atomics-stderr", || {
    while let Some(text) = next() {
        write(text.as_bytes());
    }
});

/// Removes the next text. Behind all of them comes the number of those that were dropped.
fn next() -> Option<String> {
    let texts = &mut *lock(&TEXTS);
    texts.waiting.pop_front().or_else(|| {
        let dropped = std::mem::take(&mut texts.dropped);
        (dropped > 0).then(|| {
            format!(
                "(node:{}) [{VARIABLE}] Warning: {dropped} reports of blocked threads were dropped, since nobody read \
                 the standard error.\n",
                process::id()
            )
        })
    })
}

/// Leaves a text to be written. Does not wait. Functions in it may have any names.
pub(crate) fn leave(text: &str) {
    let mut texts = lock(&TEXTS);
    if texts.waiting.len() < MOST {
        texts.waiting.push_back(json::shown(text).into_owned());
    } else {
        texts.dropped += 1;
    }
    drop(texts);
    // Without a thread, the next text has another try.
    let _ = WRITER.ask();
}

/// Writes a text as one piece, if it can be written.
pub(crate) fn write(mut bytes: &[u8]) {
    static WRITING: Mutex<()> = Mutex::new(());
    let _writing = lock(&WRITING);
    while !bytes.is_empty() {
        match write_some(bytes) {
            Ok(written @ 1..) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => wait_for_room(),
            _ => return,
        }
    }
}

/// Writes a part; without the lock of Rust's `stderr`, for which others would wait.
#[cfg(unix)]
fn write_some(bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: bytes that are there during the call.
    let written = unsafe { libc::write(libc::STDERR_FILENO, bytes.as_ptr().cast(), bytes.len()) };
    usize::try_from(written).map_err(|_| io::Error::last_os_error())
}

/// Waits until there is room: Node may have made it non-blocking.
#[cfg(unix)]
fn wait_for_room() {
    let mut room = libc::pollfd { fd: libc::STDERR_FILENO, events: libc::POLLOUT, revents: 0 };
    // SAFETY: one live record.
    unsafe { libc::poll(&raw mut room, 1, -1) };
}

#[cfg(not(unix))]
fn write_some(bytes: &[u8]) -> io::Result<usize> {
    io::Write::write(&mut io::stderr(), bytes)
}

#[cfg(not(unix))]
fn wait_for_room() {
    std::thread::yield_now();
}
