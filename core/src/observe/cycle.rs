//! The cycle of threads that a thread would have closed.

use std::fmt::Write;
use std::sync::Arc;

use super::rows::Stack;
use super::sentences::{cycle_lines, link_rows};
use super::snapshot::Entries;
use super::survey::{Entry, JUST_BEGUN, What, entry};
use crate::clock::now;
use crate::held::{Held, Known, NONE, Process};
use crate::json;
use crate::lock::wait_for_graph::{CycleLink, Obstacle};

/// Describes a cycle as JSON, for `cycleOf` in `lib/holding/snapshot-entries.js`: its text, and its links.
pub fn described(process: &Process, links: &[CycleLink]) -> String {
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
    let links: Vec<Entries<'_>> = links.iter().map(|(has, waits_for)| (has, waits_for)).collect();
    let rows: Vec<_> = links.iter().map(|&link| link_rows(now, link, Stack::shown)).collect();
    json::text(|text| {
        text.write_str("{\"text\":")?;
        json::string(text, cycle_lines(&rows).trim_end().encode_utf16())?;
        text.write_str(",\"links\":")?;
        json::array(text, &links, |text, &link| link_rows(now, link, Stack::number).write(text, None))?;
        text.write_char('}')
    })
}
