'use strict'

// Mutations of the queue, the locks and the service, in Rust. See run.js. `model` names a model of core/tests/model.rs;
// `cargo` a filter of `cargo test`, and in which program: `queue` means core/tests/queue.rs, `lib` the tests within
// core/src/, `addon` those within src/.

const of = require('./of')

const counters = 'core/src/queue/counters.rs'
const store = 'core/src/queue/store.rs'
const section = 'core/src/queue/critical_section.rs'
const waiterList = 'core/src/queue/waiter_list.rs'
const outbox = 'core/src/queue/outbox.rs'
const lines = 'core/src/lock/bucket.rs'
const lockStore = 'core/src/lock/claims.rs'
const abandoned = 'core/src/lock/abandoned.rs'
const trackedBuffers = 'core/src/lock/tracked_buffers.rs'
const word = 'core/src/lock/word.rs'
const cycles = 'core/src/lock/cycles.rs'
const waitForGraph = 'core/src/lock/wait_for_graph.rs'
const fairness = 'core/src/lock/fairness.rs'
const waiter = 'core/src/queue/waiter.rs'
const pending = 'src/agent/pending.rs'
const profile = 'src/observe/profile.rs'
const reports = 'core/src/observe/reports.rs'
const signals = 'src/globals/signals.rs'

