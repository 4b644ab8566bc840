//! A mapped table of named locks, and who awaits them here.

use std::any::Any;
use std::fs::create_dir_all;
use std::io::Result as IoResult;
use std::mem;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use rustc_hash::FxHashMap;

use super::{Asked, Line, Waiting, refused};
use crate::file_locks::{Answer, Lock};
use crate::mapped::{Client, Kind, Mapping, now, unavailable};
use waitasync_core::mapped::ProcessId;
use waitasync_core::mapped::names::{Entry, Head, Key, MOST_SHARERS, Mode, Names, Permit, Place, Refusal, Way, World};
use waitasync_core::mapped::words::Peers;
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

/// The clock, the bells of the file, and when the watcher comes.
pub(crate) struct Bells {
    mapping: &'static Mapping,
    /// To end limited holds and turns: the positions of entries, and when, in milliseconds.
    visits: Mutex<FxHashMap<usize, u64>>,
}

impl World for Bells {
    fn now(&self) -> u64 {
        now() / 1000
    }

    fn ring(&self, index: usize) {
        self.mapping.ring(index);
    }

    fn come(&self, position: usize, moment: u64) {
        let mut visits = lock(&self.visits);
        // An earlier visit finds out about a later moment.
        if visits.get(&position).is_some_and(|known| *known <= moment) {
            return;
        }
        let is_next = visits.values().all(|other| moment < *other);
        visits.insert(position, moment);
        drop(visits);
        if is_next {
            Mapping::ring_own();
        }
    }
}

pub struct Table {
    pub(crate) mapping: &'static Mapping,
    pub(crate) names: Names<'static, Bells>,
    /// Those of names that this process awaits or shares.
    lines: Mutex<FxHashMap<Key, Line>>,
}

/// Opens the table in a file, or makes it, and its folder.
pub(crate) fn open(path: &Path) -> IoResult<&'static Table> {
    create_dir_all(path.parent().unwrap_or(path))?;
    let mapping = Mapping::open(path, Kind::Names, size_of::<Memory>(), 0, |mapping| Box::new(Table::new(mapping)))?;
    if mapping.me().index() >= MOST_SHARERS {
        return Err(unavailable(format!("{MOST_SHARERS} processes have the table, and it has room for no more")));
    }
    Ok((mapping.client() as &dyn Any).downcast_ref().expect("files of this kind have one"))
}

impl Client for Table {
    fn rung(&'static self) {
        let me = self.mapping.me();
        self.look_at(|line| line.place.is_none_or(|place| self.names.is_rung_for(place, me)));
    }

    fn sweep(&self, dead: ProcessId) {
        self.names.sweep(dead);
    }

    fn look_again(&'static self) {
        self.look_at(|_| true);
    }

    fn due(&'static self) -> Option<Duration> {
        let (now, visits) = (self.names.world.now(), &self.names.world.visits);
        let over: Vec<_> = lock(visits).extract_if(|_, moment| *moment <= now).collect();
        // Whoever waits is rung, also this process.
        for (position, _) in over {
            self.heed(position);
        }
        let next = lock(visits).values().copied().min()?;
        Some(Duration::from_millis(next.saturating_sub(now)))
    }
}

impl Table {
    fn new(mapping: &'static Mapping) -> Self {
        // SAFETY: the table has so many bytes, aligned to a page, which stay; others use them by atomic operations only.
        let Memory { head, titles, entries } = unsafe { mapping.table().cast().as_ref() };
        let names = Names::new(head, titles, entries, Bells { mapping, visits: Mutex::default() });
        Self { mapping, names, lines: Mutex::default() }
    }

    /// Looks at the lines in which requests wait.
    fn look_at(&'static self, is_meant: impl Fn(&Line) -> bool) {
        let is_meant = |(_, line): &(&Key, &Line)| !line.requests.is_empty() && is_meant(line);
        let keys: Vec<Key> = lock(&self.lines).iter().filter(is_meant).map(|(key, _)| *key).collect();
        for key in &keys {
            self.change(key, |_| {});
        }
    }

