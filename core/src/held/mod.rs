//! The agents of a process, their holds and their waits.
//!
//! Every thread may read them.

mod notes;
pub mod registers;
mod registry;
mod robust_list;
pub mod stacks;
mod state;

pub use notes::{CONDITION, Noted, PLAIN, SharedNotes, Taken, WAIT_KIND_BITS, Within};
pub use registry::{Incoming, Known, Registered, Registry, Undelivered};
pub use robust_list::{Entry, Held, Holds, ListState};
pub use stacks::{NONE, StackId};
pub use state::Process;
