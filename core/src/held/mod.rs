//! The agents of a process, their holds and their waits.
//!
//! Every thread may read them.

mod deadlock;
mod elsewhere;
mod holders;
mod notes;
mod process;
pub mod registers;
mod registry;
mod robust_table;
pub mod stacks;
mod taken;
mod undelivered;

pub use elsewhere::Elsewhere;
pub use holders::Holders;
pub use notes::{CONDITION, Noted, PLAIN, SharedNotes, WAIT_KIND_BITS, Within};
pub use process::Process;
pub use registry::{Known, Registered, Registry, next_number};
pub use robust_table::{Entry, Held, Holds, ListState};
pub use stacks::{NONE, StackId};
pub use taken::{SharedTaken, Taken};
pub use undelivered::{Incoming, Undelivered};
