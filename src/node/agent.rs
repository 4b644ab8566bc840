//! An agent: a thread's Node environment that has loaded the addon.
//!
//! It owns the outbox that other threads put outcomes into, the one threadsafe function that tells its event loop of
//! them, and the decision whether that loop is kept alive. Everything here runs on the agent's own thread, except the
//! outbox's ring.
//!
//! # When a pending promise keeps the loop alive
//! As long as something can still settle it: it has a time-out, or another thread has the addon (only such a thread could
//! notify it), or its outcome is on the way. A thread that comes as the second or goes as the last but one rings all
//! agents, so that each decides anew.
//!
//! A worker that is going to load the addon counts from the moment its parent has made it: as one that its parent's agent
//! is starting. It becomes an agent in the critical section in which it stops to be that, so there is no moment at which it
//! is neither. A worker that ends before is struck off by its parent, or with its parent.

#![allow(unsafe_code, reason = "Node-API")]

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::c_void;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};
use std::thread::ThreadId;
use std::time::Duration;

use napi::bindgen_prelude::retain_current_module_for_unload_safety;
use napi::{Error, Result, check_status, sys};
use rustc_hash::FxBuildHasher;

use crate::clock::{Timestamp, now};
use crate::lock::fairness::{ROOM, Released};
use crate::lock::memories::{AgentId, Memories};
use crate::lock::request::Request;
use crate::lock::word::{SharedWord, UNLOCKED, Word};
use crate::lock::{Claimed, Freed, Waiter, WaiterListStore};
use crate::lock::{Mail, Outbox};
use crate::queue::bucket::Ticket;
use crate::queue::location::{Expected, Location};
use crate::queue::outbox::Settlement;
use crate::queue::parker::{BlockedThread, Woken};
use crate::queue::result::WaitResult;
use crate::queue::store::Withdrawal;
use crate::service::watch::Watch;
use crate::service::{Duties, Service};
use crate::thread::spinner::{BudgetedSpinner, Spinner};

/// The queue of this process. 256 shards: two threads that share nothing rarely meet, and looking at all of them for the
/// earliest deadline takes less than a microsecond.
pub(crate) static STORE: LazyLock<WaiterListStore> = LazyLock::new(|| WaiterListStore::new(256, now));

/// The memories of this process's locks.
static MEMORIES: LazyLock<Memories> = LazyLock::new(Memories::default);

/// The service of this process. `None` if the system gives no thread for it; each call tries.
fn service() -> Option<&'static Arc<Service>> {
    static SERVICE: OnceLock<Arc<Service>> = OnceLock::new();
    static STARTING: Mutex<()> = Mutex::new(());
    SERVICE.get().or_else(|| {
        let _starting = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
        if SERVICE.get().is_none() {
            let duties = Duties { tick: Box::new(Agents::tick), check_words: Box::new(look) };
            SERVICE.set(Service::start(&STORE, duties)?).ok()?;
        }
        SERVICE.get()
    })
}

/// Looks at the words of all lines. Whether there are any.
pub(crate) fn look() -> bool {
    // SAFETY: while a location has claims, JavaScript keeps its memory for them (invariant 8), and they do not leave during the
    // critical section in which the word is looked at but by that.
    STORE.check_words(|location| unsafe { SharedWord::at(location) })
}

/// A worker that is terminated, or a process that exits, waits until a thread blocked in native code comes back to
/// JavaScript. So no thread stays away longer than this, unless it is watched, and called back when there is reason to.
const SLICE_MILLISECONDS: f64 = 30.0;

/// And then no longer than this, for what the watch does not see: time limits of `vm`, debuggers.
const WATCHED_SLICE_MILLISECONDS: f64 = 500.0;

/// Who terminates a worker may signal its event loop a moment before the termination can be noticed. So a thread that was
/// called back, and found nothing, comes back by itself after so long, and then after twice as long each time.
const CALLED_BACK_SLICE_MILLISECONDS: f64 = 0.5;

/// Nanoseconds that a thread may look for a notification before it sleeps: what it takes until a sleeping thread has woken
/// up and answered.
const LONGEST_WAIT_SPIN: u32 = 100_000;

/// Nanoseconds that a thread may look for a free lock before it lines up: what most critical sections last. Longer ones are
/// worth a sleep.
const LONGEST_LOCK_SPIN: u32 = 20_000;

/// For how long it may be open whether a thread is about to take a lock: it is a matter of some instructions, unless the system
/// lets it wait.
const POSSIBLE: Duration = Duration::from_millis(1);

// What `free` answers.
const FREED: u32 = 0;
const NOT_LOCKED: u32 = 1;
/// The `threadId` of the holder is in the register of the amount.
const HELD_ELSEWHERE: u32 = 2;

/// How many settlements one call into JavaScript takes; `BATCH` in `lib/settle.js`.
const SETTLEMENTS: usize = 4096;

/// The words through which arguments and outcomes pass between JavaScript and here: cheaper than arguments of a Node-API
/// call. They lie at the start of an `ArrayBuffer` that `lib/settle.js` makes; the settlements follow them.
#[repr(C)]
pub(crate) struct Registers {
    /// The address of the location.
    address: Cell<f64>,
    /// Milliseconds; `Infinity` without a time-out.
    timeout: Cell<f64>,
    /// How many to notify; may be `Infinity`.
    count: Cell<f64>,
    /// The address of a word that JavaScript is changing, until it has told the line; 0 otherwise. A number of JavaScript's, by
    /// its bits. Other threads may read it.
    releasing: AtomicU64,
    /// The address at which a notification that the thread has had goes to another waiter, if it ends before it has made use
    /// of it; 0 if there is none. As an operand of a promise: the same for the promise's.
    relay: Cell<f64>,
    /// The expected value; of an `Int32Array` in the lower-addressed half.
    expected: Cell<i64>,
    /// The agent's number of the wait.
    slot: Cell<u32>,
    /// 1 for a `BigInt64Array`, 0 for an `Int32Array`.
    wide: Cell<u32>,
    /// How many entries of the table of holdings are in use. Other threads may read it.
    held: AtomicU32,
    /// A place in that table: that of what is to be given back; or of the first thing acquired in a batch of settlements.
    place: Cell<u32>,
    /// What is asked for: [`Request::from_code`].
    kind: Cell<u32>,
    /// So many permits.
    amount: Cell<u32>,
    /// What the last operation answered.
    pub(crate) answer: Cell<u32>,
    /// How many settlements of the current batch JavaScript has settled; [`NOT_ADOPTED`] until what they acquired has its
    /// tokens.
    settled: Cell<u32>,
    /// The address at which the thread has blocked and has been given what would belong to nobody if the thread ended now, which
    /// it does at once if it is being terminated. 0 otherwise, and again as soon as JavaScript goes on.
    given: Cell<f64>,
    /// How many permits the thread has been given that blocked at `given`; 0: it has been notified there.
    given_amount: Cell<u32>,
}

/// See `Registers::settled`.
const NOT_ADOPTED: u32 = u32::MAX;

/// `lib/registers.js` counts on it.
const _: () = assert!(size_of::<Registers>() == 96);

impl Registers {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an address was made a number in `address_of`"
    )]
    pub(crate) fn location(&self) -> Location {
        Location::from_address(self.address.get() as usize)
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the cast saturates, as the count shall"
    )]
    fn count(&self) -> usize {
        self.count.get() as usize
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "as above")]
    fn releasing(&self) -> Option<Location> {
        match f64::from_bits(self.releasing.load(Ordering::Acquire)) as usize {
            0 => None,
            address => Some(Location::from_address(address)),
        }
    }

    /// Notes that a thread which has blocked at `location` is given permits, or that it is notified.
    #[expect(clippy::cast_precision_loss, reason = "`address_of` makes sure that addresses fit")]
    fn give(&self, location: Location, amount: u32) {
        self.given_amount.set(amount);
        self.given.set(location.address() as f64);
    }

    /// Takes the address out of the register, and how many permits it is about; 0 for a notification.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "as above")]
    fn take_given(&self) -> Option<(Location, u32)> {
        match self.given.replace(0.0) as usize {
            0 => None,
            address => Some((Location::from_address(address), self.given_amount.get())),
        }
    }

    /// Takes the address out of the relay register.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "as above")]
    fn take_relay(&self) -> Option<Location> {
        match self.relay.replace(0.0) as usize {
            0 => None,
            address => Some(Location::from_address(address)),
        }
    }

    fn slot(&self) -> u32 {
        self.slot.get()
    }

    fn deadline(&self) -> Timestamp {
        let timeout = self.timeout.get();
        if timeout == f64::INFINITY { Timestamp::NEVER } else { now().after_millis(timeout) }
    }

    /// Whether the word at the location holds the expected value.
    fn is_equal(&self) -> bool {
        let expected = if self.wide.get() == 1 {
            Expected::BigInt64(self.expected.get())
        } else {
            let [a, b, c, d, ..] = self.expected.get().to_ne_bytes();
            Expected::Int32(i32::from_ne_bytes([a, b, c, d]))
        };
        // SAFETY: `lib/atomics.js` puts in the address of an element of the typed array that the caller of Atomics.wait
        // or waitAsync holds, after validating the index, and the array's type; shared memory never shrinks or moves
        // (invariant 8).
        unsafe { expected.is_at(self.location()) }
    }

    fn request(&self) -> Request {
        Request::from_code(self.kind.get(), self.amount.get())
    }

    /// The word at the location, which excludes.
    fn word(&self) -> SharedWord {
        // SAFETY: `lib/sync/` puts in the address of the word of a lock whose array it holds, as above.
        unsafe { SharedWord::at(self.location()) }
    }

    /// What a wait with a time-out of 0 answers. It never is in the line, so it needs no critical section.
    fn poll(&self) -> Begun {
        Begun::Over(if self.is_equal() { WaitResult::TimedOut } else { WaitResult::NotEqual })
    }
}

