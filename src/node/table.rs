//! The text of a snapshot, for people: rings, and then each lock with its holders, and its waiters in the order of its line.
//!
//! ```text
//! 1 held, 2 awaited
//!
//! AsyncLock "accounts", id 4503599627370497
//!   held by  thread 2 "billing0"        exclusive  for at least 5.2 s
//!   blocks   thread 1                   exclusive  for 5.0 s
//!   awaited  by the main thread         exclusive  for 340 ms
//! ```
//!
//! Locks that somebody waits for come first, the longest wait before all others. If stalls are reported, the first frames of the call that took
//! something, or that waits, follow its line.

use std::collections::HashMap;
use std::fmt::Write;

use napi::bindgen_prelude::Utf16String;
use napi_derive::napi;
use rustc_hash::FxBuildHasher;

use crate::lock::request::{Mode, Request};
use crate::lock::rings::Has;
use crate::node::json;
use crate::node::pending::PURPOSE_BITS;
use crate::node::snapshot::{self, Named, Snapshot};
use crate::node::stacks;

/// An entry of a snapshot, as JavaScript has it.
#[napi(object, object_to_js = false)]
pub struct Row {
    /// The class, `named`, or `wait`.
    pub kind: String,
    /// How it is held or awaited, if there are several ways.
    pub mode: Option<String>,
    /// That of the lock.
    pub name: Option<Utf16String>,
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
    pub taken: Option<String>,
    /// The stack of the call that waits.
    pub called: Option<String>,
    /// Whether its token has been collected.
    pub collected: Option<bool>,
}

/// A link of a ring, as JavaScript has it.
#[napi(object, object_to_js = false)]
pub struct RowLink {
    /// What the thread has.
    pub holds: Row,
    /// What the thread waits for.
    pub waits_for: Row,
}

/// What `snapshot()` returns.
#[napi(object, object_to_js = false)]
pub struct Rows {
    /// What is held.
    pub held: Vec<Row>,
    /// What is awaited; of one lock, in the order of its line.
    pub waiting: Vec<Row>,
    /// Rings.
    pub cycles: Vec<Vec<RowLink>>,
}

/// The text of what `snapshot()` has returned.
#[napi(catch_unwind)]
pub fn format_snapshot(snapshot: Rows) -> String {
    let Rows { held, waiting, cycles } = snapshot;
    let rings = cycles.iter().map(|ring| ring.iter().map(|link| (&link.holds, &link.waits_for)).collect());
    text(&held, &waiting, rings)
}

/// The text of a snapshot of this process.
pub(super) fn text_of(snapshot: &Snapshot) -> String {
    let taken = |entry| Row { taken: call_of(entry), ..row(snapshot, entry) };
    let called = |entry| Row { called: call_of(entry), ..row(snapshot, entry) };
    let held: Vec<_> = snapshot.held.iter().map(taken).collect();
    let waiting: Vec<_> = snapshot.waiting.iter().map(called).collect();
    let rings = snapshot.rings.iter().map(|ring| {
        let link = |link: &crate::lock::rings::Link| {
            let has = match link.has {
                Has::Held(index) => &held[index],
                Has::Awaited(index) => &waiting[index],
            };
            (has, &waiting[link.waits_for])
        };
        ring.iter().map(link).collect()
    });
    text(&held, &waiting, rings)
}

/// The kind and the mode of what is requested; of a wait for a notification, by its purpose. `described` in
/// `lib/locks/held/request.js` has the same words.
fn words(request: Option<Request>, purpose: u32) -> (&'static str, Option<&'static str>) {
    let mode = |mode| Some(if mode == Mode::Exclusive { "exclusive" } else { "shared" });
    match request {
        Some(Request::Lock) => ("AsyncLock", mode(Mode::Exclusive)),
        Some(Request::Shared) => ("RwLock", mode(Mode::Shared)),
        Some(Request::Exclusive) => ("RwLock", mode(Mode::Exclusive)),
        Some(Request::Named(how, _)) => ("named", mode(how)),
        Some(Request::Lease(_)) => ("Queue", Some("use")),
        Some(_) => ("Semaphore", Some("permits")),
        None => match purpose % (1 << PURPOSE_BITS) {
            0 => ("wait", None),
            1 => ("Condition", None),
            2 => ("Barrier", None),
            3 => ("Latch", None),
            4 => ("Queue", Some("put")),
            5 => ("Queue", Some("take")),
            _ => ("Queue", Some("use")),
        },
    }
}

