//! A mapped table of named locks, and who awaits them here.

use std::any::Any;
use std::collections::VecDeque;
use std::fs::create_dir_all;
use std::io::Result as IoResult;
use std::mem;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use rustc_hash::FxHashMap;

use super::bells::Bells;
use super::line::{Asked, Held, Line, Waiting, refused};
use crate::file_locks::{Answer, Lock};
use crate::mapped::{Client, Kind, Mapping, OpenError, now, watch};
use waitasync_core::mapped::ProcessId;
use waitasync_core::mapped::names::{Entry, Head, MOST_SHARERS, Mode, Names, Place, Refusal, Rung, Way, World};
use waitasync_core::sync::lock;

/// How many names a table has room for.
const CAPACITY: usize = 10_240;

/// The table in the file.
#[repr(C)]
struct Memory {
    head: Head,
    titles: [AtomicU64; CAPACITY],
    entries: [Entry; CAPACITY],
}

pub struct Table {
    pub(crate) mapping: &'static Mapping,
    pub(crate) names: Names<'static, Bells>,
    /// Those of names that this process awaits or shares.
    lines: Mutex<FxHashMap<Place, Line>>,
}

/// Opens the table in a file, or makes it, and its folder.
pub(crate) fn open(path: &Path) -> Result<&'static Table, OpenError> {
    create_dir_all(path.parent().unwrap_or(path))?;
    let mapping =
        Mapping::open(watch()?, path, Kind::Names, size_of::<Memory>(), 0, |mapping| Box::new(Table::new(mapping)))?;
    if mapping.me().index() >= MOST_SHARERS {
        return Err(OpenError::Unavailable(format!(
            "{MOST_SHARERS} processes have the table, and it has room for no more"
        )));
    }
    Ok((mapping.client() as &dyn Any).downcast_ref().expect("files of this kind have one"))
}

impl Client for Table {
    fn rung(&'static self) {
        match self.names.take_rung(self.mapping.me()) {
            Rung::ForNothing => {}
            Rung::For(place) => self.serve(place),
            Rung::ForSeveral => self.serve_all(),
        }
    }

    fn sweep(&self, dead: ProcessId) {
        self.names.sweep(dead);
    }

    fn look_again(&'static self) {
        self.serve_all();
    }

    fn due(&'static self) -> Option<Duration> {
        let names = &self.names;
        if let Some(given) = names.world.due() {
            let lasting = given.into_iter().filter(|given| names.end_turn(*given));
            lasting.for_each(|given| names.world.look_after(given));
            // Each line says when its limit is over.
            self.serve_all();
        }
        names.world.left()
    }
}

impl Table {
    fn new(mapping: &'static Mapping) -> Self {
        // SAFETY: the table has so many bytes, aligned to a page, which stay; others use them by atomic operations only.
        let Memory { head, titles, entries } = unsafe { mapping.table().cast().as_ref() };
        Self { mapping, names: Names::new(head, titles, entries, Bells::new(mapping)), lines: Mutex::default() }
    }

    /// Takes a lock at once, if it is free.
    pub(super) fn take(&'static self, place: Place, asked: &Asked, way: Way) -> Result<Held, Refusal> {
        if asked.mode == Mode::Exclusive && asked.max_hold == 0 && asked.permits == 0 {
            return self.take_lock(place, Mode::Exclusive, way);
        }
        let mut lines = lock(&self.lines);
        let line = lines.entry(place).or_default();
        // Permits are given in the order of the line.
        let is_behind = asked.permits != 0 && way == Way::New && !line.requests.is_empty();
        let held = if is_behind { Err(Refusal::Taken) } else { self.ask(line, place, asked, way) };
        self.tidy(&mut lines, place);
        drop(lines);
        if held.is_ok() && asked.max_hold != 0 {
            self.look_at_limit(place);
        }
        held
    }

    fn take_lock(&self, place: Place, mode: Mode, way: Way) -> Result<Held, Refusal> {
        let owner_died = self.swept(|| self.names.take(place, self.mapping.me(), mode, way))?;
        Ok(Held { mode, owner_died, permit: None })
    }

    /// Takes what a request asks for. The line counts it.
    fn ask(&self, line: &mut Line, place: Place, asked: &Asked, way: Way) -> Result<Held, Refusal> {
        let (me, permits) = (self.mapping.me(), asked.permits);
        if permits != line.permits {
            if permits == 0 {
                return Err(Refusal::Unlike(line.permits));
            }
            self.swept(|| self.names.join(place, me, permits))?;
            line.permits = permits;
        }
        if way == Way::First {
            self.names.wait(place, me, asked.mode);
        }
        let held = if permits != 0 {
            let permit = self.names.take_permit(place, permits, me, way)?;
            Held { mode: Mode::Exclusive, owner_died: permit.died, permit: Some(permit) }
        } else {
            // A moment that has begun does not count.
            let end = self.names.world.now() + 1 + asked.max_hold;
            self.take_lock(place, if asked.max_hold == 0 { asked.mode } else { Mode::Until(end) }, way)?
        };
        if !held.is_plain() {
            *line.count(&held) += 1;
        }
        Ok(held)
    }

    /// Forgets a line that is not used any more.
    fn tidy(&self, lines: &mut FxHashMap<Place, Line>, place: Place) {
        let Some(line) = lines.get(&place).filter(|line| line.is_unused()) else { return };
        if line.permits != 0 {
            self.names.release(place, self.mapping.me(), Mode::Shared, false);
        }
        lines.remove(&place);
    }

