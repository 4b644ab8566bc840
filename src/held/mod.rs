//! The holds of threads.

#[forbid(unsafe_code)]
pub(crate) mod holders;
mod robust_list;
mod robust_table;
#[forbid(unsafe_code)]
mod undelivered;

pub(crate) use holders::{held_since, sight};
pub(crate) use robust_list::RobustList;
pub(crate) use robust_table::{Held, Holds};
pub(crate) use undelivered::{Incoming, Undelivered};
