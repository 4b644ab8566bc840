//! A file that this process has mapped, and its processes. The thread that sleeps until another one rings, or dies.
//!
//! That thread is one for all files of this process, starts with the first, and ends with the process. So its end is the alarm:
//! the kernel marks the word `alive` of each slot of this process, and wakes one that sleeps there. That one wakes the others.

use std::any::Any;
use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, mpsc};
use std::time::{Duration, Instant};

use memmap2::{MmapOptions, MmapRaw};
use waitasync_core::mapped::words::Peers;
use waitasync_core::mapped::{MOST_PROCESSES, ProcessId};
use waitasync_core::sync::lock;

use super::system::{self, MOST_WORDS, OWNER_DIED, WAITERS, Watcher};
use super::{Header, Kind, SLOTS_AT, Slot, TABLE_AT, open_file, unavailable};

/// What is kept in the table of a file. The watching thread calls it, or a thread that sweeps; none has a lock of this
/// package then.
pub(crate) trait Client: Any + Send + Sync {
    /// Another process has rung.
    fn rung(&'static self);

    /// Takes back all that the dead process has in the table. It may be half done: invariant 3.
    fn sweep(&self, dead: ProcessId);

    /// Looks at all that waits: each second, in case that a process was suspended before it rang.
    fn look_again(&'static self) {}

    /// Does what is due. Returns for how long nothing else is.
    fn due(&'static self) -> Option<Duration> {
        None
    }
}

pub(crate) struct Mapping {
    file: File,
    identity: (u64, u64),
    memory: MmapRaw,
    /// The addresses of the data.
    data: Range<usize>,
    me: OnceLock<ProcessId>,
    client: OnceLock<Box<dyn Client>>,
    sweeping: Mutex<()>,
    /// The process that this one sweeps, packed; 0: none.
    swept: AtomicU32,
    /// The doorbell's count, as the watcher has served it.
    served: AtomicU32,
    next: OnceLock<&'static Self>,
}

/// The first mapping of this process. Each leads to the next; most programs have one.
static FIRST: OnceLock<&'static Mapping> = OnceLock::new();
/// Grows at each call of [`Mapping::ring_own`].
static BELL: AtomicU32 = AtomicU32::new(0);
/// One thread opens at a time.
static OPENING: Mutex<()> = Mutex::new(());

/// How often it looks at all that others have: one who was to pass an alarm on may have died, or be suspended before it rings.
const BACKSTOP: Duration = Duration::from_secs(1);
/// How often it looks at the byte of a process whose alarm has come: at first, and at least. Some take long to end.
const LOOK: Duration = Duration::from_micros(500);
const RARE_LOOK: Duration = Duration::from_millis(20);
/// How often it looks at words at which it cannot sleep, since they are too many, or the kernel is older than 5.16.
const ROUND: Duration = Duration::from_millis(5);

impl Mapping {
    /// Maps the file at `path`; makes it if need be. One that this process has already is the same mapping.
    ///
    /// `start` makes the client. Until this process has joined, the client is dropped if that fails, does not know
    /// [`Self::me`], and may have to sweep.
    pub(crate) fn open(
        path: &Path,
        kind: Kind,
        table_bytes: usize,
        data_bytes: usize,
        start: fn(&'static Self) -> Box<dyn Client>,
    ) -> Result<&'static Self> {
        let _opening = lock(&OPENING);
        let watcher = start_watching()?;
        let header =
            Header { kind, table_bytes: table_bytes as u64, data_bytes: data_bytes as u64, boot: system::boot()? };
        let (data_at, end) = header.ends().ok_or(ErrorKind::OutOfMemory)?;
        let file = open_file(path, header, end)?;
        let data = file.metadata()?;
        let identity = (data.dev(), data.ino());
        if let Some(known) = Self::all().find(|known| known.identity == identity) {
            return Ok(known);
        }
        let memory = MmapOptions::new().len(end).map_raw(&file)?;
        let start_of_data = memory.as_ptr() as usize + data_at;
        let data = start_of_data..start_of_data + data_bytes;
        let (me, client, sweeping, swept, served, next) = Default::default();
        let made = Self { file, identity, memory, data, me, client, sweeping, swept, served, next };
        let mapping: &'static Self = Box::leak(Box::new(made));
        mapping.client.get_or_init(|| start(mapping));
        if let Err(error) = mapping.join(watcher) {
            // SAFETY: nobody else has it, nor its memory.
            drop(unsafe { Box::from_raw(std::ptr::from_ref(mapping).cast_mut()) });
            return Err(error);
        }
        Self::all().last().map_or(&FIRST, |last| &last.next).get_or_init(|| mapping);
        for other in mapping.others() {
            mapping.ring(other.index());
        }
        Self::ring_own();
        Ok(mapping)
    }

    #[inline]
    pub(crate) fn all() -> impl Iterator<Item = &'static Self> {
        std::iter::successors(FIRST.get().copied(), |mapping| mapping.next.get().copied())
    }

    /// Returns the mapping with this address in its data.
    #[inline]
    pub(crate) fn at(address: usize) -> Option<&'static Self> {
        Self::all().find(|mapping| mapping.data.contains(&address))
    }