    pub(super) fn place(&self, asked: &Asked) -> Result<Place, Refusal> {
        self.names.name(&asked.key, &asked.name, self.mapping.me())
    }

    /// Takes a lock at once, if it is free.
    pub(super) fn take(&'static self, place: Place, asked: &Asked, way: Way) -> Result<Grant, Refusal> {
        if asked.mode == Mode::Exclusive && asked.permits == 0 {
            return self.ask(&mut Line::default(), place, asked, way);
        }
        let mut lines = lock(&self.lines);
        let line = lines.entry(asked.key).or_default();
        // Permits are given in the order of the line.
        let is_behind = asked.permits != 0 && way == Way::New && line.awaits_permit();
        let granted = if is_behind {
            Err(Refusal::Taken)
        } else if self.names.is_here(place) {
            self.ask(line, place, asked, way)
        } else {
            // The line keeps its own place: holders may have it there.
            Err(Refusal::Renamed)
        };
        line.holders += usize::from(granted.as_ref().is_ok_and(|grant| grant.line.is_some()));
        self.tidy(&mut lines, &asked.key);
        granted
    }

    /// Takes what a request asks for. The caller counts it in the line.
    fn ask(&'static self, line: &mut Line, place: Place, asked: &Asked, way: Way) -> Result<Grant, Refusal> {
        let me = self.mapping.me();
        line.place = Some(place);
        if asked.permits != 0 {
            self.swept(|| self.names.take(place, me, Mode::Permits(asked.permits), way))?;
        }
        if way == Way::First {
            self.names.wait(place, me, asked.mode);
        }
        if asked.permits != 0 {
            let Permit { place, number, died } = self.names.take_permit(place, me, way)?;
            return Ok(self.grant(asked, place, Mode::Exclusive, Some(number), died));
        }
        let mode = match asked.max_hold {
            0 => asked.mode,
            // A moment that has begun does not count.
            milliseconds => Mode::Until(self.names.world.now() + 1 + milliseconds),
        };
        let died = self.swept(|| self.names.take(place, me, mode, way))?;
        if asked.max_hold != 0 {
            self.heed(place.position);
        }
        Ok(self.grant(asked, place, mode, None, died))
    }

