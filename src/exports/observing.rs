//! What people are told of holds and waits: snapshots, stacks, reports.

use std::fmt::Write;

use napi::bindgen_prelude::{Env, FromNapiValue, Object, Utf16String};
use napi::{Error, JsString, Result, Status};
use napi_derive::napi;

use crate::agent::Agent;
use crate::globals::PROCESS;
use waitasync_core::clock::{Timestamp, now};
use waitasync_core::held::stacks;
use waitasync_core::json;
use waitasync_core::lock::names::{Mode, RequestInfo};
use waitasync_core::observe::reports::Reports;
use waitasync_core::observe::rows::{EndedRow, Row, RowLink, Rows, Stack};
use waitasync_core::observe::{Snapshot, table};

/// Returns the process's holds and waits as JSON.
#[napi(catch_unwind)]
pub fn snapshot(env: Env) -> Result<String> {
    Agent::of(env.raw())?.finish_release();
    Ok(Snapshot::take(&PROCESS).json())
}

/// Returns the cycle that refused this thread's last claim, as JSON.
#[napi(catch_unwind)]
pub fn cycle(env: Env) -> Result<Option<String>> {
    Ok(Agent::of(env.raw())?.blocking.cycle.take())
}

/// Returns the `threadId` of the lock's holder, if that is an agent.
#[napi(catch_unwind)]
pub fn holder(env: Env) -> Result<Option<u32>> {
    let agent = Agent::of(env.raw())?;
    agent.finish_release();
    Ok(agent.holder())
}

/// Notes a hold of this thread that begins, or is about to: the number of its entry, and the stack of the call.
#[napi(catch_unwind)]
pub fn hold_begins(env: Env, serial: u32, call: u32) -> Result<()> {
    Agent::of(env.raw()).map(|agent| agent.pending.notes.begin_hold(serial, call))
}

/// Notes that a hold is about to end, or has not begun.
#[napi(catch_unwind)]
pub fn hold_ends(env: Env, serial: u32) -> Result<()> {
    Agent::of(env.raw()).map(|agent| agent.pending.notes.end_hold(serial))
}

/// Notes whether a callback runs with a hold of this thread. If so, the hold waits only for claims made within that.
#[napi(catch_unwind)]
pub fn note_task(env: Env, serial: u32, runs: bool) -> Result<()> {
    Agent::of(env.raw()).map(|agent| agent.pending.notes.note_task(serial, runs))
}

/// Notes that the token of this thread's hold has been collected.
#[napi(catch_unwind)]
pub fn hold_is_orphaned(env: Env, serial: u32) -> Result<()> {
    Agent::of(env.raw()).map(|agent| agent.pending.notes.orphan_hold(serial))
}

/// Returns the stack with this number, for people; undefined if there is none.
#[napi(catch_unwind)]
pub fn stack_text(env: &Env, number: u32) -> Result<Option<JsString<'_>>> {
    stacks::shown(number).map(|text| env.create_string(&*text)).transpose()
}

/// Notes since when this thread's next wait lasts, and returns that. Undefined: from now on.
#[napi(catch_unwind)]
pub fn wait_goes_on(env: Env, began: Option<f64>) -> Result<f64> {
    // Microseconds: a number of JavaScript holds them.
    let began = began.unwrap_or_else(|| (now().as_nanos() / 1000) as f64);
    Agent::of(env.raw())?.pending.next_began.set(Some(Timestamp::from_nanos(1000 * began as u64)));
    Ok(began)
}

/// Returns a report for each of this thread's waits, by their slots: '' where another one has it.
#[napi(catch_unwind)]
#[allow(clippy::needless_pass_by_value, reason = "napi gives lists by value only")]
pub fn report_all(env: Env, slots: Vec<u32>) -> Result<Vec<String>> {
    Ok(Reports::of_all(&PROCESS, Agent::of(env.raw())?.thread_id, &slots))
}