/// One of an agent's asynchronous waits. There may be a million of them.
#[derive(Clone, Copy)]
struct Wait {
    ticket: Ticket,
    timed: bool,
    refed: bool,
}

const _: () = assert!(size_of::<Option<Wait>>() == 8);

/// What an agent knows beside of those of its waits that are for more than a notification.
#[derive(Clone, Copy)]
struct Purpose {
    /// Where it waits. A claim's word is needed again, when it is nudged.
    location: Location,
    /// What it asks of the word, if it does.
    request: Option<Request>,
    /// Where a notification goes if the agent ends before it has made use of it: the one that the wait may come to, or the
    /// one that the claim's thread has had and wants the word because of.
    relay: Option<Location>,
}

impl Purpose {
    /// `None`: to be notified, and that is all.
    fn of(location: Location, request: Option<Request>, relay: Option<Location>) -> Option<Self> {
        (request.is_some() || relay.is_some()).then_some(Self { location, request, relay })
    }
}

/// An agent's asynchronous waits, by slot. Only read and written by the agent's own thread, and allowed to be out of date: a
/// ticket whose wait was settled is recognised by the store.
#[derive(Default)]
struct Waits {
    waits: Vec<Option<Wait>>,
    purposes: HashMap<u32, Purpose, FxBuildHasher>,
}

impl Waits {
    fn insert(&mut self, slot: u32, wait: Wait, purpose: Option<Purpose>) {
        let place = slot as usize;
        if self.waits.len() <= place {
            self.waits.resize(place + 1, None);
        }
        self.waits[place] = Some(wait);
        if let Some(purpose) = purpose {
            self.purposes.insert(slot, purpose);
        }
    }

    fn get(&self, slot: u32) -> Option<Wait> {
        *self.waits.get(slot as usize)?
    }

    fn get_mut(&mut self, slot: u32) -> Option<&mut Wait> {
        self.waits.get_mut(slot as usize)?.as_mut()
    }

    fn purpose(&self, slot: u32) -> Option<Purpose> {
        self.purposes.get(&slot).copied()
    }

    fn remove(&mut self, slot: u32) -> (Option<Wait>, Option<Purpose>) {
        let wait = self.waits.get_mut(slot as usize).and_then(Option::take);
        // Most agents have none at all, and then looking costs nothing.
        let purpose = if self.purposes.is_empty() { None } else { self.purposes.remove(&slot) };
        (wait, purpose)
    }

    /// Those that have not been removed.
    fn iter(&self) -> impl Iterator<Item = (u32, Wait)> {
        (0..).zip(&self.waits).filter_map(|(slot, wait)| Some((slot, (*wait)?)))
    }

    /// Gives back the memory of a table that has been much longer than it needs to be.
    fn shrink(&mut self) {
        const RETAINED: usize = 4096;
        if self.waits.capacity() > RETAINED {
            // What is still pending is at the places it was.
            while self.waits.last().is_some_and(Option::is_none) {
                self.waits.pop();
            }
            self.waits.shrink_to_fit();
        }
        if self.purposes.capacity() > RETAINED {
            self.purposes.shrink_to_fit();
        }
    }
}

/// How many of an agent's waits want its event loop to be kept alive.
#[derive(Default)]
struct Holds {
    timed: Cell<usize>,
    untimed: Cell<usize>,
}

impl Holds {
    fn of(&self, wait: Wait) -> &Cell<usize> {
        if wait.timed { &self.timed } else { &self.untimed }
    }

    fn add(&self, wait: Wait) {
        let holds = self.of(wait);
        holds.set(holds.get() + 1);
    }

    fn remove(&self, wait: Wait) {
        let holds = self.of(wait);
        holds.set(holds.get() - 1);
    }
}

/// A thread's stay in a line in which it blocks, or is about to.
#[derive(Clone, Copy)]
struct Block {
    ticket: Ticket,
    location: Location,
    deadline: Timestamp,
    /// What it asks of the word, if it does.
    request: Option<Request>,
    /// Whether its notification goes to another if the agent ends before it has it.
    relayed: bool,
}

/// A Node environment that uses the queue.
pub(crate) struct Agent {
    env: sys::napi_env,
    outbox: Arc<Outbox>,
    thread: Arc<BlockedThread>,
    watch: Arc<Watch>,
    wait_spinner: Spinner,
    lock_spinner: BudgetedSpinner,
    block: Cell<Option<Block>>,
    /// Whether the thread is in native code for its block, or in what the engine runs between two slices of that.
    sleeps: Cell<bool>,
    waits: RefCell<Waits>,
    holds: Holds,
    held: Cell<bool>,
    tsfn: sys::napi_threadsafe_function,
    settle: sys::napi_ref,
    /// A JavaScript function that does nothing.
    tick: sys::napi_ref,
    registers: *const Registers,
    settlements: *mut u32,
    // Keeps the memory of `registers` and `settlements`.
    _buffer: sys::napi_ref,
    /// `None` while JavaScript is being told.
    delivery: Cell<Option<Box<Delivery>>>,
    /// Whether a delivery was broken off, and is to be gone on with.
    interrupted: Cell<bool>,
    holdings: Cell<Holdings>,
    /// Whether it may sleep: not the main thread.
    may_sleep: bool,
    /// How many buffer objects of this agent are registered, by the addresses of their memories. 0 where all have been collected,
    /// and others had some of the same memory.
    memories: RefCell<HashMap<usize, usize, FxBuildHasher>>,
}

/// Mail that has been taken out of the outbox, and how far JavaScript has been told of it.
#[derive(Default)]
struct Delivery {
    mail: Mail,
    /// What others are to have if this environment ends before the settlement is told: where in the mail that is, and what.
    entrusted: Vec<(usize, Entrusted)>,
    /// How many of the settlements have been told.
    told: usize,
    /// How many of the settlements have what they acquired in the table of holdings, with its tokens. Not less than `told`.
    adopted: usize,
    /// How many of `mail.grants` that are.
    acquired: usize,
}

impl Delivery {
    fn clear(&mut self) {
        self.mail.clear();
        self.entrusted.clear();
        (self.told, self.adopted, self.acquired) = (0, 0, 0);
    }

    /// The settlements that one call into JavaScript takes next. What has been adopted already is not mixed with what has not.
    fn next_batch(&self) -> Range<usize> {
        let longest = self.told + SETTLEMENTS;
        let end = if self.adopted > self.told { self.adopted } else { self.mail.settlements.len() };
        self.told..end.min(longest)
    }

    /// What the settlements from `adopted` to `end` acquired: each with its slot.
    fn acquired_before(&self, end: usize) -> impl Iterator<Item = (u32, Location, Request)> {
        let settlements = self.mail.settlements[self.adopted..end].iter();
        let slots = settlements.filter(|settlement| settlement.result.is_acquired()).map(|settlement| settlement.slot);
        let acquired = self.mail.grants.iter().flatten().skip(self.acquired);
        slots.zip(acquired).map(|(slot, &(location, request))| (slot, location, request))
    }
}

/// What the thread holds: for each lock (share of a read-write lock, permits in use) its address and its request, in no
/// order. JavaScript adds an entry with the very instruction sequence that takes a lock, and removes it likewise, so that
/// whatever moment the thread is terminated at, the table is right.
///
/// The place behind the last entry is that of a lock that the thread is about to take: if it has a serial number. So it can be
/// told at every moment who holds a lock that has been taken: the entry is written before the word is changed.
///
/// Written by its own thread only; others read it to say who holds a lock.
#[derive(Clone, Copy)]
struct Holdings {
    entries: *const Holding,
    /// Of each place; JavaScript's business, but for whether it is 0.
    serials: *const AtomicU32,
    capacity: usize,
    /// Keeps the memory.
    buffer: sys::napi_ref,
}

/// An entry: two of JavaScript's numbers.
#[repr(C)]
struct Holding {
    address: AtomicU64,
    request: AtomicU64,
}

impl Holding {
    #[expect(clippy::cast_precision_loss, reason = "`address_of` makes sure that addresses fit")]
    fn encode(location: Location) -> u64 {
        (location.address() as f64).to_bits()
    }

