//! The queue: a futex-style line of waiters per word of shared memory. It knows neither locks nor Node.

#[forbid(unsafe_code)]
mod deadlines;
pub mod location;
#[forbid(unsafe_code)]
pub mod outbox;
#[forbid(unsafe_code)]
pub mod parker;
#[forbid(unsafe_code)]
pub mod store;
#[forbid(unsafe_code)]
pub mod waiter_list;
