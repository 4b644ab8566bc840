//! Entries of a snapshot, as users have them: of these, objects, texts and JSON are made.
//!
//! JSON is for JavaScript; and, one object a line, for `ATOMICS_WAITASYNC_DUMP_FORMAT=json`. The first line of a dump
//! has the lengths of all lists. Each further one is an element of one of them, as `snapshot()` has it, and says of
//! which: `held`, `waiting`, `cycles`. All have the process, and the number of the dump in it.

use std::fmt::{self, Write};
use std::process;
use std::sync::Arc;

use super::snapshot::{self, Snapshot};
use super::survey::{Entry, What};
use crate::clock::Timestamp;
use crate::held::{NONE, StackId, WAIT_KIND_BITS, stacks};
use crate::json::{self, Text};
use crate::lock::cycles::{Has, Link};
use crate::lock::tracked_buffers::Ended;
use crate::lock::{Hold, Mode};

pub enum Stack {
    Unknown,
    /// As JavaScript gets it: of all entries with one stack, it makes one text.
    Number(StackId),
    Text(Arc<str>),
}

/// An entry of a snapshot, as users have it. A thread's number and name are those of `worker_threads`.
pub struct Row {
    /// The class, `named`, or `wait`.
    pub kind: String,
    /// How it is held or awaited, if there are several ways.
    pub mode: Option<String>,
    pub name: Option<Vec<u16>>,
    pub amount: Option<f64>,
    pub id: f64,
    pub thread_id: f64,
    pub thread_name: Option<String>,
    pub blocked: bool,
    pub milliseconds: Option<f64>,
    pub is_hold: bool,
    /// The stack of the call that took it, or that waits: `taken`, or `called`.
    pub call: Stack,
    /// Whether its token has been collected.
    pub collected: bool,
    /// The process for which it waits: it has the lock of several processes behind this name, or in shared memory.
    pub awaits: Option<String>,
    /// Who has used the memory of the awaited thing, and ended.
    pub ended: Option<Vec<EndedRow>>,
}

pub struct EndedRow {
    pub thread_id: f64,
    pub thread_name: Option<String>,
    pub how: Option<String>,
    pub milliseconds: Option<f64>,
}

pub struct RowLink {
    /// The thread's hold; or the wait by which it is an obstacle: it is ahead in the line, though it may hold the
    /// word, too.
    pub holds: Row,
    pub waits_for: Row,
}

/// A result of `snapshot()`.
pub struct Rows {
    pub held: Vec<Row>,
    /// The waits; of one lock, in the order of its line.
    pub waiting: Vec<Row>,
    pub cycles: Vec<Vec<RowLink>>,
}

/// What users read of each wait kind, the kind, the mode and the awaited part: `NOTIFIED` in `lib/waiting/errors.js`.
pub const NOTIFIED: &[(&str, Option<&str>, &str)] = &[
    ("wait", None, ""),
    ("Condition", None, ""),
    ("Barrier", None, "the other parties of "),
    ("Latch", None, ""),
    ("Queue", Some("put"), "room in "),
    ("Queue", Some("take"), "a message of "),
    ("Queue", Some("use"), "a message of "),
    ("Queue", Some("idle"), "the end of all work of "),
];

const _: () = assert!(NOTIFIED.len() <= 1 << WAIT_KIND_BITS, "WAIT_KIND_BITS has no room for another kind of wait");

/// Of what no version of `lib/` that belongs to this code awaits.
const UNKNOWN: (&str, Option<&str>) = ("unknown", None);

/// Returns the kind and the mode of a hold, request or wait: the words of `described` in `lib/holding/request.js`.
fn words(what: What) -> (&'static str, Option<&'static str>) {
    let mode = |mode| Some(if mode == Mode::Exclusive { "exclusive" } else { "shared" });
    let hold = match what {
        What::Awaits(kind) => {
            let row = NOTIFIED.get((kind % (1 << WAIT_KIND_BITS)) as usize);
            return row.map_or(UNKNOWN, |&(kind, mode, _)| (kind, mode));
        }
        What::Requests(request) => request.hold(),
        What::Holds(hold) => hold,
    };
    match hold {
        Hold::Lock => ("AsyncLock", mode(Mode::Exclusive)),
        Hold::Shared => ("RwLock", mode(Mode::Shared)),
        Hold::Exclusive => ("RwLock", mode(Mode::Exclusive)),
        Hold::Named(how, _) => ("named", mode(how)),
        Hold::Lease(_) => ("Queue", Some("use")),
        Hold::Permits(_) | Hold::Limited(_) => ("Semaphore", Some("permits")),
        // No snapshot has these: see `is_visible`.
        Hold::Inner | Hold::Owed(_) | Hold::Putter(_) | Hold::BlockedPutter(_) => UNKNOWN,
    }
}

