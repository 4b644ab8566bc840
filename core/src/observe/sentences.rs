//! Sentences about entries of a snapshot, for people: holders, where they took it, waiters, and cycles.
//!
//! Dumps, `formatSnapshot` and reports of stalls are made of them.

use std::fmt::Write;

use super::distinct_frames::DistinctFrames;
use super::ended::{ended_rows, words_of};
use super::rows::{EndedRow, Row, RowLink, Stack};
use super::snapshot::{self, Entries, Snapshot};
use super::survey::{Entry, What};
use crate::clock::Timestamp;
use crate::held::{StackId, WAIT_KIND_BITS};
use crate::json;
use crate::lock::cycles::Link;
use crate::lock::{Hold, Mode};

/// What users read of each wait kind, the kind, the mode and the awaited part: `NOTIFIED` in `lib/waiting/kinds.js`.
const NOTIFIED: &[(&str, Option<&str>, &str)] = &[
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

/// Returns the kind and the mode of a hold, request or wait. `described` in `lib/holding/request.js` has the same words.
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

/// Makes the row of an entry for people.
pub fn shown_row(now: Timestamp, entry: &Entry) -> Row {
    row(now, entry, Stack::shown)
}

pub fn link_rows(now: Timestamp, (has, waits_for): Entries<'_>, stack: fn(StackId) -> Stack) -> RowLink {
    RowLink { holds: row(now, has, stack), waits_for: row(now, waits_for, stack), is_ahead: !has.what.is_hold() }
}

pub fn cycle_rows(snapshot: &Snapshot, cycle: &[Link], stack: fn(StackId) -> Stack) -> Vec<RowLink> {
    cycle.iter().map(|link| link_rows(snapshot.now, snapshot.entries(link), stack)).collect()
}

/// Makes the row of an entry.
pub fn row(now: Timestamp, entry: &Entry, stack: fn(StackId) -> Stack) -> Row {
    // Whole microseconds of both, so that their sum is the same in every snapshot.
    let micros = |moment: Timestamp| moment.as_nanos() / 1000;
    let (call, unknown) = (stack(entry.call), Stack::Unknown);
    let (taken, called) = if entry.what.is_hold() { (call, unknown) } else { (unknown, call) };
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
        taken,
        called,
        collected: entry.is_orphaned.then_some(true),
        awaits: entry.holder_elsewhere.as_deref().map(str::to_owned),
        ended: ended_rows(now, &entry.ended),
    }
}

/// Writes a cycle, a line a link, below a headline.
pub fn cycle_text(cycle: &[RowLink]) -> String {
    format!("{}:\n{}", headline(cycle), cycle_lines(cycle))
}

pub fn cycle_lines(cycle: &[RowLink]) -> String {
    let (mut text, frames) = (String::new(), DistinctFrames::of_cycle(cycle));
    for (n, RowLink { waits_for, .. }) in cycle.iter().enumerate() {
        let RowLink { holds: has, is_ahead, .. } = &cycle[(n + 1) % cycle.len()];
        let ahead = if *is_ahead { ahead_text(has, &frames) } else { holder_text(has, &frames) };
        _ = writeln!(text, "  {}, {ahead}", wait_text(&thread_of(waits_for), waits_for, &frames));
    }
    text
}

/// Chooses the sentence for a cycle. Where a thread only awaits, another task of it may go on.
fn headline(cycle: &[RowLink]) -> &'static str {
    let thread = |link: &RowLink| link.waits_for.thread_id.to_bits();
    let is_of_one = cycle.iter().all(|link| thread(link) == thread(&cycle[0]));
    if cycle.iter().all(|link| link.waits_for.blocked) {
        "These threads wait for one another"
    } else if !is_of_one {
        "These threads probably wait for one another"
    } else if cycle.len() > 1 {
        "These tasks of one thread probably wait for one another"
    } else {
        "This task probably waits for what it holds itself"
    }
}

/// Says for which process a holder of this name waits.
pub fn elsewhere_text(row: &Row) -> Option<String> {
    row.awaits.as_ref().map(|holder| format!("it waits for {holder}, which has the lock"))
}

/// Says who holds it, since when, and where taken.
///
/// And whether its token is gone. For example: `held for 5.2 s by thread 2 "billing0", taken at charge (billing.js:27:18)`.
pub fn holder_text(row: &Row, frames: &DistinctFrames) -> String {
    let what = match row.mode.as_deref() {
        Some("use") => "a message in use".to_owned(),
        Some("permits") => mode_of(row) + " held",
        Some("shared") => "held (shared)".to_owned(),
        _ => "held".to_owned(),
    };
    let (duration, place) = (duration(&format!(" {}", hold_prefix(row)), row.milliseconds), frames.of(", taken ", row));
    let orphan = orphan_text(row).map_or_else(String::new, |text| format!(", {text}"));
    format!("{what}{duration} by {}{place}{orphan}", thread_of(row))
}