module.exports = [
  // ——— fences and orderings ———
  ...of(counters, { model: 'wait_store_notify' }, [
    ['a notifier passes no fence before it reads the counter',
      '        fence(Ordering::SeqCst);\n        counter.load(Ordering::Relaxed) == 0\n',
      '        counter.load(Ordering::Relaxed) == 0\n'],
    ['a waiter passes no fence after it is counted',
      'counter.fetch_add(1, Ordering::SeqCst);\n        fence(Ordering::SeqCst);',
      'counter.fetch_add(1, Ordering::SeqCst);']
  ]),
  ...of(section, { model: 'wait_store_notify' }, [
    ['a waiter is counted after it has read the word',
      '        let counted = Counted::new(self.counters.of_word(location));\n' +
      '        let others = other_processes::at(location);\n',
      '        if !waits(self) {\n            return None;\n        }\n        let waits = |_: &mut Self| true;\n' +
      '        let counted = Counted::new(self.counters.of_word(location));\n' +
      '        let others = other_processes::at(location);\n']
  ]),
  ...of(section, { model: 'wait_notify' }, [
    ['a waiter in its list is not counted', '        counted.keep();\n', '        drop(counted);\n']
  ]),
  ...of(section, { model: 'unlock_claim' }, [
    ['a waiter that has left stays counted',
      '        self.counters.of_word(location).fetch_sub(1, Ordering::SeqCst);\n        let (claim',
      '        let (claim']
  ]),
  ...of(waiter, { model: 'wait_notify' }, [
    ['the result of a blocked thread is recorded without release',
      'self.result.store(result as u8, Ordering::Release);',
      'self.result.store(result as u8, Ordering::Relaxed);'],
    ['the result of a blocked thread is read without acquire',
      'self.result.load(Ordering::Acquire)',
      'self.result.load(Ordering::Relaxed)']
  ]),
  ...of(waiter, { model: 'park_late_unpark' }, [
    ['the result of the last wait is not cleared', '        self.result.store(WAITING, Ordering::Relaxed);\n', '']
  ]),
  ...of(waiter, { model: 'park_interrupt' }, [
    ['an interruption is lost',
      '        self.interrupted.store(true, Ordering::Release);\n        self.unpark();',
      '        self.unpark();'],
    ['an interruption does not wake the thread',
      '        self.interrupted.store(true, Ordering::Release);\n        self.unpark();',
      '        self.interrupted.store(true, Ordering::Release);']
  ]),
  ...of(store, { model: 'register_expire' }, [
    ['the service does not read the deadlines again',
      'if store.earliest_deadline() >= next {',
      'if next <= Timestamp::NEVER {'],
    ['the alarm is set without SeqCst',
      'self.0.store(next.as_nanos(), Ordering::SeqCst)',
      'self.0.store(next.as_nanos(), Ordering::Relaxed)'],
    ['the alarm is read without SeqCst', 'self.0.load(Ordering::SeqCst)', 'self.0.load(Ordering::Relaxed)']
  ]),
  ...of(section, { model: 'register_expire' }, [
    ['a deadline is published without SeqCst',
      'self.bucket.earliest_deadline.store(earliest, Ordering::SeqCst);',
      'self.bucket.earliest_deadline.store(earliest, Ordering::Relaxed);'],
    ['a deadline is not published',
      '            self.bucket.earliest_deadline.store(earliest, Ordering::SeqCst);\n',
      '']
  ]),

  // ——— the outbox ———
  ...of(outbox, { model: 'push_take_ring' }, [
    ['the first mail rings nobody',
      '        self.has_mail.store(true, Ordering::Release);\n        Ring::Needed\n',
      '        self.has_mail.store(true, Ordering::Release);\n        Ring::UnderWay\n']
  ]),
  ...of(outbox, { model: 'push_take_mail' }, [
    ['taken mail still counts as there', '        self.has_mail.store(false, Ordering::Relaxed);\n', ''],
    ['mail is not said to be there', '        self.has_mail.store(true, Ordering::Release);\n', '']
  ]),
  ...of(outbox, { model: 'ring_close' }, [
    ['an agent that has ended is rung', '        *lock(&self.bell) = None;\n', '']
  ]),
  ...of(outbox, { model: 'cancel_timeout_notify' }, [
    ['a notification is revoked',
      'result.is_acquired() || result == WaitResult::TimedOut',
      'result != WaitResult::Due']
  ]),
  ...of(outbox, { cargo: ['line', 'revoked'] }, [
    ['a result that was revoked stays',
      'std::mem::replace(&mut settlements[place].result, WaitResult::Due)',
      'settlements[place].result']
  ]),
  ...of('core/src/spinner.rs', { cargo: ['lib', 'become_rare'] }, [
    ['a thread that spins in vain tries again as soon as before',
      '(2 * self.next_pause.get()).min(self.longest_pause)',
      'Self::PAUSE'],
    ['a spin that pays leaves the pauses long', 'self.next_pause.set(Self::PAUSE);', '']
  ]),
  ...of('src/exports/operations.rs', { test: 'ends/faults' }, [
    ['an operation that has failed leaves its wait in the line',
      '    agent.robust_list.retract();\n    agent.abandon();\n}',
      '    agent.robust_list.retract();\n}']
  ]),
  ...of(waiter, { cargo: ['line', 'a_waiter_that_has_been_granted_something_is_woken'] }, [
    ['of the waiters that are woken only the first is', 'self.0.iter().for_each', 'self.0.iter().take(1).for_each']
  ]),

  // ——— the queue ———
  ...of(store, { model: 'wait_timeout_notify_thread' }, [
    ['a thread that gives up takes a notification along',
      'thread.result().unwrap_or(WaitResult::TimedOut)\n    }\n\n    /// Removes a promise',
      'WaitResult::TimedOut\n    }\n\n    /// Removes a promise']
  ]),
  ...of(store, {
    equivalent: 'a thread has one wait at a time, and keeps no earlier ticket: this is for the reader of a wrong one'
  }, [
    ['a ticket of an ended wait of the same thread is taken for the present one',
      '                && !matches!(waiter, Waiter::Thread(thread) if thread.result().is_some());',
      '                ;']
  ]),
  ...of(store, { model: 'grant_give_up', orModel: 'add_permit_give_up' }, [
    ['a claim that is withdrawn wakes no successor',
      '            if successor == Successor::ToBeWoken {',
      '            if successor == Successor::ToBeWoken && false {']
  ]),
  ...of(section, { model: 'wake_timeout' }, [
    ['a claim that times out wakes no successor',
      '        if self.dequeue(key, WaitResult::TimedOut) == Successor::ToBeWoken {',
      '        if self.dequeue(key, WaitResult::TimedOut) == Successor::ToBeWoken && false {']
  ]),
  ...of(section, { cargo: ['queue', ''] }, [
    ['a notification is spent on a waiter that is due',
      'let is_due = self.is_due(key);',
      'let is_due = self.is_due(key) && false;'],
    ['a notification wakes one waiter more', '        while woken < count\n', '        while woken <= count\n']
  ]),
  ...of(section, { model: 'wait_timeout_notify_own_promise' }, [
    ['a promise of the agent that notifies times out before a job has decided',
      'deadline <= self.now() && !self.is_of_runner(key, false)',
      'deadline <= self.now()']
  ]),
  ...of(section, { model: 'timeout_cancel_wait' }, [
    ['a promise is timed out that is not overdue', '.filter(|record| record.deadline == OVERDUE)', '']
  ]),
  ...of(waiter, { cargo: ['queue', ''] }, [
    ['a promise in another slot is timed out',
      'if *its_slot == slot && Arc::ptr_eq',
      'if *its_slot == *its_slot && Arc::ptr_eq']
  ]),
  ...of(store, { model: 'timeout_cancel_wait' }, [
    ['what is due is decided as late as it comes',
      '            decided.is_some()\n',
      '            decided.is_some() || true\n']
  ]),
  ...of(section, { cargo: ['queue', ''] }, [
    ['the agent of a promise that is due is not rung',
      '        if ring == Ring::Needed {\n            self.wakes.0.push(waiter);\n        }\n    }\n\n' +
      '    /// Wakes a claim',
      '        if ring == Ring::Needed && result != WaitResult::Due {\n            self.wakes.0.push(waiter);\n' +
      '        }\n    }\n\n    /// Wakes a claim']
  ]),
  ...of('core/src/clock.rs', { cargo: ['lib', 'a_deadline_is_rounded_up'] }, [
    ['a timeout is rounded down', '(milliseconds * 1e6).ceil()', '(milliseconds * 1e6).floor()']
  ]),
  ...of(waiterList, { cargo: ['queue', ''] }, [
    ['a deadline outlives its waiter', 'self.deadlines.remove(&(record.deadline, key));', ''],
    ['a waiter stands in front instead of behind', '                self.waiters[tail as usize].next = key;\n', ''],
    ['a list leads to a waiter that has left',
      '                self.waiters[record.previous as usize].next = record.next;\n',
      ''],
    ['the last waiter of a list is not known once another has left',
      '            self.waiters[after as usize].previous = record.previous;\n',
      ''],
    ['a list begins with a waiter that has left', '                list.head = record.next;\n', ''],
    ['a list begins with a promise that has been notified', '            list.head = next;\n', ''],
    ['the last waiter of a list is not known once a promise has been notified',
      '            self.waiters[next as usize].previous = previous;\n',
      ''],
    ['a promise that is notified keeps its deadline', 'first.deadline != Timestamp::NEVER || ', ''],
    ['a promise that has been notified is still in the length of its list',
      '        list.length -= 1;\n        if next == NIL {',
      '        if next == NIL {'],
    ['a deadline that has come is found again',
      '        self.deadlines.remove(&(deadline, key));\n    }',
      '        let _ = deadline;\n    }'],
    ['a deadline is later than it is', '(deadline <= now)', '(deadline < now)'],
    ['a later deadline counts as the earliest', 'self.deadlines.first().map_or', 'self.deadlines.last().map_or'],
    ['one promise is notified at a time', '(next != NIL).then_some(next)))', 'None))'],
    ['a blocked thread is timed out by the service',
      'if deadline != Timestamp::NEVER && !listed.waiter.blocks() {',
      'if deadline != Timestamp::NEVER {']
  ]),

  // ——— lines ———
  ...of(lockStore, { model: 'unlock_claim' }, [
    ['a claim does not try once more in the critical section',
      'taken = section.take(location, request, word);\n            }',
      'let _ = &mut taken;\n            }'],
    ['a release wakes nobody',
      '        word.give_back(hold);\n        self.word_changed(location, word);\n        released',
      '        word.give_back(hold);\n        released']
  ]),
  ...of(lockStore, { cargo: ['queue', ''] }, [
    ['a claim overtakes a strict line',
      'let overtakes = request.is_strict() && section.has_line(location);',
      'let overtakes = false;'],
    ['try_take overtakes a strict line',
      'let would_overtake = request.is_strict() && self.has_line(location);',
      'let would_overtake = false;']
  ]),
  ...of(lockStore, { model: 'grant_newcomer' }, [
    ['a lock is handed over and freed',
      '                self.grant(next, location, result);\n                return released;',
      '                self.grant(next, location, result);']
  ]),
  ...of(lockStore, {
    equivalent: 'it takes what is free, as a newcomer may; in a strict line the next check refuses it'
  }, [
    ['a claim retries that was not woken',
      'retries(key, waiter.blocks()) {',
      'retries(key, waiter.blocks()) && false {']
  ]),
  ...of(lockStore, { cargo: ['line', 'strict_line'] }, [
    ['a claim of a strict line that has retried leaves the rest to nobody',
      '            if request.is_strict() {\n                section.word_changed(location, word);\n' +
      '            } else if',
      '            if request.is_strict() {\n            } else if'],
    ['a claim behind others retries in a strict line',
      'if request.is_strict() && section.notify_up_to_first_claim(location).is_none_or(|(first, ..)| first != key)\n',
      'if false\n']
  ]),
  ...of(lockStore, { cargo: ['queue', 'property'] }, [
    ['a lock that a promise has taken is not noted as on its way',
      '                section.lists.policy.granted.insert(location, waiter.clone());\n            }\n' +
      '            Some(taken)',
      '            }\n            Some(taken)']
  ]),
  ...of(lines, { model: 'unlock_by_mistake_grant' }, [
    ['a lock that was granted is not noted as on its way',
      'self.lists.policy.granted.insert(location, waiter.clone());',
      'let _ = &waiter;']
  ]),
  ...of('core/src/queue/critical_section.rs', { model: 'unlock_by_mistake' }, [
    ['a thread that frees by mistake counts as no waiter',
      'let _counted = Counted::new(self.counters.of_word(location));', '']
  ]),
  ...of(lockStore, { model: 'unlock_by_mistake_grant' }, [
    ['a thread that frees by mistake does not ask who is given the lock',
      'holder(section.lists.policy.granted.get(&location))',
      'holder(None)']
  ]),
  ...of(lockStore, { cargo: ['line', ''] }, [
    ['the service sees no word that was freed',
      'let is_free = first.is_some_and(|request| word.grants(request));',
      'let is_free = first.is_some_and(|request| word.grants(request)) && false;']
  ]),
  ...of('core/src/lock/bucket.rs', { cargo: ['names', ''] }, [
    ['the service looks at the words of names', '.filter(|location| !location.is_of_process())', '']
  ]),
  ...of('core/src/service/mod.rs', { cargo: ['lib', 'looks_become_rare'] }, [
    ['a claim that joins is looked at no sooner than the others',
      'next.min(news + SHORTEST)',
      'next']
  ]),
  ...of(lines, { cargo: ['queue', ''] }, [
    ['a line stays when its last claim has left',
      '        if line.claims == 0 {',
      '        if line.claims == u32::MAX {'],
    ['plain waiters before a claim are not notified',
      '            others_before = true;\n            let _ = self.dequeue(key, WaitResult::Ok);\n        }\n' +
      '        None',
      '            let _ = others_before;\n            return None;\n        }\n        None'],
    ['a promise that has not retried is handed the lock', 'if !self.is_ready(location, key) {', 'if false {']
  ]),
  ...of(lines, { model: 'add_permit_give_up' }, [
    ['a claim of a strict line that gives up wakes no successor',
      'if request.is_strict() { Successor::ToBeWoken } else { successor }',
      'successor']
  ]),
  ...of(lines, { model: 'wake_timeout' }, [
    ['a claim of a lock that was woken and leaves wakes no successor',
      'if was_awake || has_tried { Successor::ToBeWoken }',
      'if has_tried { Successor::ToBeWoken }']
  ]),
  ...of(lines, { model: 'unlock_busy_claim' }, [
    ['no thread behind a promise is woken',
      '            if !self.blocks(first)\n',
      '            if !self.blocks(first) && false\n']
  ]),
  ...of(lines, { model: 'unlock_wait_claim' }, [
    ['without claims nobody is notified',
      '        } else if let Some(key) = self.expire_to_front(location) {\n' +
      '            let _ = self.dequeue(key, WaitResult::Ok);\n        }',
      '        }']
  ]),
  ...of(lines, { cargo: ['queue', ''] }, [
    ['a claim that is awake is woken again',
      'self.awake[usize::from(blocks)].replace(key) != Some(key)',
      '{ self.awake[usize::from(blocks)].replace(key); true }'],
    ['a claim that has retried in vain is not remembered',
      '            self.tried[usize::from(blocks)] = Some(key);\n',
      '']
  ]),
  ...of(section, { cargo: ['queue', ''] }, [
    ['one notification wakes several claims',
      'let is_further_claim = is_claim && claim_woken;',
      'let is_further_claim = is_claim && claim_woken && false;']
  ]),
  ...of(lines, { model: 'write_death_read' }, [
    ['of readers that wait only the first enters',
      '                Some(result) => self.grant(key, location, result),',
      '                Some(result) => { self.grant(key, location, result); return }']
  ]),
  ...of(fairness, { cargo: ['queue', ''] }, [
    ['newcomers overtake for ever', 'now.duration_since(since) >= FAIRNESS', 'false'],
    ['a blocked thread is handed the lock before it has been overtaken',
      'now.duration_since(since) >= FAIRNESS',
      'true']
  ]),
  ...of(fairness, { cargo: ['line', 'releases_make_room'] }, [
    ['releases make room ever as often', '            promise.patience *= 2;\n', '']
  ]),
  ...of(lines, { cargo: ['line', 'head_start'] }, [
    ['no head start for a promise',
      'self.overtaken.head_start_of(is_awake)',
      'self.overtaken.head_start_of(is_awake).filter(|_| false)']
  ]),
  ...of(lines, { cargo: ['line', 'in_job'] }, [
    ['a lock is not handed to the promise of the agent that releases it', 'self.is_of_runner(key, true) || ', '']
  ]),
  ...of(lockStore, { cargo: ['line', 'in_job'] }, [
    ['a promise overtakes one of its agent that is first in line',
      'if !(is_behind_own || overtakes) {',
      'let _ = is_behind_own;\n            if !overtakes {'],
    ['a promise overtakes one of its agent without waiting',
      'if section.is_left_to_promise_of(outbox, location, request, word) =>',
      'if section.is_left_to_promise_of(outbox, location, request, word) && false =>'],
    ['a promise leaves a free lock to one that sleeps',
      '            self.wake_first(location);\n        }\n        is_left',
      '        }\n        is_left']
  ]),
  ...of(waiter, { cargo: ['line', 'in_job'] }, [
    ['a promise leaves a free lock to those of other agents',
      'matches!(self, Self::Agent(its, _) if Arc::ptr_eq(its, outbox))',
      'matches!(self, Self::Agent(its, _) if Arc::ptr_eq(its, its) || outbox.has_mail())']
  ]),
  ...of(section, { cargo: ['line', 'in_job'] }, [
    ['a lock is handed to the promise of any agent',
      'listed.claim.is_some() == claims && listed.waiter.is_of(runner)',
      'listed.claim.is_some() == claims && (claims || listed.waiter.is_of(runner))']
  ]),
  ...of(waiter, { cargo: ['line', 'in_job'] }, [
    ['the agent that releases a lock is rung nevertheless',
      'self.0.retain(|waiter| !waiter.is_of(outbox))',
      'self.0.retain(|waiter| !outbox.has_only_successes() || !waiter.is_of(outbox))']
  ]),
  ...of(outbox, { cargo: ['line', 'in_job'] }, [
    ['a timeout is decided in the job that releases a lock',
      ' && mail.settlements.iter().all(|each| each.result.is_acquired())',
      '']
  ]),
  ...of(pending, { cargo: ['addon', 'pending'] }, [
    ['hand-overs do not end', 'made < MOST && ', ''],
    ['hand-overs go on for any time',
      'now.duration_since(self.since.get()) < LONGEST;',
      'now.duration_since(self.since.get()) >= Duration::ZERO;'],
    ['hand-overs go on for any time once a turn is asked for',
      '(is_early || self.turn.get() == Turn::NotAskedFor)',
      '(is_early || self.turn.get() != Turn::Awaited)'],
    ['a turn that is awaited rings no agent', ' == Turn::Awaited\n    }\n}\n', ' == Turn::AskedFor\n    }\n}\n']
  ]),
  ...of(signals, { test: 'locks/observe/dumps' }, [
    ['nothing begins before the first signal', '    _ = contained(begin);\n', ''],
    ['no signal is told', '    HAS_COME.store(true, Ordering::Relaxed);\n', '']
  ]),
  ...of(abandoned, { cargo: ['queue', ''] }, [
    ['a dead holder hands the lock to a promise that has not retried',
      '                && self.is_ready(location, first)\n',
      '']
  ]),

  // ——— words of several processes ———
  ...of(lockStore, { cargo: ['line', 'known_holder'] }, [
    ['a word that a process is known to have is polled', 'is_free || !word.has_known_holder()', 'true']
  ]),
  ...of('core/src/mapped/words/owner.rs', { model: 'process_lock_death' }, [
    ['who sweeps tells nobody', '                self.table.tell(self.index, process, self.peers);', ''],
    ['who frees a word tells nobody',
      '            self.end();\n        }\n        self.pass();\n    }\n\n    fn is_due',
      '            self.end();\n        }\n    }\n\n    fn is_due']
  ]),
  ...of('core/src/mapped/words/turns.rs', { model: 'process_notify_leave' }, [
    ['a waiter that leaves loses its notification', 'notified > 0 && notified >= waiters', 'false']
  ]),

  // ——— death ———
  ...of(abandoned, { model: 'death_newcomer_claim' }, [
    ['a death is not remembered',
      'if hold.is_exclusive() {\n            self.note_death(location, word);',
      'if false {\n            self.note_death(location, word);'],
    ['a lock is freed before its death is noted',
      '        if hold.is_exclusive() {\n            self.note_death(location, word);',
      '        word.give_back(hold);\n        if hold.is_exclusive() {\n            self.note_death(location, word);'],
    ['two holders see one death',
      'let was_abandoned = self.lists.policy.abandoned.remove(&location);',
      'let was_abandoned = self.lists.policy.abandoned.contains(&location);']
  ]),
  ...of(abandoned, { model: 'death_newcomer_death' }, [
    ['the note of an earlier death outlives the next one',
      '                self.take_note_of_death(location, hold, word);\n                self.grant',
      '                self.grant']
  ]),
  ...of(abandoned, { model: 'write_death_read' }, [
    ['readers do not see a death',
      'Mode::Shared => self.lists.policy.abandoned.contains(&location),',
      'Mode::Shared => false,']
  ]),
  ...of(abandoned, { cargo: ['line', 'a_grant_that_was_not_used'] }, [
    ['a grant of a dead holder loses the news when it is returned',
      'if result == WaitResult::AcquiredFromDead {',
      'if false {']
  ]),
  ...of('core/src/lock/names.rs', { cargo: ['names', ''] }, [
    ['a thief does not see a death that the loser saw', 'if saw_death {', 'if false {'],
    ['a theft from nobody takes over', 'let took_over = !stolen.is_empty();', 'let took_over = true;'],
    ['a loser does not hear of the theft', '&& outbox.lose(id) == Ring::Needed', '&& outbox.lose(0) == Ring::Needed']
  ]),
  ...of(abandoned, { cargo: ['names', ''] }, [
    ['a thief sees a death that the loser has repaired', '*each = saw)', '*each |= saw)'],
    ['a thief does not see what the loser abandoned', '*each = saw)', '*each &= saw)']
  ]),
  ...of('core/src/lock/names.rs', { cargo: ['names', 'rung'] }, [
    ['a loser is not rung', '&& outbox.lose(id) == Ring::Needed', '&& outbox.lose(id) != Ring::Needed']
  ]),
  ...of('core/src/lock/names.rs', { cargo: ['scale', 'stealing'] }, [
    ['a theft looks at all that is held',
      'named.range((location, 0)..=(location, u32::MAX)).map(',
      'named.iter().filter(|((at, _), _)| *at == location).map(']
  ]),
  ...of('core/src/lock/names.rs', { cargo: ['names', ''] }, [
    ['a name that a dead holder has left gets another word',
      'if let Some((name, is_left)) = self.names.get_mut(text) {',
      'if let Some((name, is_left)) = self.names.get_mut(text).filter(|(_, is_left)| !*is_left) {'],
    ['a name that is used again is left',
      '                self.left.retain(|left| !std::sync::Arc::ptr_eq(left, &name.text));\n',
      '']
  ]),
  ...of('core/src/queue/location.rs', { cargo: ['lib', 'a_name_is_at'] }, [
    ['a name is where memory of JavaScript can be', 'Self(address | 1)', 'Self(address)']
  ]),
  ...of(trackedBuffers, { cargo: ['tracked_buffers', ''] }, [
    ['the note of a death is taken from a memory that lives',
      'if memory.objects > 0 {\n            return Left::Known;',
      'if false {\n            return Left::Known;'],
    ['a memory of which no object is known counts as gone',
      'if !store.any_abandoned_in(&addresses) {',
      'if true {'],
    ['a memory that has been freed is remembered',
      'for freed in (self.find_freed)(left) {',
      'for freed in (self.find_freed)(left).into_iter().take(0) {'],
    ['a memory that was freed is forgotten after it has been registered anew',
      '            registry.left.retain(|&each| each != base);\n        }\n        let memory',
      '        }\n        let memory'],
    ['any number of memories is remembered of which no object is known',
      'if self.left.len() > MOST_LEFT {',
      'if false {'],
    ['a name stays when its memory is gone',
      'self.labels.range(addresses.clone()).next()',
      'self.labels.range(0..0).next()']
  ]),
  ...of(store, { cargo: ['tracked_buffers', ''] }, [
    ['only the first cache line of a memory is looked at',
      'let lines = addresses.start / CACHE_LINE..addresses.end.div_ceil(CACHE_LINE);',
      'let lines = addresses.start / CACHE_LINE..addresses.start / CACHE_LINE + 1;'],
    ['the last cache line of a memory is not looked at',
      'addresses.end.div_ceil(CACHE_LINE)',
      'addresses.end / CACHE_LINE'],
    ['of a long memory no bucket is looked at', '.chain(0..all)', '.chain(0..all / 2)']
  ]),
  ...of(trackedBuffers, { cargo: ['tracked_buffers', 'overlaps'] }, [
    ['what a memory overlaps is remembered', '            registry.forget_overlapped(store, base, length);\n', ''],
    ['the objects of a memory that another one overlapped are forgotten',
      '            self.gone.insert(base, Memory { length: 0, ended: Vec::new(), ..memory });\n',
      '']
  ]),
  ...of(trackedBuffers, { cargo: ['tracked_buffers', 'ended'] }, [
    ['a thread that had objects of an earlier memory has used this one',
      'if has_used && memory.length > 0 {',
      'if memory.length > 0 {'],
    ['a thread that has lost its objects has not used the memory',
      'memory.lost_by.remove(&agent) || objects > 0;',
      '!memory.lost_by.remove(&agent) && objects > 0;'],
    ['a memory has the users of one that it overlapped', 'length: 0, ended: Vec::new(), ', 'length: 0, ']
  ]),
  ...of('src/globals/memory_probe.rs', { test: 'ends/owner-death-memory' }, [
    ['memory that exists counts as freed', 'filter(|(_, memory)| memory.end > start)', 'filter(|_| true)']
  ]),
  ...of('src/globals/memory_probe.rs', { cargo: ['addon', 'memory_probe'] }, [
    ['one free piece hides another of its length',
      'const MISSES_OF_LONG: usize = 4;',
      'const MISSES_OF_LONG: usize = 1;'],
    ['no memory is found of which something else has a part', 'const PART: usize = 8;', 'const PART: usize = 1;']
  ]),
  ...of(trackedBuffers, { model: 'lose_register_death' }, [
    ['freed memories are found outside of the lock of the registry',
      '        for freed in (self.find_freed)(left) {\n            registry.forget(store, freed.start);',
      '        drop(registry);\n        for freed in (self.find_freed)(left) {\n' +
      '            lock(&self.registry).forget(store, freed.start);']
  ]),

  // ——— who holds a lock ———
  ...of('core/src/held/robust_list.rs', { cargo: ['robust_list', 'holder_lookup'] }, [
    ['a robust list that changes while it is read has no hold',
      'if moves.is_multiple_of(2) && self.moves() == moves {\n                return false;',
      'if true {\n                return false;'],
    ['what is being released in line has no holder', 'index < len || self.number(index) != 0', 'index < len']
  ]),

  ...of('core/src/held/robust_list.rs', { cargo: ['robust_list', 'after_each_write'] }, [
    ['of a word that is being released no hold is read',
      '(Some(index) != left_out).then', '(Some(location) != look.leaving).then'],
    ['what changes places is read twice, or half',
      '(0..len).find(|&index| self.number(index) == number).or(last)',
      'last']
  ]),

  // ——— what a hold owes ———
  ...of('src/agent/locking.rs', { test: 'locks/condition-owed' }, [
    ['an abandoned hold keeps its notification',
      '        self.robust_list.retract();\n        pass_on_notification(owed);',
      '        self.robust_list.retract();']
  ]),
  ...of('src/agent/ending.rs', { test: 'ends/queue-deaths' }, [
    ['a death in a use tells nobody that the queue is idle',
      'const IDLE_EVENTS: u32 = 2;',
      'const IDLE_EVENTS: u32 = 0;'],
    ['a thread that died in a step of a queue owes takers nothing',
      '            self.owe_takers(events);\n            self.events',
      '            self.events'],
    ['a putter that has died is counted', 'own_word_at(location).give_back(Hold::Putter(words));', '']
  ]),
  ...of('src/agent/ending.rs', { test: 'ends/condition-deaths' }, [
    ['a dead thread keeps the notifications of its holds',
      'contained(|| Unused::Notification(location).pass_on());',
      'let _ = location;']
  ]),
  ...of('src/agent/progress.rs', { cargo: ['addon', 'whenever_the_environment_ends'] }, [
    ['what a hold owes is passed on twice',
      'let is_owned = wait.request.is_some_and(Request::is_owned);',
      'let is_owned = false;'],
    ['grants that have been adopted are adopted again',
      'let adopts = self.adopted <= self.delivered;',
      'let adopts = true;']
  ]),
  ...of('src/agent/waiting.rs', { test: 'locks/condition' }, [
    ['a claim that gives up keeps its notification', '            pass_on_notification(claim.relay);\n', '']
  ]),

  // ——— cycles ———
  ...of(cycles, { cargo: ['cycles', 'a_cycle_counts'] }, [
    ['a cycle of one look counts',
      'cycles.into_iter().filter(|cycle| cycle.iter().all(stands)).collect()',
      '{ let _ = stands; cycles }']
  ]),
  ...of(cycles, { cargo: ['cycles', 'each_thread'] }, [
    ['a blocked thread waits for what its promises wait for',
      'if blocked == graph.blocking.contains(&thread) {',
      'if true {'],
    ['a thread waits for itself', 'View::Threads => holder.node == Node::Thread(thread)', 'View::Threads => false'],
    ['a cycle is returned once for each of its threads',
      'self.on_cycles.insert(self.holder(index));',
      '']
  ]),
  ...of(cycles, { cargo: ['cycles', 'a_callbacks_hold'] }, [
    ['a callback waits for whatever its thread awaits',
      '(in_task || self.view == View::Tasks) &&',
      'self.view == View::Tasks &&']
  ]),
  ...of(cycles, { cargo: ['cycles', 'a_reader'] }, [
    ['a reader does not wait for the writer ahead',
      'self.reach(next, Some((claim, Has::Awaited(next))));',
      '']
  ]),
  ...of(cycles, { cargo: ['cycles', 'ahead'] }, [
    ['a claim for permits does not wait for those ahead of the one ahead',
      '.filter(|_| is_for_permits && *self.steps',
      '.filter(|_| false && *self.steps']
  ]),
  ...of(cycles, { cargo: ['cycles', 'permits'] }, [
    ['a task awaits what it holds of a limit as if others held it', 'its.contains(&holder.index)', 'its.is_empty()'],
    ['a task that can never have enough waits for others only',
      'let waits_for_itself = self.view == View::Tasks &&',
      'let waits_for_itself = false &&'],
    ['the promises of a blocked thread count as those of its tasks', ' && !self.blocking.contains(&thread)', '']
  ]),
  ...of(cycles, { cargo: ['cycles', 'the_work_for_tasks'] }, [
    ['a claim is on any number of cycles',
      'counts.get(&link.waits_for) < Some(&MOST_CYCLES)',
      'link.waits_for < usize::MAX - MOST_CYCLES']
  ]),
  ...of(cycles, { cargo: ['cycles', 'hides'] }, [
    ['a cycle of tasks of one thread hides those of several threads',
      'filter(|_| threads.len() > 1)',
      'filter(|_| true)']
  ]),

  // ——— words ———
  ...of(word, { cargo: ['queue', ''] }, [
    ['a reader enters beside a writer',
      'current.checked_add(1).filter(|&readers| readers > 0)',
      'current.checked_add(1)'],
    ['a writer enters beside readers',
      'Self::Exclusive | Self::Named(Mode::Exclusive, _) => (current == UNLOCKED).then_some(WRITING),',
      'Self::Exclusive | Self::Named(Mode::Exclusive, _) => (current >= UNLOCKED).then_some(WRITING),'],
    ['more permits are taken than there are', '.filter(|&left| left >= 0)', '.filter(|&left| left >= -1)']
  ]),
  ...of(word, { cargo: ['line', 'limit'], orModel: 'limit_newcomer_claim' }, [
    ['a limit grants one permit too many',
      '.filter(|&taken| taken.unsigned_abs() <= limit)',
      '.filter(|&taken| taken.unsigned_abs() <= limit + 1)']
  ]),
  ...of(word, { cargo: ['line', 'limit'] }, [
    ['a negative word raises a limit',
      'current.max(0).checked_add_unsigned(amount)',
      'current.checked_add_unsigned(amount)']
  ]),
  ...of(word, { cargo: ['line', 'limit'] }, [
    ['more than was taken of a limit comes back',
      'current.saturating_sub_unsigned(amount).max(0)',
      'current.saturating_sub_unsigned(amount)'],
    ['what a dead thread held of a limit stays taken',
      'Self::Limited(amount) => current.saturating_sub_unsigned(amount).max(0)',
      'Self::Limited(_) => current']
  ]),
  ...of(word, { model: 'unlock_newcomer_claim' }, [
    ['a word is taken by a plain write',
      'Some(next) if word.compare_exchange(current, next) => return true,',
      'Some(next) => { word.compare_exchange(current, next); return true },']
  ]),

  // Deadlocks, snapshots, names.
  ...of('core/src/held/registry.rs', { test: 'locks/observe/holder-stacks' }, [
    ['what is on its way to its holder has no place',
      'Some(Self { location, hold: request.hold(), call, since, place })',
      'Some(Self { location, hold: request.hold(), call: 0 & call, since, place })']
  ]),
  ...of('core/src/held/state.rs', { test: 'locks/observe/holder-stacks' }, [
    ['a hold is known since it was seen, and not since it was taken',
      'return Some(taken.since);',
      'let _ = taken.since;']
  ]),
  ...of(waitForGraph, { cargo: ['deadlock', ''] }, [
    ['a reader does not wait for the writer ahead of it',
      'section.before(key).take_while(|_| !blocked.request.hold().is_exclusive())',
      'section.before(key).take_while(|_| false)'],
    ['a writer ahead is only known if it is published',
      'claim.or_else(|| self.published.get(&key(&thread)).cloned())',
      'self.published.get(&key(&thread)).cloned()'],
    ['of the waiters ahead of a reader only the nearest is looked at',
      'section.before(key).take_while(|_| !blocked.request.hold().is_exclusive())',
      'section.before(key).take(1).take_while(|_| !blocked.request.hold().is_exclusive())'],
    ['a writer ahead that holds something is known before it is published',
      'Some(claim).filter(|_| !holds(&thread))',
      'Some(claim)'],
    ['a thread that finds no cycle is not published',
      '            published.insert(key(&blocked.thread), blocked.clone());\n            return None;',
      '            return None;']
  ]),
  ...of(waitForGraph, { cargo: ['deadlock', ''] }, [
    ['a claim of a limit does not wait for the one ahead of it',
      'None => matches!(request, Request::Limited { .. }),',
      'None => false,'],
    ['what a thread holds of a limit leaves room for what it wants besides',
      'amount: amount.saturating_add(own), limit }',
      'amount: amount.max(own.min(0)), limit }'],
    ['who holds a little of a limit keeps everyone waiting',
      'amount as u64 + held as u64 > limit as u64',
      'amount as u64 + held as u64 >= limit as u64']
  ]),
  ...of('src/agent/locking.rs', { test: 'locks/every-class/scaling' }, [
    ['a thread that holds a lock is looked at again and again', 'if is_certain || now()', 'if now()']
  ]),
  ...of('src/agent/sleeping.rs', { test: 'locks/deadlock' }, [
    ['a promise that is granted a lock while its thread blocks is not looked at',
      'self.outbox.granted() != self.blocking.grants_seen.get()',
      'false']
  ]),
  ...of('core/src/held/registry.rs', { test: 'ends/termination', otherSystems: true }, [
    ['a thread that is interrupted does not interrupt the other blocked ones',
      '            thread.interrupt();',
      '            let _ = thread;']
  ]),

  // ——— the profile of waits ———
  ...of(profile, { test: 'locks/observe/profile' }, [
    ['a wait that is recorded for others counts for itself only', '.saturating_mul(self.factor.into())', ''],
    ['each lock of a line is told apart', 'leaves.len() < MOST_LEAVES || ', 'true || ']
  ]),
  ...of('src/exports/agents.rs', { test: 'locks/observe/profile' }, [
    ['the waits of a thread do not end with it',
      '        |id, _| profile::end_thread(id),',
      '        |_, _| {},']
  ]),

  // ——— reports ———
  ...of(reports, { test: 'locks/observe/stall-cycles' }, [
    ['a cycle counts before all of it is old', 'if self.snapshot.age_of(links) < self.period {', 'if false {'],
    ['each thread of a cycle reports it', '} else if reported.get(number).is_none() {', '} else {']
  ]),
  ...of(reports, { test: 'locks/observe/stalls' }, [
    ['a wait is reported again because holders come and go', 'is_due && is_old && ', 'is_due && '],
    ['what was reported of a wait is forgotten', 'reported.note(self.hash_of(entry), key);', '']
  ]),
  ...of(reports, { test: 'locks/observe/holder-stacks' }, [
    ['that a token was collected is no news', 'hold.serial, hold.is_orphaned)', 'hold.serial)']
  ]),
  ...of('src/observe/dump.rs', { test: 'locks/observe/dumps' }, [
    ['nothing is rehearsed', '        write(0, &Snapshot::take(&PROCESS), *IS_JSON, |_| {});\n', '']
  ]),
  ...of(reports, { test: 'locks/observe/ended' }, [
    ['a possible pause is a stall', '!may_be_pause(entry) || age >= PATIENCE', 'true || age >= PATIENCE']
  ]),
  ...of('core/src/observe/survey.rs', { test: 'locks/observe/ended' }, [
    ['a thread that had ended before the wait makes it a stall', '|(ended, since)| ended.at > since', '|_| true']
  ]),
  ...of(reports, { test: 'locks/observe/stalls' }, [
    ['all stalls are reported by one look', 'places.into_iter().take(MOST)', 'places'],
    ['each thread that blocks at a place reports it', 'for &entry in &entries {', 'for &entry in &entries[..1] {']
  ]),

  // ——— locks of several processes ———
  ...of('src/file_locks/waiting.rs', { test: 'processes/files-lines' }, [
    ['a wait that is withdrawn goes on',
      'line.requests.is_empty() && line.interrupt(false)',
      'false']
  ]),
  ...of('src/file_locks/waiting.rs', { cargo: ['addon', 'file_locks'] }, [
    ['a signal of somebody else ends a wait', '|line| line.blocked().is_some()) != Some(true)', '|_| ()).is_some()']
  ]),
  ...of('src/file_locks/waiting/pool.rs', { cargo: ['addon', 'file_locks'] }, [
    ['each job has a thread', 'self.jobs.len().min(MOST_JOBS - self.jobs_at_work)', 'self.jobs.len()']
  ]),
  ...of('src/file_locks/waiting/pool.rs', { test: 'processes/files-lines' }, [
    ['no turn ends', 'self.queue.len() - self.lines_to_begin().min(self.idle)', '0']
  ]),
  ...of('src/file_locks/waiting.rs', { cargo: ['addon', 'file_locks'] }, [
    ['a signal that was lost is not repeated', '                sleeper.interrupt();\n', ''],
    ['a wait for a removed file waits for its holder', 'which, file), Ok(false))', 'which, file), Err(_))']
  ]),
  ...of('src/file_locks/waiting.rs', { test: 'processes/files-lines' }, [
    ['a suspended first in line keeps a free lock', '|now| now == token', '|_| false']
  ]),
  ...of('src/file_locks/lock_file.rs', { test: 'processes/files-lines' }, [
    ['a newcomer passes the gate', 'map_or(Gate::Shut, |gate|', 'map_or(Gate::Open(None), |gate|'],
    ['a suspended first in line stops an attempt', 'self.take_free(description, |_| true)', 'Ok(None)'],
    ['readers wait at the gate together',
      'wait_for_lock(file, Mode::Exclusive)',
      'wait_for_lock(file, self.mode)']
  ]),
  ...of('src/file_locks/mailbox.rs', { cargo: ['addon', 'file_locks'] }, [
    ['a grant that nobody expects is kept', 'return answer.return_unused();', 'return drop(answer);']
  ]),
  ...of('src/file_locks/lock_file.rs', { test: 'processes/files' }, [
    ['a file counts although the path leads to another one',
      'if grant.is_held()? {\n            return Ok(Some(grant));\n        }',
      'return Ok(Some(grant));'],
    ['a token is that of the clock, whatever the last one was',
      '(token + 1).max(since_1970.as_micros() as u64)',
      'since_1970.as_micros() as u64']
  ]),
  ...of('src/file_locks/lock_file.rs', { test: 'processes/one-machine' }, [
    ['a release leaves the mark', '            state::unmark(&mut grant.bytes);\n', ''],
    ['a token is one more than the last, whatever the clock says',
      '(token + 1).max(since_1970.as_micros() as u64)',
      'token + 1']
  ]),
  ...of('src/file_locks/lock_file.rs', { test: 'processes/files-kept' }, [
    ['a kept descriptor announces a lock', '            withdraw_announcement(&opened.0);\n', ''],
    ['a lock is not free while its descriptor is kept', '        unlock(self.file());\n', ''],
    ['no kept descriptor is closed where one is lacking', 'is_passing(&error) && timed::close_kept()', 'false']
  ]),
  ...of('src/file_locks/timed.rs', { test: 'processes/files-kept' }, [
    ['all descriptors are kept', 'shelf.kept.len() >= MOST_KEPT', 'false']
  ]),
  ...of('src/file_locks/unix.rs', { test: 'processes/files' }, [
    ['the umask says who may write to a file',
      'if data.permissions().mode() & 0o777 != mode {', 'if false {'],
    ['a symbolic link is followed', 'libc::O_NOFOLLOW | libc::O_NONBLOCK', 'libc::O_NONBLOCK']
  ]),
  ...of('src/file_locks/unix.rs', { test: 'processes/files-query' }, [
    ['a look waits for somebody who writes to a FIFO', 'libc::O_NOFOLLOW | libc::O_NONBLOCK', 'libc::O_NOFOLLOW']
  ]),
  ...of('src/file_locks/state.rs', { test: 'processes/files-query' }, [
    ['a look reads all of a file', '(&file).take(LARGEST as u64).read_to_end', '(&file).read_to_end'],
    ['a holder does not announce itself', 'F_OFD_SETLK, &raw const byte', 'F_OFD_GETLK, &raw const byte']
  ]),
  ...of('src/file_locks/files.rs', { test: 'processes/files-threads' }, [
    ['a thread that ends keeps its locks',
      '        self.grants.take();',
      '        std::mem::forget(self.grants.take());']
  ])
]