    fn set(&self, location: Location, request: Request) {
        let (kind, amount) = request.to_code();
        self.address.store(Self::encode(location), Ordering::Relaxed);
        self.request.store((f64::from(kind) + f64::from(amount) * 8.0).to_bits(), Ordering::Relaxed);
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "what `set` or lib/sync/holdings.js wrote"
    )]
    fn get(&self) -> (Location, Request) {
        let address = f64::from_bits(self.address.load(Ordering::Relaxed)) as usize;
        let request = f64::from_bits(self.request.load(Ordering::Relaxed)) as u64;
        (Location::from_address(address), Request::from_code((request % 8) as u32, (request / 8) as u32))
    }
}

impl Holdings {
    const EMPTY: Self = Self { entries: ptr::null(), serials: ptr::null(), capacity: 0, buffer: ptr::null_mut() };
    const BYTES: usize = size_of::<Holding>() + size_of::<u32>();
    /// The serial number of a place at which native code is about to put something. No token has it.
    const TAKING: u32 = 0x7fff_ffff;

    fn slice(&self) -> &[Holding] {
        if self.entries.is_null() {
            return &[];
        }
        // SAFETY: `set_holdings` checked the size; the reference keeps the memory, which does not move, and whoever reads
        // it from another thread holds the lock under which it is exchanged and its agent leaves.
        unsafe { std::slice::from_raw_parts(self.entries, self.capacity) }
    }

    /// The serial number of the place behind the first `held` entries.
    fn serial_of_next(&self, held: u32) -> Option<&AtomicU32> {
        let serials = if self.entries.is_null() {
            &[]
        } else {
            // SAFETY: as for `slice`.
            unsafe { std::slice::from_raw_parts(self.serials, self.capacity) }
        };
        serials.get(held as usize)
    }

    /// Whether the thread, which holds `held`, is about to take what is at that location, or has just given it back.
    fn is_about_to_take(&self, held: u32, location: Location) -> bool {
        let has_serial = self.serial_of_next(held).is_some_and(|serial| serial.load(Ordering::Relaxed) != 0);
        has_serial && self.include(held + 1, location)
    }

    /// Whether one of the first `held` entries is of that location.
    fn include(&self, held: u32, location: Location) -> bool {
        let wanted = Holding::encode(location);
        self.slice().iter().take(held as usize).any(|entry| entry.address.load(Ordering::Relaxed) == wanted)
    }
}

/// Takes a lock that is free.
fn take_free(word: &impl Word) -> Option<()> {
    (word.load() == UNLOCKED && Request::Lock.take(word)).then_some(())
}

/// Who holds a lock, as far as another thread can see, by its `threadId`.
#[derive(Clone, Copy)]
pub(crate) enum Holder {
    /// It does, or it is on its way to it.
    Certain(u32),
    /// It does, or it is about to find out whether it does, or has just ceased to.
    Possible(u32),
}

/// What a settled promise has that is not to be lost if its thread ends before it hears of it; beside what the table of
/// holdings says.
enum Entrusted {
    /// A notification, of somebody who waits here.
    Notification(Location),
    /// What was asked for, but would belong to nobody.
    Taken(Location, Request),
}

impl Entrusted {
    fn with(purpose: Purpose, result: WaitResult) -> Option<Self> {
        match (purpose.request, purpose.relay) {
            _ if result == WaitResult::TimedOut => None,
            (Some(request), _) if !request.is_owned() => Some(Self::Taken(purpose.location, request)),
            (_, Some(relay)) => Some(Self::Notification(relay)),
            _ => None,
        }
    }

    /// The thread has ended.
    fn pass_on(self) {
        match self {
            Self::Notification(location) => {
                STORE.notify(location, 1, None);
            }
            // SAFETY: JavaScript's table of pending promises keeps the memory until it hears that they are settled, which it
            // did not (invariant 8).
            Self::Taken(location, request) => STORE.abandon(location, request, &unsafe { SharedWord::at(location) }),
        }
    }
}

/// The system gave no thread for the timer.
pub(crate) struct NoTimer;

/// How a thread's sleep ended.
enum Slept {
    /// So is its wait.
    Over(Begun),
    /// It has been called back.
    CalledBack,
    /// It has slept for as long as it was to.
    Slice,
}

/// How a wait answered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begun {
    /// Not in the line (any more).
    Over(WaitResult),
    /// In the line.
    Pending,
    /// Not in the line any more: JavaScript is not to go on.
    Interrupted,
}

impl Agent {
    /// The agent of `env`.
    pub(crate) fn of(env: sys::napi_env) -> Result<Rc<Self>> {
        AGENTS
            .with_borrow(|agents| agents.iter().find(|agent| agent.env == env).cloned())
            .ok_or_else(|| Error::from_reason("atomics-waitasync: this environment has not been started, or has ended"))
    }

    /// Runs `body` with the agent of `env`, if it has one: as [`Self::of`], for the operations, which are called often.
    pub(crate) fn with(env: sys::napi_env, body: impl FnOnce(&Self)) {
        let (last_env, last) = LAST.get();
        if last_env == env && !last.is_null() {
            // SAFETY: `on_end` takes the agent out of `LAST` before it drops it, both on this thread; and an environment
            // does not end in the midst of an operation.
            body(unsafe { &*last });
        } else if let Ok(agent) = Self::of(env) {
            LAST.set((env, Rc::as_ptr(&agent)));
            body(&agent);
        }
    }

    /// Makes the agent of `env`.
    ///
    /// # Safety
    /// On the thread of `env`, in a call from JavaScript; `buffer` is an `ArrayBuffer`, `settle` and `tick` are functions.
    pub(crate) unsafe fn start(
        env: sys::napi_env,
        buffer: sys::napi_value,
        settle: sys::napi_value,
        tick: sys::napi_value,
        js_thread: u32,
    ) -> Result<()> {
        if Self::of(env).is_ok() {
            return Err(Error::from_reason("atomics-waitasync: this environment has been started already"));
        }
        // The service and other agents' rings outlive this environment, so the code must, too.
        retain_current_module_for_unload_safety();

        let mut data = ptr::null_mut();
        let mut bytes = 0;
        let (mut buffer_ref, mut settle_ref, mut tick_ref) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        let mut tsfn = ptr::null_mut();
        let mut name = ptr::null_mut();
        // SAFETY: `env`, `buffer`, `settle` and `tick` are what the caller promises, and every out-parameter is a live local.
        unsafe {
            check_status!(sys::napi_get_arraybuffer_info(env, buffer, &raw mut data, &raw mut bytes))?;
            if data.is_null() || bytes != size_of::<Registers>() + SETTLEMENTS * size_of::<u32>() {
                return Err(Error::from_reason("atomics-waitasync: lib/ and the native library are not of one build"));
            }
            check_status!(sys::napi_create_reference(env, buffer, 1, &raw mut buffer_ref))?;
            check_status!(sys::napi_create_reference(env, settle, 1, &raw mut settle_ref))?;
            check_status!(sys::napi_create_reference(env, tick, 1, &raw mut tick_ref))?;
            let text = "atomics-waitasync";
            check_status!(sys::napi_create_string_utf8(
                env,
                text.as_ptr().cast(),
                text.len().cast_signed(),
                &raw mut name
            ))?;
            check_status!(sys::napi_create_threadsafe_function(
                env,
                // Not needed, but Node before 12.6 insists on a function.
                settle,
                ptr::null_mut(),
                name,
                0,
                1,
                ptr::null_mut(),
                None,
                ptr::null_mut(),
                Some(on_ring),
                &raw mut tsfn,
            ))?;
            // A threadsafe function starts out holding the loop.
            check_status!(sys::napi_unref_threadsafe_function(env, tsfn))?;
        }

        let bell = Bell(tsfn);
        let thread = Arc::new(BlockedThread::current());
        let agent = Rc::new(Self {
            env,
            outbox: Arc::new(Outbox::new(Box::new(move || bell.ring()))),
            watch: Watch::new(env, &thread),
            thread,
            wait_spinner: Spinner::new(LONGEST_WAIT_SPIN),
            lock_spinner: BudgetedSpinner::new(LONGEST_LOCK_SPIN),
            block: Cell::new(None),
            sleeps: Cell::new(false),
            waits: RefCell::default(),
            holds: Holds::default(),
            held: Cell::new(false),
            tsfn,
            settle: settle_ref,
            tick: tick_ref,
            registers: data.cast_const().cast(),
            // SAFETY: the buffer is larger than the registers, as checked above.
            settlements: unsafe { data.byte_add(size_of::<Registers>()) }.cast(),
            _buffer: buffer_ref,
            delivery: Cell::new(Some(Box::default())),
            interrupted: Cell::new(false),
            holdings: Cell::new(Holdings::EMPTY),
            may_sleep: js_thread != 0,
            memories: RefCell::default(),
        });
        // Hooks run last-in first-out, so this one runs before the threadsafe function's own (invariant 7).
        // SAFETY: `on_end` only touches Rust state, and `env` is only used as a number there.
        check_status!(unsafe { sys::napi_add_env_cleanup_hook(env, Some(on_end), env.cast()) })?;
        Agents::join(Known {
            thread: std::thread::current().id(),
            js_thread,
            outbox: Arc::clone(&agent.outbox),
            blocked_thread: Arc::clone(&agent.thread),
            registers: agent.registers,
            holdings: Holdings::EMPTY,
            starting: Vec::new(),
        });
        AGENTS.with_borrow_mut(|agents| agents.push(agent));
        Ok(())
    }

