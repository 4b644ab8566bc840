//! The standard error, and the thread that writes reports there.
//!
//! Whoever should read it may stand still, and a thread that writes then waits for ever. So a thread with something to
//! report only leaves its text here. Of texts beyond [`MOST`] that wait to be written, the number is reported later.

use std::io;
use std::process;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use crate::globals::STALL_VARIABLE;
use waitasync_core::json;
use waitasync_core::sync::lock;

/// How many texts wait to be written.
const MOST: usize = 100;

/// How many texts were dropped since that was written.
static DROPPED: AtomicU64 = AtomicU64::new(0);

/// Leaves a text to be written. Does not wait. Functions in it may have any names.
pub(crate) fn leave(text: &str) {
    static WRITER: Mutex<Option<SyncSender<String>>> = Mutex::new(None);
    let mut writer = lock(&WRITER);
    if writer.is_none() {
        let (sender, texts) = sync_channel(MOST);
        let thread = thread::Builder::new().name("atomics-stderr".into()).spawn(move || write_all(&texts));
        // Without a thread, the next text has another try.
        *writer = thread.is_ok().then_some(sender);
    }
    let is_left = |writer: &SyncSender<_>| writer.try_send(json::shown(text).into_owned()).is_ok();
    if !writer.as_ref().is_some_and(is_left) {
        DROPPED.fetch_add(1, Ordering::Relaxed);
    }
}

/// Writes the texts. Behind all of them comes the number of those that were dropped.
fn write_all(texts: &Receiver<String>) {
    loop {
        let text = texts.try_recv().or_else(|_| match DROPPED.swap(0, Ordering::Relaxed) {
            0 => texts.recv(),
            dropped => Ok(format!(
                "(node:{}) [{STALL_VARIABLE}] Warning: {dropped} reports of blocked threads were dropped, since nobody read \
                 the standard error.\n",
                process::id()
            )),
        });
        let Ok(text) = text else { return };
        write(text.as_bytes());
    }
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
