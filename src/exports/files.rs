//! The functions for `lib/processes/engines/files.js`.

#![allow(clippy::needless_pass_by_value, reason = "napi gives strings and slices by value only")]

use std::fmt::Write;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use napi::bindgen_prelude::{Either3, Env, External, Uint8ArraySlice};
use napi::{Error, JsError, Result};
use napi_derive::napi;

use super::updating;
use crate::agent::Agent;
use crate::file_locks::{Answer, Asked, Folder, Granted, Mode, Name, look, number_of};
use waitasync_core::queue::WaitResult;

/// Makes an error of JavaScript: its message begins with the number of the system's error, or 0.
pub(super) fn failed(error: io::Error) -> Error {
    Error::from_reason(said(&error))
}

fn said(error: &io::Error) -> String {
    format!("{} {error}", number_of(error))
}

/// Writes a grant into the registers. Returns the answer: whether the last holder died; 0 if there is no grant.
pub(super) fn write(agent: &Agent, granted: Option<Granted>) -> u32 {
    let Some((number, token, owner_died, permit)) = granted else { return 0 };
    agent.registers.set_grant(number, token, permit);
    if owner_died { WaitResult::AcquiredFromDead as u32 } else { WaitResult::Acquired as u32 }
}

/// Throws an error from an operation.
pub(super) fn throw(agent: &Agent, error: io::Error) -> u32 {
    // SAFETY: on the thread of the environment.
    unsafe { JsError::from(failed(error)).throw_into(agent.environment.env) };
    0
}

/// What JavaScript gets of an answer: the number of a grant, which is written; whether a lock was held until it was
/// given back, or false of an attempt in vain; a failure, as [`said`]. The number of its request is written, too.
type Answered = Either3<i64, bool, String>;

fn encode(agent: &Agent, request: i64, answer: Answer) -> Answered {
    agent.registers.count.set(request as f64);
    match answer {
        Answer::Granted(lock) => {
            let granted = agent.files().keep(lock);
            agent.registers.answer.set(write(agent, Some(granted)));
            Either3::A(granted.0)
        }
        Answer::Plain(was_held) => Either3::B(was_held),
        Answer::Failed(error) => Either3::C(said(&error)),
    }
}

/// Opens a folder for locks.
#[napi(catch_unwind)]
pub fn files_open(path: String, durable: bool, any_drive: bool) -> Result<External<Arc<Folder>>> {
    let folder = Folder::new(path.into(), durable, any_drive).map_err(failed)?;
    Ok(External::new(Arc::new(folder)))
}

/// Makes what requests for a name in a mode have in common. `max_hold`: for how many milliseconds they may have the lock.
#[napi(catch_unwind)]
pub fn files_place(
    folder: &External<Arc<Folder>>,
    key: String,
    shared: bool,
    description: String,
    max_hold: Option<f64>,
) -> External<Asked> {
    let name = Name::new(Arc::clone(folder), &key, if shared { Mode::Shared } else { Mode::Exclusive });
    let max_hold = max_hold.map(|milliseconds| Duration::from_secs_f64(milliseconds / 1e3));
    External::new(Asked { name, description, max_hold })
}

/// Takes a lock that is free, and writes the grant. Returns whether it was free.
#[napi(catch_unwind)]
pub fn files_take(env: Env, place: &External<Asked>, attempt: bool) -> Result<bool> {
    let agent = Agent::of(env.raw())?;
    agent.registers.answer.set(write(&agent, agent.files().take(place, attempt).map_err(failed)?));
    Ok(agent.registers.answer.get() != 0)
}

/// Lets another thread take the lock of a name, or try once. Returns the number of the request.
#[napi(catch_unwind)]
pub fn files_request(env: Env, place: &External<Asked>, attempt: bool) -> Result<i64> {
    updating(env, |agent| agent.files().request(place, attempt))?.map_err(failed)
}

/// Withdraws a request.
#[napi(catch_unwind)]
pub fn files_abort(env: Env, request: i64) -> Result<()> {
    updating(env, |agent| agent.files().abort(request))
}

/// Returns the next answer, as [`encode`] makes it; null if there is none.
#[napi(catch_unwind)]
pub fn files_next(env: Env) -> Result<Option<Answered>> {
    updating(env, |agent| agent.files().mailbox.next().map(|(request, answer)| encode(agent, request, answer)))
}

/// Blocks until a request is answered, or so many milliseconds. Returns the answer, as [`encode`] makes it.
#[napi(catch_unwind)]
pub fn files_wait(env: Env, request: i64, milliseconds: u32) -> Result<Option<Answered>> {
    let agent = Agent::of(env.raw())?;
    let answer = agent.files().mailbox.wait(request, Duration::from_millis(milliseconds.into()));
    Ok(answer.map(|answer| encode(&agent, request, answer)))
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

/// Gives the lock back whose number is in the registers. The amount has a 1 if its holder died, and a 2 if the thread may
/// block for a disk. Answers whether it was held until then; or, by 2, that a request is written, which will tell.
pub(super) fn release(agent: &Agent) -> u32 {
    let (files, registers) = (agent.files(), agent.registers);
    let (grant, flags) = (registers.number(), registers.amount.get());
    let (died, blocks) = (flags & 1 != 0, flags & 2 != 0);
    let later = if blocks { None } else { files.release_later(grant, died) };
    if let Some(request) = later {
        registers.count.set(request as f64);
        return 2;
    }
    files.release(grant, died).map_or_else(|error| throw(agent, error), u32::from)
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
    let Some((held, state)) = look(path.as_ref()).map_err(failed)? else {
        return Ok(None);
    };
    let mode = held.map(|mode| if mode == Mode::Shared { "shared" } else { "exclusive" }.to_owned());
    let (since, is_marked, description) = state.map_or((None, None, None), |(since, is_marked, description)| {
        (Some(since as f64), Some(is_marked), Some(description))
    });
    Ok(Some(FileLook { mode, since, is_marked, description }))
}

/// Returns the SHA-256 of bytes, in hexadecimal. Node's module `crypto` takes 6 ms to load, a third of a first lock here.
#[napi(catch_unwind)]
pub fn sha256(bytes: Uint8ArraySlice<'_>) -> String {
    hmac_sha256::Hash::hash(&bytes).iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
