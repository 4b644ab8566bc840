//! A file that this process has mapped, and its processes.

use std::any::Any;
use std::fs::File;
use std::io::{Error, ErrorKind};
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use memmap2::{MmapOptions, MmapRaw};
use waitasync_core::mapped::{MOST_PROCESSES, ProcessId};
use waitasync_core::sync::lock;

use super::file;
use super::layout::{Header, Kind, SLOTS_AT, Slot, TABLE_AT};
use super::open_error::OpenError;
use super::system::{self, Watcher};

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
    pub(super) served: AtomicU32,
    next: OnceLock<&'static Self>,
}

/// The first mapping of this process. Each leads to the next; most programs have one.
static FIRST: OnceLock<&'static Mapping> = OnceLock::new();
/// Grows at each call of [`Mapping::ring_own`].
pub(super) static BELL: AtomicU32 = AtomicU32::new(0);
/// One thread opens at a time.
static OPENING: Mutex<()> = Mutex::new(());

impl Mapping {
    /// Maps the file at `path`; makes it if need be. One that this process has already is the same mapping.
    ///
    /// `start` makes the client. Until this process has joined, the client is dropped if that fails, does not know
    /// [`Self::me`], and may have to sweep.
    pub(crate) fn open(
        watcher: Watcher,
        path: &Path,
        kind: Kind,
        table_bytes: usize,
        data_bytes: usize,
        start: fn(&'static Self) -> Box<dyn Client>,
    ) -> Result<&'static Self, OpenError> {
        let header =
            Header { kind, table_bytes: table_bytes as u64, data_bytes: data_bytes as u64, boot: system::boot()? };
        let (data_at, end) = header.ends().ok_or(ErrorKind::OutOfMemory).map_err(Error::from)?;
        let _opening = lock(&OPENING);
        let file = file::open(path, header, end)?;
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

    /// Lists all mappings of this process.
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

    /// Returns where the client's table begins.
    pub(crate) fn table(&self) -> NonNull<u8> {
        self.at_offset(TABLE_AT)
    }

    /// Returns where the data begin.
    pub(crate) fn data(&self) -> NonNull<u8> {
        self.at_offset(self.data.start - self.memory.as_ptr() as usize)
    }

    pub(crate) const fn data_bytes(&self) -> usize {
        self.data.end - self.data.start
    }

    pub(crate) fn me(&self) -> ProcessId {
        *self.me.get().expect("it has joined")
    }

    pub(crate) fn client(&'static self) -> &'static dyn Client {
        &**self.client.get().expect("it has been opened")
    }

    pub(super) fn slot(&self, index: usize) -> &'static Slot {
        assert!(index < MOST_PROCESSES);
        // SAFETY: the slots are in the mapping (invariant 1), aligned to a page.
        unsafe { self.at_offset(SLOTS_AT).cast::<Slot>().add(index).as_ref() }
    }

    /// Takes a slot, and sweeps it if need be.
    fn join(&'static self, watcher: Watcher) -> Result<(), OpenError> {
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
        Err(OpenError::Full)
    }

    /// Lists the other processes that have the file.
    pub(super) fn others(&self) -> impl Iterator<Item = ProcessId> + '_ {
        let me = self.me.get().map(|me| me.index());
        (0..MOST_PROCESSES).filter(move |&index| Some(index) != me).filter_map(|index| self.process_at(index))
    }

    /// Returns the process that has a slot, alive or not swept yet.
    pub(crate) fn process_at(&self, index: usize) -> Option<ProcessId> {
        let state = self.slot(index).state.load(Ordering::SeqCst);
        if state.is_multiple_of(2) { None } else { ProcessId::new(index, state / 2) }
    }

    /// Wakes the watcher of a process: its client's `rung` is called soon.
    pub(crate) fn ring(&self, index: usize) {
        let bell = &self.slot(index % MOST_PROCESSES).doorbell;
        bell.fetch_add(1, Ordering::SeqCst);
        system::wake(bell);
    }

    /// Lets this process's own watcher look at what is due.
    pub(crate) fn ring_own() {
        BELL.fetch_add(1, Ordering::SeqCst);
        system::wake(&BELL);
    }

    /// Whether the process is certainly dead, and is not being swept. That takes a system call.
    pub(crate) fn is_gone(&self, process: ProcessId) -> bool {
        if self.process_at(process.index()) != Some(process) {
            return true;
        }
        // The kernel tells nothing of a lock of one's own: that of this process, and of one that another thread sweeps.
        let is_own = self.me.get() == Some(&process) || self.swept.load(Ordering::SeqCst) == process.packed();
        !is_own && system::is_byte_free(&self.file, process.index()).unwrap_or(false)
    }

    /// Sweeps what is dead. The caller has no lock of this package.
    pub(crate) fn sweep(&'static self) {
        for process in self.others() {
            self.sweep_if_gone(process);
        }
    }

    /// Sweeps the process, if it is dead. Returns whether it has been swept, now or before.
    pub(super) fn sweep_if_gone(&'static self, process: ProcessId) -> bool {
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

    /// Returns the process id, as this process's PID namespace has it.
    pub(crate) fn pid_of(&self, process: ProcessId) -> Option<u32> {
        let slot = self.slot(process.index());
        let pid = slot.pid.load(Ordering::SeqCst);
        let is_known = slot.namespace.load(Ordering::SeqCst) == system::namespace() && system::namespace() != 0;
        (is_known && self.process_at(process.index()) == Some(process)).then_some(pid)
    }
}
