//! The sweep: one thread tries the names that have no thread of their own, now and then.

use std::thread::sleep;
use std::time::Duration;

use super::{Answer, MOST_THREADS, NOBODY, Table, fail, has_requests, is_passing, pop, with_table};
use waitasync_core::panics::contained;

const SWEEP: Duration = Duration::from_millis(50);

/// Tries the names that have no thread, until there are none.
pub(super) fn sweep_all() {
    loop {
        sleep(SWEEP);
        let names = with_table(|table| {
            // Perhaps there may be more threads now. Those without work take swept names.
            let _ = (0..table.swept.len()).all(|_| table.threads < MOST_THREADS && table.start_idle());
            table.is_sweeping = !table.swept.is_empty();
            table.swept.len()
        });
        if names == 0 {
            return;
        }
        for _ in 0..names {
            contained(sweep_one);
        }
    }
}

fn sweep_one() {
    let Some(name) = with_table(|table| table.swept.pop_front()) else { return };
    if !has_requests(&name, NOBODY) {
        return;
    }
    let first = |table: &mut Table| Some(table.lines.get(&name)?.requests.front()?.description.clone());
    let description = with_table(first).unwrap_or_default();
    // The request stays in its line meanwhile: if it is aborted, the lock is given back.
    match name.take(&description) {
        Ok(Some(grant)) => match pop(&name, NOBODY) {
            Some(request) => request.mailbox.answer(request.number, Answer::Granted(grant)),
            None => grant.return_unused(),
        },
        Ok(None) => {}
        Err(error) if is_passing(&error) => {}
        Err(error) => fail(&name, NOBODY, &error),
    }
    if has_requests(&name, NOBODY) {
        with_table(|table| table.swept.push_back(name));
    }
}
