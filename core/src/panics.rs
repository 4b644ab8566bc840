//! Where panics stop.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `body`, and returns whether it came to its end. A panic of `body` stops here, since unwinding into Node would
/// end the process; it has been reported on the standard error, and concerns nothing else.
pub fn contained(body: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(body)).is_ok()
}