fn row(snapshot: &Snapshot, Named(entry, name): &Named) -> Row {
    let (kind, mode) = words(entry.request, entry.purpose);
    let amount = match entry.request {
        Some(Request::Permits(amount) | Request::Signals(amount)) => Some(f64::from(amount)),
        _ => None,
    };
    Row {
        kind: kind.to_owned(),
        mode: mode.map(str::to_owned),
        name: name.as_ref().map(|name| name.to_vec().into()),
        amount,
        id: snapshot::id(entry.place()) as f64,
        thread_id: entry.thread_id.into(),
        thread_name: entry.thread_name.as_deref().map(str::to_owned),
        blocked: entry.blocked,
        milliseconds: snapshot.age(entry.since).map(|age| age.as_secs_f64() * 1e3),
        taken: None,
        called: None,
        collected: entry.is_orphaned.then_some(true),
    }
}

/// So much of an entry's stack as is shown.
fn call_of(Named(entry, _): &Named) -> Option<String> {
    let stack = stacks::shown(entry.call)?;
    Some(stack.lines().take(MOST_PLACES).collect::<Vec<_>>().join("\n"))
}

/// What is held of a lock, and what is awaited.
#[derive(Default)]
struct Section<'a> {
    held: Vec<&'a Row>,
    waiting: Vec<&'a Row>,
}

impl Section<'_> {
    fn longest_wait(&self) -> f64 {
        self.waiting.iter().map(|row| row.milliseconds.unwrap_or(0.0)).fold(-1.0, f64::max)
    }
}

/// The rows by lock.
fn sections<'a>(held: &'a [Row], waiting: &'a [Row]) -> Vec<Section<'a>> {
    let mut sections: Vec<Section> = Vec::new();
    let mut index = HashMap::<_, _, FxBuildHasher>::default();
    let both = held.iter().map(|row| (row, true)).chain(waiting.iter().map(|row| (row, false)));
    for (row, is_held) in both {
        let at = *index.entry((row.id.to_bits(), row.kind.as_str())).or_insert_with(|| {
            sections.push(Section::default());
            sections.len() - 1
        });
        let Section { held, waiting } = &mut sections[at];
        if is_held { held } else { waiting }.push(row);
    }
    sections.sort_by(|a, b| b.longest_wait().total_cmp(&a.longest_wait()));
    sections
}

fn text<'a>(held: &'a [Row], waiting: &'a [Row], rings: impl Iterator<Item = Vec<(&'a Row, &'a Row)>>) -> String {
    let mut text = format!("{} held, {} awaited\n", held.len(), waiting.len());
    for ring in rings {
        text.push_str("\nThese threads wait for one another:\n");
        for (n, (_, waits_for)) in ring.iter().enumerate() {
            push_link(&mut text, waits_for, ring[(n + 1) % ring.len()]);
        }
    }
    for section in sections(held, waiting) {
        push_section(&mut text, &section);
    }
    text
}

fn push_link(text: &mut String, waits_for: &Row, next: (&Row, &Row)) {
    let verb = if waits_for.blocked { "is blocked, and waits" } else { "awaits" };
    let preposition = if waits_for.blocked { " for" } else { "" };
    // If the next thread does not hold it, that thread is ahead in its line.
    let (relation, verb_of_next) =
        if next.0.id.to_bits() == next.1.id.to_bits() { ("behind", "") } else { ("that", " holds") };
    let (thread, lock, next) = (thread_of(waits_for), lock_of(waits_for), thread_of(next.0));
    _ = writeln!(text, "  {thread} {verb}{preposition} {lock} {relation} {next}{verb_of_next}");
}