    pub(crate) fn registers(&self) -> &Registers {
        // SAFETY: the buffer is kept by `_buffer`, its memory does not move, `start` checked its size, and memory of an
        // ArrayBuffer is aligned to 8 bytes at least. Only this thread uses it, in turns with JavaScript.
        unsafe { &*self.registers }
    }

    /// The promise in a slot, as one who waits.
    fn party(&self, slot: u32) -> Waiter {
        Waiter::Agent(Arc::clone(&self.outbox), slot)
    }

    fn thread_party(&self) -> Waiter {
        Waiter::Thread(Arc::clone(&self.thread))
    }

    /// Blocks at the location in the registers.
    pub(crate) fn wait(&self) -> Begun {
        let registers = self.registers();
        if self.sleeps.get() {
            return Begun::Interrupted;
        }
        if registers.timeout.get() <= 0.0 {
            return registers.poll();
        }
        let (location, deadline) = (registers.location(), registers.deadline());
        let Some(ticket) = STORE.enqueue_thread(location, &self.thread, deadline, || registers.is_equal()) else {
            return Begun::Over(WaitResult::NotEqual);
        };
        self.block_for(Block { ticket, location, deadline, request: None, relayed: false })
    }

    /// Blocks in the line.
    fn block_for(&self, block: Block) -> Begun {
        self.block.set(Some(block));
        // A lock has been looked for before. What is given back in a strict line is given to the first, as a notification is.
        let looks = block.request != Some(Request::Lock);
        match looks.then(|| self.wait_spinner.spin(|| self.thread.result())).flatten() {
            Some(result) => self.settled(block.location, block.request, result),
            None => self.sleep_through(block),
        }
    }

    /// Blocks for what the registers ask of the word at their location.
    ///
    /// The caller has made room in the table of holdings.
    pub(crate) fn claim(&self) -> Begun {
        if self.sleeps.get() {
            return Begun::Interrupted;
        }
        let registers = self.registers();
        let (location, deadline, request) = (registers.location(), registers.deadline(), registers.request());
        let word = registers.word();
        self.begin_to_take(location, request);
        // While it spins it is not counted, so a release elsewhere stays as cheap as one that nobody waits for.
        if request == Request::Lock && self.lock_spinner.spin(deadline, || take_free(&word)).is_some() {
            return self.acquired_free(location);
        }
        match STORE.claim(location, self.thread_party(), request, deadline, &word) {
            Claimed::Now(result) => self.acquired(location, request, result),
            Claimed::Pending(ticket) => {
                self.end_to_take();
                Self::claims();
                self.block_for(Block { ticket, location, deadline, request: Some(request), relayed: false })
            }
        }
    }

    /// Takes what the registers ask of the word at their location, if that needs no waiting.
    pub(crate) fn try_take(&self) -> Begun {
        let registers = self.registers();
        let (location, request) = (registers.location(), registers.request());
        self.begin_to_take(location, request);
        if let Some(result) = STORE.try_take(location, request, &registers.word()) {
            return self.acquired(location, request, result);
        }
        self.end_to_take();
        Begun::Over(WaitResult::NotEqual)
    }

    /// A claim has been lined up.
    fn claims() {
        if let Some(service) = service() {
            service.check_words();
        }
    }

    /// Gives back what is at the place in the registers of the table of holdings, having lined up at their location before:
    /// so who is notified there from now on includes this thread. It then calls [`Self::resume`].
    pub(crate) fn wait_giving_back(&self) -> Begun {
        if self.sleeps.get() {
            return Begun::Interrupted;
        }
        self.relay();
        let registers = self.registers();
        let (location, deadline) = (registers.location(), registers.deadline());
        let ticket = STORE.enqueue_thread(location, &self.thread, deadline, || true);
        self.give_back();
        ticket.map_or(Begun::Over(WaitResult::NotEqual), |ticket| {
            self.block.set(Some(Block { ticket, location, deadline, request: None, relayed: true }));
            Begun::Pending
        })
    }

    /// Blocks in the line in which the thread is already.
    pub(crate) fn resume(&self) -> Begun {
        match self.block.get() {
            Some(block) if !self.sleeps.get() => self.block_for(block),
            _ => Begun::Interrupted,
        }
    }

    /// Passes on the notification that this thread has had and made no use of, if there is one.
    fn relay(&self) {
        if let Some(location) = self.registers().take_relay() {
            STORE.notify(location, 1, None);
        }
    }

    /// The outcome was recorded by whoever took the thread out of the line.
    fn settled(&self, location: Location, request: Option<Request>, result: WaitResult) -> Begun {
        let begun = self.over(location, request, result);
        if request == Some(Request::Lock) {
            if result.is_acquired() {
                STORE.delivered(location, &self.thread_party());
            }
        } else {
            // A lock is looked for differently.
            self.wait_spinner.came_from_here(self.thread.was_settled_here());
        }
        begun
    }

    /// The thread has taken a lock that was free, without coming to the store.
    fn acquired_free(&self, location: Location) -> Begun {
        let inherited = STORE.any_abandoned_near(location) && STORE.inherit(location, Request::Lock);
        let result = if inherited { WaitResult::AcquiredFromDead } else { WaitResult::Acquired };
        self.acquired(location, Request::Lock, result)
    }

    /// The thread has taken what it asked for itself.
    fn acquired(&self, location: Location, request: Request, result: WaitResult) -> Begun {
        self.over(location, Some(request), result)
    }

    #[expect(clippy::cast_precision_loss, reason = "`address_of` makes sure that addresses fit")]
    fn over(&self, location: Location, request: Option<Request>, result: WaitResult) -> Begun {
        let block = self.block.take();
        match request {
            None if result == WaitResult::Ok => match block {
                Some(Block { relayed: true, .. }) => self.registers().relay.set(location.address() as f64),
                Some(_) => self.registers().give(location, 0),
                None => {}
            },
            Some(Request::Signals(amount)) if result.is_acquired() && block.is_some() => {
                self.registers().give(location, amount);
            }
            Some(request) if result.is_acquired() => self.hold(location, request),
            _ => {}
        }
        Begun::Over(result)
    }

    /// Notes that the thread is about to try to take a lock: before it does, so that nobody finds the lock taken and nobody
    /// who has it. Until [`Self::hold`] or [`Self::end_to_take`].
    fn begin_to_take(&self, location: Location, request: Request) {
        if request == Request::Lock {
            let (held, holdings) = (self.registers().held.load(Ordering::Relaxed), self.holdings.get());
            if let (Some(entry), Some(serial)) = (holdings.slice().get(held as usize), holdings.serial_of_next(held)) {
                entry.set(location, request);
                serial.store(Holdings::TAKING, Ordering::Relaxed);
            }
        }
    }

    /// It has not got it.
    fn end_to_take(&self) {
        let held = self.registers().held.load(Ordering::Relaxed);
        if let Some(serial) = self.holdings.get().serial_of_next(held) {
            serial.store(0, Ordering::Relaxed);
        }
    }

    /// Sleeps until the wait is over. Between slices the engine may break it off.
    fn sleep_through(&self, block: Block) -> Begun {
        self.sleeps.set(true);
        self.thread.begin_block();
        let begun = self.sleep_in_slices(block);
        self.thread.end_block();
        self.sleeps.set(false);
        begun.unwrap_or_else(|| {
            self.abandon_block();
            Begun::Interrupted
        })
    }

    /// `None`: the engine breaks it off.
    fn sleep_in_slices(&self, block: Block) -> Option<Begun> {
        let service = service();
        let mut watched = service.is_some_and(|service| service.watch(&self.watch));
        // In its first slice a thread sleeps without a timer. Not if its deadline is near, or nobody ticks.
        let is_far = |deadline| deadline == Timestamp::NEVER || deadline > now().after_millis(2.0 * SLICE_MILLISECONDS);
        let mut slice = SLICE_MILLISECONDS;
        // When its claim, which was nudged, tries.
        let mut tries = None;
        let mut woken = if let Some(service) = service.filter(|_| is_far(block.deadline)) {
            service.tick();
            self.sleep(block, Timestamp::NEVER, Timestamp::NEVER, &mut tries)
        } else {
            self.thread.end_first_slice();
            self.sleep_for(block, slice, &mut tries)
        };
        loop {
            match woken {
                Slept::Over(begun) => return Some(begun),
                Slept::CalledBack => slice = CALLED_BACK_SLICE_MILLISECONDS,
                Slept::Slice => {
                    watched = watched || service.is_some_and(|service| service.watch(&self.watch));
                    let longest = if watched { WATCHED_SLICE_MILLISECONDS } else { SLICE_MILLISECONDS };
                    slice = longest.min(2.0 * slice);
                }
            }
            if !self.returns_to_javascript() {
                return None;
            }
            woken = self.sleep_for(block, slice, &mut tries);
        }
    }

