//! Tables give back the memory that they needed once.

#![cfg(not(feature = "model"))]
#![allow(unsafe_code, reason = "an allocator that counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::AtomicI32;

use waitasync_core::clock::now;
use waitasync_core::lock::WaiterListStore;
use waitasync_core::lock::request::{LOCKED, Request};
use waitasync_core::queue::location::Location;

thread_local! {
    /// The bytes that this thread has and has not freed: tests run beside one another.
    static LIVE: Cell<isize> = const { Cell::new(0) };
}

fn count(layout: Layout, sign: isize) {
    let _ = LIVE.try_with(|live| live.set(live.get() + sign * layout.size().cast_signed()));
}

struct Counting;

// SAFETY: the system's allocator does it all; and counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout, 1);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(layout, -1);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// `burst` needs memory, and `end` gives back all but a hundredth of it.
fn assert_given_back(burst: impl FnOnce(), end: impl FnOnce()) {
    let before = LIVE.get();
    burst();
    let needed = LIVE.get() - before;
    assert!(needed > 1 << 20, "{needed}");
    end();
    let left = LIVE.get() - before;
    assert!(left < needed / 100, "of {needed} bytes {left} are left");
}

#[test]
fn locks_that_were_abandoned_and_are_locked_again_leave_no_memory_behind() {
    let (store, word) = (WaiterListStore::new(256, now), AtomicI32::new(LOCKED));
    let locations = || (0..300_000).map(|place| Location::from_address(0x10_0000 + 4 * place));
    assert_given_back(
        || locations().for_each(|location| store.abandon(location, Request::Lock, &word)),
        || locations().for_each(|location| assert!(store.take_note_of_death(location, Request::Lock))),
    );
}