/// Whether a wait may last for as long as the program likes: one for a notification, but for room in a queue.
pub fn may_be_pause(wait: &Entry) -> bool {
    wait.what.wait_kind().is_some() && words(wait.what).1 != Some("put")
}

/// Whether a wait is for a message: the holders of others do not keep it waiting.
pub fn is_for_message(wait: &Entry) -> bool {
    wait.what.wait_kind().is_some() && matches!(words(wait.what).1, Some("take" | "use"))
}

/// Makes the row of an entry, with the text of its stack.
pub fn shown_row(now: Timestamp, entry: &Entry) -> Row {
    let call = stacks::shown(entry.call).map_or(Stack::Unknown, Stack::Text);
    row(now, entry, call)
}

pub fn link_rows(now: Timestamp, (has, waits_for): (&Entry, &Entry)) -> RowLink {
    RowLink { holds: shown_row(now, has), waits_for: shown_row(now, waits_for) }
}

pub fn cycle_rows(snapshot: &Snapshot, cycle: &[Link]) -> Vec<RowLink> {
    cycle.iter().map(|link| link_rows(snapshot.now, snapshot.entries(link))).collect()
}

fn row(now: Timestamp, entry: &Entry, call: Stack) -> Row {
    // Whole microseconds of both, so that their sum is the same in every snapshot.
    let micros = |moment: Timestamp| moment.as_nanos() / 1000;
    let (kind, mode) = words(entry.what);
    let amount = match entry.what.hold() {
        Some(Hold::Permits(amount) | Hold::Limited(amount)) => Some(f64::from(amount)),
        _ => None,
    };
    Row {
        kind: kind.to_owned(),
        mode: mode.map(str::to_owned),
        name: entry.name.as_ref().map(|name| name.to_vec()),
        amount,
        id: snapshot::id(entry.place()) as f64,
        thread_id: entry.thread_id.into(),
        thread_name: entry.thread_name.as_deref().map(str::to_owned),
        blocked: entry.blocked,
        milliseconds: entry.since.map(|since| micros(now).saturating_sub(micros(since)) as f64 / 1e3),
        is_hold: matches!(entry.what, What::Holds(_)),
        call,
        collected: entry.is_orphaned,
        awaits: entry.holder_elsewhere.as_deref().map(str::to_owned),
        ended: ended_rows(now, &entry.ended),
    }
}

/// How a thread ends: for programs, and in a sentence. `MANNERS` in `lib/agent/agent.js` has the numbers. The first is
/// that of a thread that does not tell.
pub const MANNERS: [(Option<&str>, &str); 5] = [
    (None, "ended"),
    (Some("terminate"), "was terminated"),
    (Some("end"), "came to its end"),
    (Some("exit"), "ended by process.exit()"),
    (Some("exception"), "ended by an uncaught exception"),
];

fn ended_rows(now: Timestamp, ended: &[Arc<Ended>]) -> Option<Vec<EndedRow>> {
    let row = |ended: &Arc<Ended>| EndedRow {
        thread_id: ended.thread_id.into(),
        thread_name: ended.thread_name.as_deref().map(str::to_owned),
        how: MANNERS.get(ended.manner as usize).and_then(|(how, _)| how.map(str::to_owned)),
        milliseconds: Some(now.duration_since(ended.at).as_secs_f64() * 1e3),
    };
    (!ended.is_empty()).then(|| ended.iter().map(row).collect())
}

impl Snapshot {
    pub fn rows(&self) -> Rows {
        let rows = |entries: &[Entry]| entries.iter().map(|entry| shown_row(self.now, entry)).collect();
        let cycles = self.cycles.iter().map(|cycle| cycle_rows(self, cycle)).collect();
        Rows { held: rows(&self.held), waiting: rows(&self.waiting), cycles }
    }
}

