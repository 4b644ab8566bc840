//! Cycles of threads, and cycles through tasks, against their plain definitions.

#![cfg(not(feature = "model"))]

use std::collections::BTreeSet;

use proptest::collection::vec;
use proptest::prelude::*;
use waitasync_core::lock::cycles::{self, Has, Link, SeenHold, SeenWait};
use waitasync_core::lock::{Hold, Request};
use waitasync_core::queue::Location;

fn hold(thread: u32, word: usize, request: Request) -> SeenHold {
    SeenHold { location: Location::from_address(4 * word), thread, hold: request.hold(), in_task: false }
}

fn wait(thread: u32, word: usize, request: Request, blocked: bool) -> SeenWait {
    SeenWait { location: Location::from_address(4 * word), thread, request: Some(request), blocked }
}

const fn permits(amount: u32, limit: u32) -> Request {
    Request::Limited { amount, limit }
}

/// Which of so many nodes can be reached from which, by one edge or more.
fn reach(count: usize, edge: impl Fn(usize, usize) -> bool) -> Vec<Vec<bool>> {
    let mut reach: Vec<Vec<_>> = (0..count).map(|a| (0..count).map(|b| edge(a, b)).collect()).collect();
    for k in 0..count {
        for a in 0..count {
            for b in 0..count {
                reach[a][b] |= reach[a][k] && reach[k][b];
            }
        }
    }
    reach
}

/// Cycles of threads.
mod threads {
    use waitasync_core::lock::Request::{Exclusive, Shared};
    use waitasync_core::lock::cycles::confirmed;

    use super::*;

    fn cycles(held: &[SeenHold], waiting: &[SeenWait]) -> Vec<Vec<Link>> {
        cycles::cycles(held, waiting, &[])
    }

    fn threads(waiting: &[SeenWait], cycles: &[Vec<Link>]) -> Vec<Vec<u32>> {
        cycles.iter().map(|cycle| cycle.iter().map(|link| waiting[link.waits_for].thread).collect()).collect()
    }

    #[test]
    fn cycles_of_blocked_threads_come_first_also_where_the_same_threads_are_on_others() {
        let held = [hold(0, 10, Exclusive), hold(1, 11, Exclusive), hold(2, 12, Exclusive)];
        let waiting = [(0, 11, false), (1, 12, true), (2, 10, true), (2, 11, true)];
        let waiting = waiting.map(|(thread, word, blocked)| wait(thread, word, Exclusive, blocked));
        assert_eq!(threads(&waiting, &cycles(&held, &waiting)), [vec![1, 2], vec![0, 1, 2]]);
    }

    /// Two threads, of each of which one task holds a word and another one awaits the other thread's.
    #[test]
    fn a_callbacks_hold_waits_only_for_the_claims_made_within_it() {
        let held = |in_task| [hold(1, 10, Exclusive), hold(2, 11, Exclusive)].map(|hold| SeenHold { in_task, ..hold });
        let waiting = [wait(1, 11, Exclusive, false), wait(2, 10, Exclusive, false)];
        let found =
            |in_task, within: &[(usize, usize)]| threads(&waiting, &cycles::cycles(&held(in_task), &waiting, within));
        assert_eq!(found(false, &[]), [vec![1, 2]]);
        assert_eq!(found(true, &[]), Vec::<Vec<u32>>::new());
        assert_eq!(found(true, &[(0, 0)]), Vec::<Vec<u32>>::new());
        assert_eq!(found(true, &[(0, 0), (1, 1)]), [vec![1, 2]]);
    }

    /// Thread 1 has a callback with a claim, thread 2 a token.
    #[test]
    fn a_cycle_goes_through_a_callbacks_hold_and_a_thread_that_only_awaits() {
        let held = [SeenHold { in_task: true, ..hold(1, 10, Shared) }, hold(2, 11, Exclusive)];
        let waiting = [wait(1, 11, Shared, false), wait(2, 10, Exclusive, false)];
        assert_eq!(threads(&waiting, &cycles::cycles(&held, &waiting, &[])), Vec::<Vec<u32>>::new());
        let found = cycles::cycles(&held, &waiting, &[(0, 0)]);
        let links = [Link { has: Has::Held(0), waits_for: 0 }, Link { has: Has::Held(1), waits_for: 1 }];
        assert_eq!(found, [links]);
    }

