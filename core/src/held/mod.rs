//! The agents of a process, their holds and their waits.
//!
//! Every thread may read them.

#[forbid(unsafe_code)]
mod deadlock;
#[forbid(unsafe_code)]
mod elsewhere;
#[forbid(unsafe_code)]
mod holders;
#[forbid(unsafe_code)]
mod notes;
mod process;
pub mod registers;
mod registry;
mod robust_table;
#[forbid(unsafe_code)]
pub mod stacks;
#[forbid(unsafe_code)]
mod taken;
#[forbid(unsafe_code)]
mod undelivered;

pub use elsewhere::Elsewhere;
pub use holders::Holders;
pub use notes::{CONDITION, Noted, PLAIN, SharedNotes, WAIT_KIND_BITS, Within};
pub use process::Process;
pub use registry::{Known, Registered, Registry, next_number};
pub use robust_table::{Entry, Held, Holds};
pub use stacks::{NONE, StackId};
pub use taken::{SharedTaken, Taken};
pub use undelivered::{Incoming, Undelivered};
