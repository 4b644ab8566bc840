//! Where threads are.

use std::collections::BTreeMap;

/// What a thread does.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Activity {
    /// It runs JavaScript: a line for each frame, the innermost first.
    Runs(String),
    /// Its event loop has nothing to do.
    Idle,
    /// It runs something else than JavaScript: it has not answered for so many milliseconds.
    Silent(u32),
    /// The helper has not answered.
    Unknown,
}

impl Activity {
    /// Describes it, for people: up to ten lines.
    pub fn lines(&self) -> Vec<String> {
        match self {
            Self::Runs(frames) => frames.lines().map(|line| line.trim().to_owned()).collect(),
            Self::Idle => vec!["idle, in its event loop".to_owned()],
            Self::Silent(milliseconds) => {
                vec![format!("in native code, or short of processor time: no answer for {milliseconds} ms")]
            }
            Self::Unknown => {
                vec!["unknown: the question goes by way of the main thread, and no answer came".to_owned()]
            }
        }
    }

    /// Describes it in one line.
    pub fn line(&self) -> String {
        self.lines().swap_remove(0)
    }
}

/// A thread, as the helper answers.
#[derive(Clone)]
pub struct Whereabouts {
    /// Its name, where the inspector has it.
    pub name: Option<String>,
    pub activity: Activity,
}

/// The threads that the helper has answered for, by their `threadId`.
pub type Threads = BTreeMap<u32, Whereabouts>;
