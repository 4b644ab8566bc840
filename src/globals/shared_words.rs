//! The words of shared memory: what the queue asks of other processes, and what those ask of this one.

use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

use rustc_hash::FxHashSet;
use waitasync_core::mapped::ProcessId;
use waitasync_core::mapped::words::{self, Peers, SharedWord, Table};
use waitasync_core::queue::Location;
use waitasync_core::queue::other_processes::{OtherProcesses, connect};
use waitasync_core::sync::lock;

use super::{PROCESS, WordAt, claim_stays, word_at};
use crate::mapped::{Client, Mapping, now, wait_begins};

pub(crate) use words::table_bytes;

/// Makes the client of a new mapping.
pub(crate) fn start(mapping: &'static Mapping) -> Box<dyn Client> {
    connect(&Others);
    Box::new(Words(mapping))
}

/// Returns the shared word at an address, with its record; `makes` that.
fn shared(address: usize, makes: bool) -> Option<SharedWord<'static>> {
    let mapping = Mapping::at(address)?;
    let table = table_of(mapping);
    let offset = (address - mapping.data().as_ptr() as usize) / size_of::<i32>();
    let index = if makes { table.find_or_make(offset) } else { table.find(offset) }?;
    Some(SharedWord { table, index, word: word_in(mapping, offset)?, peers: mapping })
}

/// Returns the word at a location if it has a record.
#[inline]
pub(crate) fn shared_word(location: Location) -> Option<SharedWord<'static>> {
    shared(location.address(), false)
}

pub(crate) fn maps_memory() -> bool {
    Mapping::any()
}

/// Whether several processes have the word at an address.
pub(crate) fn is_shared(address: usize) -> bool {
    Mapping::at(address).is_some()
}

/// What JavaScript needs to take a free lock: where the table is, and the word's record in it; its `owner` when this process has it.
pub(crate) struct Prepared {
    pub(crate) table: NonNull<u8>,
    pub(crate) table_bytes: usize,
    pub(crate) record: usize,
    pub(crate) held: u32,
}

/// Prepares a word for a lock. `None`: the table is full.
pub(crate) fn prepare(address: usize) -> Option<Prepared> {
    static PREPARED: Mutex<Option<FxHashSet<usize>>> = Mutex::new(None);
    let is_new = lock(&PREPARED).get_or_insert_default().insert(address);
    if is_new {
        // For ever: so JavaScript, which does not see the waiters of other processes, releases it by native code.
        PROCESS.store.counter(Location::from_address(address)).fetch_add(1, Ordering::SeqCst);
    }
    let (mapping, word) = (Mapping::at(address)?, shared(address, true)?);
    Some(Prepared {
        table: mapping.table(),
        table_bytes: mapping.table_bytes(),
        record: Table::place(word.index),
        held: words::held_by(mapping.me()),
    })
}

/// Returns the pid of a word's only holder; 0: unknown. `None`: there is none.
pub(crate) fn owner_of(address: usize) -> Option<u32> {
    let slot = shared(address, false)?.owner()?;
    let mapping = Mapping::at(address)?;
    Some(mapping.process_at(slot).and_then(|process| mapping.pid_of(process)).unwrap_or_default())
}

fn table_of(mapping: &Mapping) -> Table<'static> {
    // SAFETY: the table is in the mapping, which is never unmapped, and `start` was given this length.
    unsafe { Table::from_raw(mapping.table().as_ptr(), mapping.data_bytes()) }
}

/// Returns the word at an offset of the data, in words.
fn word_in(mapping: &Mapping, offset: usize) -> Option<&'static AtomicI32> {
    let is_within = offset < mapping.data_bytes() / size_of::<i32>();
    // SAFETY: it is in the mapping (its invariant 1), whose data begin at a page.
    is_within.then(|| unsafe { mapping.data().cast::<AtomicI32>().add(offset).as_ref() })
}

impl Peers for Mapping {
    fn me(&self) -> ProcessId {
        Self::me(self)
    }

    fn ring(&self, index: usize) {
        Self::ring(self, index);
    }

    fn is_gone(&self, process: ProcessId) -> bool {
        Self::is_gone(self, process)
    }

    fn now(&self) -> u64 {
        now()
    }
}

/// The words of this process's waiters that have no record, since the table is full: what was there as the first one came, and
/// how many wait. Nobody can notify them from elsewhere.
static UNRECORDED: Mutex<BTreeMap<Location, (i32, usize)>> = Mutex::new(BTreeMap::new());