    /// A blocked thread goes on with none of its tasks.
    #[test]
    fn a_callbacks_hold_of_a_blocked_thread_waits_for_that_thread() {
        let held = [1, 2].map(|thread| SeenHold { in_task: true, ..hold(thread, 9 + thread as usize, Exclusive) });
        let waiting = [wait(1, 11, Exclusive, true), wait(2, 10, Exclusive, true)];
        assert_eq!(threads(&waiting, &cycles::cycles(&held, &waiting, &[])), [vec![1, 2]]);
    }

    #[test]
    fn a_reader_waits_for_the_nearest_writer_ahead_and_not_for_one_behind_it() {
        let held = [hold(1, 10, Shared), hold(2, 11, Exclusive)];
        let behind = [wait(1, 10, Shared, true), wait(2, 10, Exclusive, true)];
        assert!(cycles(&held, &behind).is_empty());
        let ahead = [wait(2, 10, Exclusive, true), wait(1, 10, Shared, true)];
        let found = cycles(&held, &ahead);
        assert_eq!(threads(&ahead, &found), [[1, 2]]);
        assert_eq!(found[0][1].has, Has::Awaited(0));
    }

    fn of_four(thread: u32, word: usize, amount: u32, blocked: bool) -> SeenWait {
        wait(thread, word, permits(amount, 4), blocked)
    }

    fn has(thread: u32, word: usize, amount: u32) -> SeenHold {
        hold(thread, word, permits(amount, 4))
    }

    #[test]
    fn permits_of_a_limit_keep_those_waiting_who_do_not_fit_beside_them() {
        let held = [has(1, 10, 2), has(2, 10, 1), has(2, 10, 1), has(3, 11, 4)];
        // A hold of a blocked thread itself stays. That of another one may be released by another task.
        for (blocked, fits) in [(true, false), (false, true)] {
            let waiting = [of_four(1, 10, 1, blocked), of_four(2, 10, 1, true)];
            assert_eq!(cycles(&held, &waiting).len(), usize::from(!fits));
        }
        let waiting = [of_four(1, 10, 3, false), of_four(2, 10, 1, true)];
        assert_eq!(threads(&waiting, &cycles(&held, &waiting)), [[1, 2]]);
    }

    #[test]
    fn a_claim_for_permits_waits_for_each_claim_ahead_of_it() {
        let held = [has(1, 10, 1), has(3, 11, 4)];
        // The one that is ahead of them all does not fit beside what the first thread holds.
        let mut waiting =
            vec![of_four(2, 10, 4, true), of_four(1, 10, 1, false), of_four(3, 10, 1, true), of_four(1, 11, 1, false)];
        let found = cycles(&held, &waiting);
        assert_eq!(threads(&waiting, &found), [vec![1, 2], vec![1, 3, 2]]);
        assert_eq!(found[0].iter().map(|link| link.has).collect::<Vec<_>>(), [Has::Held(0), Has::Awaited(0)]);
        // The first of the line fits, and waits for nobody.
        waiting.swap(0, 2);
        assert!(cycles(&held, &waiting).is_empty());
    }

    /// Two threads are a cycle, through the first place of a line; and so are three without one.
    #[test]
    fn the_cycle_of_fewest_links_is_found_however_long_the_line_is() {
        let lock = |thread, word| hold(thread, word, Exclusive);
        let held = [has(1, 10, 1), lock(1, 13), lock(2, 14), lock(3, 11), lock(4, 12)];
        let (first, last) = (of_four(2, 10, 4, false), of_four(1, 10, 1, false));
        let line = [first].into_iter().chain([of_four(5, 10, 1, false); 9]).chain([last]);
        let others = [(1, 11), (3, 12), (4, 13)].map(|(thread, word)| wait(thread, word, Exclusive, false));
        let waiting: Vec<_> = line.chain(others).collect();
        assert_eq!(threads(&waiting, &cycles(&held, &waiting)), [vec![1, 2], vec![1, 3, 4]]);
    }

