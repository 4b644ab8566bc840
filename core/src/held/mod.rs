//! The agents of a process, their holds and their waits.
//!
//! Every thread may read them.

mod deadlock;
mod elsewhere;
mod hold_calls;
mod notes;
pub mod registers;
mod registry;
mod robust_list;
pub mod stacks;
mod state;
mod undelivered;

pub use elsewhere::Elsewhere;
pub use hold_calls::{SharedTaken, Taken};
pub use notes::{CONDITION, Noted, PLAIN, SharedNotes, WAIT_KIND_BITS, Within};
pub use registry::{Known, Registered, Registry, next_number};
pub use robust_list::{Entry, Held, Holds, ListState};
pub use stacks::{NONE, StackId};
pub use state::Process;
pub use undelivered::{Incoming, Undelivered};
