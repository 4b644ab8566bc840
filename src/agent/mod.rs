//! An environment that has loaded the package, its thread, and its waits.
//!
//! | module | what it is |
//! |---|---|
//! | `waiting` `locking` `naming` | the operations' work: wait, notify; claim, release; request a name |
//! | `agent` | an environment that has loaded the package: its start, its end, its hold on the event loop |
//! | `ending` | the end of an agent: its waits are withdrawn, and what it held or was given is passed on |
//! | `buffers` | the buffer objects on which a thread has made locks |
//! | `blocking` | the agent's thread, while it blocks |
//! | `delivery` | the settlements of an agent, on their way to JavaScript |
//! | `pace` | how often an event loop is told to turn while settlements come |
//! | `pending` | the asynchronous waits of an agent, by slot, and notes on its waits for other threads to read |

pub(crate) mod agent;
#[forbid(unsafe_code)]
mod blocking;
#[forbid(unsafe_code)]
mod buffers;
#[forbid(unsafe_code)]
mod delivery;
#[forbid(unsafe_code)]
mod ending;
#[forbid(unsafe_code)]
pub(crate) mod locking;
pub mod naming;
#[forbid(unsafe_code)]
mod pace;
pub(crate) mod pending;
#[forbid(unsafe_code)]
pub(crate) mod waiting;
