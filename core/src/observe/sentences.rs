//! Sentences about entries of a snapshot, for people: holders, where they took it, waiters, and cycles.

use std::fmt::Write;
use std::sync::Arc;

use super::rows::{EndedRow, MANNERS, NOTIFIED, Row, RowLink, link_rows, shown_row};
use super::snapshot::Snapshot;
use super::survey::{Entry, JUST_BEGUN, What, entry};
use crate::clock::now;
use crate::held::{Held, Known, NONE, Process, Registered};
use crate::json;
use crate::lock::Mode;
use crate::lock::wait_for_graph::{CycleLink, Obstacle};

/// Writes a cycle, a line a link, below a headline.
pub fn cycle_text(cycle: &[RowLink]) -> String {
    format!("{}:\n{}", headline(cycle), cycle_lines(cycle))
}

pub fn cycle_lines(cycle: &[RowLink]) -> String {
    let frames = DistinctFrames::of_rows(cycle.iter().flat_map(|link| [&link.holds, &link.waits_for]));
    let mut text = String::new();
    for (n, RowLink { waits_for, .. }) in cycle.iter().enumerate() {
        let obstacle = obstacle_text(&cycle[(n + 1) % cycle.len()].holds, &frames);
        _ = writeln!(text, "  {}, {obstacle}", wait_text(&thread_of(waits_for), waits_for, &frames));
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

/// Says who is ahead in a line; or who holds it, since when, where taken, and whether its token is gone.
/// For example: `held for 5.2 s by thread 2 "billing0", taken at charge (billing.js:27:18)`.
pub fn obstacle_text(row: &Row, frames: &DistinctFrames) -> String {
    if !row.is_hold {
        let mode = row.mode.as_deref().unwrap_or_default();
        return format!("behind {}, which requests it ({mode}){}", thread_of(row), frames.of(" ", row));
    }
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
    row.collected.then(|| format!("its token has been collected: {release} releases it"))
}

/// Says, for example: `thread 4 "builder3", which used this memory, was terminated 5.4 s ago`.
pub fn ended_text(row: &EndedRow) -> String {
    let (thread, time) = (thread_called(row.thread_name.as_deref(), row.thread_id), duration(" ", row.milliseconds));
    let ago = if time.is_empty() { "" } else { " ago" };
    // Others than ours are as if that were unknown.
    let (_, how) = MANNERS.iter().find(|(how, _)| *how == row.how.as_deref()).unwrap_or(&MANNERS[0]);
    format!("{thread}, which used this memory, {how}{time}{ago}")
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

/// Returns a noun phrase for the thing awaited. `nounOf` in `lib/waiting/errors.js` has the same words.
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
        notified => {
            let row = NOTIFIED.iter().find(|&&(kind, mode, _)| (kind, mode) == notified);
            row.map_or("", |(.., part)| part).to_owned() + &one("a")
        }
    }
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
    if row.is_hold && !row.stack().is_empty() { "for " } else { "for at least " }
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

// ——— Where calls were ———

/// The stacks of a text. Each is shown by its innermost frame, and, if others there have the same, by the first of its
/// callers that differs: a program may take all its locks in one function.
pub struct DistinctFrames(Vec<Vec<String>>);

impl DistinctFrames {
    pub fn of_rows<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Self {
        Self(rows.into_iter().map(|row| frames_of(row.stack())).collect())
    }

    /// Says where a row's call was, behind a prefix; '' if that is unknown.
    pub fn of(&self, prefix: &str, row: &Row) -> String {
        let frames = frames_of(row.stack());
        let Some(innermost) = frames.first() else { return String::new() };
        let in_common = |other: &Vec<String>| frames.iter().zip(other).take_while(|(one, other)| one == other).count();
        let same = self.0.iter().filter(|other| **other != frames).map(in_common).max().unwrap_or_default();
        let caller = frames.get(same).filter(|_| same > 0);
        let caller = caller.map_or_else(String::new, |caller| format!(", called {caller}"));
        format!("{prefix}{innermost}{caller}")
    }
}

/// Lists the frames of a stack, without built-in functions. A function that awaits counts only where no other is left.
pub fn frames_of(stack: &str) -> Vec<String> {
    let frames = stack.lines().map(str::trim).filter(|frame| !frame.ends_with("(<anonymous>)"));
    // Not a function of the name `async`.
    let awaits = |frame: &&str| frame.contains("at async ") && !frame.contains("at async (");
    let (awaiting, others): (Vec<_>, Vec<_>) = frames.partition(awaits);
    if !others.is_empty() {
        return others.into_iter().map(str::to_owned).collect();
    }
    awaiting.into_iter().map(|frame| frame.replacen("async ", "", 1)).collect()
}

// ——— The report of a wait that is on no cycle ———

/// How many holders a report describes.
const MOST_HOLDERS: usize = 3;

impl Snapshot {
    /// Returns the claim that keeps one without holders waiting: for a share a writer's; or the first in line, if its
    /// thread does not take what is free.
    fn claim_ahead(&self, process: &Process, index: usize) -> Option<usize> {
        let waiting = &self.waiting;
        let mode = waiting[index].mode()?;
        let is_ahead = |entry: &Entry| entry.location == waiting[index].location && entry.mode().is_some();
        let is_writer = |entry: &Entry| is_ahead(entry) && entry.mode() == Some(Mode::Exclusive);
        let writer = waiting[..index].iter().rposition(is_writer).filter(|_| mode == Mode::Shared);
        let is_stuck = |index: &usize| self.is_stuck(process, waiting[*index].thread_id);
        writer.or_else(|| waiting[..index].iter().position(is_ahead).filter(is_stuck))
    }

    /// Whether a thread leaves its mail, or is blocked.
    fn is_stuck(&self, process: &Process, thread_id: u32) -> bool {
        let blocks = self.waiting.iter().any(|wait| wait.thread_id == thread_id && wait.blocked);
        let is_it = |agent: &Registered| agent.known.thread_id == thread_id;
        blocks || process.registry.find(is_it, |agent| agent.known.outbox.has_mail()).unwrap_or_default()
    }

    pub fn report_text(&self, process: &Process, index: usize, more: usize, holders: &[usize]) -> String {
        let entry = &self.waiting[index];
        let row = shown_row(self.now, entry);
        let (thread, noun, time) = (thread_of(&row), noun_of(&row), duration("for ", row.milliseconds));
        let mut text = if entry.blocked {
            format!("{}{} has been blocked {time} waiting for {noun}", thread[..1].to_uppercase(), &thread[1..])
        } else {
            format!("A promise of {thread} has been pending {time} waiting for {noun}")
        };
        if more > 0 {
            _ = write!(text, ", and {more} more");
        }
        let ahead = if holders.is_empty() { self.claim_ahead(process, index) } else { None };
        let obstacles = holders.iter().take(MOST_HOLDERS).map(|&holder| &self.held[holder]);
        let obstacles = obstacles.chain(ahead.map(|claim| &self.waiting[claim]));
        let rows: Vec<_> = obstacles.map(|obstacle| shown_row(self.now, obstacle)).collect();
        let frames = DistinctFrames::of_rows(rows.iter().chain([&row]));
        let line = |row: &Row| {
            let elsewhere = elsewhere_text(row).filter(|_| row.is_hold);
            let doing = elsewhere.unwrap_or_else(|| self.doing_of(process, entry, row.thread_id as u32, &frames));
            obstacle_text(row, &frames) + "; " + &doing
        };
        let mut blockers: Vec<_> = rows.iter().map(line).collect();
        if holders.len() > MOST_HOLDERS {
            blockers.push(format!("{} more", holders.len() - MOST_HOLDERS));
        }
        blockers.extend(row.ended.iter().flatten().map(ended_text));
        match blockers.as_slice() {
            [] if entry.mode().is_some() => match &entry.holder_elsewhere {
                Some(process) => _ = write!(text, ", held by {process}."),
                None => text.push_str(", of which no holder is known."),
            },
            [] => text.push('.'),
            _ => _ = write!(text, ":\n  {}", blockers.join("\n  ")),
        }
        text
    }

    /// Says in which way a thread keeps another one waiting.
    fn doing_of(&self, process: &Process, wait: &Entry, thread_id: u32, frames: &DistinctFrames) -> String {
        if thread_id == wait.thread_id {
            return "it is the same thread".to_owned();
        }
        let waits: Vec<_> = self.waiting.iter().filter(|entry| entry.thread_id == thread_id).collect();
        let text = |entry| wait_text("it", &shown_row(self.now, entry), frames);
        // A blocked thread waits for that alone.
        if let Some(blocked) = waits.iter().find(|entry| entry.blocked) {
            return text(blocked);
        }
        if self.is_stuck(process, thread_id) {
            return "it is busy, or blocked, for example in Node's Atomics.wait".to_owned();
        }
        let elsewhere = process.awaited_elsewhere(thread_id);
        match (waits.as_slice(), elsewhere) {
            (_, Some((name, holder))) => format!("it waits for {holder}, which has the lock {}", quoted(&name)),
            ([], None) => "it waits for no lock of this package".to_owned(),
            ([only], None) => text(only),
            ([first, ..], None) => format!("{}, and {} more", text(first), waits.len() - 1),
        }
    }
}

// ——— A deadlock ———

/// Describes the cycle that a thread would have closed, as JSON: its text, and its links. For `cycleOf` in
/// `lib/waiting/errors.js`.
pub fn refused_cycle(process: &Process, links: &[CycleLink]) -> String {
    let is_linked = |agent: &Known| links.iter().any(|link| Arc::ptr_eq(&link.blocked.thread, &agent.blocked_thread));
    let (known, held) =
        process.registry.held(is_linked, |location| links.iter().any(|link| link.blocked.location == location));
    let now = now();
    let link = |(CycleLink { blocked, obstacle }, before): (&CycleLink, &CycleLink)| {
        let wanted = before.blocked.location;
        let index = known.iter().position(|agent| Arc::ptr_eq(&agent.blocked_thread, &blocked.thread))?;
        let agent = &known[index];
        // A thread whose claim has joined the line may not sleep yet.
        let sleep = agent.notes.sleep();
        let (since, call) = (sleep.map(|sleep| sleep.since).or(JUST_BEGUN), sleep.map_or(NONE, |sleep| sleep.call));
        let entry = |location, what, since| Entry { blocked: true, ..entry(agent, location, what, since) };
        let holds = match *obstacle {
            Obstacle::Holds(has) => {
                let is_it = |&&(holder, held): &&(usize, Held)| holder == index && held.location == wanted;
                let its = held.iter().find(is_it).map(|(_, held)| held);
                let since = its.and_then(|held| process.held_since(agent, held, process.store.held_since(wanted)));
                let taken = its.and_then(|held| agent.notes.taken(held.serial));
                entry(wanted, What::Holds(has), since.or(JUST_BEGUN)).with_taken(taken)
            }
            Obstacle::IsAhead(request) => Entry { call, ..entry(wanted, What::Requests(request), since) },
        };
        let waits_for = Entry { call, ..entry(blocked.location, What::Requests(blocked.request), since) };
        Some((holds.named(process)?, waits_for.named(process)?))
    };
    // A thread has the lock or place that the one before it in the cycle waits for.
    let before = links.last().into_iter().chain(links);
    let links: Vec<_> = links.iter().zip(before).filter_map(link).collect();
    let rows: Vec<_> = links.iter().map(|(has, waits_for)| link_rows(now, (has, waits_for))).collect();
    json::text(|text| {
        text.write_str("{\"text\":")?;
        json::string(text, cycle_lines(&rows).trim_end().encode_utf16())?;
        text.write_str(",\"links\":")?;
        json::array(text, &rows, |text, link| link.write(text, None))?;
        text.write_char('}')
    })
}