    #[test]
    fn a_cycle_counts_only_if_a_second_look_finds_each_of_its_entries_again() {
        let cycle = vec![Link { has: Has::Held(0), waits_for: 0 }, Link { has: Has::Awaited(1), waits_for: 1 }];
        let count = |held: &[&str], waiting: &[&str]| {
            let again = [held, waiting].map(|keys| keys.iter().copied().collect());
            confirmed(vec![cycle.clone()], [&["a"], &["b", "c"]], &again).len()
        };
        assert_eq!(count(&["x", "a"], &["c", "b"]), 1);
        assert_eq!(count(&["b", "c"], &["b", "c"]), 0);
        assert_eq!(count(&["a"], &["b"]), 0);
        assert_eq!(count(&["a"], &["a", "c"]), 0);
    }

    /// What thread `a` waits for of thread `b`, by the definition. There are no shares behind writers.
    fn waits_for(held: &[SeenHold], waiting: &[SeenWait], a: u32, b: u32) -> bool {
        let blocks = waiting.iter().any(|claim| claim.thread == a && claim.blocked);
        let claims =
            waiting.iter().filter(|claim| claim.thread == a && claim.blocked == blocks && claim.request.is_some());
        let mut words = claims.map(|claim| claim.location);
        a != b && words.any(|word| held.iter().any(|hold| hold.thread == b && hold.location == word))
    }

    const THREADS: u32 = 5;

    fn claims() -> impl Strategy<Value = Vec<SeenWait>> {
        let claim = (0..THREADS, 0..5_usize, prop::bool::weighted(0.9));
        (vec(claim, 0..8), vec(any::<bool>(), THREADS as usize)).prop_map(|(claims, blocks)| {
            let mut has_blocked = [false; THREADS as usize];
            let claims = claims.into_iter().map(|(thread, word, is_lock)| {
                let blocked = blocks[thread as usize] && !std::mem::replace(&mut has_blocked[thread as usize], true);
                let request = is_lock.then_some(Request::Lock);
                SeenWait { request, ..wait(thread, word, Exclusive, blocked) }
            });
            claims.collect()
        })
    }

    fn holds() -> impl Strategy<Value = Vec<SeenHold>> {
        vec((0..THREADS, 0..5_usize), 0..8).prop_map(|mut holds| {
            holds.sort_unstable();
            holds.into_iter().map(|(thread, word)| hold(thread, word, Shared)).collect()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]
        #[test]
        fn each_thread_that_is_on_a_cycle_is_on_one_that_is_returned_and_each_of_these_is_one(held in holds(), waiting in claims()) {
            let edge = |a, b| waits_for(&held, &waiting, a, b);
            let reach = reach(THREADS as usize, |a, b| edge(a as u32, b as u32));
            let found = cycles(&held, &waiting);
            let names = threads(&waiting, &found);
            for (cycle, threads) in found.iter().zip(&names) {
                for (n, link) in cycle.iter().enumerate() {
                    let next = cycle[(n + 1) % cycle.len()];
                    let [Has::Held(hold), Has::Held(next_hold)] = [link.has, next.has] else { panic!("no writer is ahead here") };
                    prop_assert_eq!(held[hold].thread, threads[n]);
                    prop_assert_eq!(held[next_hold].location, waiting[link.waits_for].location);
                    prop_assert!(edge(threads[n], threads[(n + 1) % cycle.len()]));
                }
                prop_assert_eq!(threads.iter().min(), threads.first());
                prop_assert_eq!(threads.iter().collect::<BTreeSet<_>>().len(), threads.len());
            }
            prop_assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
            let on_cycles: BTreeSet<u32> = names.into_iter().flatten().collect();
            let expected: BTreeSet<u32> = (0..THREADS).filter(|&a| reach[a as usize][a as usize]).collect();
            prop_assert_eq!(on_cycles, expected);
        }
    }
}

/// Cycles through tasks.
mod tasks {
    use std::time::{Duration, Instant};

