//! A snapshot as JSON: for JavaScript, and, one object a line, for `ATOMICS_WAITASYNC_DUMP_FORMAT=json`.
//!
//! Of lines:
//! The first line has the numbers of all lists. Each further one is an element of one of them, as `snapshot()` has it,
//! and says of which: `held`, `waiting`, `cycles`. All have the process, and the number of the dump in it.

use std::fmt::{self, Write};
use std::process;

use super::rows::{Rows, Stack, write_cycle};
use super::sentences::row;
use super::snapshot::Snapshot;
use super::survey::Entry;
use super::table::rows_of;
use crate::json::{self, Text};
use crate::lock::cycles::{Has, Link};

/// Writes a snapshot, a line at a time. `dump`: its number.
pub fn write(dump: u32, snapshot: &Snapshot, mut line: impl FnMut(&str)) {
    let Rows { held, waiting, cycles } = rows_of(snapshot);
    let mut line = |write: &dyn Fn(&mut Text) -> fmt::Result| {
        let text = json::text(|text| {
            write!(text, "{{\"pid\":{},\"dump\":{dump}", process::id())?;
            write(text)?;
            text.write_str("}\n")
        });
        line(&text);
    };
    line(&|text| write!(text, ",\"held\":{},\"waiting\":{},\"cycles\":{}", held.len(), waiting.len(), cycles.len()));
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
}

impl Snapshot {
    /// Writes it for `snapshot` in `lib/observe/snapshot.js`.
    pub fn json(&self) -> String {
        let row = |text: &mut Text, entry: &_| row(self.now, entry, Stack::number).write(text);
        json::text(|text| {
            text.write_str("{\"held\":")?;
            json::array(text, &self.held, row)?;
            text.write_str(",\"waiting\":")?;
            json::array(text, &self.waiting, row)?;
            text.write_str(",\"cycles\":")?;
            json::array(text, &self.cycles, |text, cycle| {
                let certain = cycle.iter().all(|link| self.waiting[link.waits_for].blocked);
                json::array(text, cycle, |text, link| self.write_link(text, link, certain))
            })?;
            text.write_char('}')
        })
    }

    /// Writes a link with two indices: of the thread's hold, in the list of holds, or, below 0, `!index` in the other;
    /// and of the wait that it waits for.
    fn write_link(&self, text: &mut Text, &Link { has, waits_for }: &Link, certain: bool) -> fmt::Result {
        let Entry { thread_id, blocked, .. } = self.waiting[waits_for];
        let holds = match has {
            Has::Held(index) => index.cast_signed(),
            Has::Awaited(index) => !index.cast_signed(),
        };
        write!(text, "{{\"threadId\":{thread_id},\"holds\":{holds},\"waitsFor\":{waits_for}")?;
        write!(text, ",\"blocked\":{blocked},\"certain\":{certain}}}")
    }
}
