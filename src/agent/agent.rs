//! An agent: a Node environment that has loaded the package, its start, and its hold on the event loop.
//!
//! It is used on its own thread only; others know its outbox, its `BlockedThread` and its robust list.

use std::cell::{Cell, OnceCell, RefCell};
use std::ffi::c_void;
use std::ptr;
use std::rc::Rc;
use std::sync::Arc;

use napi::bindgen_prelude::retain_current_module_for_unload_safety;
use napi::{Error, Result, check_status, sys};

use crate::agent::buffers::Buffers;
use crate::agent::pending::{Pace, Pending};
use crate::agent::progress::{Caller, Delivery};
use crate::agent::robust_list::RobustList;
use crate::environment::{Bell, Environment, pin_buffer};
use crate::file_locks::Files;
use crate::globals::{PROCESS, pass_to_other_processes};
use waitasync_core::clock::Timestamp;
use waitasync_core::held::registers::RegistersRef;
use waitasync_core::held::{Known, Registered};
use waitasync_core::lock::tracked_buffers::AgentId;
use waitasync_core::lock::wait_for_graph::CycleLink;
use waitasync_core::lock::{Outbox, Request, Waiter};
use waitasync_core::queue::{BlockedThread, Location, Ticket};
use waitasync_core::service::watch::Watch;
use waitasync_core::spinner::{BudgetedSpinner, Spinner};
use waitasync_core::sync::contained;

/// Nanoseconds of spinning for a notification before a sleep: the time that a sleeping thread takes to answer.
const LONGEST_WAIT_SPIN: u32 = 100_000;

/// A thread that spins for notifications in vain does so once in so many waits: for 0.1 µs each, on average.
const LONGEST_WAIT_PAUSE: u32 = 1024;

/// Nanoseconds for which a thread spins for a lock before it joins the line: longer than most critical sections.
const LONGEST_LOCK_SPIN: u32 = 20_000;

/// A wait for which the thread blocks, or is about to.
#[derive(Clone, Copy)]
pub(crate) struct BlockingWait {
    pub(crate) ticket: Ticket,
    pub(crate) location: Location,
    pub(crate) deadline: Timestamp,
    pub(crate) request: Option<Request>,
    /// Whether the notification of this wait goes to another waiter if the agent ends before it makes use of it.
    pub(crate) relayed: bool,
}

/// The blocking waits of an agent's thread, one at a time.
pub(crate) struct Blocking {
    pub(crate) thread: Arc<BlockedThread>,
    pub(crate) watch: Arc<Watch>,
    pub(crate) wait_spinner: Spinner,
    pub(crate) lock_spinner: BudgetedSpinner,
    pub(super) wait: Cell<Option<BlockingWait>>,
    /// Whether other threads know that it blocks without a timeout.
    pub(super) is_published: Cell<bool>,
    /// How many grants there were in the outbox when the sleeping thread last looked for a cycle.
    pub(super) grants_seen: Cell<usize>,
    /// The cycle that the thread's last claim would have closed, as JSON, until JavaScript asks for it.
    pub(crate) cycle: RefCell<Option<String>>,
}

/// What is reported to those who observe the agents of a process.
pub(crate) struct Observer {
    /// Describes a cycle, which a thread is about to close, for that thread's error.
    pub(crate) describe: fn(&[CycleLink]) -> String,
    /// Whether the thread with this `threadId` has something to publish.
    pub(crate) has_news: fn(u32) -> bool,
    /// Called in turn when an agent ends, with its `threadId`, too: it holds and awaits nothing any more.
    pub(crate) ended: &'static [fn(AgentId, u32)],
}

pub(crate) struct Agent {
    pub(crate) environment: Environment,
    pub(crate) registers: RegistersRef,
    /// Its `worker_threads.threadId`; 0 for the main thread.
    pub(crate) thread_id: u32,
    /// Its `worker_threads.threadName`, if a program has given it one.
    pub(crate) thread_name: Option<Arc<str>>,
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) blocking: Blocking,
    pub(crate) pending: Pending,
    pub(crate) robust_list: RobustList,
    pub(crate) delivery: Delivery,
    pub(crate) pace: Pace,
    /// Rung for a turn of the event loop. It is not made when it is first needed: a hook of `async_hooks` would run
    /// then, in the midst of a release.
    pub(crate) turn_bell: Bell,
    pub(crate) is_held: Cell<bool>,
    pub(crate) buffers: Buffers,
    /// Locks of files, once there are any.
    pub(super) files: OnceCell<Box<Files>>,
    pub(crate) observer: &'static Observer,
    /// How its thread ends, if it ends now: see `MANNERS` of `core/`.
    pub(crate) ends: Cell<u32>,
}

