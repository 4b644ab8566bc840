//! Registering promises of many agents in one bucket, against one agent's: `npm run bench -- --only agents`.
//!
//! The queue alone, since as many threads do not fit into a machine. Prints the nanoseconds of a registration, a line
//! for each round: those with one agent, with many, and with many again.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use waitasync_core::clock::{Timestamp, now};
use waitasync_core::lock::{Outbox, Waiter, WaiterListStore};
use waitasync_core::queue::{Location, Withdrawal};

const HERE: Location = Location::from_address(0x1_0000);
const AGENTS: usize = 1000;
/// How many are registered in a sample, of each agent the same number.
const TIMES: u32 = 20_000;

fn nanos_of_registering(agents: usize) -> f64 {
    let store = WaiterListStore::new(1, now);
    let outboxes: Vec<_> = (0..agents).map(|_| Arc::new(Outbox::new(Box::new(|| {})))).collect();
    let outbox_of = |slot: u32| &outboxes[slot as usize % agents];
    let register = |slot| {
        store.enqueue(HERE, Waiter::Agent(Arc::clone(outbox_of(slot)), slot), Timestamp::NEVER, || black_box(true))
    };
    let tickets: Vec<_> = (0..2 * TIMES).filter_map(register).collect();
    // The same again, in memory that is there. Each agent still has others.
    for slot in TIMES..2 * TIMES {
        let withdrawn = store.withdraw_agent(tickets[slot as usize], outbox_of(slot), slot);
        assert_eq!(withdrawn, Withdrawal::Done);
    }
    let begin = Instant::now();
    let registered = (TIMES..2 * TIMES).filter_map(register).count();
    let took = begin.elapsed();
    assert_eq!(registered, TIMES as usize);
    took.as_secs_f64() * 1e9 / f64::from(TIMES)
}

fn main() {
    let rounds: u32 = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(1);
    for _ in 0..rounds {
        let samples = [1, AGENTS, AGENTS].map(nanos_of_registering);
        println!("{}", samples.map(|nanos| nanos.to_string()).join(" "));
    }
}
