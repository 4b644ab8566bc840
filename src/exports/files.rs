//! The functions for `lib/processes/engines/files.js`. They decode, call and encode, and decide nothing.

#![allow(clippy::needless_pass_by_value, reason = "napi gives strings by value only")]

use std::io;
use std::sync::Arc;
use std::time::Duration;

use napi::bindgen_prelude::{Either, Either3, Env, External, Float64ArraySlice};
use napi::{Error, Result};
use napi_derive::napi;

use super::updating;
use crate::agent::Agent;
use crate::file_locks::{Answer, Asked, Files, Folder, Granted, Look, Mode, Name, look, number_of};

/// Makes an error of JavaScript: its message begins with the number of the system's error, or 0.
pub(super) fn failed(error: io::Error) -> Error {
    Error::from_reason(said(&error))
}

fn said(error: &io::Error) -> String {
    format!("{} {error}", number_of(error))
}

/// Writes a grant: its number, its token, whether the last holder died, and which permit it is; -1: none.
pub(super) fn write((number, token, owner_died, permit): Granted, mut into: Float64ArraySlice<'_>) {
    let numbers = [number as f64, token as f64, f64::from(u8::from(owner_died)), permit.map_or(-1.0, f64::from)];
    // SAFETY: only JavaScript of this thread has the array, and it waits for this call.
    let into = unsafe { into.as_mut() };
    into.iter_mut().zip(numbers).for_each(|(place, value)| *place = value);
}

/// What JavaScript gets of an answer: the number of a grant, which is written; whether a lock was held until it was
/// given back, or false of an attempt in vain; a failure, as [`said`]. The number of its request is written last.
type Answered = Either3<i64, bool, String>;

fn encode(files: &Files, request: i64, answer: Answer, mut into: Float64ArraySlice<'_>) -> Answered {
    // SAFETY: as in `write`.
    unsafe { into.as_mut() }.last_mut().into_iter().for_each(|place| *place = request as f64);
    match answer {
        Answer::Granted(lock) => {
            let granted = files.keep(lock);
            write(granted, into);
            Either3::A(granted.0)
        }
        Answer::Plain(was_held) => Either3::B(was_held),
        Answer::Failed(error) => Either3::C(said(&error)),
    }
}

/// A folder for locks.
pub struct FilesFolder(Arc<Folder>);

/// Opens a folder.
#[napi(catch_unwind)]
pub fn files_open(path: String, durable: bool, any_drive: bool) -> Result<External<FilesFolder>> {
    let folder = Folder::new(path.into(), durable, any_drive).map_err(failed)?;
    Ok(External::new(FilesFolder(Arc::new(folder))))
}

/// What requests for a name in a mode have in common.
pub struct FilePlace(Asked);

/// Makes it. `max_hold`: for how many milliseconds the lock may be held.
#[napi(catch_unwind)]
pub fn files_place(
    folder: &External<FilesFolder>,
    key: String,
    shared: bool,
    description: String,
    max_hold: Option<f64>,
) -> External<FilePlace> {
    let name = Name::new(Arc::clone(&folder.0), &key, if shared { Mode::Shared } else { Mode::Exclusive });
    let max_hold = max_hold.map(|milliseconds| Duration::from_secs_f64(milliseconds / 1e3));
    External::new(FilePlace(Asked { name, description, max_hold }))
}

/// Takes a lock that is free, and writes the grant. Returns whether it was free.
#[napi(catch_unwind)]
pub fn files_take(env: Env, place: &External<FilePlace>, attempt: bool, into: Float64ArraySlice<'_>) -> Result<bool> {
    let granted = Agent::of(env.raw())?.files().take(&place.0, attempt).map_err(failed)?;
    Ok(granted.map(|granted| write(granted, into)).is_some())
}

/// Lets another thread take the lock of a name, or try once. Returns the number of the request.
#[napi(catch_unwind)]
pub fn files_request(env: Env, place: &External<FilePlace>, attempt: bool) -> Result<i64> {
    updating(env, |agent| agent.files().request(&agent.outbox, &place.0, attempt))?.map_err(failed)
}

/// Withdraws a request.
#[napi(catch_unwind)]
pub fn files_abort(env: Env, request: i64) -> Result<()> {
    updating(env, |agent| agent.files().abort(request))
}

/// Returns the next answer, as [`encode`] makes it; null if there is none.
#[napi(catch_unwind)]
pub fn files_next(env: Env, into: Float64ArraySlice<'_>) -> Result<Option<Answered>> {
    updating(env, |agent| {
        let files = agent.files();
        files.next().map(|(request, answer)| encode(files, request, answer, into))
    })
}

/// Blocks until a request is answered, or so many milliseconds. Returns the answer, as [`encode`] makes it.
#[napi(catch_unwind)]
pub fn files_wait(env: Env, request: i64, milliseconds: u32, into: Float64ArraySlice<'_>) -> Result<Option<Answered>> {
    let agent = Agent::of(env.raw())?;
    let answer = agent.files().wait(&agent.outbox, request, milliseconds);
    Ok(answer.map(|answer| encode(agent.files(), request, answer, into)))
}

/// Whether a lock is still that of its name.
#[napi(catch_unwind)]
pub fn files_held(env: Env, grant: i64) -> Result<bool> {
    Agent::of(env.raw())?.files().is_held(grant).map_err(failed)
}

/// Returns how many milliseconds a lock may still be held: infinitely many if that is not bounded.
#[napi(catch_unwind)]
pub fn files_left(env: Env, grant: i64) -> Result<f64> {
    Ok(Agent::of(env.raw())?.files().left(grant))
}

/// Gives a lock back. Returns whether it was held until then; or, unless it `blocks` for a disk, the number of a request.
#[napi(catch_unwind)]
pub fn files_release(env: Env, grant: i64, died: bool, blocks: bool) -> Result<Either<bool, i64>> {
    let agent = Agent::of(env.raw())?;
    let later = if blocks { None } else { agent.files().release_later(&agent.outbox, grant, died) };
    if let Some(request) = later {
        agent.update_hold();
        return Ok(Either::B(request));
    }
    agent.files().release(grant, died).map(Either::A).map_err(failed)
}

/// What there is to see at the path of a lock.
#[napi(object, object_from_js = false)]
pub struct FileLook {
    /// The mode in which it is held.
    pub mode: Option<String>,
    /// Since when, in milliseconds since 1970; undefined if the state is damaged, as the rest of it.
    pub since: Option<f64>,
    /// Whether its holder has not given it back.
    pub is_marked: Option<bool>,
    /// What its holder says of itself.
    pub description: Option<String>,
}

/// Looks at the file of a lock; null if there is none.
#[napi(catch_unwind)]
pub fn files_look(path: String) -> Result<Option<FileLook>> {
    let Some(Look { held, state }) = look(path.as_ref()).map_err(failed)? else {
        return Ok(None);
    };
    let mode = held.map(|mode| if mode == Mode::Shared { "shared" } else { "exclusive" }.to_owned());
    let (since, is_marked, description) = state.map_or((None, None, None), |(since, is_marked, description)| {
        (Some(since as f64), Some(is_marked), Some(description))
    });
    Ok(Some(FileLook { mode, since, is_marked, description }))
}
