//! The queue: a futex-style line of waiters for each word of shared memory. It knows neither locks nor Node.

pub(crate) mod counters;
pub(crate) mod critical_section;
pub(crate) mod location;
pub mod other_processes;
pub(crate) mod outbox;
pub(crate) mod store;
pub(crate) mod waiter;
pub(crate) mod waiter_list;

pub use critical_section::{CriticalSection, Policy};
pub use location::Location;
pub use outbox::{Mail, Outbox, Reading, Ring, Settlement};
pub use store::{Alarm, Withdrawal};
pub use waiter::{BlockedThread, Listed, Successor, WaitResult, Waiter, Woken};
pub use waiter_list::{Ticket, WaiterKey};
