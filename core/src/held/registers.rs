//! The registers: the words through which operands and answers pass between JavaScript and native code.
//!
//! A Node-API call with arguments costs more than four times as much as one without. So JavaScript makes an
//! `ArrayBuffer` per agent: [`Registers`] lie at its start, the settlements of a batch behind them.
//! `lib/agent/registers.js` has the same layout, which a test compares.

#![allow(unsafe_code, reason = "memory that JavaScript owns")]

use std::cell::Cell;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicI32, AtomicI64, AtomicU32, AtomicU64, Ordering};

use super::stacks::StackId;
use crate::clock::{Timestamp, now};
use crate::lock::Request;
use crate::lock::names::Mode;
use crate::queue::{Location, Settlement, WaitResult};

/// How many settlements one call into JavaScript takes; `BATCH` in `lib/agent/`.
pub const BATCH: usize = 4096;

/// Operands and answers of operations. The agent's thread and JavaScript take turns; others read the atomic ones.
#[repr(C)]
pub struct Registers {
    address: Cell<f64>,
    /// Milliseconds; `Infinity` without a timeout.
    timeout: Cell<f64>,
    /// How many waiters to notify; may be `Infinity`. As an answer: the number of a request, or an address.
    pub count: Cell<f64>,
    /// The address of a word that JavaScript is changing, as a number's bits; 0 once the line has been served. Negative
    /// if no entry of the robust list leaves with that, or if it has left.
    releasing: AtomicU64,
    /// Where a notification that this thread received goes if the thread ends before it makes use of it; 0 for none. As
    /// an operand of an asynchronous wait: the same for that wait's notification.
    relay: Cell<f64>,
    /// The expected value. That of an `Int32Array` is in the half with the lower address.
    expected: Cell<i64>,
    pub slot: Cell<u32>,
    /// 1 for a `BigInt64Array`, 0 for an `Int32Array`.
    wide: Cell<u32>,
    /// How many entries the robust list has.
    pub held: AtomicU32,
    /// An index into the robust list: of the entry to release; or of the first entry that a batch of settlements adds.
    pub index: Cell<u32>,
    /// The kind of request: [`Request::from_code`].
    kind: Cell<u32>,
    /// How many permits are requested; or the kind of a wait. Of a lock that a promise claims: not 0 if this thread
    /// holds it. After `free`: the `threadId` of the holder. After `stealName`: not 0 if the name was held.
    pub amount: Cell<u32>,
    pub answer: Cell<u32>,
    /// How many settlements of the current batch JavaScript has settled; [`NOT_ADOPTED`] until it has made the tokens.
    pub settled: Cell<u32>,
    /// The address at which this thread blocked and was given something that another waiter gets if this thread ends
    /// now, as a terminated thread does. 0 otherwise; JavaScript sets it to 0 as soon as it goes on.
    given: Cell<f64>,
    /// How many permits this thread was given at `given`; 0 for a notification.
    given_permits: Cell<u32>,
    /// Odd while JavaScript moves entries of the robust list; raised by two for each move.
    pub moves: AtomicU32,
    /// How many permits may be taken together, where the kind of request has such a limit.
    limit: Cell<u32>,
    /// The stack of the call that claims something, if stalls are reported.
    pub call: Cell<StackId>,
}

/// See [`Registers::settled`].
pub const NOT_ADOPTED: u32 = u32::MAX;

// The answers of `free`.
pub const FREED: u32 = 0;
pub const NOT_LOCKED: u32 = 1;
pub const HELD_ELSEWHERE: u32 = 2;

/// The count with which `settle` is called if JavaScript has to ask for the news.
pub const NEWS: usize = 0;

/// The answer of a wait or a claim to JavaScript.
#[must_use]
#[derive(Clone, Copy)]
pub enum Answer {
    Settled(WaitResult),
    /// It waits, and will be settled later.
    Pending,
    /// The system gave no thread for the timer, so nothing waits.
    NoTimer,
    /// The engine ends the thread or the call, so nothing waits any more.
    Interrupted,
    /// The thread would wait for ever, so it does not wait.
    Deadlock,
    /// The same, for a name that it holds itself.
    HeldHere,
}

/// The operation panicked.
pub const FAILED: u32 = 7;

