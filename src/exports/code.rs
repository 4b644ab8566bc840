//! Compiled code that threads leave to later ones, in memory only.
//!
//! A thread that loads the package would compile the files that others have compiled already: a third of its first
//! lock's time. Only V8 knows what the bytes mean. It checks that they fit its version, its flags and the length of the source.
//! So a file must not be changed, while the process runs, into another one of the same length.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

use napi::bindgen_prelude::{ArrayBuffer, Env, FromNapiValue, Uint8ArraySlice};
use napi::{Result, check_status, sys};
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
pub fn kept_code(env: Env, file: String) -> Result<Option<ArrayBuffer<'static>>> {
    let Some(code) = lock(&CODE).get(&file).cloned() else { return Ok(None) };
    let (mut data, mut buffer) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: on the thread of `env`; the new buffer has as many bytes as are copied, and nobody else has it yet.
    unsafe {
        check_status!(sys::napi_create_arraybuffer(env.raw(), code.len(), &raw mut data, &raw mut buffer))?;
        data.cast::<u8>().copy_from_nonoverlapping(code.as_ptr(), code.len());
        ArrayBuffer::from_napi_value(env.raw(), buffer).map(Some)
    }
}