    use waitasync_core::lock::cycles::cycles;

    use super::*;

    /// Each cycle as pairs: of what is held, or `!claim` of what is ahead, and of what is awaited.
    fn pairs(cycles: &[Vec<Link>]) -> Vec<Vec<(isize, usize)>> {
        let pair = |&Link { has, waits_for }: &Link| match has {
            Has::Held(hold) => (hold.cast_signed(), waits_for),
            Has::Awaited(claim) => (!claim.cast_signed(), waits_for),
        };
        cycles.iter().map(|cycle| cycle.iter().map(pair).collect()).collect()
    }

    #[test]
    fn tasks_of_one_thread_wait_for_each_other_only_as_far_as_their_callbacks_are_known() {
        let held = [0, 1].map(|word| hold(0, word, Request::Lock));
        let waiting = [1, 0].map(|word| wait(0, word, Request::Lock, false));
        assert_eq!(pairs(&cycles(&held, &waiting, &[])), [[]; 0]);
        assert_eq!(pairs(&cycles(&held, &waiting, &[(0, 0)])), [[]; 0]);
        assert_eq!(pairs(&cycles(&held, &waiting, &[(0, 0), (1, 1)])), [[(0, 0), (1, 1)]]);
        // A task that waits for its own lock, within the callback of another one.
        let waiting = [wait(0, 1, Request::Lock, false)];
        assert_eq!(pairs(&cycles(&held, &waiting, &[(0, 0), (0, 1)])), [[(1, 0)]]);
    }

    #[test]
    fn a_task_waits_behind_another_ones_claim_to_write_that_waits_for_its_share() {
        let held = [hold(0, 0, Request::Shared)];
        let waiting = [Request::Exclusive, Request::Shared].map(|request| wait(0, 0, request, false));
        assert_eq!(pairs(&cycles(&held, &waiting, &[(1, 0)])), [[(!0, 0), (0, 1)]]);
    }

    #[test]
    fn the_permits_that_a_task_holds_itself_count_with_those_that_it_requests() {
        let held = [0; 2].map(|word| hold(0, word, permits(1, 0)));
        let waiting = [0; 2].map(|word| wait(0, word, permits(1, 2), false));
        assert_eq!(pairs(&cycles(&held, &waiting, &[(0, 0), (1, 1)])), [[(0, 0), (1, 1)]]);
        // Beside those of one other task there is room for what the first one wants.
        let waiting = [0; 2].map(|word| wait(0, word, permits(1, 3), false));
        assert_eq!(pairs(&cycles(&held, &waiting, &[(0, 0), (1, 1)])), [[]; 0]);
        // There is room beside its own, but not for itself beside them.
        let nested = [wait(0, 0, permits(2, 2), false)];
        assert_eq!(pairs(&cycles(&held[..1], &nested, &[(0, 0)])), [[(0, 0)]]);
        // While its thread blocks, it could not go on in any case.
        let blocked = [nested[0], wait(0, 1, Request::Lock, true)];
        assert_eq!(pairs(&cycles(&held[..1], &blocked, &[(0, 0)])), [[]; 0]);
    }

    #[test]
    fn a_cycle_goes_through_a_task_a_blocked_thread_and_another_threads_task() {
        let held = [(0, 0), (0, 1), (1, 2), (2, 3)].map(|(thread, word)| hold(thread, word, Request::Lock));
        let waiting = [(0, 1, false), (0, 2, false), (1, 3, true), (2, 0, false)];
        let waiting = waiting.map(|(thread, word, blocked)| wait(thread, word, Request::Lock, blocked));
        // Threads alone are a shorter cycle, as far as they know no tasks.
        let found = cycles(&held, &waiting, &[(0, 0), (1, 1), (3, 3)]);
        assert_eq!(pairs(&found), [[(0, 0), (1, 1), (2, 2), (3, 3)]]);
        assert_eq!(pairs(&cycles(&held, &waiting, &[])), [[(0, 1), (2, 2), (3, 3)]]);
    }

