//! What is reported to those who observe the agents of a process.

use waitasync_core::lock::tracked_buffers::AgentId;
use waitasync_core::lock::wait_for_graph::CycleLink;

pub(crate) struct Observer {
    /// Describes a cycle, which a thread is about to close, for that thread's error.
    pub(crate) describe: fn(&[CycleLink]) -> String,
    /// Called when a thread has slept.
    pub(crate) slept: fn(AgentId),
    /// Whether the thread with this `threadId` has something to publish.
    pub(crate) has_news: fn(u32) -> bool,
    /// Called in turn when an agent ends, with its `threadId`, too: it holds and awaits nothing any more.
    pub(crate) ended: &'static [fn(AgentId, u32)],
}