/// Says that no token can release this hold any more, if so.
pub fn orphan_text(row: &Row) -> Option<String> {
    let release = match &*row.kind {
        "AsyncLock" => "only lock.unlock() in that thread",
        "named" => "only the end of that thread or a steal",
        _ => "only the end of that thread",
    };
    (row.collected == Some(true)).then(|| format!("its token has been collected: {release} releases it"))
}

/// Says, for example: `thread 4 "builder3", which used this memory, was terminated 5.4 s ago`.
pub fn ended_text(row: &EndedRow) -> String {
    let (thread, time) = (thread_called(row.thread_name.as_deref(), row.thread_id), duration(" ", row.milliseconds));
    let ago = if time.is_empty() { "" } else { " ago" };
    format!("{thread}, which used this memory, {}{time}{ago}", words_of(row.how.as_deref()))
}

/// Says who is ahead in a line.
pub fn ahead_text(row: &Row, frames: &DistinctFrames) -> String {
    let mode = row.mode.as_deref().unwrap_or_default();
    format!("behind {}, which requests it ({mode}){}", thread_of(row), frames.of(" ", row))
}

/// Says who waits, for how long, where, and for which thing.
pub fn wait_text(subject: &str, row: &Row, frames: &DistinctFrames) -> String {
    let (noun, place) = (noun_of(row), frames.of(" ", row));
    let duration = duration(" for ", row.milliseconds);
    if row.blocked && row.kind == "wait" {
        format!("{subject} has been blocked{duration} in Atomics.wait{place}")
    } else if row.blocked {
        format!("{subject} has been blocked{duration}{place} waiting for {noun}")
    } else if duration.is_empty() {
        format!("{subject} awaits {noun}{place}")
    } else {
        format!("{subject} has awaited {noun}{duration}{place}")
    }
}

/// Returns a noun phrase for the thing awaited. `nounOf` in `lib/waiting/kinds.js` has the same words.
pub fn noun_of(row: &Row) -> String {
    let one = |article: &str| match row.name.as_deref() {
        Some(name) => format!("{} {}", row.kind, quoted(shortened(name))),
        None => format!("{article} {}", row.kind),
    };
    match (row.kind.as_str(), row.mode.as_deref()) {
        ("named", _) => format!("the lock named {}", quoted(shortened(row.name.as_deref().unwrap_or_default()))),
        ("wait", _) => "a notification".to_owned(),
        ("AsyncLock", _) => one("an"),
        ("RwLock", mode) => format!("{} ({})", one("an"), mode.unwrap_or_default()),
        ("Semaphore", _) => "permits of ".to_owned() + &one("a"),
        (kind, mode) => part_of(kind, mode).to_owned() + &one("a"),
    }
}

fn part_of(kind: &str, mode: Option<&str>) -> &'static str {
    let row = NOTIFIED.iter().find(|(of_kind, of_mode, _)| (*of_kind, *of_mode) == (kind, mode));
    row.map_or("", |(.., part)| part)
}

fn shortened(name: &[u16]) -> &[u16] {
    const LONGEST: usize = 256;
    &name[..name.len().min(LONGEST)]
}

/// How many frames of a stack are shown.
pub const MOST_PLACES: usize = 3;

pub fn thread_of(row: &Row) -> String {
    thread_called(row.thread_name.as_deref(), row.thread_id)
}

pub fn thread_called(name: Option<&str>, id: f64) -> String {
    match (name, id) {
        (Some(name), id) => format!("thread {id} {name:?}"),
        (None, 0.0) => "the main thread".to_owned(),
        (None, id) => format!("thread {id}"),
    }
}

pub fn lock_of(row: &Row) -> String {
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

pub fn quoted(name: &[u16]) -> String {
    json::text(|text| json::string(text, name.iter().copied()))
}

pub fn mode_of(row: &Row) -> String {
    match (row.amount, row.mode.as_deref()) {
        (Some(1.0), _) => "1 permit".to_owned(),
        (Some(amount), _) => format!("{amount} permits"),
        (None, mode) => mode.unwrap_or_default().to_owned(),
    }
}

/// Chooses the words before a hold's time. Where the call is known that took it, so is the moment.
pub fn hold_prefix(row: &Row) -> &'static str {
    if row.taken.text().is_some() { "for " } else { "for at least " }
}

pub fn duration(prefix: &str, milliseconds: Option<f64>) -> String {
    let Some(milliseconds) = milliseconds.filter(|milliseconds| !milliseconds.is_nan()) else { return String::new() };
    // Rounded first: otherwise 119.7 s were 1 min 60 s.
    let [tenths, seconds, minutes] = [100.0, 1e3, 60e3].map(|unit| (milliseconds / unit).round());
    let time = if milliseconds.round() < 1e3 {
        format!("{milliseconds:.0} ms")
    } else if tenths < 600.0 {
        format!("{:.1} s", tenths / 10.0)
    } else if seconds < 3600.0 {
        format!("{:.0} min {:.0} s", (seconds / 60.0).floor(), seconds % 60.0)
    } else {
        format!("{:.0} h {:.0} min", (minutes / 60.0).floor(), minutes % 60.0)
    };
    prefix.to_owned() + &time
}
