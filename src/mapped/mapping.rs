//! A file that this process has mapped, and its processes.

use std::any::Any;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, RwLock};
use std::time::Duration;

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

    /// Whether this process waits for others here. Then it looks at all deaths now and then, besides the alarms, once
    /// [`super::wait_begins`] was called.
    fn waits(&self) -> bool;

    /// Looks at all that waits: each second while anything does, in case that a process was suspended before it rang.
    fn look_again(&'static self) {}

    /// Does what is due. Returns for how long nothing else is.
    fn due(&'static self) -> Option<Duration> {
        None
    }

    /// Looks at what nobody can ring for. Returns whether there is such a thing.
    fn polls(&self) -> bool {
        false
    }
}

pub(crate) struct Mapping {
    file: File,
    identity: (u64, u64),
    header: Header,
    start: NonNull<u8>,
    /// Where the data begin.
    data_at: usize,
    me: OnceLock<ProcessId>,
    client: OnceLock<Box<dyn Client>>,
    sweeping: Mutex<()>,
    /// The process that this one sweeps, packed; 0: none.
    swept: AtomicU32,
    /// The doorbell's count, as the watcher has served it.
    pub(super) served: AtomicU32,
}

// SAFETY: the memory is used by atomic operations only, but for that which JavaScript has.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

/// All mappings, by where they begin.
static MAPPINGS: RwLock<BTreeMap<usize, &'static Mapping>> = RwLock::new(BTreeMap::new());
/// Whether there are any: nobody else looks further.
static ANY: AtomicBool = AtomicBool::new(false);
/// The mapping that was found last: most programs have one.
static LATEST: AtomicPtr<Mapping> = AtomicPtr::new(std::ptr::null_mut());
/// One thread opens at a time.
static OPENING: Mutex<()> = Mutex::new(());

fn all() -> std::sync::RwLockReadGuard<'static, BTreeMap<usize, &'static Mapping>> {
    MAPPINGS.read().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl Mapping {
    /// Maps the file at `path`; makes it if need be. One that this process has already is the same mapping.
    ///
    /// `start` makes the client. Until this process has joined, the client is dropped if that fails, does not know
    /// [`Self::me`], and may have to sweep.
    pub(super) fn open(
        path: &Path,
        kind: Kind,
        table_bytes: usize,
        data_bytes: usize,
        start: fn(&'static Self) -> Box<dyn Client>,
        watch: fn() -> std::io::Result<Watcher>,
    ) -> Result<&'static Self, OpenError> {
        let (table_bytes, data_bytes) = (table_bytes as u64, data_bytes as u64);
        system::assert_robust_lists()?;
        let header = Header { kind, table_bytes, data_bytes, boot: system::boot()? };
        let _opening = lock(&OPENING);
        let file = file::open(path, header)?;
        let data = file.metadata()?;
        let identity = (data.dev(), data.ino());
        if let Some(known) = all().values().find(|known| known.identity == identity) {
            return Ok(known);
        }
        let (data_at, end) = header.ends().ok_or(ErrorKind::OutOfMemory).map_err(std::io::Error::from)?;
        let memory = system::map(&file, end)?;
        let (me, client, sweeping, swept, served) = Default::default();
        let mapping: &'static Self = Box::leak(Box::new(Self {
            file,
            identity,
            header,
            start: memory,
            data_at,
            me,
            client,
            sweeping,
            swept,
            served,
        }));
        mapping.client.get_or_init(|| start(mapping));
        if let Err(error) = mapping.join(watch) {
            // SAFETY: nobody else has it, nor its memory.
            unsafe {
                drop(Box::from_raw(std::ptr::from_ref(mapping).cast_mut()));
                system::unmap(memory, end);
            }
            return Err(error);
        }
        MAPPINGS.write().unwrap_or_else(std::sync::PoisonError::into_inner).insert(memory.as_ptr() as usize, mapping);
        ANY.store(true, Ordering::Release);
        for other in mapping.others() {
            mapping.ring(other.index());
        }
        // The watcher sleeps at the bells of the files that it knows.
        Self::all().into_iter().for_each(Self::ring_own);
        Ok(mapping)
    }

    /// Whether this process has mapped any file.
    pub(crate) fn any() -> bool {
        ANY.load(Ordering::Relaxed)
    }

    /// Returns the mapping with this address in its data.
    #[inline]
    pub(crate) fn at(address: usize) -> Option<&'static Self> {
        if ANY.load(Ordering::Relaxed) { Self::find(address) } else { None }
    }

    fn find(address: usize) -> Option<&'static Self> {
        // SAFETY: null, or a mapping, which stays (invariant 1).
        let latest = unsafe { LATEST.load(Ordering::Acquire).as_ref() };
        latest.filter(|latest| latest.has(address)).or_else(|| Self::search(address))
    }

    #[cold]
    fn search(address: usize) -> Option<&'static Self> {
        let all = all();
        let (_, &mapping) = all.range(..=address).next_back()?;
        let found = mapping.has(address).then_some(mapping)?;
        LATEST.store(std::ptr::from_ref(found).cast_mut(), Ordering::Release);
        Some(found)
    }

    fn has(&self, address: usize) -> bool {
        let offset = address.wrapping_sub(self.start.as_ptr() as usize);
        (self.data_at..self.data_at + self.data_bytes()).contains(&offset)
    }

    pub(super) fn all() -> Vec<&'static Self> {
        all().values().copied().collect()
    }

    /// Returns where the client's table begins.
    pub(crate) fn table(&self) -> NonNull<u8> {
        // SAFETY: in the mapping.
        unsafe { self.start.add(TABLE_AT) }
    }

    pub(crate) fn table_bytes(&self) -> usize {
        self.header.table_bytes as usize
    }

    /// Returns where the data begin.
    pub(crate) fn data(&self) -> NonNull<u8> {
        // SAFETY: in the mapping.
        unsafe { self.start.add(self.data_at) }
    }

    pub(crate) fn data_bytes(&self) -> usize {
        self.header.data_bytes as usize
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
        unsafe { &*self.start.add(SLOTS_AT).cast::<Slot>().as_ptr().add(index) }
    }

    /// Takes a slot, and sweeps it if need be.
    fn join(&'static self, watch: fn() -> std::io::Result<Watcher>) -> Result<(), OpenError> {
        let watcher = watch()?;
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
            watcher.robust_list.add(slot);
            self.me.get_or_init(|| me);
            self.served.store(slot.doorbell.load(Ordering::SeqCst), Ordering::Relaxed);
            slot.state.store(Slot::used(generation), Ordering::SeqCst);
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

    /// Wakes this process's own watcher. It comes anyway to a file that it does not know yet.
    pub(crate) fn ring_own(&self) {
        self.me.get().into_iter().for_each(|me| self.ring(me.index()));
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
        slot.state.store(Slot::free(dead.generation()), Ordering::SeqCst);
    }

    /// Returns the process id, as this process's PID namespace has it.
    pub(crate) fn pid_of(&self, process: ProcessId) -> Option<u32> {
        let slot = self.slot(process.index());
        let pid = slot.pid.load(Ordering::SeqCst);
        let is_known = slot.namespace.load(Ordering::SeqCst) == system::namespace() && system::namespace() != 0;
        (is_known && self.process_at(process.index()) == Some(process)).then_some(pid)
    }
}
