//! The one thread of the process that serves all others.
//!
//! It starts when the first thread needs it, belongs to no environment, and ends with the process. A thread that needs
//! it for something new rings it; [`alarm`] has the argument why no deadline is missed.
//!
//! # Duties
//! - **Deadlines** of promises: it sleeps until the earliest in the buckets.
//! - **Words of lines**, while there are claims: `looks`. A word may be freed without a call: by code that knows only the
//!   bare word and notifies the host's queue, or by a thread that is interrupted (`vm` has time limits) between freeing
//!   the word and looking at its counter.
//! - **Event loops** of blocked threads: `watch`.
//! - Work of others that comes and goes: [`Service::attend`].
//!
//! A duty is an async function with a bell of its own. A panic of one stops no other, and it begins again.

pub mod alarm;
#[cfg(not(feature = "model"))]
mod running;
#[cfg(not(feature = "model"))]
mod timer;
#[cfg(not(feature = "model"))]
pub mod watch;
#[cfg(not(feature = "model"))]
mod word_poller;

#[cfg(not(feature = "model"))]
pub use running::Service;
pub use tokio::sync::Notify;
