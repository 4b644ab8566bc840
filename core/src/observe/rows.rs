//! Entries of a snapshot, as users have them.

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

/// A hold whose token was collected, and a wait for it. Also the number of further waits.
pub struct Orphan {
    /// The hold.
    pub orphan: Row,
    /// The wait.
    pub wait: Row,
    /// How many more wait.
    pub more: u32,
}
