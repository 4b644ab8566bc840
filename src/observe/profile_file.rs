//! The file of a profile: named by a variable, and written while the program runs.
//!
//! The service has it written now and then, beside its place, and renamed: so it is whole at every moment. It is
//! written once more when the process ends. A thread of its own writes, for which nobody waits longer than [`LIMIT`]: a
//! file system may hang. What is beside its place is a new file: whatever else is there may be a link to another one.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, mpsc};
use std::time::Duration;
use std::{env, fs, io, process, thread};

use crate::observe::aside::Aside;
use crate::process::service;
use waitasync_core::observe::cpuprofile::{self, Counts, Line};
use waitasync_core::panics::contained;
use waitasync_core::sync::lock;

const PERIOD: Duration = Duration::from_secs(10);

/// How long the first caller and the process's end wait for the file.
const LIMIT: Duration = Duration::from_secs(5);

const THREAD: &str = "atomics-profile";

pub(crate) struct ProfileFile {
    /// The variable that names the file; it is the code of warnings, too.
    variable: &'static str,
    /// What it counts: waits, or holds.
    noun: &'static str,
    /// Returns its contents, if there is news; or, given true, anyway.
    news: fn(bool) -> Option<(Vec<Line>, Counts)>,
    /// Where it is to be; `None` if there is to be none.
    path: OnceLock<Option<PathBuf>>,
    is_on: AtomicBool,
    is_started: Mutex<bool>,
    /// Whether a failure has been reported.
    is_reported: AtomicBool,
    writing: Mutex<()>,
    writer: Aside,
}

impl ProfileFile {
    /// `write_now` calls [`Self::write_now`] of the same file.
    pub(crate) const fn new(
        variable: &'static str,
        noun: &'static str,
        news: fn(bool) -> Option<(Vec<Line>, Counts)>,
        write_now: fn(),
    ) -> Self {
        Self {
            variable,
            noun,
            news,
            path: OnceLock::new(),
            is_on: AtomicBool::new(false),
            is_started: Mutex::new(false),
            is_reported: AtomicBool::new(false),
            writing: Mutex::new(()),
            writer: Aside::new(THREAD, write_now),
        }
    }

    /// Whether anything is recorded for it.
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// Reads the path once, from the environment of the process: a Worker may have been given another environment, and
    /// a program may change its folder.
    fn path(&self) -> Option<&Path> {
        let read = || {
            let name = env::var_os(self.variable).filter(|name| !name.is_empty())?;
            // Processes that this one starts inherit the variable.
            let own = name.to_str().map(|name| name.replace("${pid}", &process::id().to_string()).into());
            Some(env::current_dir().unwrap_or_default().join(own.unwrap_or(name)))
        };
        self.path.get_or_init(read).as_deref()
    }

    /// Begins to record, if the variable asks for that. A text: a warning, which is given once in the process.
    pub(crate) fn start(&'static self) -> Option<String> {
        self.path()?;
        let mut is_started = lock(&self.is_started);
        if std::mem::replace(&mut *is_started, true) {
            return None;
        }
        if let Err(error) = self.write_first() {
            return Some(self.failure(&error));
        }
        self.is_on.store(true, Ordering::Relaxed);
        at_exit(self);
        let Some(service) = service() else {
            let reason = "the system gives no thread, so the file is written at the end of the process only";
            return Some(format!("{}: {reason}", self.variable));
        };
        service.every(PERIOD, || self.write_aside());
        None
    }

    fn failure(&self, error: &io::Error) -> String {
        format!("{}: cannot write {}: {error}", self.variable, self.path().unwrap_or(Path::new("")).display())
    }

    /// Writes the file, if there is one and there is news.
    pub(crate) fn write_now(&self) {
        if !self.is_on() {
            return;
        }
        if let Some(error) = self.write(false).err().filter(|_| !self.is_reported.swap(true, Ordering::Relaxed)) {
            eprintln!("(node:{}) [{}] Warning: {}", process::id(), self.variable, self.failure(&error));
        }
    }

    /// Has the file written, if there is one: a full table takes longer than timeouts may be late.
    pub(crate) fn write_aside(&'static self) {
        if self.is_on() && self.writer.ask().is_none() {
            contained(|| self.write_now());
        }
    }

    /// Writes the file when the process ends.
    #[cfg_attr(not(unix), expect(dead_code, reason = "the main thread writes it when it ends"))]
    fn write_last(&'static self) {
        match self.writer.ask() {
            Some(request) => _ = self.writer.wait(request, LIMIT),
            None => _ = contained(|| self.write_now()),
        }
    }

    /// Writes the file for the first time.
    fn write_first(&'static self) -> io::Result<()> {
        let (sender, receiver) = mpsc::channel();
        // Its receiver may have gone.
        let write_and_send = move || drop(sender.send(self.write(true)));
        if thread::Builder::new().name(THREAD.into()).spawn(write_and_send).is_err() {
            return self.write(true);
        }
        receiver.recv_timeout(LIMIT).unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    /// Writes the file if there is news, or `anyway`.
    fn write(&self, anyway: bool) -> io::Result<()> {
        let Some(path) = self.path() else { return Ok(()) };
        let _writing = lock(&self.writing);
        let Some((lines, counts)) = (self.news)(anyway) else { return Ok(()) };
        let text = cpuprofile::write(lines, counts, self.noun).ok_or(io::ErrorKind::OutOfMemory)?;
        refuse_special(path)?;
        replace(path, &text)
    }
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

/// The files that are written when the process ends.
#[cfg(unix)]
static LAST: Mutex<Vec<&ProfileFile>> = Mutex::new(Vec::new());

/// Lets a file be written when the process ends.
#[cfg(unix)]
fn at_exit(file: &'static ProfileFile) {
    unsafe extern "C" {
        fn atexit(function: extern "C" fn()) -> i32;
    }
    extern "C" fn end() {
        contained(|| std::mem::take(&mut *lock(&LAST)).into_iter().for_each(ProfileFile::write_last));
    }
    lock(&LAST).push(file);
    // SAFETY: a function of C's own; its argument is in this library, which stays loaded, see `Agent::start`.
    let _ = unsafe { atexit(end) };
}

/// Does nothing: the main thread writes it when it ends.
#[cfg(not(unix))]
fn at_exit(_: &'static ProfileFile) {}
