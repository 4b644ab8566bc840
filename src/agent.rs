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

#![allow(unsafe_code, reason = "Node-API")]

use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::ptr;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::thread::ThreadId;

use napi::bindgen_prelude::retain_current_module_for_unload_safety;
use napi::{Error, Result, check_status, sys};

use crate::clock::{Timestamp, now};
use crate::location::Location;
use crate::outbox::{Outbox, Settlement};
use crate::parker::{BlockedThread, Spinner};
use crate::store::{Ticket, WaitResult, WaiterListStore};
use crate::timer;

/// The queue of this process. 256 shards: two threads that share nothing rarely meet, and looking at all of them for the
/// earliest deadline takes less than a microsecond.
pub(crate) static STORE: LazyLock<WaiterListStore> = LazyLock::new(|| WaiterListStore::new(256, now));

/// A worker that is terminated, or a process that exits, waits until a thread blocked in native code comes back to
/// JavaScript. So no thread stays away longer than this at a time.
const SLICE_MILLISECONDS: f64 = 30.0;

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
    /// The expected value; of an `Int32Array` in the lower-addressed half.
    expected: Cell<i64>,
    /// The agent's number of the wait.
    slot: Cell<u32>,
    /// 1 for a `BigInt64Array`, 0 for an `Int32Array`.
    wide: Cell<u32>,
}

/// `lib/settle.js` counts on it.
const _: () = assert!(size_of::<Registers>() == 40);

