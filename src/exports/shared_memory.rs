//! The functions for `lib/processes/shared-memory.js` and `lib/holding/shared-word.js`: memory of several processes.

use std::ffi::c_void;
use std::path::Path;
use std::ptr::{NonNull, null_mut};

use libloading::os::unix::Library;
use napi::bindgen_prelude::{Env, FromNapiValue, Unknown};
use napi::{Error, Result, sys};
use napi_derive::napi;

use crate::globals::shared_words;
use crate::mapped::{Kind, Mapping, OpenError, watch};
use waitasync_core::queue::Location;

type CreateBuffer = unsafe extern "C" fn(
    sys::napi_env,
    *mut c_void,
    usize,
    extern "C" fn(*mut c_void, *mut c_void),
    *mut c_void,
    *mut sys::napi_value,
) -> sys::napi_status;

const UNAVAILABLE: &str = "ERR_SHARED_MEMORY_UNAVAILABLE";

/// Mapped memory stays: see `Mapping`.
extern "C" fn keep(_: *mut c_void, _: *mut c_void) {}

/// Returns a new buffer of a file's memory; makes the file if need be. An error's message begins with its code, and a
/// space.
#[napi(catch_unwind, js_name = "sharedMemory")]
#[allow(clippy::needless_pass_by_value, reason = "napi gives strings by value only")]
pub fn shared_memory(env: Env, path: String, bytes: f64) -> Result<Unknown<'static>> {
    let create = create_buffer()?;
    let (start, table_bytes) = (shared_words::start, shared_words::table_bytes(bytes as usize));
    let open = |watcher| Mapping::open(watcher, Path::new(&path), Kind::Memory, table_bytes, bytes as usize, start);
    let mapping = watch().and_then(open).map_err(|error| refused(&error))?;
    buffer(env, create, mapping.data(), mapping.data_bytes())
}

/// A word that several processes may have, prepared for a lock.
#[napi(object, object_from_js = false)]
pub struct Shared {
    /// A new buffer of its record.
    pub record: Unknown<'static>,
    /// The number of its owner if this process has the lock.
    pub owning: u32,
}

/// Prepares a word that several processes may have for a lock. Null if there are too many.
#[napi(catch_unwind)]
pub fn share_word(env: Env, address: f64) -> Result<Option<Shared>> {
    let Some((record, owning)) = shared_words::prepare(Location::from_address(address as usize)) else {
        return Ok(None);
    };
    let record = buffer(env, create_buffer()?, NonNull::from(record).cast(), size_of_val(record))?;
    Ok(Some(Shared { record, owning }))
}

fn create_buffer() -> Result<CreateBuffer> {
    let this = Library::this();
    // SAFETY: the type is that of Node's header.
    let create = unsafe { this.get::<CreateBuffer>(b"node_api_create_external_sharedarraybuffer\0") };
    create.map(|create| *create).map_err(|_| {
        Error::from_reason(format!(
            "{UNAVAILABLE} This Node.js cannot wrap mapped memory: that needs Node.js 22.23, 24.16, 26.1 or newer"
        ))
    })
}

/// Makes a buffer of mapped memory.
fn buffer(env: Env, create: CreateBuffer, start: NonNull<u8>, bytes: usize) -> Result<Unknown<'static>> {
    let mut buffer = null_mut();
    // SAFETY: on the thread of `env`, with memory that is never unmapped.
    let status = unsafe { create(env.raw(), start.as_ptr().cast(), bytes, keep, null_mut(), &raw mut buffer) };
    if status != sys::Status::napi_ok {
        return Err(Error::from_reason(format!("{UNAVAILABLE} This runtime refuses to wrap mapped memory")));
    }
    // SAFETY: the buffer is a value of `env`.
    unsafe { Unknown::from_napi_value(env.raw(), buffer) }
}

/// Says why there is no mapping.
pub(super) fn refused(error: &OpenError) -> Error {
    Error::from_reason(match error {
        OpenError::Unavailable(what) => format!("{UNAVAILABLE} {what}"),
        OpenError::Length(bytes) => format!("ERR_SHARED_MEMORY_LENGTH {bytes}"),
        OpenError::Invalid(what) => format!("ERR_SHARED_MEMORY_INVALID {what}"),
        OpenError::Full => format!("{UNAVAILABLE} 64 processes have the file, and it has room for no more"),
        OpenError::System(error) => format!("{} {error}", error.raw_os_error().unwrap_or(0)),
    })
}