    /// Ends the limited hold of a name if it is over; otherwise the watcher comes then.
    fn look_at_limit(&self, place: Place) {
        let Some(left) = self.names.look_at_limit(place) else { return };
        self.names.world.come(left);
    }

    /// Puts a request into its line.
    pub(super) fn enqueue(&'static self, waiting: Waiting) -> Result<(), Refusal> {
        let place = self.place(&waiting.asked)?;
        lock(&self.lines).entry(place).or_default().requests.push_back(waiting);
        self.serve(place);
        Ok(())
    }

    /// Asks again once what the dead have is taken back.
    fn swept<T>(&self, ask: impl Fn() -> Result<T, Refusal>) -> Result<T, Refusal> {
        match ask() {
            Err(Refusal::Unlike(_)) => {
                self.mapping.sweep();
                ask()
            }
            taken => taken,
        }
    }

    pub(super) fn place(&self, asked: &Asked) -> Result<Place, Refusal> {
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
        let (mut granted, mut refusals, mut renamed) = (Vec::new(), Vec::new(), VecDeque::new());
        let mut lines = lock(&self.lines);
        let line = lines.entry(place).or_default();
        if line.requests.is_empty() && !self.names.is_here(place) {
            // What is left of a limited hold that was lost: the entry is that of another name.
            return self.tidy(&mut lines, place);
        }
        // Whether the last one of those that were granted shares the lock, and was told of a death.
        let mut shared: Option<bool> = None;
        while let Some(first) = line.requests.front() {
            let asked = Arc::clone(&first.asked);
            let held = if let (Mode::Shared, Some(owner_died)) = (asked.mode, shared) {
                line.shares += 1;
                Ok(Held { mode: Mode::Shared, owner_died, permit: None })
            } else {
                self.ask(line, place, &asked, Way::First)
            };
            match held {
                Ok(held) => {
                    shared = (held.mode == Mode::Shared).then_some(held.owner_died);
                    granted.extend(line.requests.pop_front().map(|waiting| (waiting, held)));
                }
                Err(Refusal::Taken) => break,
                Err(Refusal::Renamed) => renamed = mem::take(&mut line.requests),
                Err(refusal) => refusals.extend(line.requests.pop_front().map(|waiting| (waiting, refusal))),
            }
        }
        let has_permits = line.permits != 0;
        if line.requests.is_empty() {
            self.names.leave(place, me);
        }
        if has_permits && (line.requests.is_empty() || !granted.is_empty()) {
            // Another permit may be free, for which this process was rung.
            self.names.stir(place, me);
        }
        self.tidy(&mut lines, place);
        drop(lines);
        self.look_at_limit(place);
        for (waiting, held) in granted {
            let grant = Grant::new(self, place, &waiting.asked, held);
            waiting.answer(Answer::Granted(Box::new(grant)));
        }
        for (waiting, refusal) in refusals {
            waiting.answer(Answer::Failed(refused(refusal)));
        }
        for waiting in renamed {
            let (number, mailbox) = (waiting.number, Arc::clone(&waiting.mailbox));
            if let Err(refusal) = self.enqueue(waiting) {
                mailbox.answer(number, Answer::Failed(refused(refusal)));
            }
        }
    }

    pub(super) fn release(&'static self, place: Place, held: &Held, died: bool) -> bool {
        let me = self.mapping.me();
        if held.is_plain() {
            return self.names.release(place, me, Mode::Exclusive, died);
        }
        let mut lines = lock(&self.lines);
        let Some(line) = lines.get_mut(&place) else { return false };
        let count = line.count(held);
        *count = count.saturating_sub(1);
        let was_held = match held.permit {
            Some(permit) => {
                let was_held = self.names.release(permit.place, me, Mode::Exclusive, died);
                self.names.stir(place, me);
                was_held
            }
            None if held.mode == Mode::Shared && line.shares > 0 => self.names.is_held(place, me, Mode::Shared),
            None => self.names.release(place, me, held.mode, died),
        };
        self.tidy(&mut lines, place);
        was_held
    }
}

/// A lock or a permit that was granted.
pub(super) struct Grant {
    table: &'static Table,
    /// That of the line.
    place: Place,
    held: Held,
    token: u64,
    is_over: bool,
}

impl Grant {
    pub(super) fn new(table: &'static Table, place: Place, asked: &Asked, held: Held) -> Self {
        let token = if held.mode == Mode::Shared {
            table.names.token(place)
        } else {
            let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            let (microseconds, me) = (since_1970.as_micros() as u64, table.mapping.me());
            let noted = held.permit.map_or(place, |permit| permit.place);
            table.names.note_holder(noted, me, asked.thread, &asked.label, microseconds)
        };
        Self { table, place, held, token, is_over: false }
    }
}

impl Lock for Grant {
    fn granted(&self) -> (u64, bool) {
        (self.token, self.held.owner_died)
    }

    fn permit(&self) -> Option<u32> {
        self.held.permit.map(|permit| permit.number)
    }

    fn is_held(&self) -> IoResult<bool> {
        let place = self.held.permit.map_or(self.place, |permit| permit.place);
        Ok(self.table.names.is_held(place, self.table.mapping.me(), self.held.mode))
    }

    fn left(&self) -> Option<Duration> {
        let Mode::Until(end) = self.held.mode else { return None };
        Some(Duration::from_micros((end * 1000).saturating_sub(now())))
    }

    fn release(mut self: Box<Self>, died: bool) -> IoResult<bool> {
        self.is_over = true;
        Ok(self.table.release(self.place, &self.held, died))
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        if !self.is_over {
            self.table.release(self.place, &self.held, true);
        }
    }
}
