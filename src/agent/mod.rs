//! An environment that has loaded the package, its thread, and its waits.
//!
//! | module | what it is |
//! |---|---|
//! | `waiting` `locking` `names` | the operations' work: wait, notify; claim, release; request a name |
//! | `agent` | an environment that has loaded the package: its start, its end, its hold on the event loop |
//! | `blocking` | the agent's thread, while it blocks |
//! | `delivery` | the settlements of an agent, on their way to JavaScript |
//! | `pace` | how often an event loop is told to turn while settlements come |
//! | `pending` | the asynchronous waits of an agent, by slot, and notes on its waits for other threads to read |

pub(crate) mod agent;
#[forbid(unsafe_code)]
mod blocking;
#[forbid(unsafe_code)]
mod delivery;
#[forbid(unsafe_code)]
pub(crate) mod locking;
pub mod names;
#[forbid(unsafe_code)]
mod pace;
pub(crate) mod pending;
#[forbid(unsafe_code)]
pub(crate) mod waiting;
