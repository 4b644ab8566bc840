//! A Node environment: what JavaScript calls, and what calls JavaScript.
//!
//! | module | what it is |
//! |---|---|
//! | [`exports`] | what JavaScript calls once or rarely |
//! | `operations` | what JavaScript calls often: functions without arguments |
//! | `waiting` `locking` `names` | the operations' work: wait, notify; claim, release; request a name |
//! | `agent` | an environment that has loaded the package: its start, its end, its hold on the event loop |
//! | `blocking` | the agent's thread, while it blocks |
//! | `deadlock` | the cycles of blocked threads |
//! | `snapshot` | what is held and awaited in this process |
//! | `table` | the text of a snapshot, for people |
//! | `sentences` | what one says of its entries |
//! | `dump` | that text at a signal |
//! | `holders` | for how long at least each holder has held something, and which threads died holding a lock |
//! | `delivery` | the settlements of an agent, on their way to JavaScript |
//! | `taken` | where and when each holder has taken something, if stalls are reported |
//! | `pending` | the asynchronous waits of an agent, by slot, and notes on its waits for other threads to read |
//! | `process` | what a process has one of |
//! | `registry` | the agents of all threads |
//! | `robust_list`, `robust_table` | what a thread holds, so that it can be passed on when the thread dies; how other threads read it |
//! | `registers` | the words through which operands and answers pass |
//! | `stalls`, `reports` | after how long a wait is reported; the reports, one for each ring of threads |
//! | `profile`, `cpuprofile`, `stacks` | how long was waited, by the stacks of the calls; the file's format; the table of stacks |
//! | `environment` | the Node-API calls of an agent |
//! | `json` | the text in which larger answers pass |
//! | `freed` | whether memory has been freed |
//! | `images` | which copy of this library serves the process |
//!
//! A module uses only those below it. In this crate only [`crate::queue::location`], [`crate::queue::counters`], [`crate::service`]
//! and this folder have `unsafe` code.

#![allow(unsafe_code, reason = "Node-API, memory that JavaScript owns, and the dynamic loader")]

mod agent;
#[forbid(unsafe_code)]
mod blocking;
#[forbid(unsafe_code)]
mod cpuprofile;
#[forbid(unsafe_code)]
mod deadlock;
#[forbid(unsafe_code)]
mod delivery;
pub mod dump;
#[forbid(unsafe_code)]
mod ending;
mod environment;
pub mod exports;
mod freed;
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
mod pace;
mod pending;
mod process;
pub mod profile;
mod registers;
mod registry;
#[forbid(unsafe_code)]
mod reports;
mod robust_list;
mod robust_table;
pub mod sentences;
#[forbid(unsafe_code)]
mod snapshot;
#[forbid(unsafe_code)]
mod stacks;
pub mod stalls;
pub mod table;
#[forbid(unsafe_code)]
mod taken;
#[forbid(unsafe_code)]
mod waiting;