    #[test]
    fn a_cycle_of_one_threads_tasks_hides_none_of_several_threads() {
        let held = [(0, 0), (0, 1), (1, 2), (1, 3)].map(|(thread, word)| hold(thread, word, Request::Lock));
        let waiting = [(0, 0), (0, 2), (1, 3), (1, 1)].map(|(thread, word)| wait(thread, word, Request::Lock, false));
        let found = cycles(&held, &waiting, &[(0, 0), (2, 3)]);
        assert_eq!(pairs(&found), [vec![(0, 0)], vec![(3, 2)], vec![(1, 1), (2, 3)]]);
    }

    #[test]
    fn a_task_waits_for_each_claim_for_permits_that_is_ahead_of_its_own() {
        let held = [hold(0, 0, permits(1, 0))];
        let waiting = [4, 1, 1].map(|amount| wait(0, 0, permits(amount, 4), false));
        assert_eq!(pairs(&cycles(&held, &waiting, &[(2, 0)])), [[(!0, 0), (0, 2)]]);
    }

    type Situation = (Vec<SeenHold>, Vec<SeenWait>, Vec<(usize, usize)>);

    /// How long cycles are looked for: the best of `times`.
    fn time(times: usize, expected: usize, (held, waiting, within): &Situation) -> Duration {
        let looked = (0..times).map(|_| {
            let start = Instant::now();
            assert_eq!(cycles(held, waiting, within).len(), expected);
            start.elapsed()
        });
        looked.min().expect("there are some")
    }

    #[test]
    fn the_work_for_tasks_has_a_bound() {
        let locks = |tasks| (0..tasks).map(|word| hold(0, word, Request::Lock)).collect::<Vec<_>>();
        let each = |tasks| (0..tasks).map(|task| (task, task)).collect::<Vec<_>>();
        let claims = |tasks, of: &dyn Fn(usize) -> usize| {
            (0..tasks).map(|task| wait(0, of(task), Request::Lock, false)).collect::<Vec<_>>()
        };
        // A chain, whose last task waits for nothing.
        let chain = |tasks| -> Situation { (locks(tasks), claims(tasks, &|task| task + 1), each(tasks)) };
        // One cycle of all, and pairs.
        let cycle = |tasks| -> Situation { (locks(tasks), claims(tasks, &|task| (task + 1) % tasks), each(tasks)) };
        let couples = |tasks| -> Situation { (locks(tasks), claims(tasks, &|task| task ^ 1), each(tasks)) };
        // All read, the first one wants to write, and the others wait for what it holds.
        let star = |tasks| -> Situation {
            let shares = (0..tasks).map(|_| hold(0, 0, Request::Shared));
            let mut waiting = claims(tasks, &|_| 1);
            waiting.push(wait(0, 0, Request::Exclusive, false));
            let within = each(tasks).into_iter().chain([(tasks, tasks)]);
            (shares.chain([hold(0, 1, Request::Lock)]).collect(), waiting, within.collect())
        };
        let (few, many) = (500, 20_000);
        // The searches of this look at most of the nodes that all searches may look at.
        let bound = time(5, 0, &chain(few));
        let assert_bounded = |what: &str, situation: &dyn Fn(usize) -> Situation, expected: &dyn Fn(usize) -> usize| {
            time(1, expected(few), &situation(few));
            let with_many = time(3, expected(many), &situation(many));
            // Without the bound it is a thousand times as long. A busy machine is allowed for.
            assert!(with_many < 100 * bound, "{what}: {with_many:?}, and {bound:?} of a chain of {few}");
        };
        assert_bounded("chain", &chain, &|_| 0);
        // The cycle of many is longer than a search goes.
        assert_bounded("cycle", &cycle, &|tasks| usize::from(tasks == few));
        assert_bounded("couples", &couples, &|tasks| tasks / 2);
        assert_bounded("star", &star, &|_| 8);
    }