/// The columns of a row.
struct Line<'a> {
    verb: &'static str,
    thread: String,
    mode: String,
    duration: String,
    row: &'a Row,
}

impl<'a> Line<'a> {
    fn of_hold(row: &'a Row) -> Self {
        let thread = thread_of(row) + if row.blocked { " (blocked)" } else { "" };
        let prefix = if row.taken.is_some() { "for " } else { "for at least " };
        Self { verb: "held by", thread, mode: mode_of(row), duration: duration(prefix, row.milliseconds), row }
    }

    fn of_wait(row: &'a Row) -> Self {
        let verb = if row.blocked { "blocks" } else { "awaited by" };
        Self { verb, thread: thread_of(row), mode: mode_of(row), duration: duration("for ", row.milliseconds), row }
    }
}

fn push_section(text: &mut String, Section { held, waiting }: &Section) {
    let lines = held.iter().map(|row| Line::of_hold(row)).chain(waiting.iter().map(|row| Line::of_wait(row)));
    let lines: Vec<_> = lines.collect();
    let Some(first) = lines.first() else { return };
    _ = writeln!(text, "\n{}, id {}", lock_of(first.row), first.row.id);
    let width = |column: for<'a> fn(&'a Line<'a>) -> &'a str| {
        lines.iter().map(|line| column(line).chars().count()).max().unwrap_or(0)
    };
    let (verbs, threads, modes) = (width(|line| line.verb), width(|line| &line.thread), width(|line| &line.mode));
    for Line { verb, thread, mode, duration, row } in &lines {
        let line = format!("  {verb:verbs$}  {thread:threads$}  {mode:modes$}  {duration}");
        _ = writeln!(text, "{}", line.trim_end());
        for place in row.taken.iter().chain(&row.called).flat_map(|stack| stack.lines()).take(MOST_PLACES) {
            _ = writeln!(text, "      {}", place.trim());
        }
        if row.collected == Some(true) {
            let releaser =
                if row.kind == "AsyncLock" { "lock.unlock() in that thread" } else { "the end of that thread" };
            _ = writeln!(text, "      its token has been collected: only {releaser} releases it");
        }
    }
}

/// How many frames of a stack are shown.
const MOST_PLACES: usize = 3;

fn thread_of(row: &Row) -> String {
    match (&row.thread_name, row.thread_id) {
        (Some(name), id) => format!("thread {id} {name:?}"),
        (None, 0.0) => "the main thread".to_owned(),
        (None, id) => format!("thread {id}"),
    }
}

fn lock_of(row: &Row) -> String {
    let kind = match row.kind.as_str() {
        "named" => "the lock named",
        "wait" => "Atomics.wait",
        kind => kind,
    };
    match row.name.as_deref() {
        Some(name) => format!("{kind} {}", quoted(name)),
        None => kind.to_owned(),
    }
}

fn quoted(name: &[u16]) -> String {
    json::text(|text| json::string(text, name)).unwrap_or_default()
}

fn mode_of(row: &Row) -> String {
    match (row.amount, row.mode.as_deref()) {
        (Some(1.0), _) => "1 permit".to_owned(),
        (Some(amount), _) => format!("{amount} permits"),
        (None, mode) => mode.unwrap_or_default().to_owned(),
    }
}

fn duration(prefix: &str, milliseconds: Option<f64>) -> String {
    let Some(milliseconds) = milliseconds.filter(|milliseconds| !milliseconds.is_nan()) else { return String::new() };
    let seconds = milliseconds / 1e3;
    let time = match seconds {
        ..1.0 => format!("{milliseconds:.0} ms"),
        ..60.0 => format!("{seconds:.1} s"),
        ..3600.0 => format!("{:.0} min {:.0} s", (seconds / 60.0).floor(), seconds % 60.0),
        _ => format!("{:.0} h {:.0} min", (seconds / 3600.0).floor(), seconds % 3600.0 / 60.0),
    };
    prefix.to_owned() + &time
}
