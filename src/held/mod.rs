//! What the threads hold.
//!
//! | module | what it is |
//! |---|---|
//! | `robust_list`, `robust_table` | what a thread holds, so that it can be passed on when the thread dies; how other threads read it |
//! | `holders` | for how long at least each holder has held something, and which threads died holding a lock |

#[forbid(unsafe_code)]
pub(crate) mod holders;
pub(crate) mod robust_list;
pub(crate) mod robust_table;
