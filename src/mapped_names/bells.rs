//! Turns that this process has given: it looks after them until they are over.

use std::mem;
use std::sync::Mutex;
use std::time::Duration;

use waitasync_core::mapped::names::{Given, TURN_MILLISECONDS, World};
use waitasync_core::service::Notify;
use waitasync_core::sync::lock;

use crate::globals::service;
use crate::mapped::{Mapping, now};

const TIME: Duration = Duration::from_millis(TURN_MILLISECONDS);

/// Passes a turn of a file on that is over. Returns whether it is still to be looked after.
type EndTurn = fn(&'static Mapping, Given) -> bool;

struct Turns {
    given: Vec<(Bells, Given)>,
    is_attended: bool,
}

static TURNS: Mutex<Turns> = Mutex::new(Turns { given: Vec::new(), is_attended: false });
static BELL: Notify = Notify::const_new();

/// The system's clock, and the bells of a file.
#[derive(Clone, Copy)]
pub(crate) struct Bells {
    mapping: &'static Mapping,
    end_turn: EndTurn,
}

impl Bells {
    pub(super) fn new(mapping: &'static Mapping, end_turn: EndTurn) -> Self {
        Self { mapping, end_turn }
    }
}

impl World for Bells {
    fn now(&self) -> u64 {
        now() / 1000
    }

    fn ring(&self, given: Given) {
        self.mapping.ring(given.index);
        let mut turns = lock(&TURNS);
        turns.given.push((*self, given));
        if !turns.is_attended
            && let Some(service) = service()
        {
            turns.is_attended = true;
            service.attend(&BELL, TIME, look);
        }
    }
}

/// Passes on the turns that are over. Returns when to come again; `None` if none is left.
fn look() -> Option<Duration> {
    let given = mem::take(&mut lock(&TURNS).given);
    let left: Vec<_> = given.into_iter().filter(|(bells, given)| (bells.end_turn)(bells.mapping, *given)).collect();
    let mut turns = lock(&TURNS);
    turns.given.extend(left);
    turns.is_attended = !turns.given.is_empty();
    turns.is_attended.then_some(TIME)
}