    // ——— The plain definition ———

    const THREADS: u32 = 3;
    const WORDS: usize = 4;

    #[derive(Clone, Debug)]
    struct State {
        held: Vec<SeenHold>,
        waiting: Vec<SeenWait>,
        within: Vec<(usize, usize)>,
    }

    fn amount_of(hold: Hold) -> u32 {
        if let Hold::Limited(amount) = hold { amount } else { 0 }
    }

    impl State {
        fn is_blocked(&self, thread: u32) -> bool {
            self.waiting.iter().any(|claim| claim.thread == thread && claim.blocked)
        }

        /// Whether the task of a claim holds permits, from which it wants more.
        fn is_own(&self, claim: usize, index: usize) -> bool {
            let SeenHold { location, thread, .. } = self.held[index];
            self.within.contains(&(claim, index))
                && location == self.waiting[claim].location
                && !self.is_blocked(thread)
        }

        /// Whether what is held of the same word keeps a claim waiting.
        fn is_kept_by(&self, claim: usize, index: usize) -> bool {
            let other = self.held[index].hold;
            match self.waiting[claim].request {
                Some(Request::Limited { amount, limit }) => {
                    let own = (0..self.held.len()).filter(|&each| self.is_own(claim, each));
                    let own: u32 = own.map(|each| amount_of(self.held[each].hold)).sum();
                    amount + own + if self.is_own(claim, index) { 0 } else { amount_of(other) } > limit
                }
                Some(Request::Shared) => other == Hold::Exclusive,
                _ => true,
            }
        }

        /// What a claim waits for.
        fn obstacles(&self, claim: usize) -> Vec<Has> {
            let SeenWait { location, request, .. } = self.waiting[claim];
            let holders = (0..self.held.len()).filter(|&each| self.held[each].location == location);
            let holders = holders.filter(|&each| self.is_kept_by(claim, each)).map(Has::Held);
            let ahead = (0..claim).rev().filter(|&ahead| self.waiting[ahead].location == location);
            let of_all = matches!(request, Some(Request::Limited { .. }));
            let most = match request {
                Some(Request::Shared) => 1,
                _ => claim * usize::from(of_all),
            };
            let ahead = ahead.filter(|&ahead| of_all || self.waiting[ahead].request == Some(Request::Exclusive));
            holders.chain(ahead.take(most).map(Has::Awaited)).collect()
        }

        /// Whether what is had stays as long as the claim waits.
        fn keeps(&self, claim: usize, has: Has) -> bool {
            match has {
                Has::Awaited(ahead) => ahead == claim,
                Has::Held(index) if self.is_blocked(self.held[index].thread) => {
                    self.waiting[claim].blocked && self.waiting[claim].thread == self.held[index].thread
                }
                Has::Held(index) => self.within.contains(&(claim, index)),
            }
        }

        /// The claims that the first one leads to, by what it waits for.
        fn next(&self, claim: usize) -> Vec<(Has, usize)> {
            let follow =
                |has| (0..self.waiting.len()).filter(move |&next| self.keeps(next, has)).map(move |next| (has, next));
            self.obstacles(claim).into_iter().flat_map(follow).collect()
        }
    }

    const fn request(word: usize, shared: bool, amount: u32) -> Request {
        match word {
            0 | 1 if shared => Request::Shared,
            2 => permits(amount, 4),
            _ => Request::Exclusive,
        }
    }

