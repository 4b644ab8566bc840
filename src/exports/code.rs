//! Compiled code that threads leave to later ones, in memory only.
//!
//! A thread that loads the package would compile the files that others have compiled already: a third of its first
//! lock's time. Only V8 knows what the bytes mean. It checks that they fit its version, its flags and the length of the source.
//! So a file must not be changed, while the process runs, into another one of the same length.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

use napi::Result;
use napi::bindgen_prelude::{ArrayBuffer, Env, Uint8ArraySlice};
use napi_derive::napi;
use rustc_hash::FxBuildHasher;

use waitasync_core::sync::lock;

type Table = HashMap<String, Arc<[u8]>, FxBuildHasher>;

/// By the name and the version of each file. Those of all copies of the package are a few dozen.
static CODE: LazyLock<Mutex<Table>> = LazyLock::new(Mutex::default);

/// Keeps a file's compiled code, in place of an earlier one.
#[napi(catch_unwind)]
#[allow(clippy::needless_pass_by_value, reason = "Node-API gives a slice of its own")]
pub fn keep_code(file: String, code: Uint8ArraySlice<'_>) {
    lock(&CODE).insert(file, Arc::from(&*code));
}

/// Returns a file's compiled code as a buffer of the caller's own; null if no thread has left any.
#[napi(catch_unwind)]
#[allow(clippy::needless_pass_by_value, reason = "Node-API gives a string of its own")]
pub fn kept_code(env: &Env, file: String) -> Result<Option<ArrayBuffer<'_>>> {
    let code = lock(&CODE).get(&file).cloned();
    code.map(|code| ArrayBuffer::copy_from(env, code)).transpose()
}
