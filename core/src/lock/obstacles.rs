//! For what a request waits: the one set of rules, of all cycles.
//!
//! | it requests | it waits for the holders | and for claims ahead in the line |
//! |---|---|---|
//! | a lock, exclusive access | all | none: whoever is ahead waits for one of the same holders |
//! | a share | the writer | those of writers |
//! | permits | none: any thread may add permits | none |
//! | permits of a limit | each of so many that its own holds and the request do not fit beside them | all |
//!
//! It waits for *all* of these, so one that never goes on is enough to make it wait for ever. That several holders
//! together leave too little room of a limit is not enough: each of them may be the one that goes on.

use super::{Hold, Mode, Request};

/// Whether this hold keeps a claim with this request waiting. Users see the hold.
pub const fn is_kept_by(request: Request, held: Hold) -> bool {
    match (request, held) {
        (Request::Limited { amount, limit }, Hold::Limited(held)) => amount as u64 + held as u64 > limit as u64,
        (Request::Limited { .. }, _) => false,
        _ => request.mode().is_some() && (request.is_exclusive() || held.is_exclusive()),
    }
}

/// Whether a claim with this request waits for one ahead.
pub const fn is_behind(request: Request, ahead: Request) -> bool {
    match request.mode() {
        Some(Mode::Exclusive) => false,
        Some(Mode::Shared) => ahead.is_exclusive(),
        None => matches!(request, Request::Limited { .. }),
    }
}

/// Adds a thread's own holds of the word to its request.
pub fn beside_own(request: Request, own: impl Iterator<Item = Hold>) -> Request {
    own.fold(request, |sum, own| match (sum, own) {
        (Request::Limited { amount, limit }, Hold::Limited(own)) => {
            Request::Limited { amount: amount.saturating_add(own), limit }
        }
        _ => sum,
    })
}
