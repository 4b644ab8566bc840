//! A Node environment: what JavaScript calls, and what calls JavaScript.
//!
//! | module | what it is |
//! |---|---|
//! | [`exports`] | what JavaScript calls once or rarely |
//! | `operations` | what JavaScript calls often: functions without arguments |
//! | `waiting` `locking` `names` | what these do: wait, notify; claim, release; request a name |
//! | `agent` | an environment that has loaded the package: its start, its end, its hold on the event loop |
//! | `blocking` | its thread, while it blocks |
//! | `deadlock` | the cycles of blocked threads |
//! | `snapshot` | what is held and awaited in this process |
//! | `holders` | for how long at least something has been held; which threads died holding a lock |
//! | `delivery` | its settlements, on their way to JavaScript |
//! | `pending` | its asynchronous waits, by slot; what it waits for, for other threads to read |
//! | `process` | what a process has one of |
//! | `registry` | the agents of all threads |
//! | `robust_list`, `robust_table` | what a thread holds, for the case that it dies; the same as other threads read it |
//! | `registers` | the words through which operands and answers pass |
//! | `stalls` | after how long a wait is reported |
//! | `environment` | the Node-API calls of an agent |
//! | `images` | which copy of this library serves the process |
//!
//! Each uses only what is below it. Outside of [`crate::queue::location`], [`crate::service`] and here, nothing is `unsafe`.

#![allow(unsafe_code, reason = "Node-API, memory that JavaScript owns, and the dynamic loader")]

mod agent;
#[forbid(unsafe_code)]
mod blocking;
#[forbid(unsafe_code)]
mod deadlock;
#[forbid(unsafe_code)]
mod delivery;
mod environment;
pub mod exports;
#[forbid(unsafe_code)]
mod holders;
mod images;
#[forbid(unsafe_code)]
mod json;
#[forbid(unsafe_code)]
mod locking;
pub mod names;
mod operations;
#[forbid(unsafe_code)]
mod pending;
mod process;
mod registers;
mod registry;
mod robust_list;
mod robust_table;
#[forbid(unsafe_code)]
mod snapshot;
pub mod stalls;
#[forbid(unsafe_code)]
mod waiting;