fn enter_without_record(location: Location) {
    let is_first = {
        let mut words = lock(&UNRECORDED);
        let (value, count) = words.get(&location).copied().unwrap_or_else(|| (word_at(location).load(), 0));
        words.insert(location, (value, count + 1));
        words.len() == 1
    };
    if is_first && let Some(mapping) = Mapping::at(location.address()) {
        // The watcher polls from now on.
        mapping.ring_own();
    }
}

fn leave_without_record(location: Location) {
    let mut words = lock(&UNRECORDED);
    if let Some((_, count)) = words.get_mut(&location) {
        *count -= 1;
        if *count == 0 {
            words.remove(&location);
        }
    }
}

/// How many lines and waiters of this process are counted in tables.
static WAITS: AtomicUsize = AtomicUsize::new(0);

struct Words(&'static Mapping);

impl Words {
    /// Looks at the words at these offsets: whether waiters here were notified, or may take them.
    fn look_at(&self, offsets: Vec<usize>) {
        let start = self.0.data().as_ptr() as usize;
        for offset in offsets {
            if word_in(self.0, offset).is_none() {
                continue;
            }
            let location = Location::from_address(start + size_of::<i32>() * offset);
            PROCESS.store.deliver(location);
            let word = word_at(location);
            if PROCESS.store.check_word(location, &*word) == Some(false)
                && let WordAt::Shared(shared) = word
            {
                shared.answer();
                claim_stays(location, &word);
            }
        }
    }
}

impl Client for Words {
    fn rung(&'static self) {
        self.look_at(table_of(self.0).take_news(self.0.me()));
    }

    fn look_again(&'static self) {
        // Who dies before it rings leaves its news, and then nobody else rings for them.
        self.rung();
        self.look_at(table_of(self.0).awaited_by(self.0.me()));
    }

    fn sweep(&self, dead: ProcessId) {
        table_of(self.0).sweep(dead, self.0, |offset| word_in(self.0, offset));
    }

    fn waits(&self) -> bool {
        WAITS.load(Ordering::Relaxed) > 0
    }

    fn polls(&self) -> bool {
        let words = lock(&UNRECORDED).clone();
        for (&location, &(value, _)) in &words {
            if word_at(location).load() != value {
                PROCESS.store.notify(location, usize::MAX, None);
            }
        }
        !words.is_empty()
    }
}

#[derive(Debug)]
struct Others;

impl OtherProcesses for Others {
    fn share(&self, location: Location) -> bool {
        !location.is_of_process() && is_shared(location.address())
    }

    fn enter(&self, location: Location, claims: bool) {
        let Some(word) = shared(location.address(), true) else {
            if !claims {
                enter_without_record(location);
            }
            return;
        };
        let is_new = if claims {
            word.begins_to_wait()
        } else {
            word.enter();
            true
        };
        if is_new {
            WAITS.fetch_add(1, Ordering::Relaxed);
            if let Some(mapping) = Mapping::at(location.address()) {
                wait_begins(mapping);
            }
        }
    }

    fn leave(&self, location: Location) -> bool {
        uncounted(location).is_some_and(|word| word.leave())
    }

    fn is_notified(&self, location: Location) -> bool {
        shared_word(location).is_some_and(|word| word.is_notified())
    }

    fn take_notification(&self, location: Location) -> bool {
        uncounted(location).is_some_and(|word| word.take_notification())
    }

    fn end_claims(&self, location: Location) {
        if let Some(word) = uncounted(location) {
            word.ends_to_wait();
        }
    }

    fn holder(&self, location: Location) -> Option<u32> {
        let word = shared_word(location)?;
        if word.owner() == Some(word.peers.me().index()) {
            return None;
        }
        owner_of(location.address())
    }

    fn notify(&self, location: Location, count: usize, here: &mut dyn FnMut(usize) -> usize) -> usize {
        // Behind the program's plain write, as in `counters`: a waiter is counted before it reads the word.
        std::sync::atomic::fence(Ordering::SeqCst);
        match shared_word(location) {
            Some(word) => word.notify(count, here),
            None => here(count),
        }
    }
}

fn uncounted(location: Location) -> Option<SharedWord<'static>> {
    let word = shared_word(location);
    if word.is_some() {
        WAITS.fetch_sub(1, Ordering::Relaxed);
    } else {
        leave_without_record(location);
    }
    word
}
