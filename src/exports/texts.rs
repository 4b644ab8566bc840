//! Texts about entries that JavaScript has, for people.

use napi::bindgen_prelude::Utf16String;
use napi_derive::napi;

use waitasync_core::observe::{rows, sentences, table};

/// An entry of a snapshot, as JavaScript has it.
#[napi(object, object_to_js = false)]
#[derive(Default)]
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
    /// Who has the lock of several processes behind this name, for which its thread waits.
    pub awaits: Option<String>,
    /// Who has used the memory of the awaited thing, and ended.
    pub ended: Option<Vec<EndedRow>>,
}

/// A thread that has ended, as JavaScript has it.
#[napi(object, object_to_js = false)]
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

/// A link of a cycle, as JavaScript has it.
#[napi(object, object_to_js = false)]
pub struct RowLink {
    /// The thread's hold, or its place.
    pub holds: Row,
    /// The thread's wait.
    pub waits_for: Row,
}

/// A result of `snapshot()`.
#[napi(object, object_to_js = false)]
pub struct Rows {
    /// The holds.
    pub held: Vec<Row>,
    /// The waits; of one lock, in the order of its line.
    pub waiting: Vec<Row>,
    /// Cycles.
    pub cycles: Vec<Vec<RowLink>>,
}

/// A hold whose token was collected, and a wait for it. Also the number of further waits.
#[napi(object, object_to_js = false)]
pub struct Orphan {
    /// The hold.
    pub orphan: Row,
    /// The wait.
    pub wait: Row,
    /// How many more wait.
    pub more: u32,
}

/// Returns the text of a result of `snapshot()`.
#[napi(catch_unwind)]
pub fn format_snapshot(snapshot: Rows) -> String {
    let all = |rows: Vec<Row>| rows.into_iter().map(rows::Row::from).collect();
    let cycles = snapshot.cycles.into_iter().map(|cycle| cycle.into_iter().map(rows::RowLink::from).collect());
    let rows = rows::Rows { held: all(snapshot.held), waiting: all(snapshot.waiting), cycles: cycles.collect() };
    table::text_of_rows(&rows)
}

/// Reports an awaited hold whose token has been collected.
#[napi(catch_unwind)]
pub fn report_orphan(Orphan { orphan, wait, more }: Orphan) -> String {
    sentences::orphan_report(&rows::Orphan { orphan: orphan.into(), wait: wait.into(), more })
}

impl From<Row> for rows::Row {
    fn from(row: Row) -> Self {
        let Row { kind, mode, name, amount, id, thread_id, thread_name, blocked, milliseconds, .. } = row;
        let Row { taken, called, collected, awaits, ended, .. } = row;
        let name = name.map(|name| name.to_vec());
        let ended = ended.map(|all| all.into_iter().map(rows::EndedRow::from).collect());
        Self {
            kind,
            mode,
            name,
            amount,
            id,
            thread_id,
            thread_name,
            blocked,
            milliseconds,
            taken,
            called,
            collected,
            awaits,
            ended,
        }
    }
}

impl From<EndedRow> for rows::EndedRow {
    fn from(EndedRow { thread_id, thread_name, how, milliseconds }: EndedRow) -> Self {
        Self { thread_id, thread_name, how, milliseconds }
    }
}

impl From<RowLink> for rows::RowLink {
    fn from(RowLink { holds, waits_for }: RowLink) -> Self {
        Self { holds: holds.into(), waits_for: waits_for.into() }
    }
}