    fn at_offset(&self, offset: usize) -> NonNull<u8> {
        NonNull::new(self.memory.as_mut_ptr().wrapping_add(offset)).expect("no memory begins at 0")
    }

    pub(crate) fn table(&self) -> NonNull<u8> {
        self.at_offset(TABLE_AT)
    }

    pub(crate) fn data(&self) -> NonNull<u8> {
        self.at_offset(self.data.start - self.memory.as_ptr() as usize)
    }

    pub(crate) const fn data_bytes(&self) -> usize {
        self.data.end - self.data.start
    }

    pub(crate) fn client(&'static self) -> &'static dyn Client {
        &**self.client.get().expect("it has been opened")
    }

    fn slot(&self, index: usize) -> &'static Slot {
        assert!(index < MOST_PROCESSES);
        // SAFETY: the slots are in the mapping (invariant 1), aligned to a page.
        unsafe { self.at_offset(SLOTS_AT).cast::<Slot>().add(index).as_ref() }
    }

    /// Takes a slot, and sweeps it if need be.
    fn join(&'static self, watcher: &Watcher) -> Result<()> {
        for index in 0..MOST_PROCESSES {
            if !system::try_lock_byte(&self.file, index)? {
                continue;
            }
            let slot = self.slot(index);
            self.sweep_locked(index);
            let generation = ProcessId::next_generation(slot.state.load(Ordering::SeqCst) / 2);
            let me = ProcessId::new(index, generation).expect("a slot and its generation");
            slot.pid.store(std::process::id(), Ordering::SeqCst);
            slot.namespace.store(system::namespace(), Ordering::SeqCst);
            slot.alive.store(watcher.thread_id, Ordering::SeqCst);
            watcher.add(slot);
            self.me.get_or_init(|| me);
            self.served.store(slot.doorbell.load(Ordering::SeqCst), Ordering::Relaxed);
            slot.state.store(2 * generation + 1, Ordering::SeqCst);
            return Ok(());
        }
        Err(unavailable(format!("{MOST_PROCESSES} processes have the file, and it has room for no more")))
    }

    fn others(&self) -> impl Iterator<Item = ProcessId> + '_ {
        let me = self.me.get().map(|me| me.index());
        (0..MOST_PROCESSES).filter(move |&index| Some(index) != me).filter_map(|index| self.process_at(index))
    }

    /// Returns the process that has a slot, alive or not swept yet.
    pub(crate) fn process_at(&self, index: usize) -> Option<ProcessId> {
        let state = self.slot(index).state.load(Ordering::SeqCst);
        if state.is_multiple_of(2) { None } else { ProcessId::new(index, state / 2) }
    }

    /// Lets this process's own watcher look at what is due.
    pub(crate) fn ring_own() {
        BELL.fetch_add(1, Ordering::SeqCst);
        system::wake(&BELL);
    }

    /// Sweeps what is dead. The caller has no lock of this package.
    pub(crate) fn sweep(&'static self) {
        for process in self.others() {
            self.sweep_if_gone(process);
        }
    }

    /// Sweeps the process, if it is dead. Returns whether it has been swept, now or before.
    fn sweep_if_gone(&'static self, process: ProcessId) -> bool {
        let index = process.index();
        if self.process_at(index) != Some(process) {
            return true;
        }
        let _sweeping = lock(&self.sweeping);
        if !system::try_lock_byte(&self.file, index).unwrap_or(false) {
            return false;
        }
        self.swept.store(process.packed(), Ordering::SeqCst);
        self.sweep_locked(index);
        self.swept.store(0, Ordering::SeqCst);
        system::unlock_byte(&self.file, index);
        true
    }

    /// Sweeps the slot, whose byte is locked by this process (invariant 3).
    fn sweep_locked(&'static self, index: usize) {
        let Some(dead) = self.process_at(index) else { return };
        self.client().sweep(dead);
        let slot = self.slot(index);
        slot.alive.store(0, Ordering::SeqCst);
        slot.state.store(2 * dead.generation(), Ordering::SeqCst);
    }
}

