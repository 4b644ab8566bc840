//! Texts about entries that JavaScript has, for people.

use napi::bindgen_prelude::{FromNapiValue, Object, Utf16String};
use napi::{Error, Result, Status};
use napi_derive::napi;

use waitasync_core::observe::rows::{EndedRow, Row, RowLink, Rows, Stack};
use waitasync_core::observe::table;

/// Returns the text of a result of `snapshot()`.
#[napi(catch_unwind)]
#[allow(clippy::needless_pass_by_value, reason = "Node-API gives an object of its own")]
pub fn format_snapshot(snapshot: Object<'_>) -> Result<String> {
    let links = |cycle: Vec<Object<'_>>| cycle.iter().map(link).collect();
    let (held, waiting) = (rows(&snapshot, "held")?, rows(&snapshot, "waiting")?);
    let cycles = required::<Vec<Vec<Object<'_>>>>(&snapshot, "cycles")?.into_iter().map(links);
    Ok(table::text_of(&Rows { held, waiting, cycles: cycles.collect::<Result<_>>()? }))
}

fn required<T: FromNapiValue>(object: &Object<'_>, key: &str) -> Result<T> {
    object.get(key)?.ok_or_else(|| Error::new(Status::InvalidArg, format!("Missing field `{key}`")))
}

fn rows(snapshot: &Object<'_>, key: &str) -> Result<Vec<Row>> {
    required::<Vec<Object<'_>>>(snapshot, key)?.iter().map(row).collect()
}

fn row(entry: &Object<'_>) -> Result<Row> {
    let stack = |key| Ok::<_, Error>(entry.get::<String>(key)?.map_or(Stack::Unknown, |text| Stack::Text(text.into())));
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
        taken: stack("taken")?,
        called: stack("called")?,
        collected: entry.get("collected")?,
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
    Ok(RowLink { holds: row(&required(link, "holds")?)?, waits_for: row(&required(link, "waitsFor")?)? })
}
