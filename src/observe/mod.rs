//! What is told of waits and holds: snapshots, deadlocks, stalls, dumps and profiles.
//!
//! | module | what it is |
//! |---|---|
//! | `deadlock` | the cycles of blocked threads |
//! | `snapshot` | what is held and awaited in this process |
//! | `table` | the text of a snapshot, for people |
//! | `sentences` | what one says of its entries |
//! | `dump` | that text at a signal |
//! | `taken` | where and when each holder has taken something, if stalls are reported |
//! | `stalls`, `reports` | after how long a wait is reported; the reports, one for each ring of threads |
//! | `profile`, `cpuprofile`, `stacks` | how long was waited, by the stacks of the calls; the file's format; the table of stacks |
//! | `json` | the text in which larger answers pass |

#[forbid(unsafe_code)]
mod cpuprofile;
#[forbid(unsafe_code)]
pub(crate) mod deadlock;
pub mod dump;
#[forbid(unsafe_code)]
pub(crate) mod json;
pub mod profile;
#[forbid(unsafe_code)]
pub(crate) mod reports;
pub mod sentences;
#[forbid(unsafe_code)]
pub(crate) mod snapshot;
#[forbid(unsafe_code)]
pub(crate) mod stacks;
pub mod stalls;
pub mod table;
#[forbid(unsafe_code)]
pub(crate) mod taken;
