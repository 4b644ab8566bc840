//! A snapshot as JSON, one object a line: `ATOMICS_WAITASYNC_DUMP_FORMAT=json`.
//!
//! The first line has the numbers of all lists. Each further one is an element of one of them, as `snapshot()` has it,
//! and says of which: `held`, `waiting`, `cycles`; or `threads`, if it was asked where they are. All have the process,
//! and the number of the dump in it.

use std::fmt::{self, Write};
use std::process;

use super::rows::{EndedRow, Row, RowLink, Rows};
use super::snapshot::Snapshot;
use super::table::rows_of;
use super::whereabouts::{Threads, Whereabouts};
use crate::json::{self, Text};

/// Writes a snapshot, a line at a time. `dump`: its number.
pub fn write(dump: u32, snapshot: &Snapshot, threads: Option<&Threads>, mut line: impl FnMut(&str)) {
    let Rows { held, waiting, cycles } = rows_of(snapshot);
    let mut line = |write: &dyn Fn(&mut Text) -> fmt::Result| {
        let text = json::text(|text| {
            write!(text, "{{\"pid\":{},\"dump\":{dump}", process::id())?;
            write(text)?;
            text.write_str("}\n")
        });
        // A line that is too long, or for which there is no memory, is left out.
        if let Some(text) = text {
            line(&text);
        }
    };
    line(&|text| {
        write!(text, ",\"held\":{},\"waiting\":{},\"cycles\":{}", held.len(), waiting.len(), cycles.len())?;
        threads.map_or(Ok(()), |threads| write!(text, ",\"threads\":{}", threads.len()))
    });
    for cycle in &cycles {
        let certain = cycle.iter().all(|link| link.waits_for.blocked);
        line(&|text| {
            text.write_str(",\"list\":\"cycles\",\"links\":")?;
            json::array(text, cycle, |text, link| write_link(text, link, certain))
        });
    }
    for (list, rows) in [("held", &held), ("waiting", &waiting)] {
        for row in rows {
            line(&|text| {
                write!(text, ",\"list\":\"{list}\",")?;
                write_fields(text, row)
            });
        }
    }
    for (id, Whereabouts { name, activity }) in threads.into_iter().flatten() {
        line(&|text| {
            write!(text, ",\"list\":\"threads\",\"threadId\":{id}")?;
            write_string(text, "threadName", name.as_deref())?;
            write_string(text, "now", Some(&activity.lines().join("\n")))
        });
    }
}

/// Writes a link of a cycle, as `cycles` has it.
fn write_link(text: &mut Text, RowLink { holds, waits_for }: &RowLink, certain: bool) -> fmt::Result {
    let Row { thread_id, blocked, .. } = waits_for;
    write!(text, "{{\"threadId\":{thread_id},\"blocked\":{blocked},\"certain\":{certain}")?;
    for (key, row) in [("holds", holds), ("waitsFor", waits_for)] {
        write!(text, ",\"{key}\":{{")?;
        write_fields(text, row)?;
        text.write_char('}')?;
    }
    text.write_char('}')
}

/// Writes the fields of an entry.
fn write_fields(text: &mut Text, row: &Row) -> fmt::Result {
    text.write_str("\"kind\":")?;
    json::string(text, row.kind.encode_utf16())?;
    write_string(text, "mode", row.mode.as_deref())?;
    if let Some(name) = row.name.as_deref() {
        text.write_str(",\"name\":")?;
        json::string(text, name.iter().copied())?;
    }
    if let Some(amount) = row.amount {
        write!(text, ",\"amount\":{amount}")?;
    }
    write!(text, ",\"id\":{},\"threadId\":{}", row.id, row.thread_id)?;
    write_string(text, "threadName", row.thread_name.as_deref())?;
    write!(text, ",\"blocked\":{},\"milliseconds\":", row.blocked)?;
    match row.milliseconds {
        Some(milliseconds) => write!(text, "{milliseconds:.3}")?,
        None => text.write_str("null")?,
    }
    write_string(text, "taken", row.taken.as_deref())?;
    write_string(text, "called", row.called.as_deref())?;
    if row.collected == Some(true) {
        text.write_str(",\"collected\":true")?;
    }
    write_string(text, "awaits", row.awaits.as_deref())?;
    let Some(ended) = &row.ended else { return Ok(()) };
    text.write_str(",\"ended\":")?;
    json::array(text, ended, |text, EndedRow { thread_id, thread_name, how, milliseconds }| {
        write!(text, "{{\"threadId\":{thread_id},\"milliseconds\":{:.3}", milliseconds.unwrap_or_default())?;
        write_string(text, "threadName", thread_name.as_deref())?;
        write_string(text, "how", how.as_deref())?;
        text.write_char('}')
    })
}

fn write_string(text: &mut Text, key: &str, value: Option<&str>) -> fmt::Result {
    let Some(value) = value else { return Ok(()) };
    write!(text, ",\"{key}\":")?;
    json::string(text, value.encode_utf16())
}
