//! A snapshot as JSON, one object a line: `ATOMICS_WAITASYNC_DUMP_FORMAT=json`.
//!
//! The first line has the numbers of all lists. Each further one is an element of one of them, as `snapshot()` has it,
//! and says of which: `held`, `waiting`, `cycles`; or `threads`, if it was asked where they are. All have the process,
//! and the number of the dump in it.

use std::fmt::{self, Write};
use std::process;

use super::rows::{Rows, write_cycle, write_string};
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
        line(&|text| {
            text.write_str(",\"list\":\"cycles\",\"links\":")?;
            write_cycle(text, cycle)
        });
    }
    for (list, rows) in [("held", &held), ("waiting", &waiting)] {
        for row in rows {
            line(&|text| {
                write!(text, ",\"list\":\"{list}\",")?;
                row.write_fields(text)
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
