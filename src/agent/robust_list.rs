//! The robust list: a thread's holds, in memory that outlives its JavaScript, so that its end can pass them on.
//!
//! An entry is the address of a word and the hold of it: a lock, a share of a read-write lock, or permits; the entries
//! have no order. JavaScript adds an entry by the same run of instructions that takes the lock, and removes it so, too: at
//! whatever moment the thread is terminated, the list is right.
//!
//! Behind the last entry there may be an *announcement*: the lock that the thread is about to try to take, or is just
//! releasing. It counts if its serial number is not 0. As it is written before the word changes, there is no moment at
//! which a lock is taken and its holder unknown. Other threads read the list to tell who holds a lock.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::Ordering;

use napi::{Result, sys};

use crate::environment::{Environment, pin_buffer};
use waitasync_core::held::Holds;
use waitasync_core::held::registers::RegistersRef;
use waitasync_core::lock::{Hold, Request};
use waitasync_core::queue::Location;

pub(crate) struct RobustList {
    pub(crate) table: Cell<Holds>,
    buffer: Cell<sys::napi_ref>,
}

impl RobustList {
    pub(crate) fn new(registers: RegistersRef) -> Self {
        Self { table: Cell::new(Holds::empty(registers)), buffer: Cell::new(ptr::null_mut()) }
    }

    /// Moves the list to a larger buffer, which has its entries already. `publish` tells other threads.
    ///
    /// # Safety
    /// On the environment's thread, in a call from JavaScript; `buffer` is an `ArrayBuffer`.
    pub(crate) unsafe fn enlarge(
        &self,
        environment: Environment,
        buffer: sys::napi_value,
        publish: impl FnOnce(Holds),
    ) -> Result<()> {
        // SAFETY: as the caller promises.
        let (data, bytes, reference) = unsafe { pin_buffer(environment.env, buffer) }?;
        // SAFETY: an `ArrayBuffer` of that size, which is pinned until the next one has its place.
        let table = unsafe { self.table.get().moved_to(data, bytes) };
        publish(table);
        self.table.set(table);
        environment.unpin(self.buffer.replace(reference))
    }

    pub(crate) fn len(&self) -> u32 {
        self.table.get().registers.held.load(Ordering::Relaxed)
    }

    fn set_len(&self, len: u32) {
        self.table.get().registers.held.store(len, Ordering::Relaxed);
    }

    pub(crate) fn truncate(&self, len: u32) {
        let (table, former) = (self.table.get(), self.len());
        self.set_len(len);
        for serial in (len..former).filter_map(|index| table.serial(index as usize)) {
            serial.store(0, Ordering::Relaxed);
        }
    }

    /// Announces an attempt to take a lock, until [`Self::add`] or [`Self::retract`].
    pub(crate) fn announce(&self, location: Location, request: Request) {
        if request.is_for_lock() {
            self.write(location, request.hold());
        }
    }

    /// Writes an announcement behind the last entry. Returns whether there was room: JavaScript makes some before.
    fn write(&self, location: Location, hold: Hold) -> bool {
        let (table, len) = (self.table.get(), self.len() as usize);
        let (Some(entry), Some(serial)) = (table.entries().get(len), table.serial(len)) else { return false };
        entry.set(location, hold);
        serial.store(Holds::ANNOUNCED, Ordering::Relaxed);
        true
    }

    /// Retracts the announcement: the thread did not get the lock, or has released it.
    pub(crate) fn retract(&self) {
        if let Some(serial) = self.table.get().serial(self.len() as usize) {
            serial.store(0, Ordering::Relaxed);
        }
    }

    /// Adds an entry. It has the serial number of an announcement until JavaScript numbers it, since an entry that is
    /// removed before becomes an announcement.
    pub(crate) fn add(&self, location: Location, hold: Hold) {
        if self.write(location, hold) {
            self.set_len(self.len() + 1);
        }
    }

    pub(crate) fn at_index(&self) -> Option<(Location, Hold)> {
        let table = self.table.get();
        table.entries()[..self.len() as usize].get(table.registers.index.get() as usize)?.get()
    }

    /// Removes the entry at the index, which the caller then releases. Until [`Self::retract`] it is an announcement,
    /// with the serial number that it had.
    pub(crate) fn remove(&self) -> Option<(Location, Hold)> {
        let table = self.table.get();
        let entries = &table.entries()[..self.len() as usize];
        let (entry, last) = (entries.get(table.registers.index.get() as usize)?, entries.last()?);
        let removed = entry.get()?;
        entry.copy(last);
        self.set_len(self.len() - 1);
        Some(removed)
    }

    pub(crate) fn owed(&self) -> Option<Location> {
        let table = self.table.get();
        table.entries().get(table.registers.index.get() as usize)?.owed()
    }

    /// Removes all entries, each by `pass_on`. Meanwhile it is an announcement, so that the holder is known at every
    /// moment. `pass_on` also gets where the notification was given that the hold owes.
    pub(crate) fn drain(&self, mut pass_on: impl FnMut(Location, Hold, Option<Location>)) {
        while let Some(last) = self.len().checked_sub(1) {
            // From here on it is an announcement: the next holder may have it before `pass_on` returns.
            self.set_len(last);
            if let Some(entry) = self.table.get().entries().get(last as usize)
                && let Some((location, hold)) = entry.get()
            {
                pass_on(location, hold, entry.owed());
            }
            self.retract();
        }
    }
}