    /// Makes a grant. Notes the holder, for others.
    fn grant(&'static self, asked: &Asked, place: Place, mode: Mode, permit: Option<u32>, owner_died: bool) -> Grant {
        let Asked { key, thread, ref label, .. } = *asked;
        let token = if mode == Mode::Shared {
            self.names.entry(place).last_token()
        } else {
            let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            self.names.entry(place).note_holder(self.mapping.me(), thread, label, since_1970.as_micros() as u64)
        };
        let line = (mode == Mode::Shared || permit.is_some()).then_some(key);
        Grant { table: self, place, mode, permit, line, token, owner_died }
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

    /// Ends a limited hold or a turn that is over; otherwise the watcher comes then.
    fn heed(&self, position: usize) {
        let Some(left) = self.names.heed(position) else { return };
        self.names.world.come(position, self.names.world.now() + left);
    }

    pub(super) fn enqueue(&'static self, waiting: Waiting) {
        let asked = Arc::clone(&waiting.asked);
        lock(&self.lines).entry(asked.key).or_default().requests.push_back(waiting);
        self.change(&asked.key, |_| {});
    }

    /// Changes a line, and grants the lock to its first requests.
    pub(super) fn change(&'static self, key: &Key, change: impl FnOnce(&mut Line)) {
        let mut answers = Vec::new();
        let mut lines = lock(&self.lines);
        let Some(line) = lines.get_mut(key) else { return };
        change(line);
        // Whether the last one of those that were granted shares the lock, and was told of a death.
        let mut shared = None;
        while let Some(first) = line.requests.front() {
            let asked = Arc::clone(&first.asked);
            let known = line.place.filter(|place| self.names.is_here(*place));
            let granted = match (asked.mode, shared, known) {
                (Mode::Shared, Some(died), Some(place)) => Ok(self.grant(&asked, place, Mode::Shared, None, died)),
                _ => known
                    .map_or_else(|| self.place(&asked), Ok)
                    .and_then(|place| self.ask(line, place, &asked, Way::First)),
            };
            match (granted, line.place) {
                (Err(Refusal::Taken), _) => break,
                (Err(Refusal::Renamed), Some(place)) => self.names.leave(place, self.mapping.me()),
                (granted, _) => {
                    line.holders += usize::from(granted.as_ref().is_ok_and(|grant| grant.line.is_some()));
                    let died = |grant: &Grant| (grant.mode == Mode::Shared).then_some(grant.owner_died);
                    shared = granted.as_ref().ok().and_then(died);
                    answers.extend(line.requests.pop_front().map(|waiting| (waiting, granted)));
                }
            }
        }
        let (is_empty, place) = (line.requests.is_empty(), line.place);
        if let Some(place) = place {
            if is_empty {
                self.names.leave(place, self.mapping.me());
            }
            // It may have had the turn, or kept readers out; or another permit is free, for which this process was rung.
            if is_empty || (line.awaits_permit() && !answers.is_empty()) {
                self.names.stir(place, self.mapping.me());
            }
        }
        self.tidy(&mut lines, key);
        drop(lines);
        // That which is in the way of the line.
        if let Some(place) = place.filter(|_| !is_empty) {
            self.heed(place.position);
        }
        for (Waiting { number, mailbox, .. }, granted) in answers {
            let failed = |refusal| Answer::Failed(refused(refusal));
            mailbox.answer(number, granted.map_or_else(failed, |grant| Answer::Granted(Box::new(grant))));
        }
    }

    /// Lets go of a name that nobody here shares. Forgets its line if nobody waits in it.
    fn tidy(&self, lines: &mut FxHashMap<Key, Line>, key: &Key) {
        let Some(line) = lines.get(key).filter(|line| line.holders == 0 && !line.awaits_permit()) else { return };
        if let Some(place) = line.place {
            self.names.release(place, self.mapping.me(), Mode::Shared, false);
        }
        if line.requests.is_empty() {
            lines.remove(key);
        }
    }
}

/// A lock or a permit that was granted.
pub(super) struct Grant {
    table: &'static Table,
    place: Place,
    mode: Mode,
    permit: Option<u32>,
    /// The line that counts it, unless it is a lock that is not shared.
    line: Option<Key>,
    token: u64,
    owner_died: bool,
}

impl Grant {
    fn give_back(&self, died: bool) -> bool {
        let Self { table, place, mode, .. } = *self;
        let (names, me) = (&table.names, table.mapping.me());
        let Some(key) = self.line else { return names.release(place, me, mode, died) };
        let mut lines = lock(&table.lines);
        // The line gives the lock back once nobody here shares it.
        let is_permit = self.permit.is_some();
        let was_held = if is_permit { names.release(place, me, mode, died) } else { names.is_held(place, me, mode) };
        if let Some(line) = lines.get_mut(&key) {
            line.holders = line.holders.saturating_sub(1);
            line.place.filter(|_| is_permit).into_iter().for_each(|place| names.stir(place, me));
        }
        table.tidy(&mut lines, &key);
        was_held
    }
}

impl Lock for Grant {
    fn granted(&self) -> (u64, bool) {
        (self.token, self.owner_died)
    }

    fn permit(&self) -> Option<u32> {
        self.permit
    }

    fn is_held(&self) -> IoResult<bool> {
        Ok(self.table.names.is_held(self.place, self.table.mapping.me(), self.mode))
    }

    fn left(&self) -> Option<Duration> {
        let Mode::Until(end) = self.mode else { return None };
        Some(Duration::from_micros((end * 1000).saturating_sub(now())))
    }

    fn release(self: Box<Self>, died: bool) -> IoResult<bool> {
        let was_held = self.give_back(died);
        mem::forget(*self);
        Ok(was_held)
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        self.give_back(true);
    }
}