impl From<Answer> for u32 {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::Settled(result) => result as Self,
            Answer::Pending => 3,
            Answer::NoTimer => 6,
            Answer::Interrupted => 8,
            Answer::Deadlock => 9,
            Answer::HeldHere => 10,
        }
    }
}

/// Where the registers of an agent are. Used by the agent's parts as long as its environment lives, and by other
/// threads while they hold the lock of the registry.
#[derive(Clone, Copy)]
pub struct RegistersRef(NonNull<Registers>);

impl RegistersRef {
    /// # Safety
    /// `data` is the start of an `ArrayBuffer` of `bytes` bytes, which is kept as long as the result is used.
    pub unsafe fn new(data: NonNull<std::ffi::c_void>, bytes: usize) -> Option<Self> {
        (bytes == size_of::<Registers>() + BATCH * size_of::<u32>()).then_some(Self(data.cast()))
    }

    /// Makes the registers of a test, all 0. Their memory is never freed.
    pub fn of_test() -> Self {
        const BYTES: usize = size_of::<Registers>() + BATCH * size_of::<u32>();
        let memory = (0..BYTES / 8).map(|_| AtomicU64::new(0)).collect::<Vec<_>>().leak();
        // SAFETY: the memory has so many bytes, is aligned, and is never freed.
        unsafe { Self::new(NonNull::from(memory).cast(), BYTES) }.expect("the size is right")
    }

    pub fn put(self, batch: &[Settlement]) {
        // SAFETY: `new` demands memory that is kept, and checked that so many words follow; only this thread uses them.
        let words = unsafe { std::slice::from_raw_parts_mut(self.0.add(1).cast::<u32>().as_ptr(), BATCH) };
        for (word, settlement) in words.iter_mut().zip(batch) {
            *word = (settlement.slot << 3) | settlement.result as u32;
        }
    }
}

impl Deref for RegistersRef {
    type Target = Registers;

    fn deref(&self) -> &Registers {
        // SAFETY: `new` demands memory that is kept and checked its size; memory of an `ArrayBuffer` does not move and
        // is aligned to 8 bytes at least; all fields are cells or atomic.
        unsafe { self.0.as_ref() }
    }
}

/// Returns the location of a number of `lib/` or [`to_number`].
pub fn from_number(address: f64) -> Option<Location> {
    match address as usize {
        0 => None,
        address => Some(Location::from_address(address)),
    }
}

pub fn to_number(location: Location) -> f64 {
    location.address() as f64
}

impl Registers {
    pub fn location(&self) -> Location {
        Location::from_address(self.address.get() as usize)
    }

    pub fn set_location(&self, location: Location) {
        self.address.set(to_number(location));
    }

    /// Tells JavaScript where in its stack this thread is.
    pub fn note_depth(&self) {
        let here = 0_u8;
        self.address.set(std::ptr::from_ref(std::hint::black_box(&here)).addr() as f64);
    }

    pub fn mode(&self) -> Mode {
        self.request().mode().unwrap_or(Mode::Exclusive)
    }

    pub fn request(&self) -> Request {
        Request::from_code(self.kind.get(), self.amount.get(), self.limit.get())
    }

    /// Returns when the wait times out. With a timeout of 0 or less it does not wait at all.
    pub fn deadline(&self) -> Timestamp {
        if self.has_timeout() { now().after_millis(self.timeout.get()) } else { Timestamp::NEVER }
    }

    pub fn has_timeout(&self) -> bool {
        self.timeout.get() != f64::INFINITY
    }

    pub fn waits(&self) -> bool {
        self.timeout.get() > 0.0
    }

    /// Answers a wait with a timeout of 0 or less. It never is in a list and needs no critical section.
    pub fn poll(&self) -> Answer {
        Answer::Settled(if self.is_equal() { WaitResult::TimedOut } else { WaitResult::NotEqual })
    }

    pub fn is_equal(&self) -> bool {
        let (location, expected) = (self.location(), self.expected.get());
        let [a, b, c, d, ..] = expected.to_ne_bytes();
        // SAFETY: `lib/atomics/functions.js` puts in the address of an element of a typed array that the caller of
        // `wait` or `waitAsync` holds, index and type validated; shared memory never shrinks or moves (invariant 8).
        unsafe {
            if self.wide.get() == 1 {
                location.word::<AtomicI64>().load(Ordering::SeqCst) == expected
            } else {
                location.word::<AtomicI32>().load(Ordering::SeqCst) == i32::from_ne_bytes([a, b, c, d])
            }
        }
    }