thread_local! {
    /// The agents of this thread: one, unless an embedder runs several environments in it or the addon is loaded anew.
    static AGENTS: RefCell<Vec<Rc<Agent>>> = const { RefCell::new(Vec::new()) };
    /// The one that was used last. Without a destructor, so that this costs no more than reading a word.
    static LAST: Cell<(sys::napi_env, *const Agent)> = const { Cell::new((ptr::null_mut(), ptr::null())) };
    /// Whether this thread is counted as one that has loaded the package, and has no agent yet.
    static IS_LOADED: Cell<bool> = const { Cell::new(false) };
}

/// Counts this thread among those that may notify, until it ends. Its agent is counted instead.
pub(crate) fn note_loaded(env: sys::napi_env) -> Result<()> {
    if AGENTS.with_borrow(|agents| !agents.is_empty()) || IS_LOADED.replace(true) {
        return Ok(());
    }
    PROCESS.registry.count_loaded(true);
    // SAFETY: on the thread of `env`; the hook takes any argument.
    check_status!(unsafe { sys::napi_add_env_cleanup_hook(env, Some(uncount), ptr::null_mut()) })
}

unsafe extern "C" fn uncount(_: *mut c_void) {
    contained(|| {
        if IS_LOADED.replace(false) {
            PROCESS.registry.count_loaded(false);
        }
    });
}

impl Agent {
    pub(crate) fn of(env: sys::napi_env) -> Result<Rc<Self>> {
        AGENTS
            .with_borrow(|agents| agents.iter().find(|agent| agent.environment.env == env).cloned())
            .ok_or_else(|| Error::from_reason("atomics-waitasync: this environment has not been started, or has ended"))
    }

    /// Runs `body` with the agent of `env`, if it has one: as [`Self::of`], for operations, which are called often.
    #[inline]
    pub(crate) fn with(env: sys::napi_env, body: impl FnOnce(&Self)) {
        let (last_env, last) = LAST.get();
        if last_env == env && !last.is_null() {
            // SAFETY: `on_end` takes the agent out of `LAST` before it drops it, both on this thread; and an
            // environment does not end in the midst of an operation.
            body(unsafe { &*last });
        } else if let Ok(agent) = Self::of(env) {
            LAST.set((env, Rc::as_ptr(&agent)));
            body(&agent);
        }
    }

    /// Starts the agent of `env`. False: a hook, which the start calls, has started one.
    ///
    /// # Safety
    /// On the thread of `env`, in a call from JavaScript; `buffer` is an `ArrayBuffer`, the other two are functions.
    #[expect(clippy::too_many_arguments, reason = "most come from JavaScript")]
    pub(crate) unsafe fn start(
        env: sys::napi_env,
        observer: &'static Observer,
        buffer: sys::napi_value,
        settle: sys::napi_value,
        tick: sys::napi_value,
        thread_id: u32,
        thread_name: Option<String>,
        has_libuv: bool,
        has_end_signal: bool,
    ) -> Result<bool> {
        if let Ok(former) = Self::of(env) {
            // JavaScript was interrupted before it had this one.
            former.environment.remove_end_hook(on_end)?;
            // SAFETY: as Node calls it, on the environment's thread.
            unsafe { on_end(env.cast()) };
        }
        // The service and the rings of other agents outlive this environment, so the code must, too.
        retain_current_module_for_unload_safety();
        // SAFETY: as the caller promises; and nothing unpins the buffer.
        let registers = unsafe {
            let (data, bytes, _) = pin_buffer(env, buffer)?;
            RegistersRef::new(data, bytes)
        }
        .ok_or_else(|| Error::from_reason("atomics-waitasync: lib/ and the native library are not of one build"))?;
        // SAFETY: as the caller promises.
        let environment = unsafe { Environment::new(env, settle, tick, has_libuv, Some(on_ring)) }?;
        // SAFETY: as above.
        let turn_bell = unsafe { Bell::new(env, settle, Some(on_turn)) }?;
        if Self::of(env).is_ok() {
            return Ok(false);
        }
        let thread = Arc::new(BlockedThread::current());
        let blocking = Blocking {
            watch: environment.watch(&thread, has_end_signal),
            thread,
            wait_spinner: Spinner::new(LONGEST_WAIT_SPIN, LONGEST_WAIT_PAUSE),
            lock_spinner: BudgetedSpinner::new(LONGEST_LOCK_SPIN),
            wait: Cell::default(),
            is_published: Cell::default(),
            grants_seen: Cell::default(),
            cycle: RefCell::default(),
        };
        let agent = Rc::new(Self {
            environment,
            registers,
            thread_id,
            thread_name: thread_name.map(Arc::from),
            outbox: Arc::new(Outbox::new(Box::new(move || environment.bell.ring()))),
            blocking,
            pending: Pending::default(),
            robust_list: RobustList::new(registers),
            delivery: Delivery::default(),
            pace: Pace::default(),
            turn_bell,
            is_held: Cell::new(false),
            buffers: Buffers::default(),
            files: OnceCell::new(),
            observer,
            ends: Cell::default(),
        });
        environment.add_end_hook(on_end)?;
        let known = Known {
            thread_id,
            thread_name: agent.thread_name.clone(),
            outbox: Arc::clone(&agent.outbox),
            blocked_thread: Arc::clone(&agent.blocking.thread),
            notes: agent.pending.notes.clone(),
        };
        let (thread, robust_list) = (std::thread::current().id(), agent.robust_list.table.get());
        PROCESS.registry.join(Registered { thread, known, robust_list, starting: Vec::new() });
        // SAFETY: as Node calls it, and as often.
        unsafe { uncount(ptr::null_mut()) };
        AGENTS.with_borrow_mut(|agents| agents.push(agent));
        Ok(true)
    }