    fn sleep_for(&self, block: Block, milliseconds: f64, tries: &mut Option<Timestamp>) -> Slept {
        self.sleep(block, block.deadline, now().after_millis(milliseconds), tries)
    }

    /// Sleeps until the wait is over, or `deadline` or `until` has come, or the thread is called back.
    fn sleep(&self, block: Block, deadline: Timestamp, until: Timestamp, tries: &mut Option<Timestamp>) -> Slept {
        let Block { ticket, location, request, .. } = block;
        loop {
            let mut woken = STORE.park(ticket, &self.thread, deadline, tries.map_or(until, |moment| moment.min(until)));
            if woken == Woken::Retry {
                *tries = STORE.head_start(ticket, &self.thread);
                if tries.is_some() {
                    continue;
                }
            } else if woken == Woken::TimeOver && tries.take_if(|moment| *moment <= now()).is_some() {
                woken = Woken::Retry;
            }
            match woken {
                Woken::Settled(result) => return Slept::Over(self.settled(location, request, result)),
                Woken::Retry => {
                    // SAFETY: only a claim is nudged, and JavaScript holds the lock's array during the call.
                    let word = unsafe { SharedWord::at(location) };
                    request.inspect(|&request| self.begin_to_take(location, request));
                    if let Some(result) = STORE.retry(ticket, &self.thread_party(), &word) {
                        return Slept::Over(self.over(location, request, result));
                    }
                    self.end_to_take();
                    // If it is handed over soon, it is as well to be awake.
                    self.lock_spinner.spin_unbudgeted(|| self.thread.result());
                }
                Woken::Interrupted => return Slept::CalledBack,
                Woken::TimeOver => return Slept::Slice,
            }
        }
    }

