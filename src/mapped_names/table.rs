//! A mapped table of named locks, and who awaits them here.

use std::collections::VecDeque;
use std::io::{Error, Result as IoResult};
use std::mem;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use rustc_hash::FxHashMap;

use super::turns::Bells;
use super::waiting::{Asked, Waiting};
use crate::file_locks::{Answer, Lock};
use crate::mapped::{self, Client, Kind, Mapping, OpenError};
use waitasync_core::mapped::ProcessId;
use waitasync_core::mapped::names::{Entry, Full, Head, MOST_SHARERS, Mode, Names, Place, Rung, Taken, Way, World};
use waitasync_core::sync::lock;

/// How many names a table has room for.
const CAPACITY: usize = 10_240;
const TITLES_AT: usize = size_of::<Head>();
const ENTRIES_AT: usize = TITLES_AT + 8 * CAPACITY;
const BYTES: usize = ENTRIES_AT + size_of::<Entry>() * CAPACITY;

/// For how many milliseconds the watcher looks again after the last request: so most requests need not ring it.
const PATIENCE: u64 = 2000;

/// What this process has of a name.
#[derive(Default)]
struct Line {
    requests: VecDeque<Waiting>,
    shares: usize,
}

pub struct Table {
    pub(crate) mapping: &'static Mapping,
    pub(crate) names: Names<'static, Bells>,
    /// Those of names that this process awaits or shares.
    lines: Mutex<FxHashMap<Place, Line>>,
    /// Whether the watcher looks again each second; and when it has last seen requests here.
    is_watched: AtomicBool,
    last_waited: AtomicU64,
}

static TABLES: Mutex<Vec<&'static Table>> = Mutex::new(Vec::new());

/// Opens the table in a file, or makes it.
pub(crate) fn open(path: &Path) -> Result<&'static Table, OpenError> {
    let mapping = mapped::open(path, Kind::Names, BYTES, 0, |mapping| Box::new(Served(Table::start(mapping))))?;
    if mapping.me().index() >= MOST_SHARERS {
        return Err(OpenError::Unavailable(format!(
            "{MOST_SHARERS} processes have the table, and it has room for no more"
        )));
    }
    Ok(of(mapping))
}