    /// Lets this agent's end begin before all hooks added so far.
    pub(crate) fn end_first(&self) -> Result<()> {
        self.environment.remove_end_hook(on_end)?;
        self.environment.add_end_hook(on_end)
    }

    pub(crate) fn files(&self) -> &Files {
        self.files.get_or_init(|| Box::new(Files::new(Arc::clone(&self.outbox))))
    }

    pub(crate) fn waiter(&self, slot: u32) -> Waiter {
        Waiter::Agent(Arc::clone(&self.outbox), slot)
    }

    /// Holds or releases the event loop, as pending waits and settlements demand.
    pub(crate) fn update_hold(&self) {
        let hold = self.pending.holds_loop(|| PROCESS.registry.has_several_threads())
            || self.outbox.has_mail()
            || self.delivery.is_interrupted.get()
            || self.pace.holds_loop()
            || self.files.get().is_some_and(|files| files.mailbox.has_requests());
        if hold != self.is_held.get() && self.environment.set_held(hold) {
            self.is_held.set(hold);
        }
    }

    /// Hands settlements over to JavaScript, after a ring.
    fn deliver(&self) {
        self.pace.is_rung.set(false);
        // Another ring will follow.
        if self.pace.awaits_turn() {
            return;
        }
        self.abandon();
        self.finish_release();
        // First, since these promises came before those of the mail; and noted before, since they may ask for a turn.
        if self.pace.owes_news.replace(false) && !self.deliver_news(Caller::EventLoop) {
            self.pace.owes_news.set(true);
            self.outbox.ring();
        }
        if !self.deliver_mail(Caller::EventLoop) {
            return;
        }
        self.update_hold();
        let has_answers = || self.files.get().is_some_and(|files| files.mailbox.has_answers());
        let has_news = || (self.observer.has_news)(self.thread_id) || has_answers();
        let is_delivered = self.delivery.is_interrupted.get() || !has_news() || self.deliver_news(Caller::EventLoop);
        if self.delivery.is_interrupted.get() || (!is_delivered && has_answers()) {
            self.outbox.ring();
        }
    }

    /// Serves the line of a word that an interrupted JavaScript changed. Called before this thread does anything else.
    pub(crate) fn finish_release(&self) {
        if let Some(location) = self.registers.releasing() {
            PROCESS.store.wake_first(location);
            pass_to_other_processes(location);
            self.registers.set_releasing(0.0);
        }
    }

    pub(crate) fn id(&self) -> AgentId {
        Arc::as_ptr(&self.outbox).addr()
    }
}

/// Called by Node on the agent's thread after a ring. With a null `env`, which has no agent, if that is ending.
unsafe extern "C" fn on_ring(env: sys::napi_env, _: sys::napi_value, _: *mut c_void, _: *mut c_void) {
    contained(|| {
        let Ok(agent) = Agent::of(env) else { return };
        if !contained(|| agent.deliver()) {
            // Nobody else rings: the mail is there, or taken. The rest of it is delivered in another job.
            agent.outbox.ring();
        }
    });
}

/// Notes an awaited turn of the event loop. Called by Node on the agent's thread. With a null `env` as above.
unsafe extern "C" fn on_turn(env: sys::napi_env, _: sys::napi_value, _: *mut c_void, _: *mut c_void) {
    contained(|| {
        if let Ok(agent) = Agent::of(env)
            && agent.pace.turned()
        {
            // Not delivered here: mail that arrives meanwhile would be served in the same turn.
            agent.outbox.ring();
        }
    });
}

/// Called by Node on the agent's thread when its environment ends. Makes no Node-API call.
unsafe extern "C" fn on_end(env: *mut c_void) {
    contained(|| {
        LAST.set((ptr::null_mut(), ptr::null()));
        let agent = AGENTS.with_borrow_mut(|agents| {
            let index = agents.iter().position(|agent| agent.environment.env == env.cast())?;
            Some(agents.swap_remove(index))
        });
        if let Some(agent) = agent {
            agent.end();
        }
    });
}
