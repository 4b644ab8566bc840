//! Entries of a snapshot, as users have them: of these, objects, texts and JSON are made.

use std::fmt::{self, Write};
use std::sync::Arc;

use crate::held::stacks;
use crate::held::{NONE, StackId};
use crate::json::{self, Text};

/// The stack of a call.
#[derive(Default)]
pub enum Stack {
    #[default]
    Unknown,
    /// As JavaScript gets it: of all entries with one stack, it makes one text.
    Number(StackId),
    Text(Arc<str>),
}

impl Stack {
    pub const fn number(call: StackId) -> Self {
        if call == NONE { Self::Unknown } else { Self::Number(call) }
    }

    pub fn shown(call: StackId) -> Self {
        stacks::shown(call).map_or(Self::Unknown, Self::Text)
    }

    pub fn text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }
}

/// An entry of a snapshot, as users have it.
#[derive(Default)]
pub struct Row {
    /// The class, `named`, or `wait`.
    pub kind: String,
    /// How it is held or awaited, if there are several ways.
    pub mode: Option<String>,
    /// That of the lock.
    pub name: Option<Vec<u16>>,
    /// How many permits.
    pub amount: Option<f64>,
    /// The number of the lock.
    pub id: f64,
    /// That of `worker_threads`.
    pub thread_id: f64,
    /// That of `worker_threads`.
    pub thread_name: Option<String>,
    /// Whether the thread is blocked.
    pub blocked: bool,
    /// For how long.
    pub milliseconds: Option<f64>,
    /// The stack of the call that took it.
    pub taken: Stack,
    /// The stack of the call that waits.
    pub called: Stack,
    /// Whether its token has been collected.
    pub collected: Option<bool>,
    /// The process for which it waits: it has the lock of several processes behind this name, or in shared memory.
    pub awaits: Option<String>,
    /// Who has used the memory of the awaited thing, and ended.
    pub ended: Option<Vec<EndedRow>>,
}

/// A thread that has ended, as users have it.
pub struct EndedRow {
    /// That of `worker_threads`.
    pub thread_id: f64,
    /// That of `worker_threads`.
    pub thread_name: Option<String>,
    /// How it ended, if that is known.
    pub how: Option<String>,
    /// How long ago.
    pub milliseconds: Option<f64>,
}

/// A link of a cycle, as users have it.
pub struct RowLink {
    /// The thread's hold, or its place.
    pub holds: Row,
    /// The thread's wait.
    pub waits_for: Row,
    /// Whether the thread is an obstacle by its wait: it is ahead in the line, though it may hold the word, too.
    pub is_ahead: bool,
}

/// A result of `snapshot()`.
pub struct Rows {
    /// The holds.
    pub held: Vec<Row>,
    /// The waits; of one lock, in the order of its line.
    pub waiting: Vec<Row>,
    /// Cycles.
    pub cycles: Vec<Vec<RowLink>>,
}

impl Row {
    /// Writes it as an object of JSON.
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
        for (key, stack) in [("taken", &self.taken), ("called", &self.called)] {
            match stack {
                Stack::Unknown => {}
                Stack::Number(number) => write!(text, ",\"{key}\":{number}")?,
                Stack::Text(stack) => write_string(text, key, Some(stack))?,
            }
        }
        if self.collected == Some(true) {
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