impl Peers for Mapping {
    fn me(&self) -> ProcessId {
        *self.me.get().expect("it has joined")
    }

    /// Wakes the watcher of a process: its client's `rung` is called soon.
    fn ring(&self, index: usize) {
        let bell = &self.slot(index % MOST_PROCESSES).doorbell;
        bell.fetch_add(1, Ordering::SeqCst);
        system::wake(bell);
    }

    /// Whether the process is certainly dead, and is not being swept. That takes a system call.
    fn is_gone(&self, process: ProcessId) -> bool {
        if self.process_at(process.index()) != Some(process) {
            return true;
        }
        // The kernel tells nothing of a lock of one's own: that of this process, and of one that another thread sweeps.
        let is_own = self.me.get() == Some(&process) || self.swept.load(Ordering::SeqCst) == process.packed();
        !is_own && system::is_byte_free(&self.file, process.index()).unwrap_or(false)
    }

    fn now(&self) -> u64 {
        system::now()
    }

    /// As this process's PID namespace has it.
    fn pid(&self, index: usize) -> u32 {
        let (process, slot) = (self.process_at(index), self.slot(index));
        let pid = slot.pid.load(Ordering::SeqCst);
        let is_known = slot.namespace.load(Ordering::SeqCst) == system::namespace() && system::namespace() != 0;
        if is_known && process.is_some() && self.process_at(index) == process { pid } else { 0 }
    }
}

/// Starts the thread, unless it runs. The caller has the lock [`OPENING`].
fn start_watching() -> Result<&'static Watcher> {
    static WATCHER: OnceLock<Watcher> = OnceLock::new();
    if let Some(watcher) = WATCHER.get() {
        return Ok(watcher);
    }
    let (sender, receiver) = mpsc::channel();
    std::thread::Builder::new().name("atomics-watcher".into()).spawn(move || {
        system::block_signals();
        let made = Watcher::of_this_thread();
        let is_made = made.is_ok();
        let _ = sender.send(made);
        if is_made {
            watch();
        }
    })?;
    // Emulators have none.
    let missing = |error| format!("Memory of several processes needs Linux with robust lists of futexes: {error}");
    let made = receiver.recv().map_err(Error::other)?.map_err(|error| unavailable(missing(error)))?;
    Ok(WATCHER.get_or_init(|| made))
}

fn watch() {
    let (mut last_look, mut next_look, mut sleeps_at_many) = (Instant::now(), LOOK, true);
    loop {
        // Before anything is looked at: a ring that comes later changes it, and then nobody sleeps.
        let own = BELL.load(Ordering::SeqCst);
        let (mut words, mut times) = (vec![(&BELL, own)], Vec::new());
        let is_due = last_look.elapsed() >= BACKSTOP;
        if is_due {
            last_look = Instant::now();
        }
        for mapping in Mapping::all() {
            let bell = &mapping.slot(mapping.me().index()).doorbell;
            let count = bell.load(Ordering::SeqCst);
            words.push((bell, count));
            if mapping.served.swap(count, Ordering::SeqCst) != count {
                guarded(|| mapping.client().rung());
            }
            if is_due {
                guarded(|| mapping.sweep());
                guarded(|| mapping.client().look_again());
            }
            times.extend(guarded(|| mapping.client().due()).flatten());
        }
        let (mut is_alone, mut is_ending) = (true, false);
        for (mapping, process) in Mapping::all().flat_map(|mapping| mapping.others().map(move |other| (mapping, other)))
        {
            is_alone = false;
            let alive = &mapping.slot(process.index()).alive;
            let value = alive.fetch_or(WAITERS, Ordering::SeqCst) | WAITERS;
            if value & OWNER_DIED == 0 {
                words.push((alive, value));
            } else {
                system::wake(alive);
                is_ending |= guarded(|| mapping.sweep_if_gone(process)) != Some(true);
            }
        }
        next_look = if is_ending { (next_look + next_look / 16).min(RARE_LOOK) } else { LOOK };
        times.extend(is_ending.then_some(next_look));
        times.extend((!is_alone).then(|| BACKSTOP.saturating_sub(last_look.elapsed())));
        times.extend((words.len() > MOST_WORDS || !sleeps_at_many).then_some(ROUND));
        let time = times.into_iter().min();
        sleeps_at_many = sleeps_at_many && system::sleep_at(&words, time);
        if !sleeps_at_many {
            // Most programs have one file, and are rung there.
            let (word, value) = words.get(1).copied().unwrap_or((&BELL, own));
            system::sleep_at_one(word, value, time.unwrap_or(ROUND));
        }
    }
}

/// Goes on after a panic.
fn guarded<T>(work: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(work)).ok()
}
