//! The digest of a name. Node's module `crypto` takes 6 ms to load, a third of a first lock of several processes.

use std::fmt::Write;

use napi::bindgen_prelude::Uint8ArraySlice;
use napi_derive::napi;

/// Returns the SHA-256 of bytes, in hexadecimal.
#[napi(catch_unwind)]
#[allow(clippy::needless_pass_by_value, reason = "Node-API gives a slice of its own")]
pub fn sha256(bytes: Uint8ArraySlice<'_>) -> String {
    hmac_sha256::Hash::hash(&bytes).iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
