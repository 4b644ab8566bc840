//! The queue: a futex-style line of waiters for each word of shared memory. It knows neither locks nor Node.

pub mod counters;
pub mod critical_section;
pub mod location;
pub mod outbox;
pub mod parker;
pub mod result;
pub mod store;
pub mod waiter;
pub mod waiter_list;

pub use critical_section::{CriticalSection, Policy};
pub use location::Location;
pub use outbox::{Ring, Settlement};
pub use parker::{BlockedThread, Woken};
pub use result::WaitResult;
pub use store::Withdrawal;
pub use waiter::{Listed, Successor};
pub use waiter_list::{Ticket, WaiterKey};