/// Notes who has the lock for which this thread waits; or that the wait is over. `name`: of the lock in front.
#[napi(catch_unwind)]
#[allow(clippy::needless_pass_by_value, reason = "napi gives strings by value only")]
pub fn waits_elsewhere(env: Env, name: Utf16String, holder: Option<String>) -> Result<()> {
    Agent::of(env.raw()).map(|agent| PROCESS.waits_elsewhere(agent.thread_id, &name, holder))
}

/// Lists the process's requests for names as JSON, for `query` in `lib/named/lock-manager.js`. In their order.
#[napi(catch_unwind)]
pub fn name_requests() -> String {
    let requests = PROCESS.names.requests(&PROCESS.store);
    json::text(|text| {
        json::array(text, requests, |text, RequestInfo { name, mode, held, thread_id, .. }| {
            text.write_str("{\"name\":")?;
            json::string(text, name.iter().copied())?;
            write!(text, ",\"shared\":{},\"held\":{held},\"threadId\":{thread_id}}}", mode == Mode::Shared)
        })
    })
}

/// Counts the names in use and those that dead holders left behind.
#[napi(catch_unwind)]
pub fn name_count() -> u32 {
    PROCESS.names.count() as u32
}

/// Returns the text of a result of `snapshot()`.
#[napi(catch_unwind)]
#[allow(clippy::needless_pass_by_value, reason = "Node-API gives an object of its own")]
pub fn format_snapshot(snapshot: Object<'_>) -> Result<String> {
    let links = |cycle: Vec<Object<'_>>| cycle.iter().map(link).collect();
    let (held, waiting) = (rows(&snapshot, "held", true)?, rows(&snapshot, "waiting", false)?);
    let cycles = required::<Vec<Vec<Object<'_>>>>(&snapshot, "cycles")?.into_iter().map(links);
    Ok(table::text_of(&Rows { held, waiting, cycles: cycles.collect::<Result<_>>()? }))
}

fn required<T: FromNapiValue>(object: &Object<'_>, key: &str) -> Result<T> {
    object.get(key)?.ok_or_else(|| Error::new(Status::InvalidArg, format!("Missing field `{key}`")))
}

fn rows(snapshot: &Object<'_>, key: &str, is_hold: bool) -> Result<Vec<Row>> {
    required::<Vec<Object<'_>>>(snapshot, key)?.iter().map(|entry| row(entry, is_hold)).collect()
}

fn row(entry: &Object<'_>, is_hold: bool) -> Result<Row> {
    let call = entry.get::<String>(if is_hold { "taken" } else { "called" })?;
    let ended = entry.get::<Vec<Object<'_>>>("ended")?;
    Ok(Row {
        kind: required(entry, "kind")?,
        mode: entry.get("mode")?,
        name: entry.get::<Utf16String>("name")?.map(|name| name.to_vec()),
        amount: entry.get("amount")?,
        id: required(entry, "id")?,
        thread_id: required(entry, "threadId")?,
        thread_name: entry.get("threadName")?,
        blocked: required(entry, "blocked")?,
        milliseconds: entry.get("milliseconds")?,
        is_hold,
        call: call.map_or(Stack::Unknown, |text| Stack::Text(text.into())),
        collected: entry.get("collected")?.unwrap_or_default(),
        awaits: entry.get("awaits")?,
        ended: ended.map(|all| all.iter().map(ended_row).collect::<Result<_>>()).transpose()?,
    })
}

fn ended_row(thread: &Object<'_>) -> Result<EndedRow> {
    Ok(EndedRow {
        thread_id: required(thread, "threadId")?,
        thread_name: thread.get("threadName")?,
        how: thread.get("how")?,
        milliseconds: thread.get("milliseconds")?,
    })
}

fn link(link: &Object<'_>) -> Result<RowLink> {
    let (mut holds, waits_for) = (row(&required(link, "holds")?, true)?, row(&required(link, "waitsFor")?, false)?);
    // The entries do not tell whether it is ahead by its wait.
    let key = |row: &Row| (row.id.to_bits(), row.mode.clone(), row.milliseconds.map(f64::to_bits));
    if holds.stack().is_empty() && key(&holds) == key(&waits_for) {
        holds = row(&required(link, "holds")?, false)?;
    }
    Ok(RowLink { holds, waits_for })
}
