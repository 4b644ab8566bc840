//! The holds of threads.

#[forbid(unsafe_code)]
pub(crate) mod holders;
pub(crate) mod robust_list;
pub(crate) mod robust_table;