impl Registers {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an address was made a number in `address_of`")]
    pub(crate) fn location(&self) -> Location {
        Location::from_address(self.address.get() as usize)
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates, as the count shall")]
    pub(crate) fn count(&self) -> usize {
        self.count.get() as usize
    }

    pub(crate) fn slot(&self) -> u32 {
        self.slot.get()
    }

    fn deadline(&self) -> Timestamp {
        let timeout = self.timeout.get();
        if timeout == f64::INFINITY { Timestamp::NEVER } else { now().after_millis(timeout) }
    }

    /// Whether the word at the location holds the expected value.
    fn is_equal(&self) -> bool {
        use crate::location::Expected;
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

    /// What a wait with a time-out of 0 answers. It never is in the line, so it needs no critical section.
    fn poll(&self) -> Begun {
        Begun::Over(if self.is_equal() { WaitResult::TimedOut } else { WaitResult::NotEqual })
    }
}

/// One of an agent's asynchronous waits.
#[derive(Clone, Copy)]
struct Wait {
    ticket: Option<Ticket>,
    timed: bool,
    refed: bool,
}

impl Wait {
    const NONE: Self = Self { ticket: None, timed: false, refed: false };
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

/// A blocking wait between two slices.
#[derive(Clone, Copy)]
struct Block {
    ticket: Ticket,
    deadline: Timestamp,
}

/// A Node environment that uses the queue.
pub(crate) struct Agent {
    env: sys::napi_env,
    outbox: Arc<Outbox>,
    thread: Arc<BlockedThread>,
    spinner: Spinner,
    block: Cell<Option<Block>>,
    /// By slot. Only read and written by the agent's own thread, and allowed to be out of date: a ticket whose wait was
    /// settled is recognised by the store.
    waits: RefCell<Vec<Wait>>,
    holds: Holds,
    held: Cell<bool>,
    tsfn: sys::napi_threadsafe_function,
    settle: sys::napi_ref,
    registers: *const Registers,
    settlements: *mut u32,
    capacity: usize,
    // Keeps the memory of `registers` and `settlements`.
    _buffer: sys::napi_ref,
    taken: RefCell<Vec<Settlement>>,
}

/// How a wait answered at once.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begun {
    /// Not in the line (any more).
    Over(WaitResult),
    /// In the line.
    Pending,
}

impl Agent {
    /// The agent of `env`.
    pub(crate) fn of(env: sys::napi_env) -> Result<Rc<Self>> {
        AGENTS
            .with_borrow(|agents| agents.iter().find(|agent| agent.env == env).cloned())
            .ok_or_else(|| Error::from_reason("atomics-waitasync: this environment has not been started, or has ended"))
    }

    /// Makes the agent of `env`.
    ///
    /// # Safety
    /// On the thread of `env`, in a call from JavaScript; `buffer` is an `ArrayBuffer` and `settle` a function.
    pub(crate) unsafe fn start(env: sys::napi_env, buffer: sys::napi_value, settle: sys::napi_value) -> Result<()> {
        if Self::of(env).is_ok() {
            return Err(Error::from_reason("atomics-waitasync: this environment has been started already"));
        }
        // The timer thread and other agents' rings outlive this environment, so the code must, too.
        retain_current_module_for_unload_safety();

        let mut data = ptr::null_mut();
        let mut bytes = 0;
        let (mut buffer_ref, mut settle_ref) = (ptr::null_mut(), ptr::null_mut());
        let mut tsfn = ptr::null_mut();
        let mut name = ptr::null_mut();
        // SAFETY: `env`, `buffer` and `settle` are what the caller promises, and every out-parameter is a live local.
        unsafe {
            check_status!(sys::napi_get_arraybuffer_info(env, buffer, &raw mut data, &raw mut bytes))?;
            if data.is_null() || bytes < size_of::<Registers>() + size_of::<u32>() {
                return Err(Error::from_reason("atomics-waitasync: the buffer of registers is too small"));
            }
            check_status!(sys::napi_create_reference(env, buffer, 1, &raw mut buffer_ref))?;
            check_status!(sys::napi_create_reference(env, settle, 1, &raw mut settle_ref))?;
            let text = "atomics-waitasync";
            check_status!(sys::napi_create_string_utf8(env, text.as_ptr().cast(), text.len().cast_signed(), &raw mut name))?;
            check_status!(sys::napi_create_threadsafe_function(
                env,
                ptr::null_mut(),
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
        let agent = Rc::new(Self {
            env,
            outbox: Arc::new(Outbox::new(Box::new(move || bell.ring()))),
            thread: Arc::new(BlockedThread::current()),
            spinner: Spinner::default(),
            block: Cell::new(None),
            waits: RefCell::default(),
            holds: Holds::default(),
            held: Cell::new(false),
            tsfn,
            settle: settle_ref,
            registers: data.cast_const().cast(),
            // SAFETY: the buffer is larger than the registers, as checked above.
            settlements: unsafe { data.byte_add(size_of::<Registers>()) }.cast(),
            capacity: (bytes - size_of::<Registers>()) / size_of::<u32>(),
            _buffer: buffer_ref,
            taken: RefCell::default(),
        });
        // Hooks run last-in first-out, so this one runs before the threadsafe function's own (invariant 7).
        // SAFETY: `on_end` only touches Rust state, and `env` is only used as a number there.
        check_status!(unsafe { sys::napi_add_env_cleanup_hook(env, Some(on_end), env.cast()) })?;
        Threads::join(&agent.outbox);
        AGENTS.with_borrow_mut(|agents| agents.push(agent));
        Ok(())
    }

    pub(crate) fn registers(&self) -> &Registers {
        // SAFETY: the buffer is kept by `_buffer`, its memory does not move, `start` checked its size, and memory of an
        // ArrayBuffer is aligned to 8 bytes at least. Only this thread uses it, in turns with JavaScript.
        unsafe { &*self.registers }
    }

    /// Starts to block at the location in the registers, for a slice at most.
    pub(crate) fn wait(&self) -> Begun {
        self.abandon_block();
        let registers = self.registers();
        if registers.timeout.get() <= 0.0 {
            return registers.poll();
        }
        let deadline = registers.deadline();
        let ticket = STORE.enqueue_thread(registers.location(), &self.thread, deadline, || registers.is_equal());
        let Some(ticket) = ticket else { return Begun::Over(WaitResult::NotEqual) };
        self.block.set(Some(Block { ticket, deadline }));
        if let Some(result) = self.spinner.spin(&self.thread) {
            self.block.set(None);
            return Begun::Over(result);
        }
        self.resume()
    }

    /// Goes on blocking for another slice.
    pub(crate) fn resume(&self) -> Begun {
        let Some(Block { ticket, deadline }) = self.block.get() else { return Begun::Over(WaitResult::TimedOut) };
        match STORE.park(ticket, &self.thread, deadline, now().after_millis(SLICE_MILLISECONDS)) {
            Some(result) => {
                self.block.set(None);
                Begun::Over(result)
            }
            None => Begun::Pending,
        }
    }

    /// Leaves the line if an earlier blocking wait was broken off between two slices, as a time limit of `vm` does.
    pub(crate) fn abandon_block(&self) {
        if let Some(Block { ticket, .. }) = self.block.take() {
            STORE.withdraw_thread(ticket, &self.thread);
        }
    }

    /// Lines up a promise, by its slot in the registers.
    pub(crate) fn wait_async(&self) -> Result<Begun> {
        let registers = self.registers();
        if registers.timeout.get() <= 0.0 {
            return Ok(registers.poll());
        }
        let timed = registers.timeout.get() != f64::INFINITY;
        if timed && !timer::start(&STORE) {
            return Err(Error::from_reason("atomics-waitasync: the system gave no thread for the timer"));
        }
        let deadline = registers.deadline();
        let slot = registers.slot();
        let ticket =
            STORE.enqueue_agent(registers.location(), &self.outbox, slot, deadline, || registers.is_equal());
        let Some(ticket) = ticket else { return Ok(Begun::Over(WaitResult::NotEqual)) };
        if timed {
            timer::watch(deadline);
        }
        let wait = Wait { ticket: Some(ticket), timed, refed: true };
        let mut waits = self.waits.borrow_mut();
        let slot = slot as usize;
        if waits.len() <= slot {
            waits.resize(slot + 1, Wait::NONE);
        }
        waits[slot] = wait;
        drop(waits);
        self.holds.add(wait);
        self.update_hold();
        Ok(Begun::Pending)
    }

    /// Sets whether the wait of a slot keeps the loop alive.
    pub(crate) fn set_refed(&self, slot: u32, refed: bool) {
        if let Some(wait) = self.waits.borrow_mut().get_mut(slot as usize)
            && wait.ticket.is_some()
            && wait.refed != refed
        {
            wait.refed = refed;
            if refed { self.holds.add(*wait) } else { self.holds.remove(*wait) }
        }
        self.update_hold();
    }

    /// Holds the event loop, or lets it go, as the waits demand.
    pub(crate) fn update_hold(&self) {
        let hold = self.holds.timed.get() > 0
            || (self.holds.untimed.get() > 0 && Threads::more_than_one())
            || self.outbox.has_mail();
        if hold == self.held.get() {
            return;
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
    }

    /// Hands the outcomes in the outbox over to `lib/settle.js`, a batch per call.
    fn deliver(&self) {
        // Taken out of its cell: JavaScript runs meanwhile and might come here again.
        let mut taken = self.taken.take();
        taken.clear();
        self.outbox.take(&mut taken);
        {
            let mut waits = self.waits.borrow_mut();
            for settlement in &taken {
                let wait = std::mem::replace(&mut waits[settlement.slot as usize], Wait::NONE);
                if wait.refed {
                    self.holds.remove(wait);
                }
            }
            if self.holds.timed.get() + self.holds.untimed.get() == 0 && waits.capacity() > 4096 {
                // Nothing pending but perhaps what was unref'd, which is at the places it was.
                while waits.last().is_some_and(|wait| wait.ticket.is_none()) {
                    waits.pop();
                }
                waits.shrink_to_fit();
            }
        }
        for batch in taken.chunks(self.capacity) {
            for (place, settlement) in batch.iter().enumerate() {
                // SAFETY: `place` is less than `capacity`, the number of words behind the registers.
                unsafe { self.settlements.add(place).write((settlement.slot << 2) | settlement.result as u32) };
            }
            if self.call_settle(batch.len()).is_err() {
                // The environment is ending and runs no JavaScript any more.
                break;
            }
        }
        taken.clear();
        if taken.capacity() <= 4096 {
            self.taken.replace(taken);
        }
        self.update_hold();
    }

    #[expect(clippy::cast_possible_truncation, reason = "a batch is not longer than its buffer")]
    fn call_settle(&self, count: usize) -> Result<()> {
        let (mut settle, mut receiver, mut argument, mut ignored) =
            (ptr::null_mut(), ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        // SAFETY: on the agent's thread, inside the handle scope of the call into `on_ring`.
        unsafe {
            check_status!(sys::napi_get_reference_value(self.env, self.settle, &raw mut settle))?;
            check_status!(sys::napi_get_undefined(self.env, &raw mut receiver))?;
            check_status!(sys::napi_create_uint32(self.env, count as u32, &raw mut argument))?;
            check_status!(sys::napi_call_function(
                self.env,
                receiver,
                settle,
                1,
                &raw const argument,
                &raw mut ignored
            ))
        }
    }

    /// Leaves the queue: afterwards nobody knows of this agent.
    fn end(&self) {
        self.abandon_block();
        for (slot, wait) in (0..).zip(self.waits.take()) {
            if let Some(ticket) = wait.ticket {
                STORE.withdraw_agent(ticket, &self.outbox, slot);
            }
        }
        self.outbox.close();
        Threads::leave(&self.outbox);
    }
}

thread_local! {
    /// The agents of this thread: one, unless an embedder runs several environments in it or the addon is loaded anew.
    static AGENTS: RefCell<Vec<Rc<Agent>>> = const { RefCell::new(Vec::new()) };
}

/// Called by Node on the agent's thread after a ring. With a null `env` the environment is ending.
unsafe extern "C" fn on_ring(env: sys::napi_env, _: sys::napi_value, _: *mut c_void, _: *mut c_void) {
    if !env.is_null()
        && let Ok(agent) = Agent::of(env)
    {
        agent.deliver();
    }
}

/// Called by Node on the agent's thread when its environment ends. Makes no Node-API call.
unsafe extern "C" fn on_end(env: *mut c_void) {
    let agent = AGENTS.with_borrow_mut(|agents| {
        let place = agents.iter().position(|agent| agent.env == env.cast())?;
        Some(agents.swap_remove(place))
    });
    if let Some(agent) = agent {
        agent.end();
    }
}

/// Rings for an agent.
struct Bell(sys::napi_threadsafe_function);

// SAFETY: a threadsafe function is made to be called from any thread. It is valid as long as it is called: `Outbox::ring`
// holds the lock that `Outbox::close` takes before the environment's own clean-up (invariant 7).
unsafe impl Send for Bell {}
// SAFETY: as above.
unsafe impl Sync for Bell {}

impl Bell {
    fn ring(&self) {
        // SAFETY: see `Send`. A failure means that the environment is ending, which drops its waits anyway.
        unsafe {
            sys::napi_call_threadsafe_function(
                self.0,
                ptr::null_mut(),
                sys::ThreadsafeFunctionCallMode::nonblocking,
            );
        }
    }
}

/// Which threads of the process have an agent.
struct Threads(Vec<(ThreadId, Arc<Outbox>)>);

static THREADS: Mutex<Threads> = Mutex::new(Threads(Vec::new()));
static MORE_THAN_ONE: AtomicBool = AtomicBool::new(false);

impl Threads {
    fn more_than_one() -> bool {
        MORE_THAN_ONE.load(Ordering::Acquire)
    }

    fn join(outbox: &Arc<Outbox>) {
        Self::change(|threads| threads.push((std::thread::current().id(), Arc::clone(outbox))));
    }

    fn leave(outbox: &Arc<Outbox>) {
        Self::change(|threads| threads.retain(|(_, other)| !Arc::ptr_eq(other, outbox)));
    }

    /// When there is more than one thread now and was not before, or the other way round, every agent is rung.
    fn change(change: impl FnOnce(&mut Vec<(ThreadId, Arc<Outbox>)>)) {
        let agents = {
            let mut threads = THREADS.lock().unwrap_or_else(PoisonError::into_inner);
            change(&mut threads.0);
            let more = threads.0.first().is_some_and(|(first, _)| threads.0.iter().any(|(thread, _)| thread != first));
            if MORE_THAN_ONE.swap(more, Ordering::AcqRel) == more {
                return;
            }
            threads.0.clone()
        };
        for (_, outbox) in agents {
            outbox.ring();
        }
    }
}
