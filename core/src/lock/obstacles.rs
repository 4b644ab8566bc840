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

/// Returns how much a hold has, as this request counts it; `None`: nothing.
pub(super) const fn weight(held: Hold, request: Request) -> Option<u64> {
    match (request, held) {
        (Request::Limited { .. }, Hold::Limited(amount)) => Some(amount as u64),
        (Request::Limited { .. }, _) => None,
        _ if request.mode().is_none() => None,
        _ => Some(if held.is_exclusive() { 2 } else { 1 }),
    }
}

/// Returns the least weight that keeps this request waiting.
pub(super) const fn least_weight(request: Request) -> u64 {
    match request {
        Request::Limited { amount, limit } => (limit as u64 + 1).saturating_sub(amount as u64),
        _ if request.is_exclusive() => 1,
        _ => 2,
    }
}

/// Whether this hold keeps a claim with this request waiting. Users see the hold.
pub const fn is_kept_by(request: Request, held: Hold) -> bool {
    matches!(weight(held, request), Some(weight) if weight >= least_weight(request))
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