    /// Returns the location of the word that JavaScript is changing.
    pub fn releasing(&self) -> Option<Location> {
        from_number(f64::from_bits(self.releasing.load(Ordering::Acquire)).abs())
    }

    /// Returns the location of the word that JavaScript is changing. None if no entry may leave with that.
    pub fn leaving(&self) -> Option<Location> {
        // A negative number is none.
        from_number(f64::from_bits(self.releasing.load(Ordering::Acquire)))
    }

    /// Writes in the place of JavaScript.
    pub fn set_releasing(&self, number: f64) {
        self.releasing.store(number.to_bits(), Ordering::SeqCst);
    }

    /// Returns an operand that is no location: the number of a lock that several processes have.
    pub fn number(&self) -> i64 {
        self.address.get() as i64
    }

    /// Tells JavaScript of such a lock: its number, its token, and which permit it is.
    pub fn set_grant(&self, number: i64, token: u64, permit: Option<u32>) {
        self.address.set(number as f64);
        self.timeout.set(token as f64);
        self.amount.set(permit.unwrap_or(u32::MAX));
    }

    pub fn set_relay(&self, location: Location) {
        self.relay.set(to_number(location));
    }

    /// Returns the notification that this thread received and has not used.
    pub fn relay(&self) -> Option<Location> {
        from_number(self.relay.get())
    }

    pub fn take_relay(&self) -> Option<Location> {
        from_number(self.relay.replace(0.0))
    }

    /// Notes that this thread, which blocked at `location`, was given permits; or, with 0, a notification.
    pub fn give(&self, location: Location, permits: u32) {
        self.given_permits.set(permits);
        self.given.set(to_number(location));
    }

    pub fn take_given(&self) -> Option<(Location, u32)> {
        Some((from_number(self.given.replace(0.0))?, self.given_permits.get()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::mem::offset_of;

    use super::*;

    #[test]
    fn javascript_has_the_same_layout() {
        macro_rules! offsets {
            ($unit:ty: $($name:ident $field:ident),+) => {
                [$((stringify!($name), offset_of!(Registers, $field) / size_of::<$unit>())),+]
            };
        }
        let floats =
            offsets!(f64: ADDRESS address, TIMEOUT timeout, COUNT count, RELEASING releasing, RELAY relay, GIVEN given);
        let words = offsets!(
            u32: EXPECTED expected, SLOT slot, WIDE wide, HELD held, ENTRY index, KIND kind, AMOUNT amount,
            ANSWER answer, SETTLED settled, MOVES moves, LIMIT limit, CALL call
        );
        let numbers = [
            ("WORDS", size_of::<Registers>() / size_of::<u32>()),
            ("PENDING", u32::from(Answer::Pending) as usize),
            ("NO_TIMER", u32::from(Answer::NoTimer) as usize),
            ("INTERRUPTED", u32::from(Answer::Interrupted) as usize),
            ("DEADLOCK", u32::from(Answer::Deadlock) as usize),
            ("ACQUIRED", WaitResult::Acquired as usize),
            ("ACQUIRED_FROM_DEAD", WaitResult::AcquiredFromDead as usize),
            ("FREED", FREED as usize),
            ("NOT_LOCKED", NOT_LOCKED as usize),
            ("HELD_ELSEWHERE", HELD_ELSEWHERE as usize),
            ("HELD_HERE", u32::from(Answer::HeldHere) as usize),
            ("NEWS", NEWS),
            ("BATCH", BATCH),
        ];
        let ours: BTreeMap<_, _> = floats.into_iter().chain(words).chain(numbers).collect();
        // The `exports.NAME = NUMBER` there.
        let lines = include_str!("../../../lib/agent/registers.js").lines();
        let exports = lines.filter_map(|line| line.split_once("exports.")?.1.split_once(" = "));
        assert_eq!(ours, exports.filter_map(|(name, value)| Some((name, value.parse().ok()?))).collect());
    }
}