// ——— JSON ———

impl Row {
    /// Returns the text of its stack; '' if it is unknown.
    pub fn stack(&self) -> &str {
        if let Stack::Text(text) = &self.call { text } else { "" }
    }

    pub fn write(&self, text: &mut Text) -> fmt::Result {
        text.write_char('{')?;
        self.write_fields(text)?;
        text.write_char('}')
    }

    pub fn write_fields(&self, text: &mut Text) -> fmt::Result {
        text.write_str("\"kind\":")?;
        json::string(text, self.kind.encode_utf16())?;
        write_string(text, "mode", self.mode.as_deref())?;
        write_units(text, "name", self.name.as_ref().map(|name| name.iter().copied()))?;
        if let Some(amount) = self.amount {
            write!(text, ",\"amount\":{amount}")?;
        }
        write!(text, ",\"id\":{},\"threadId\":{}", self.id, self.thread_id)?;
        write_string(text, "threadName", self.thread_name.as_deref())?;
        write!(text, ",\"blocked\":{},\"milliseconds\":", self.blocked)?;
        match self.milliseconds {
            Some(milliseconds) => write!(text, "{milliseconds:.3}")?,
            None => text.write_str("null")?,
        }
        let key = if self.is_hold { "taken" } else { "called" };
        match &self.call {
            Stack::Unknown => {}
            Stack::Number(number) => write!(text, ",\"{key}\":{number}")?,
            Stack::Text(stack) => write_string(text, key, Some(stack))?,
        }
        if self.collected {
            text.write_str(",\"collected\":true")?;
        }
        write_string(text, "awaits", self.awaits.as_deref())?;
        let Some(ended) = &self.ended else { return Ok(()) };
        text.write_str(",\"ended\":")?;
        json::array(text, ended, |text, EndedRow { thread_id, thread_name, how, milliseconds }| {
            write!(text, "{{\"threadId\":{thread_id}")?;
            write_string(text, "threadName", thread_name.as_deref())?;
            write_string(text, "how", how.as_deref())?;
            write!(text, ",\"milliseconds\":{:.3}}}", milliseconds.unwrap_or_default())
        })
    }
}

impl RowLink {
    /// Writes it as an object of JSON. `certain`: whether its cycle is, if that is to be said.
    pub fn write(&self, text: &mut Text, certain: Option<bool>) -> fmt::Result {
        let Self { holds, waits_for, .. } = self;
        write!(text, "{{\"threadId\":{},\"holds\":", waits_for.thread_id)?;
        holds.write(text)?;
        text.write_str(",\"waitsFor\":")?;
        waits_for.write(text)?;
        if let Some(certain) = certain {
            write!(text, ",\"blocked\":{},\"certain\":{certain}", waits_for.blocked)?;
        }
        text.write_char('}')
    }
}

/// Writes the links of a cycle. It is certain if all are blocked: then none of them can do anything else.
pub fn write_cycle(text: &mut Text, cycle: &[RowLink]) -> fmt::Result {
    let certain = cycle.iter().all(|link| link.waits_for.blocked);
    json::array(text, cycle, |text, link| link.write(text, Some(certain)))
}

/// Writes a further field, if there is a value.
fn write_string(text: &mut Text, key: &str, value: Option<&str>) -> fmt::Result {
    write_units(text, key, value.map(str::encode_utf16))
}

fn write_units(text: &mut Text, key: &str, value: Option<impl Iterator<Item = u16>>) -> fmt::Result {
    let Some(value) = value else { return Ok(()) };
    write!(text, ",\"{key}\":")?;
    json::string(text, value)
}

/// Writes a snapshot, a line at a time. `dump`: its number.
pub fn write_lines(dump: u32, snapshot: &Snapshot, mut line: impl FnMut(&str)) {
    let Rows { held, waiting, cycles } = snapshot.rows();
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
        let row = |text: &mut Text, entry: &Entry| {
            let call = if entry.call == NONE { Stack::Unknown } else { Stack::Number(entry.call) };
            row(self.now, entry, call).write(text)
        };
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