    fn states() -> impl Strategy<Value = State> {
        let entries = || vec((0..THREADS, 0..WORDS, any::<bool>(), 1..3_u32), 0..8);
        let pairs = vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..10);
        (entries(), entries(), vec(any::<bool>(), THREADS as usize), pairs).prop_map(
            |(mut held, claims, blocks, pairs)| {
                held.sort_unstable();
                let entry = |&(thread, word, shared, amount): &(u32, usize, bool, u32)| {
                    hold(thread, word, request(word, shared, amount))
                };
                let mut has_blocked = [false; THREADS as usize];
                let claim = |each: &(u32, usize, bool, u32)| {
                    let thread = each.0 as usize;
                    let blocked = blocks[thread] && each.1 != 2 && !std::mem::replace(&mut has_blocked[thread], true);
                    wait(each.0, each.1, request(each.1, each.2, each.3), blocked)
                };
                let mut state = State {
                    held: held.iter().map(entry).collect(),
                    waiting: claims.iter().map(claim).collect(),
                    within: vec![],
                };
                if !state.held.is_empty() && !state.waiting.is_empty() {
                    let pairs = pairs.iter().map(|(a, b)| (a.index(state.waiting.len()), b.index(state.held.len())));
                    let is_of_thread = |&(claim, index): &(usize, usize)| {
                        let claim: SeenWait = state.waiting[claim];
                        state.held[index].thread == claim.thread && !claim.blocked
                    };
                    state.within = pairs.filter(is_of_thread).collect::<BTreeSet<_>>().into_iter().collect();
                }
                state
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5000))]
        #[test]
        fn each_hold_of_a_task_that_is_on_a_cycle_is_on_one_that_is_returned_and_each_of_these_is_one(state in states()) {
            let State { held, waiting, within } = &state;
            let count = waiting.len();
            let steps: Vec<_> = (0..count).map(|claim| state.next(claim)).collect();
            let reach = reach(count, |a, b| steps[a].iter().any(|&(_, next)| next == b));
            // A cycle goes from a claim to what a task holds, and from a claim that was made within its callback back
            // to the first.
            let is_on_cycle = |index: usize| (0..count).any(|a| {
                let after = steps[a].iter().filter(|&&(has, _)| has == Has::Held(index));
                let mut after = after.map(|&(_, next)| next);
                after.any(|next| within.contains(&(next, index)) && (next == a || reach[next][a]))
            });
            let known = |link: &&Link| matches!(link.has, Has::Held(index) if within.contains(&(link.waits_for, index)));
            let found = cycles(held, waiting, within);
            let before = |cycle: &[Link], n: usize| cycle[(n + cycle.len() - 1) % cycle.len()].waits_for;
            let is_of_tasks = |cycle: &&Vec<Link>| {
                let mut links = cycle.iter().enumerate();
                links.all(|(n, link)| steps[before(cycle, n)].contains(&(link.has, link.waits_for))) && cycle.iter().any(|link| known(&link))
            };
            // The others are cycles of threads, which take each promise of a thread for one of any task.
            for cycle in found.iter().filter(|cycle| !is_of_tasks(cycle)) {
                for (n, link) in cycle.iter().enumerate() {
                    let wanted = waiting[before(cycle, n)];
                    let (location, thread) = match link.has {
                        Has::Held(index) => (held[index].location, held[index].thread),
                        Has::Awaited(claim) => (waiting[claim].location, waiting[claim].thread),
                    };
                    prop_assert!(location == wanted.location && thread != wanted.thread, "{cycle:?}");
                    prop_assert_eq!(thread, waiting[link.waits_for].thread);
                }
            }
            prop_assert_eq!(pairs(&found).iter().collect::<BTreeSet<_>>().len(), found.len());
            let returned = found.iter().filter(is_of_tasks).flat_map(|cycle| cycle.iter().filter(known));
            let returned: BTreeSet<_> = returned.map(|link| match link.has {
                Has::Held(index) | Has::Awaited(index) => index,
            }).collect();
            let tasks = (0..held.len()).filter(|&index| !state.is_blocked(held[index].thread));
            let expected: BTreeSet<_> = tasks.filter(|&index| is_on_cycle(index)).collect();
            prop_assert_eq!(returned, expected);
        }
    }
}
