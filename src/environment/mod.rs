//! What JavaScript calls, and the Node-API calls that call it.
//!
//! | module | what it is |
//! |---|---|
//! | [`exports`] | what JavaScript calls once or rarely |
//! | `operations` | what JavaScript calls often: functions without arguments |
//! | `registers` | the words through which operands and answers pass |
//! | `environment` | the Node-API calls of an agent |

pub(crate) mod environment;
pub mod exports;
mod operations;
pub(crate) mod registers;