/// Returns the table of a mapping, which has one.
pub(super) fn of(mapping: &'static Mapping) -> &'static Table {
    lock(&TABLES).iter().copied().rfind(|table| std::ptr::eq(table.mapping, mapping)).expect("it has been opened")
}

/// The table as the watcher has it.
struct Served(&'static Table);

impl Client for Served {
    fn rung(&self) {
        match self.0.names.take_rung(self.0.mapping.me()) {
            Rung::ForNothing => {}
            Rung::For(place) => self.0.serve(place),
            Rung::ForSeveral => self.0.serve_all(),
        }
    }

    fn sweep(&self, dead: ProcessId) {
        self.0.names.sweep(dead);
    }

    fn waits(&self) -> bool {
        let Table { is_watched, last_waited, lines, names, .. } = self.0;
        // A request that comes now finds it false, and rings.
        is_watched.store(false, SeqCst);
        let now = names.world.now();
        if lock(lines).values().any(|line| !line.requests.is_empty()) {
            last_waited.store(now, SeqCst);
        }
        let waits = now < last_waited.load(SeqCst) + PATIENCE;
        is_watched.store(waits, SeqCst);
        waits
    }

    fn look_again(&self) {
        self.0.serve_all();
    }
}

impl Table {
    fn start(mapping: &'static Mapping) -> &'static Self {
        let start = mapping.table();
        // SAFETY: the table has so many bytes, aligned to a page, which stay; others use them by atomic operations only.
        let (head, titles, entries) = unsafe {
            (
                start.cast::<Head>().as_ref(),
                std::slice::from_raw_parts(start.add(TITLES_AT).cast().as_ptr(), CAPACITY),
                std::slice::from_raw_parts(start.add(ENTRIES_AT).cast().as_ptr(), CAPACITY),
            )
        };
        let names =
            Names::new(head, titles, entries, Bells::new(mapping, |mapping, given| of(mapping).names.end_turn(given)));
        let (lines, is_watched, last_waited) = Default::default();
        let table = Box::leak(Box::new(Self { mapping, names, lines, is_watched, last_waited }));
        lock(&TABLES).push(table);
        table
    }

    /// Takes a lock at once, if it is free.
    pub(super) fn take(&'static self, place: Place, mode: Mode, way: Way) -> Taken {
        let me = self.mapping.me();
        if mode == Mode::Exclusive {
            return self.names.take(place, me, mode, way);
        }
        let mut lines = lock(&self.lines);
        let taken = self.names.take(place, me, mode, way);
        if let Taken::Granted { .. } = taken {
            lines.entry(place).or_default().shares += 1;
        }
        taken
    }

    /// Puts a request into its line.
    pub(super) fn enqueue(&'static self, waiting: Waiting) -> Result<(), Full> {
        let place = self.place(&waiting.asked)?;
        lock(&self.lines).entry(place).or_default().requests.push_back(waiting);
        if !self.is_watched.load(SeqCst) {
            self.mapping.ring(self.mapping.me().index());
        }
        self.serve(place);
        let living = |index: usize| self.mapping.process_at(index).filter(|process| !self.mapping.is_gone(*process));
        self.names.repair(place, living);
        Ok(())
    }

    pub(super) fn place(&self, asked: &Asked) -> Result<Place, Full> {
        self.names.name(&asked.key, &asked.name, self.mapping.me())
    }

    /// Removes the requests that `is_meant`.
    pub(super) fn dequeue(&'static self, is_meant: impl Fn(&Waiting) -> bool) {
        let mut lines = lock(&self.lines);
        let mut removed = None;
        for (place, line) in lines.iter_mut() {
            if let Some(index) = line.requests.iter().position(&is_meant) {
                line.requests.remove(index);
                removed = Some(*place);
                break;
            }
        }
        drop(lines);
        if let Some(place) = removed {
            self.serve(place);
            self.names.stir(place, self.mapping.me());
        }
    }

    fn serve_all(&'static self) {
        let places: Vec<Place> = lock(&self.lines).keys().copied().collect();
        for place in places {
            self.serve(place);
        }
    }

    /// Grants a lock to the first requests of its line.
    fn serve(&'static self, place: Place) {
        let me = self.mapping.me();
        let (mut granted, mut renamed) = (Vec::new(), VecDeque::new());
        let mut lines = lock(&self.lines);
        let line = lines.entry(place).or_default();
        // Whether the last one of those that were granted shares the lock, and was told of a death.
        let mut shared: Option<bool> = None;
        while let Some(first) = line.requests.front() {
            let mode = first.asked.mode;
            let taken = if let (Mode::Shared, Some(died)) = (mode, shared) {
                Taken::Granted { died }
            } else {
                self.names.wait(place, me, mode);
                self.names.take(place, me, mode, Way::First)
            };
            let Taken::Granted { died } = taken else {
                if taken == Taken::Renamed {
                    renamed = mem::take(&mut line.requests);
                }
                break;
            };
            line.shares += usize::from(mode == Mode::Shared);
            shared = (mode == Mode::Shared).then_some(died);
            granted.extend(line.requests.pop_front().map(|waiting| (waiting, died)));
        }
        if line.requests.is_empty() {
            self.names.leave(place, me);
            if line.shares == 0 {
                lines.remove(&place);
            }
        }
        drop(lines);
        for (waiting, died) in granted {
            let grant = Grant::new(self, place, &waiting.asked, died);
            waiting.answer(Answer::Granted(Box::new(grant)));
        }
        for waiting in renamed {
            let (number, mailbox) = (waiting.number, Arc::clone(&waiting.mailbox));
            if let Err(full) = self.enqueue(waiting) {
                mailbox.answer(number, Answer::Failed(full_error(full)));
            }
        }
    }

    pub(super) fn release(&self, place: Place, mode: Mode, died: bool) -> bool {
        let me = self.mapping.me();
        if mode == Mode::Exclusive {
            return self.names.release(place, me, mode, died);
        }
        let mut lines = lock(&self.lines);
        let Some(line) = lines.get_mut(&place) else { return false };
        line.shares = line.shares.saturating_sub(1);
        if line.shares > 0 {
            return self.names.is_held(place, me, mode);
        }
        if line.requests.is_empty() {
            lines.remove(&place);
        }
        self.names.release(place, me, mode, false)
    }
}

pub(super) fn full_error(Full(names): Full) -> Error {
    Error::other(format!("all {names} names of the table are in use"))
}

/// A lock that was granted.
pub(super) struct Grant {
    table: &'static Table,
    place: Place,
    mode: Mode,
    token: u64,
    owner_died: bool,
    is_over: bool,
}

impl Grant {
    pub(super) fn new(table: &'static Table, place: Place, asked: &Asked, owner_died: bool) -> Self {
        let token = if asked.mode == Mode::Shared {
            table.names.token(place)
        } else {
            let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            let microseconds = since_1970.as_micros() as u64;
            table.names.note_holder(place, table.mapping.me(), asked.thread, &asked.label, microseconds)
        };
        Self { table, place, mode: asked.mode, token, owner_died, is_over: false }
    }
}

impl Lock for Grant {
    fn granted(&self) -> (u64, bool) {
        (self.token, self.owner_died)
    }

    fn is_held(&self) -> IoResult<bool> {
        Ok(self.table.names.is_held(self.place, self.table.mapping.me(), self.mode))
    }

    fn release(mut self: Box<Self>, died: bool) -> IoResult<bool> {
        self.is_over = true;
        Ok(self.table.release(self.place, self.mode, died))
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        if !self.is_over {
            self.table.release(self.place, self.mode, true);
        }
    }
}
