//! Named locks in mapped memory: what `lib/processes/engines/memory.js` is made of. Linux only.
//!
//! `waitasync_core::mapped::names` has the locks of processes. Here are the requests of this one: several threads, and several
//! requests of one thread, count as one process there.
//!
//! | file | contents |
//! |---|---|
//! | `line` | the requests that wait for a name |
//! | `request` | a thread's way to a name |
//! | `table` | a mapped table, with the lines of this process, and its grants |
//!
//! # Invariants
//! 1. The process's bit in `waiting` of a name is set while requests wait in its line: each look at the line sets it. It may be
//!    cleared by others if this process is suspended: then it was rung, and looks at the line when it goes on.
//! 2. A request is answered once, after it has left its line, and not while the lines are locked.
//! 3. The process has its bit among those that share a lock while its line counts holders; and among those of a name with
//!    permits, also while it awaits one.
//! 4. The watcher comes when the limit of a hold is over: of each that this process has, and of those in its way, once a look at
//!    the line has seen it. A limit that began later is seen within a second, as deaths are. It comes as well when a turn is over
//!    that this process has given.
//! 5. Lock order: the lines, the sweep, the visits. A mailbox is locked while no other is.
//! 6. A ring concerns no line whose lock another has alone, while this process's bit is set: whoever frees it rings again.

mod line;
mod request;
mod table;

pub(crate) use line::Asked;
pub(crate) use request::Requester;
pub(crate) use table::{Table, open};