    /// Calls a JavaScript function, at which the engine does what it has been asked to do meanwhile. False if it does not want to
    /// go on: the thread is being terminated, a time limit of `vm` is over, or there is no stack for the call. That is then what
    /// JavaScript gets once this operation returns.
    fn returns_to_javascript(&self) -> bool {
        let env = self.env;
        let (mut scope, mut tick, mut receiver, mut ignored) =
            (ptr::null_mut(), ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        // SAFETY: on the agent's thread, in a call from JavaScript; every out-parameter is a live local.
        unsafe {
            if sys::napi_open_handle_scope(env, &raw mut scope) != sys::Status::napi_ok {
                return false;
            }
            let goes_on = sys::napi_get_reference_value(env, self.tick, &raw mut tick) == sys::Status::napi_ok
                && sys::napi_get_undefined(env, &raw mut receiver) == sys::Status::napi_ok
                && sys::napi_call_function(env, receiver, tick, 0, ptr::null(), &raw mut ignored)
                    == sys::Status::napi_ok;
            if !goes_on {
                self.forget_termination();
            }
            sys::napi_close_handle_scope(env, scope);
            goes_on
        }
    }

    /// The engine's own way to break off what runs cannot be caught by JavaScript. Node-API takes it for an exception, `null`,
    /// which it would throw once more, and up to Node 16 that could be caught.
    fn forget_termination(&self) {
        let env = self.env;
        let (mut exception, mut kind) = (ptr::null_mut(), sys::ValueType::napi_undefined);
        // SAFETY: on the agent's thread, in a handle scope; every out-parameter is a live local.
        unsafe {
            if sys::napi_get_and_clear_last_exception(env, &raw mut exception) == sys::Status::napi_ok
                && sys::napi_typeof(env, exception, &raw mut kind) == sys::Status::napi_ok
                && kind != sys::ValueType::napi_null
                && kind != sys::ValueType::napi_undefined
            {
                sys::napi_throw(env, exception);
            }
        }
    }

    /// Leaves the line in which the thread is not going to block any longer; what it had been given meanwhile goes to the next in
    /// line. Called whenever this thread is seen to do something else: JavaScript may be broken off before it has come to
    /// [`Self::resume`].
    pub(crate) fn abandon_block(&self) {
        // Asked before every operation.
        if self.sleeps.get() {
            return;
        }
        // It was broken off when it had been given something, and before it could make use of it.
        if let Some((location, amount)) = self.registers().take_given() {
            Self::pass_on_given(location, amount);
        }
        if self.block.get().is_none() {
            return;
        }
        let Some(Block { ticket, location, request, .. }) = self.block.take() else { return };
        let result = STORE.withdraw_thread(ticket, &self.thread);
        if let Some(request) = request.filter(|_| result.is_acquired()) {
            // SAFETY: only `resume` leaves a block behind, and that is no claim; otherwise JavaScript is in the call in which it
            // holds the lock's array.
            STORE.return_unused(location, request, result, &unsafe { SharedWord::at(location) });
        } else if result == WaitResult::Ok {
            // As if it had never been there.
            STORE.notify(location, 1, None);
        }
        self.relay();
    }

    /// Passes on what was given to this thread, which blocked for it, and which it has made no use of.
    fn pass_on_given(location: Location, amount: u32) {
        if amount == 0 {
            STORE.notify(location, 1, None);
        } else {
            // SAFETY: `lib/settle.js` keeps the word that the thread has blocked for until it has emptied the register, or until
            // its next blocking call is through here (invariant 8).
            STORE.abandon(location, Request::Signals(amount), &unsafe { SharedWord::at(location) });
        }
    }

    /// Tells the line of a word that JavaScript has changed, if it was broken off before it did. Called whenever this thread is seen
    /// to do something else.
    pub(crate) fn finish_release(&self) {
        if let Some(location) = self.registers().releasing() {
            STORE.wake_first(location);
            self.registers().releasing.store(0, Ordering::Relaxed);
        }
    }

    /// Lines up a promise, by its slot in the registers.
    pub(crate) fn wait_async(&self) -> std::result::Result<Begun, NoTimer> {
        let registers = self.registers();
        let relay = registers.take_relay();
        if registers.timeout.get() <= 0.0 {
            return Ok(registers.poll());
        }
        self.require_service()?;
        let (location, deadline, slot) = (registers.location(), registers.deadline(), registers.slot());
        let Some(ticket) = STORE.enqueue_agent(location, &self.outbox, slot, deadline, || registers.is_equal()) else {
            return Ok(Begun::Over(WaitResult::NotEqual));
        };
        self.pending(ticket, deadline, Purpose::of(location, None, relay));
        Ok(Begun::Pending)
    }

    /// Takes what the registers ask of the word at their location, or lines up a promise for it, by its slot.
    ///
    /// The caller has made room in the table of holdings.
    pub(crate) fn claim_async(&self) -> std::result::Result<Begun, NoTimer> {
        let registers = self.registers();
        let relay = registers.take_relay();
        self.require_service()?;
        let (location, deadline, request) = (registers.location(), registers.deadline(), registers.request());
        let word = registers.word();
        // As who blocks for it does, since a turn of the event loop takes longer than most locks are held. But not where that
        // is for this thread itself to give back, and not while others wait.
        if request == Request::Lock
            && STORE.counter(location).load(Ordering::Relaxed) == 0
            && !self.holdings.get().include(registers.held.load(Ordering::Relaxed), location)
        {
            self.begin_to_take(location, request);
            if self.lock_spinner.spin_without_sleep(|| take_free(&word)).is_some() {
                return Ok(self.acquired_free(location));
            }
        }
        self.begin_to_take(location, request);
        let party = Waiter::Agent(Arc::clone(&self.outbox), registers.slot());
        match STORE.claim(location, party, request, deadline, &word) {
            Claimed::Now(result) => Ok(self.acquired(location, request, result)),
            Claimed::Pending(ticket) => {
                self.end_to_take();
                Self::claims();
                self.pending(ticket, deadline, Purpose::of(location, Some(request), relay));
                Ok(Begun::Pending)
            }
        }
    }

    /// Makes sure that the promise that is about to be lined up will be timed out. What can fail, fails before it is.
    fn require_service(&self) -> std::result::Result<(), NoTimer> {
        if self.registers().timeout.get() == f64::INFINITY || service().is_some() { Ok(()) } else { Err(NoTimer) }
    }

    /// Remembers a promise that has been lined up.
    fn pending(&self, ticket: Ticket, deadline: Timestamp, purpose: Option<Purpose>) {
        let registers = self.registers();
        let timed = registers.timeout.get() != f64::INFINITY;
        if timed && let Some(service) = service() {
            service.time_out(deadline);
        }
        let wait = Wait { ticket, timed, refed: true };
        self.waits.borrow_mut().insert(registers.slot(), wait, purpose);
        self.holds.add(wait);
    }

    /// Takes the promise in the slot out of the line, or its outcome out of the mail. False if that is on the way all the same:
    /// it is a notification, or the agent is looking at that mail.
    pub(crate) fn cancel(&self) -> bool {
        let slot = self.registers().slot();
        let Some(Wait { ticket, .. }) = self.waits.borrow().get(slot) else { return false };
        let cancelled = STORE.withdraw_agent(ticket, &self.outbox, slot) == Withdrawal::Done || self.recall(slot);
        if cancelled {
            self.forget(slot);
        }
        cancelled
    }

    /// Passes on what the promise in the slot has been given and has not been told of: now and not in a later turn of the
    /// event loop, since the thread may be about to block.
    fn recall(&self, slot: u32) -> bool {
        let Some((result, acquired)) = self.outbox.recall(slot) else { return false };
        if let Some((location, request)) = acquired {
            // SAFETY: JavaScript holds the claimant that it cancels, and that its memory.
            STORE.return_unused(location, request, result, &unsafe { SharedWord::at(location) });
        }
        true
    }

    /// The wait in a slot is over. What it was for, beside a notification.
    fn forget(&self, slot: u32) -> Option<Purpose> {
        let (wait, purpose) = self.waits.borrow_mut().remove(slot);
        if let Some(wait) = wait.filter(|wait| wait.refed) {
            self.holds.remove(wait);
        }
        purpose
    }

    /// Takes what is at the place in the registers out of the table of holdings.
    fn take_out(&self) -> Option<(Location, Request)> {
        let registers = self.registers();
        let holdings = self.holdings.get();
        let held = &holdings.slice()[..registers.held.load(Ordering::Relaxed) as usize];
        let (entry, last) = (held.get(registers.place.get() as usize)?, held.last()?);
        let taken = entry.get();
        let (moved_location, moved_request) = last.get();
        entry.set(moved_location, moved_request);
        registers.held.fetch_sub(1, Ordering::Relaxed);
        Some(taken)
    }

    /// Gives back what is at the place in the registers of the table of holdings.
    ///
    /// Until that is done, the entry stays behind the last one, with its serial number: see [`Holdings`].
    pub(crate) fn give_back(&self) -> u32 {
        if let Some((location, request)) = self.take_out() {
            // SAFETY: the token of what is held keeps its memory, and JavaScript is in a call of that token's method.
            let makes_room = STORE.release(location, request, &unsafe { SharedWord::at(location) });
            self.end_to_take();
            if makes_room == Released::MakeRoom && self.may_sleep {
                std::thread::sleep(ROOM);
            }
        }
        0
    }

    /// Frees the lock at the location in the registers, which this thread does not hold, if nobody else is known to do.
    pub(crate) fn free(&self) -> u32 {
        let registers = self.registers();
        let (location, word) = (registers.location(), registers.word());
        let start = now();
        loop {
            let holder = |granted: Option<&Waiter>| self.holder_of(location, granted);
            match STORE.free(location, &word, holder) {
                Freed::Now => return FREED,
                Freed::NotLocked => return NOT_LOCKED,
                // Soon it is known. If not, the thread is not running, and locked the lock is.
                Freed::Held(Holder::Possible(_)) if now().duration_since(start) < POSSIBLE => std::thread::yield_now(),
                Freed::Held(Holder::Certain(thread) | Holder::Possible(thread)) => {
                    registers.amount.set(thread);
                    return HELD_ELSEWHERE;
                }
            }
        }
    }

    /// The same for what had been a dead thread's and was not used here: the next is told, as this one was.
    pub(crate) fn pass_on(&self) -> u32 {
        if let Some((location, request)) = self.take_out() {
            // SAFETY: as above, and JavaScript holds the token.
            STORE.abandon(location, request, &unsafe { SharedWord::at(location) });
            self.end_to_take();
        }
        0
    }

    /// The word at the location in the registers was changed in JavaScript while somebody was counted in its bucket.
    pub(crate) fn released(&self) -> u32 {
        let registers = self.registers();
        STORE.word_changed(registers.location(), &registers.word());
        0
    }

    /// Whether what was taken in JavaScript at the location in the registers had been abandoned.
    pub(crate) fn inherit(&self) -> bool {
        let registers = self.registers();
        STORE.inherit(registers.location(), registers.request())
    }

    /// Notes that this thread holds what it has taken.
    fn hold(&self, location: Location, request: Request) {
        if !request.is_owned() {
            return;
        }
        let registers = self.registers();
        let held = registers.held.load(Ordering::Relaxed);
        // JavaScript makes room before it asks for anything, so there always is some.
        if let Some(entry) = self.holdings.get().slice().get(held as usize) {
            entry.set(location, request);
            registers.held.store(held + 1, Ordering::Relaxed);
        }
    }

    /// Moves the table of holdings to a larger buffer, into which JavaScript has copied what is held.
    ///
    /// # Safety
    /// On the thread of the environment, in a call from JavaScript; `buffer` is an `ArrayBuffer`.
    pub(crate) unsafe fn set_holdings(&self, buffer: sys::napi_value) -> Result<()> {
        let (mut data, mut bytes, mut reference) = (ptr::null_mut(), 0, ptr::null_mut());
        // SAFETY: as the caller promises; every out-parameter is a live local.
        unsafe {
            check_status!(sys::napi_get_arraybuffer_info(self.env, buffer, &raw mut data, &raw mut bytes))?;
            check_status!(sys::napi_create_reference(self.env, buffer, 1, &raw mut reference))?;
        }
        let capacity = bytes / Holdings::BYTES;
        // SAFETY: that many entries are in the buffer, and as many serial numbers behind them.
        let serials = unsafe { data.byte_add(capacity * size_of::<Holding>()) };
        let holdings = Holdings {
            entries: data.cast_const().cast(),
            serials: serials.cast_const().cast(),
            capacity,
            buffer: reference,
        };
        Agents::locked(|agents| {
            if let Some(agent) = agents.iter_mut().find(|agent| Arc::ptr_eq(&agent.outbox, &self.outbox)) {
                agent.holdings = holdings;
            }
        });
        let former = self.holdings.replace(holdings);
        if !former.buffer.is_null() {
            // SAFETY: made above, and no longer used.
            check_status!(unsafe { sys::napi_delete_reference(self.env, former.buffer) })?;
        }
        Ok(())
    }

    fn id(&self) -> AgentId {
        Arc::as_ptr(&self.outbox).addr()
    }

    /// A lock is made on a buffer object, of a memory of `length` bytes at `base`, for the first time.
    pub(crate) fn register_memory(&self, base: usize, length: usize) {
        *self.memories.borrow_mut().entry(base).or_default() += 1;
        MEMORIES.register(&STORE, self.id(), base, length);
    }

    /// A buffer object of a memory at `base` that was registered has been collected.
    pub(crate) fn lose_memory(&self, base: usize) {
        let mut memories = self.memories.borrow_mut();
        let Some(objects) = memories.get_mut(&base).filter(|objects| **objects > 0) else { return };
        *objects -= 1;
        let had_last = *objects == 0;
        // Otherwise it is remembered there that this agent has lost it, until this agent ends.
        if MEMORIES.lose(&STORE, self.id(), base) && had_last {
            memories.remove(&base);
        }
    }

    /// The `threadId` of the thread that holds the lock at the location in the registers, if one of the agents does.
    pub(crate) fn holder(&self) -> Option<u32> {
        let location = self.registers().location();
        // What this thread itself holds is not asked of the others.
        if self.holdings.get().include(self.registers().held.load(Ordering::Relaxed), location) {
            return Agents::locked(|agents| agents.iter().find(|agent| agent.is(self)).map(|agent| agent.js_thread));
        }
        match STORE.with_grant(location, |granted| self.holder_of(location, granted))? {
            Holder::Certain(thread) | Holder::Possible(thread) => Some(thread),
        }
    }

    /// Which thread holds the lock at `location`, other than this one, by its table of holdings; or is `granted` it.
    fn holder_of(&self, location: Location, granted: Option<&Waiter>) -> Option<Holder> {
        Agents::locked(|agents| {
            if let Some(party) = granted
                && let Some(agent) = agents.iter().find(|agent| agent.is_party(party))
            {
                return Some(Holder::Certain(agent.js_thread));
            }
            let holders = agents.iter().filter(|agent| !agent.is(self)).filter_map(|agent| agent.holds(location));
            let is_certain = |holder: &Holder| matches!(holder, Holder::Certain(_));
            holders.reduce(|one, other| if is_certain(&one) { one } else { other })
        })
    }

    /// Wakes as many as the registers say, at their location. How many that were.
    #[expect(clippy::cast_possible_truncation, reason = "2^32 waiters do not fit into memory")]
    pub(crate) fn notify(&self) -> u32 {
        let registers = self.registers();
        STORE.notify(registers.location(), registers.count(), Some(&self.outbox)) as u32
    }

    /// Sets whether the wait in the slot keeps the loop alive.
    pub(crate) fn set_refed(&self, refed: bool) -> u32 {
        let slot = self.registers().slot();
        if let Some(wait) = self.waits.borrow_mut().get_mut(slot)
            && wait.refed != refed
        {
            wait.refed = refed;
            if refed { self.holds.add(*wait) } else { self.holds.remove(*wait) }
        }
        0
    }

    /// Holds the event loop, or lets it go, as the waits demand. Whether it is held.
    pub(crate) fn update_hold(&self) -> bool {
        let hold = self.holds.timed.get() > 0
            || (self.holds.untimed.get() > 0 && Agents::in_more_than_one_thread())
            || self.outbox.has_mail()
            || self.interrupted.get();
        if hold == self.held.get() {
            return hold;
        }
        // SAFETY: on the agent's thread, and the threadsafe function lives as long as the environment.
        let status = unsafe {
            if hold {
                sys::napi_ref_threadsafe_function(self.env, self.tsfn)
            } else {
                sys::napi_unref_threadsafe_function(self.env, self.tsfn)
            }
        };
        if status == sys::Status::napi_ok {
            self.held.set(hold);
        }
        self.held.get()
    }

    /// The event loop has run dry. What has been notified by now holds it, and so does a claim that could have had its word by now.
    /// Whether it is held.
    pub(crate) fn runs_dry(&self) -> u32 {
        look();
        self.update_hold().into()
    }

    /// Hands the outcomes in the outbox over to `lib/settle.js`, a batch per call.
    ///
    /// A call that fails does so because the environment is ending, and then the clean-up sees to what has not been told; or
    /// because the stack has come to its end or a time limit has struck. Then the rest is told after another ring.
    fn deliver(&self) {
        self.abandon_block();
        self.finish_release();
        let Some(mut delivery) = self.delivery.take() else {
            // What JavaScript does when it is told has turned the event loop. The one that is under way rings again.
            self.interrupted.set(true);
            return;
        };
        if !self.interrupted.replace(false) {
            self.collect(&mut delivery);
        } else if self.outbox.has_mail() {
            // That comes next.
            self.outbox.ring();
        }
        while delivery.told < delivery.mail.settlements.len() {
            if self.tell(&mut delivery).is_err() {
                self.interrupted.set(true);
                break;
            }
        }
        if delivery.told == delivery.mail.settlements.len() {
            delivery.clear();
        }
        self.delivery.set(Some(delivery));
        self.update_hold();
        if self.interrupted.get() {
            self.outbox.ring();
        }
    }

    /// Takes what is in the outbox, and lets nudged claims try.
    fn collect(&self, delivery: &mut Delivery) {
        let Delivery { mail, entrusted, .. } = delivery;
        self.outbox.take(mail);
        for slot in std::mem::take(&mut mail.retries) {
            contained(|| self.try_nudged(slot, mail));
        }
        // This is the job in which the time-outs of this agent's promises are decided.
        STORE.decide(&self.outbox, &mut mail.settlements, |slot| self.waits.borrow().get(slot).map(|wait| wait.ticket));
        for (place, &Settlement { slot, result }) in mail.settlements.iter().enumerate() {
            let thing = self.forget(slot).and_then(|purpose| Entrusted::with(purpose, result));
            entrusted.extend(thing.map(|thing| (place, thing)));
        }
        // Nothing is pending but perhaps what was unref'd.
        if self.holds.timed.get() + self.holds.untimed.get() == 0 {
            self.waits.borrow_mut().shrink();
        }
    }

    /// Tells JavaScript of the next batch. Whatever comes of it, the delivery says how far that went.
    fn tell(&self, delivery: &mut Delivery) -> Result<()> {
        let registers = self.registers();
        let range = delivery.next_batch();
        let adopts = delivery.adopted <= delivery.told;
        let held = registers.held.load(Ordering::Relaxed);
        if adopts {
            for (slot, location, request) in delivery.acquired_before(range.end) {
                self.hold(location, request);
                if request == Request::Lock {
                    contained(|| STORE.delivered(location, &self.party(slot)));
                }
            }
        }
        for (place, settlement) in delivery.mail.settlements[range.clone()].iter().enumerate() {
            // SAFETY: `place` is less than the number of words behind the registers.
            unsafe { self.settlements.add(place).write((settlement.slot << 3) | settlement.result as u32) };
        }
        registers.place.set(held);
        registers.settled.set(if adopts { NOT_ADOPTED } else { 0 });
        let result = self.call_settle(range.len());
        match registers.settled.get() {
            // No other JavaScript has run since, so what was added to the table of holdings is still at its end.
            NOT_ADOPTED if result.is_err() => {
                for (slot, location, request) in delivery.acquired_before(range.end) {
                    if request == Request::Lock {
                        contained(|| STORE.undelivered(location, self.party(slot)));
                    }
                }
                registers.held.store(held, Ordering::Relaxed);
            }
            settled => {
                if adopts {
                    delivery.acquired += delivery.acquired_before(range.end).count();
                    delivery.adopted = range.end;
                }
                delivery.told =
                    if result.is_ok() { range.end } else { (range.start + settled as usize).min(range.end) };
            }
        }
        result
    }

    /// A claim has been nudged: it tries, here and now, so that JavaScript only hears of it if it has the lock.
    fn try_nudged(&self, slot: u32, mail: &mut Mail) {
        let (wait, purpose) = {
            let waits = self.waits.borrow();
            (waits.get(slot), waits.purpose(slot))
        };
        let (Some(Wait { ticket, .. }), Some(Purpose { location, request: Some(request), .. })) = (wait, purpose)
        else {
            return;
        };
        // SAFETY: the table of pending promises holds the lock's array until the claim is settled (invariant 8).
        let word = unsafe { SharedWord::at(location) };
        if let Some(result) = STORE.retry(ticket, &Waiter::Agent(Arc::clone(&self.outbox), slot), &word) {
            mail.settle(slot, result, Some((location, request)));
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "a batch is not longer than its buffer")]
    fn call_settle(&self, count: usize) -> Result<()> {
        let (mut settle, mut receiver, mut argument, mut ignored) =
            (ptr::null_mut(), ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        // SAFETY: on the agent's thread, inside the handle scope of the call into `on_ring`.
        let status = unsafe {
            check_status!(sys::napi_get_reference_value(self.env, self.settle, &raw mut settle))?;
            check_status!(sys::napi_get_undefined(self.env, &raw mut receiver))?;
            check_status!(sys::napi_create_uint32(self.env, count as u32, &raw mut argument))?;
            sys::napi_call_function(self.env, receiver, settle, 1, &raw const argument, &raw mut ignored)
        };
        if status != sys::Status::napi_ok {
            self.report_exception();
        }
        check_status!(status)
    }

    /// Reports what JavaScript has thrown as an error that nobody has caught. Left behind, it would keep Node 10 from calling JavaScript
    /// again, and newer versions report it as a deprecation only. Nothing is reported of an environment that is ending.
    fn report_exception(&self) {
        let (mut exception, mut kind) = (ptr::null_mut(), 0);
        // SAFETY: on the agent's thread, inside the handle scope of the call into `on_ring`, and the out-parameters are live locals.
        unsafe {
            if sys::napi_get_and_clear_last_exception(self.env, &raw mut exception) == sys::Status::napi_ok
                && sys::napi_typeof(self.env, exception, &raw mut kind) == sys::Status::napi_ok
                // What breaks off JavaScript without being an error is null.
                && kind == sys::ValueType::napi_object
            {
                sys::napi_fatal_exception(self.env, exception);
            }
        }
    }

    /// This thread has made a worker that is going to load the addon.
    pub(crate) fn expect(&self, js_thread: u32) {
        Agents::expect(&self.outbox, js_thread);
        // Here and now, since a ring is not heard by a loop that has run dry.
        self.update_hold();
    }

    /// That worker has ended.
    pub(crate) fn expect_no_longer(&self, js_thread: u32) {
        Agents::expect_no_longer(&self.outbox, js_thread);
        self.update_hold();
    }

    /// Makes this agent's hook the first of the environment's clean-up, again: hooks run last-in first-out.
    pub(crate) fn end_first(&self) -> Result<()> {
        // SAFETY: on the agent's thread; the hook is the one that `start` added, and was added with the same argument.
        unsafe {
            check_status!(sys::napi_remove_env_cleanup_hook(self.env, Some(on_end), self.env.cast()))?;
            check_status!(sys::napi_add_env_cleanup_hook(self.env, Some(on_end), self.env.cast()))
        }
    }

    /// Leaves the queue: afterwards nobody knows of this agent, and what it held is passed on.
    ///
    /// Each step is contained, so that whatever becomes of one, the others are taken, and the outbox is closed.
    fn end(&self) {
        let mut died_notified: Vec<Location> = self.registers().take_relay().into_iter().collect();
        if let Some((location, amount)) = self.registers().take_given() {
            contained(|| Self::pass_on_given(location, amount));
        }
        contained(|| self.watch.close());
        // JavaScript may have been broken off before it blocked; or it ends the process in what the engine runs between two slices.
        if let Some(Block { ticket, location, request, relayed, .. }) = self.block.take() {
            contained(|| {
                let result = STORE.withdraw_thread(ticket, &self.thread);
                died_notified.extend((relayed && result == WaitResult::Ok).then_some(location));
                if let Some(request) = request.filter(|_| result.is_acquired()) {
                    Self::die_with(location, request);
                }
            });
        }
        let waits = self.waits.take();
        for (slot, wait) in waits.iter() {
            contained(|| {
                let withdrawn = STORE.withdraw_agent(wait.ticket, &self.outbox, slot);
                let claim =
                    waits.purpose(slot).filter(|purpose| withdrawn == Withdrawal::Done && purpose.request.is_some());
                died_notified.extend(claim.and_then(|claim| claim.relay));
            });
        }
        // What has been adopted is in the table of holdings.
        if let Some(delivery) = self.delivery.take() {
            for (_, location, request) in delivery.acquired_before(delivery.mail.settlements.len()) {
                if request.is_owned() {
                    contained(|| Self::die_with(location, request));
                }
            }
            for (_, thing) in delivery.entrusted.into_iter().filter(|&(place, _)| place >= delivery.told) {
                contained(|| thing.pass_on());
            }
        }
        // Nothing is granted to it any more: what was, lies in the outbox or in the table of holdings.
        let mut mail = Mail::default();
        self.outbox.take(&mut mail);
        let acquired: Vec<_> = mail.grants.drain(..).flatten().collect();
        for Settlement { slot, result } in mail.settlements {
            let purpose = waits.purpose(slot).filter(|_| result == WaitResult::Ok || result.is_acquired());
            died_notified.extend(purpose.and_then(|purpose| purpose.relay));
        }
        for location in died_notified {
            contained(|| {
                STORE.notify(location, 1, None);
            });
        }
        for (location, request) in acquired {
            contained(|| Self::die_with(location, request));
        }
        let (held, holdings) = (&self.registers().held, self.holdings.get());
        // An entry goes when what it says has been passed on: at every moment it can be told who has it.
        while let Some(last) = held.load(Ordering::Relaxed).checked_sub(1) {
            if let Some((location, request)) = holdings.slice().get(last as usize).map(Holding::get) {
                contained(|| Self::die_with(location, request));
            }
            held.store(last, Ordering::Relaxed);
        }
        for (base, objects) in self.memories.take() {
            MEMORIES.end(&STORE, self.id(), base, objects);
        }
        // It may have been ended right after it changed a word in JavaScript, before it could come here because of that.
        contained(|| self.finish_release());
        // Only now: an agent that hears that it is alone may let its loop end, unless it has mail already.
        contained(|| Agents::leave(&self.outbox));
        self.outbox.close();
    }

    /// Passes on what this thread, which has ended, had taken from the word at `location`, or had been given.
    fn die_with(location: Location, request: Request) {
        // SAFETY: the environment's clean-up runs before its heap goes, and before Node lets go of the memory
        // (lib/sync/last-hold.js), so the memory is still there (invariant 8).
        STORE.abandon(location, request, &unsafe { SharedWord::at(location) });
    }
}

/// Runs `body`. A panic goes no further, since unwinding into Node would end the process: it has been reported on the standard
/// error, and what `body` was about is all that it concerns.
pub(crate) fn contained(body: impl FnOnce()) {
    drop(catch_unwind(AssertUnwindSafe(body)));
}

thread_local! {
    /// The agents of this thread: one, unless an embedder runs several environments in it or the addon is loaded anew.
    static AGENTS: RefCell<Vec<Rc<Agent>>> = const { RefCell::new(Vec::new()) };
    /// The one that was asked for last. Without a destructor, so that looking here is reading a word.
    static LAST: Cell<(sys::napi_env, *const Agent)> = const { Cell::new((ptr::null_mut(), ptr::null())) };
}

/// Called by Node on the agent's thread after a ring. With a null `env` the environment is ending.
unsafe extern "C" fn on_ring(env: sys::napi_env, _: sys::napi_value, _: *mut c_void, _: *mut c_void) {
    contained(|| {
        if !env.is_null()
            && let Ok(agent) = Agent::of(env)
        {
            agent.deliver();
        }
    });
}

/// Called by Node on the agent's thread when its environment ends. Makes no Node-API call.
unsafe extern "C" fn on_end(env: *mut c_void) {
    contained(|| {
        LAST.set((ptr::null_mut(), ptr::null()));
        let agent = AGENTS.with_borrow_mut(|agents| {
            let place = agents.iter().position(|agent| agent.env == env.cast())?;
            Some(agents.swap_remove(place))
        });
        if let Some(agent) = agent {
            agent.end();
        }
    });
}

/// Rings for an agent.
struct Bell(sys::napi_threadsafe_function);

// SAFETY: a threadsafe function is made to be called from any thread. It is valid as long as it is called: `Outbox::ring`
// holds the lock that `Outbox::close` takes before the environment's own clean-up (invariant 7).
unsafe impl Send for Bell {}
// SAFETY: as above.
unsafe impl Sync for Bell {}

impl Known {
    fn is(&self, agent: &Agent) -> bool {
        Arc::ptr_eq(&self.outbox, &agent.outbox)
    }

    /// Whether it is its thread that blocks, or its promise that waits.
    fn is_party(&self, party: &Waiter) -> bool {
        match party {
            Waiter::Thread(thread) => Arc::ptr_eq(thread, &self.blocked_thread),
            Waiter::Agent(outbox, _) => Arc::ptr_eq(outbox, &self.outbox),
        }
    }

    /// What its registers and its table of holdings say of a lock. In this order: it is written the other way round.
    fn holds(&self, location: Location) -> Option<Holder> {
        // SAFETY: an agent leaves, under the lock that the caller holds, before its registers go.
        let registers = unsafe { &*self.registers };
        let held = registers.held.load(Ordering::Acquire);
        if self.holdings.include(held, location) {
            Some(Holder::Certain(self.js_thread))
        } else if self.holdings.is_about_to_take(held, location) || registers.releasing() == Some(location) {
            Some(Holder::Possible(self.js_thread))
        } else {
            None
        }
    }
}

impl Bell {
    fn ring(&self) {
        // SAFETY: see `Send`. A failure means that the environment is ending, which drops its waits anyway.
        unsafe {
            sys::napi_call_threadsafe_function(self.0, ptr::null_mut(), sys::ThreadsafeFunctionCallMode::nonblocking);
        }
    }
}

/// What every thread knows of an agent.
struct Known {
    thread: ThreadId,
    /// Its `worker_threads.threadId`.
    js_thread: u32,
    outbox: Arc<Outbox>,
    blocked_thread: Arc<BlockedThread>,
    registers: *const Registers,
    holdings: Holdings,
    /// The workers of its thread that are going to be agents and are not yet, by their `threadId`.
    starting: Vec<u32>,
}

// SAFETY: the pointers are followed under the lock of `AGENTS_OF_ALL_THREADS` only, which an agent leaves before what they
// point to goes; and only what is atomic behind them is looked at.
unsafe impl Send for Known {}

/// The agents of all threads.
struct Agents(Mutex<Vec<Known>>);

static AGENTS_OF_ALL_THREADS: Agents = Agents(Mutex::new(Vec::new()));
static MORE_THAN_ONE_THREAD: AtomicBool = AtomicBool::new(false);

impl Agents {
    fn locked<R>(body: impl FnOnce(&mut Vec<Known>) -> R) -> R {
        body(&mut AGENTS_OF_ALL_THREADS.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn in_more_than_one_thread() -> bool {
        MORE_THAN_ONE_THREAD.load(Ordering::Acquire)
    }

    fn join(agent: Known) {
        Self::change(|agents| {
            for each in agents.iter_mut() {
                each.starting.retain(|&js_thread| js_thread != agent.js_thread);
            }
            agents.push(agent);
        });
    }

    /// The agent's thread has made a worker that is going to be an agent.
    fn expect(outbox: &Arc<Outbox>, js_thread: u32) {
        Self::change(|agents| {
            // It may have been quicker.
            if agents.iter().any(|agent| agent.js_thread == js_thread) {
                return;
            }
            if let Some(parent) = agents.iter_mut().find(|agent| Arc::ptr_eq(&agent.outbox, outbox)) {
                parent.starting.push(js_thread);
            }
        });
    }

    /// The worker has ended, perhaps without having been an agent.
    fn expect_no_longer(outbox: &Arc<Outbox>, js_thread: u32) {
        Self::change(|agents| {
            if let Some(parent) = agents.iter_mut().find(|agent| Arc::ptr_eq(&agent.outbox, outbox)) {
                parent.starting.retain(|&each| each != js_thread);
            }
        });
    }

    fn leave(outbox: &Arc<Outbox>) {
        Self::change(|agents| agents.retain(|agent| !Arc::ptr_eq(&agent.outbox, outbox)));
    }

    /// The service's tick, for all of them. Whether it concerned any.
    fn tick() -> bool {
        Self::locked(|agents| agents.iter().fold(false, |any, agent| agent.blocked_thread.tick() | any))
    }

    /// When there is more than one thread now, or is going to be, and was not before, or the other way round, every agent is rung.
    fn change(change: impl FnOnce(&mut Vec<Known>)) {
        let to_ring: Vec<_> = Self::locked(|agents| {
            change(agents);
            let is_other = |agent: &Known| agent.thread != agents[0].thread || !agent.starting.is_empty();
            let more = agents.iter().any(is_other);
            let changed = MORE_THAN_ONE_THREAD.swap(more, Ordering::AcqRel) != more;
            agents.iter().filter(|_| changed).map(|agent| Arc::clone(&agent.outbox)).collect()
        });
        for outbox in to_ring {
            outbox.ring();
        }
    }
}
