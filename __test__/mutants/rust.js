'use strict'

// Mutations of the queue, the locks and the service, in Rust. See ../mutants.js. `model` names a model of core/tests/model.rs; `cargo` a filter
// of `cargo test`, and in which program: `queue` means core/tests/queue.rs, `lib` the tests within core/src/, `addon` those within src/.

const counters = 'core/src/queue/counters.rs'
const store = 'core/src/queue/store.rs'
const section = 'core/src/queue/critical_section.rs'
const waiterList = 'core/src/queue/waiter_list.rs'
const outbox = 'core/src/queue/outbox.rs'
const parker = 'core/src/queue/parker.rs'
const line = 'core/src/lock/line.rs'
const lines = 'core/src/lock/bucket.rs'
const lockStore = 'core/src/lock/claims.rs'
const abandoned = 'core/src/lock/abandoned.rs'
const memories = 'core/src/lock/memories.rs'
const request = 'core/src/lock/request.rs'
const rings = 'core/src/lock/rings.rs'
const taskRings = 'core/src/lock/task_rings.rs'
const fairness = 'core/src/lock/fairness.rs'
const waiter = 'core/src/queue/waiter.rs'
const pace = 'src/agent/pace.rs'
const profile = 'src/observe/profile.rs'
const reports = 'src/observe/reports.rs'

module.exports = [
  // ——— fences and orderings ———
  {
    what: 'a notifier passes no fence before it reads the counter',
    file: counters,
    find: '        fence(Ordering::SeqCst);\n        counter.load(Ordering::Relaxed) == 0\n',
    put: '        counter.load(Ordering::Relaxed) == 0\n',
    model: 'wait_store_notify'
  },
  {
    what: 'a waiter passes no fence after it is counted',
    file: counters,
    find: 'counter.fetch_add(1, Ordering::SeqCst);\n        fence(Ordering::SeqCst);',
    put: 'counter.fetch_add(1, Ordering::SeqCst);',
    model: 'wait_store_notify'
  },
  {
    what: 'a waiter is counted after it has read the word',
    file: section,
    find: '        let counted = Counted::new(self.counter(location));\n        if !waits(self) {\n            return None;\n        }\n',
    put: '        if !waits(self) {\n            return None;\n        }\n        let counted = Counted::new(self.counter(location));\n',
    model: 'wait_store_notify'
  },
  { what: 'a waiter in its list is not counted', file: section, find: '        counted.keep();\n', put: '        drop(counted);\n', model: 'wait_notify' },
  {
    what: 'a waiter that has left stays counted',
    file: section,
    find: '        self.counter(location).fetch_sub(1, Ordering::SeqCst);\n',
    put: '        let _ = location;\n',
    model: 'unlock_claim'
  },
  {
    what: 'the result of a blocked thread is recorded without release',
    file: parker,
    find: 'self.result.store(result as u8, Ordering::Release);',
    put: 'self.result.store(result as u8, Ordering::Relaxed);',
    model: 'wait_notify'
  },
  { what: 'the result of a blocked thread is read without acquire', file: parker, find: 'self.result.load(Ordering::Acquire)', put: 'self.result.load(Ordering::Relaxed)', model: 'wait_notify' },
  { what: 'the result of the last wait is not cleared', file: parker, find: '        self.result.store(WAITING, Ordering::Relaxed);\n', put: '', model: 'park_late_unpark' },
  {
    what: 'an interruption is lost',
    file: parker,
    find: '        self.interrupted.store(true, Ordering::Release);\n        self.unpark();',
    put: '        self.unpark();',
    model: 'park_interrupt'
  },
  {
    what: 'an interruption does not wake the thread',
    file: parker,
    find: '        self.interrupted.store(true, Ordering::Release);\n        self.unpark();',
    put: '        self.interrupted.store(true, Ordering::Release);',
    model: 'sleep_rest'
  },
  {
    what: 'the service passes no fence before it looks once more',
    file: 'core/src/service/rest.rs',
    find: '        fence(Ordering::SeqCst);\n        let rests',
    put: '        let rests',
    model: 'sleep_rest'
  },
  {
    what: 'the service does not look once more before it rests',
    file: 'core/src/service/rest.rs',
    find: 'let rests = !is_needed();',
    put: 'let rests = { is_needed(); true };',
    model: 'claim_rest'
  },
  {
    what: 'a thread passes no fence before it reads whether the service rests',
    file: 'core/src/service/rest.rs',
    find: '        fence(Ordering::SeqCst);\n        // Release',
    put: '        // Release',
    model: 'sleep_rest'
  },
  {
    what: 'the service does not read the deadlines again',
    file: 'core/src/service/alarm.rs',
    find: 'if store.earliest_deadline() >= next {',
    put: 'if next <= Timestamp::NEVER {',
    model: 'register_expire'
  },
  { what: 'the alarm is set without SeqCst', file: 'core/src/service/alarm.rs', find: 'self.set_to.store(next.as_nanos(), Ordering::SeqCst)', put: 'self.set_to.store(next.as_nanos(), Ordering::Relaxed)', model: 'register_expire' },
  { what: 'the alarm is read without SeqCst', file: 'core/src/service/alarm.rs', find: 'self.set_to.load(Ordering::SeqCst)', put: 'self.set_to.load(Ordering::Relaxed)', model: 'register_expire' },
  { what: 'a deadline is published without SeqCst', file: section, find: 'self.bucket.earliest_deadline.store(earliest, Ordering::SeqCst);', put: 'self.bucket.earliest_deadline.store(earliest, Ordering::Relaxed);', model: 'register_expire' },
  { what: 'a deadline is not published', file: section, find: '            self.bucket.earliest_deadline.store(earliest, Ordering::SeqCst);\n', put: '', model: 'register_expire' },

  // ——— the outbox ———
  {
    what: 'the first mail rings nobody',
    file: outbox,
    find: '        self.has_mail.store(true, Ordering::Release);\n        Ring::Needed\n',
    put: '        self.has_mail.store(true, Ordering::Release);\n        Ring::UnderWay\n',
    model: 'push_take_ring'
  },
  { what: 'taken mail still counts as there', file: outbox, find: '        self.has_mail.store(false, Ordering::Relaxed);\n', put: '', model: 'push_take_mail' },
  { what: 'mail is not said to be there', file: outbox, find: '        self.has_mail.store(true, Ordering::Release);\n', put: '', model: 'push_take_mail' },
  { what: 'an agent that has ended is rung', file: outbox, find: '        *lock(&self.bell) = None;\n', put: '', model: 'ring_close' },
  { what: 'a notification is revoked', file: outbox, find: 'result.is_acquired() || result == WaitResult::TimedOut', put: 'result != WaitResult::Due', model: 'cancel_timeout_notify' },
  { what: 'a result that was revoked stays', file: outbox, find: 'std::mem::replace(&mut mail.settlements[place].result, WaitResult::Due)', put: 'mail.settlements[place].result', cargo: ['line', 'revoked'] },
  { what: 'a thread that spins in vain tries again as soon as before', file: 'core/src/spinner.rs', find: '(2 * self.next_pause.get()).min(self.longest_pause)', put: 'Self::PAUSE', cargo: ['lib', 'become_rare'] },
  { what: 'a spin that pays leaves the pauses long', file: 'core/src/spinner.rs', find: 'self.next_pause.set(Self::PAUSE);', put: '', cargo: ['lib', 'makes_the_pauses_short'] },
  { what: 'an operation that has failed leaves its wait in the line', file: 'src/environment/operations.rs', find: '    agent.robust_list.retract();\n    agent.blocking.abandon();\n}', put: '    agent.robust_list.retract();\n}', test: 'ends/faults' },
  { what: 'of the waiters that are woken only the first is', file: 'core/src/queue/waiter.rs', find: 'self.0.iter().for_each', put: 'self.0.iter().take(1).for_each', cargo: ['line', 'a_waiter_that_has_been_granted_something_is_woken'] },

  // ——— the queue ———
  {
    what: 'a thread that gives up takes a notification along',
    file: store,
    find: 'thread.result().unwrap_or(WaitResult::TimedOut)\n    }\n\n    /// Removes a promise',
    put: 'WaitResult::TimedOut\n    }\n\n    /// Removes a promise',
    model: 'wait_timeout_notify_thread'
  },
  {
    what: 'a ticket of an ended wait of the same thread is taken for the present one',
    file: store,
    find: '                && !matches!(waiter, Waiter::Thread(thread) if thread.result().is_some());',
    put: '                ;',
    equivalent: 'a thread has one wait at a time, and keeps no earlier ticket: this is for the reader of a wrong one'
  },
  {
    what: 'a claim that is withdrawn wakes no successor',
    file: store,
    find: '            if section.remove(key) == Successor::ToBeWoken {',
    put: '            if section.remove(key) == Successor::ToBeWoken && false {',
    model: 'grant_give_up',
    orModel: 'add_permit_give_up'
  },
  {
    what: 'a claim that times out wakes no successor',
    file: section,
    find: '        if self.dequeue(key, WaitResult::TimedOut) == Successor::ToBeWoken {',
    put: '        if self.dequeue(key, WaitResult::TimedOut) == Successor::ToBeWoken && false {',
    model: 'wake_timeout'
  },
  { what: 'a notification is spent on a waiter that is due', file: store, find: '                if section.is_due(key) {', put: '                if section.is_due(key) && false {', cargo: ['queue', ''] },
  {
    what: 'a promise of the agent that notifies times out before a job has decided',
    file: section,
    find: 'deadline <= self.now() && !self.is_promise_of(self.runs, key)',
    put: 'deadline <= self.now()',
    model: 'wait_timeout_notify_own_promise'
  },
  { what: 'a promise is timed out that is not overdue', file: section, find: '.filter(|record| record.is_overdue())', put: '', model: 'timeout_cancel_wait' },
  { what: 'a promise in another slot is timed out', file: 'core/src/queue/waiter.rs', find: 'if *its_slot == slot && Arc::ptr_eq', put: 'if *its_slot == *its_slot && Arc::ptr_eq', cargo: ['queue', ''] },
  { what: 'what is due is decided as late as it comes', file: store, find: '            is_decided\n', put: '            is_decided || true\n', model: 'timeout_cancel_wait' },
  { what: 'a notification wakes one waiter more', file: store, find: '            while woken < count\n', put: '            while woken <= count\n', cargo: ['queue', ''] },
  { what: 'the agent of a promise that is due is not rung', file: section, find: '        if ring == Ring::Needed {\n            self.wakes.0.push(waiter);\n        }\n    }\n\n    /// Wakes a claim', put: '        if ring == Ring::Needed && result != WaitResult::Due {\n            self.wakes.0.push(waiter);\n        }\n    }\n\n    /// Wakes a claim', cargo: ['queue', ''] },
  { what: 'a timeout is rounded down', file: 'core/src/clock.rs', find: '(milliseconds * 1e6).ceil()', put: '(milliseconds * 1e6).floor()', cargo: ['lib', 'a_deadline_is_rounded_up'] },
  { what: 'a deadline outlives its waiter', file: waiterList, find: 'self.deadlines.remove(&(record.deadline, key));', put: '', cargo: ['queue', ''] },
  { what: 'a waiter stands in front instead of behind', file: waiterList, find: '                self.waiters[tail as usize].next = key;\n', put: '', cargo: ['queue', ''] },
  { what: 'a list leads to a waiter that has left', file: waiterList, find: '                self.waiters[record.previous as usize].next = record.next;\n', put: '', cargo: ['queue', ''] },
  { what: 'the last waiter of a list is not known once another has left', file: waiterList, find: '            self.waiters[after as usize].previous = record.previous;\n', put: '', cargo: ['queue', ''] },
  { what: 'a list begins with a waiter that has left', file: waiterList, find: '                list.head = record.next;\n', put: '', cargo: ['queue', ''] },
  { what: 'a list begins with a promise that has been notified', file: waiterList, find: '            list.head = next;\n', put: '', cargo: ['queue', ''] },
  { what: 'the last waiter of a list is not known once a promise has been notified', file: waiterList, find: '            self.waiters[next as usize].previous = previous;\n', put: '', cargo: ['queue', ''] },
  { what: 'a promise that is notified keeps its deadline', file: waiterList, find: 'first.deadline != Timestamp::NEVER || ', put: '', cargo: ['queue', ''] },
  { what: 'a promise that has been notified is still in the length of its list', file: waiterList, find: '        list.length -= 1;\n        if next == NIL {', put: '        if next == NIL {', cargo: ['queue', ''] },
  { what: 'a deadline that has come is found again', file: waiterList, find: '        self.deadlines.remove(&(deadline, key));\n    }', put: '        let _ = deadline;\n    }', cargo: ['queue', ''] },
  { what: 'a deadline is later than it is', file: waiterList, find: '(deadline <= now)', put: '(deadline < now)', cargo: ['queue', ''] },
  { what: 'a later deadline counts as the earliest', file: waiterList, find: 'self.deadlines.first().map_or', put: 'self.deadlines.last().map_or', cargo: ['queue', ''] },
  { what: 'one promise is notified at a time', file: waiterList, find: '(next != NIL).then_some(next)))', put: 'None))', cargo: ['queue', ''] },
  { what: 'a blocked thread is timed out by the service', file: waiterList, find: 'if deadline != Timestamp::NEVER && !listed.waiter.blocks() {', put: 'if deadline != Timestamp::NEVER {', cargo: ['queue', ''] },

  // ——— lines ———
  { what: 'a claim does not try once more in the critical section', file: lockStore, find: 'taken = section.take(location, request, word);\n            }', put: 'let _ = &mut taken;\n            }', model: 'unlock_claim' },
  { what: 'a claim overtakes a strict line', file: lockStore, find: 'if !(request.is_strict() && section.has_line(location)) {', put: 'if true {', cargo: ['line', ''] },
  { what: 'try_take overtakes a strict line', file: lockStore, find: 'let would_overtake = request.is_strict() && self.has_line(location);', put: 'let would_overtake = false;', cargo: ['line', ''] },
  { what: 'a lock is handed over and freed', file: lockStore, find: '                self.grant(next, location, result);\n                return released;', put: '                self.grant(next, location, result);', model: 'grant_newcomer' },
  { what: 'a release wakes nobody', file: lockStore, find: '        request.give_back(word);\n        self.word_changed(location, word);\n        released', put: '        request.give_back(word);\n        released', model: 'unlock_claim' },
  { what: 'a claim retries that was not woken', file: lockStore, find: 'retries(key, waiter.blocks()) {', put: 'retries(key, waiter.blocks()) && false {', equivalent: 'it takes what is free, as a newcomer may; in a strict line the next check refuses it' },
  { what: 'a claim behind others retries in a strict line', file: lockStore, find: 'if request.is_strict() && section.notify_up_to_first_claim(location).is_none_or(|(first, ..)| first != key)\n', put: 'if false\n', cargo: ['line', 'does_not_overtake'] },
  { what: 'a claim of a strict line that has retried leaves the rest to nobody', file: lockStore, find: '            if request.is_strict() {\n                section.word_changed(location, word);\n            } else if', put: '            if request.is_strict() {\n            } else if', cargo: ['line', ''] },
  { what: 'a lock that a promise has taken is not noted as on its way', file: lockStore, find: '                section.policy_mut().granted.insert(location, waiter.clone());\n            }\n            Some(taken)', put: '            }\n            Some(taken)', model: 'unlock_by_mistake_grant', orCargo: ['line', ''] },
  { what: 'a lock that was granted is not noted as on its way', file: lines, find: 'section.policy_mut().granted.insert(location, waiter.clone());', put: 'let _ = (section, waiter);', model: 'unlock_by_mistake_grant' },
  { what: 'a thread that frees by mistake counts as no waiter', file: lockStore, find: 'let _counted = Counted::new(self.counter(location));', put: '', model: 'unlock_by_mistake' },
  { what: 'a thread that frees by mistake does not ask who is given the lock', file: lockStore, find: 'holder(section.policy().granted.get(&location))', put: 'holder(None)', model: 'unlock_by_mistake_grant' },
  { what: 'the service sees no word that was freed', file: lockStore, find: 'let is_free = first.is_some_and(|request| request.is_granted_by(word));', put: 'let is_free = first.is_some_and(|request| request.is_granted_by(word)) && false;', model: 'claim_rest' },
  { what: 'the service looks at the words of names', file: 'core/src/lock/bucket.rs', find: '.filter(|location| !location.is_of_process())', put: '', cargo: ['names', ''] },
  { what: 'a claim that joins is looked at no sooner than the others', file: 'core/src/service/looks.rs', find: 'next.map_or(soon, |next| next.min(soon))', put: 'next.unwrap_or(soon)', cargo: ['lib', 'looks_become_rare'] },
  { what: 'a bucket with claims is not said to have any', file: section, find: 'self.bucket.has_claims.store(true, Ordering::Relaxed);', put: '', model: 'claim_rest' },
  { what: 'a line stays when its last claim has left', file: lines, find: '        if line.claims() == 0 {', put: '        if line.claims() == u32::MAX {', cargo: ['line', ''] },
  { what: 'a claim of a strict line that gives up wakes no successor', file: lines, find: 'if request.is_strict() { Successor::ToBeWoken } else { successor }', put: 'successor', model: 'add_permit_give_up' },
  { what: 'a claim of a lock that was woken and leaves wakes no successor', file: line, find: 'if was_awake || has_tried { Successor::ToBeWoken }', put: 'if has_tried { Successor::ToBeWoken }', model: 'wake_timeout' },
  { what: 'no thread behind a promise is woken', file: lines, find: '            if !self.blocks(first)\n', put: '            if !self.blocks(first) && false\n', model: 'unlock_busy_claim' },
  { what: 'plain waiters before a claim are not notified', file: lines, find: '            others_before = true;\n            let _ = self.dequeue(key, WaitResult::Ok);\n        }\n        None', put: '            let _ = others_before;\n            return None;\n        }\n        None', cargo: ['line', ''] },
  { what: 'without claims nobody is notified', file: lines, find: '        } else if let Some(key) = self.expire_to_front(location) {\n            let _ = self.dequeue(key, WaitResult::Ok);\n        }', put: '        }', model: 'unlock_wait_claim' },
  { what: 'a claim that is awake is woken again', file: line, find: 'self.awake.of(blocks).replace(key) != Some(key)', put: '{ self.awake.of(blocks).replace(key); true }', cargo: ['line', ''] },
  { what: 'a claim that has retried in vain is not remembered', file: line, find: '            *self.tried.of(blocks) = Some(key);\n', put: '', cargo: ['line', ''] },
  { what: 'one notification wakes several claims', file: store, find: 'if is_claim && claim_woken {', put: 'if is_claim && claim_woken && false {', cargo: ['line', ''] },
  { what: 'of readers that wait only the first enters', file: lines, find: '                Some(result) => self.grant(key, location, result),', put: '                Some(result) => { self.grant(key, location, result); return }', model: 'write_death_read' },
  { what: 'newcomers overtake for ever', file: fairness, find: 'now.duration_since(since) >= FAIRNESS', put: 'false', cargo: ['line', ''] },
  { what: 'a blocked thread is handed the lock before it has been overtaken', file: fairness, find: 'now.duration_since(since) >= FAIRNESS', put: 'true', cargo: ['line', ''] },
  { what: 'releases make room ever as often', file: fairness, find: '            promise.patience *= 2;\n', put: '', cargo: ['line', 'releases_make_room'] },
  { what: 'no head start for a promise', file: line, find: 'self.overtaken.head_start_of(is_awake)', put: 'self.overtaken.head_start_of(is_awake).filter(|_| false)', cargo: ['line', 'head_start'] },
  { what: 'a promise that has not retried is handed the lock', file: lines, find: 'if !self.is_ready(location, key) {', put: 'if false {', cargo: ['line', ''] },
  { what: 'a lock is not handed to the promise of the agent that releases it', file: lines, find: 'self.is_claim_of_runner(key) || ', put: '', cargo: ['line', 'in_job'] },
  { what: 'a lock is handed to the promise of any agent', file: section, find: 'claim: Some(_) }) if Arc::ptr_eq(its, runner)', put: 'claim: Some(_) }) if Arc::ptr_eq(its, runner) || true', cargo: ['line', 'in_job'] },
  { what: 'the agent that releases a lock is rung nevertheless', file: waiter, find: 'self.0.retain(|waiter| !matches!', put: 'self.0.retain(|waiter| !outbox.has_only_grants() || !matches!', cargo: ['line', 'in_job'] },
  { what: 'a timeout is decided in the job that releases a lock', file: outbox, find: ' && mail.settlements.iter().all(|each| each.result.is_acquired())', put: '', cargo: ['line', 'in_job'] },
  { what: 'hand-overs do not end', file: pace, find: 'self.made.get() < MOST && ', put: '', cargo: ['addon', 'pace'] },
  { what: 'hand-overs go on for any time', file: pace, find: ' && now.duration_since(self.since.get()) < LONGEST', put: '', cargo: ['addon', 'pace'] },
  { what: 'a dead holder hands the lock to a promise that has not retried', file: abandoned, find: '                && self.is_ready(location, first)\n', put: '', cargo: ['line', ''] },

  // ——— death ———
  { what: 'a death is not remembered', file: abandoned, find: 'if request.is_exclusive() {\n            self.note_death(location);', put: 'if false {\n            self.note_death(location);', model: 'death_newcomer_claim' },
  {
    what: 'a lock is freed before its death is noted',
    file: abandoned,
    find: '        if request.is_exclusive() {\n            self.note_death(location);',
    put: '        request.give_back(word);\n        if request.is_exclusive() {\n            self.note_death(location);',
    model: 'death_newcomer_claim'
  },
  { what: 'the note of an earlier death outlives the next one', file: abandoned, find: '                self.take_note_of_death(location, request);\n', put: '', model: 'death_newcomer_death' },
  { what: 'two holders are told of one death', file: abandoned, find: 'let was_abandoned = self.policy_mut().abandoned.remove(&location);', put: 'let was_abandoned = self.policy_mut().abandoned.contains(&location);', model: 'death_newcomer_claim' },
  { what: 'readers are not told of a death', file: abandoned, find: 'Some(Mode::Shared) => self.policy().abandoned.contains(&location),', put: 'Some(Mode::Shared) => false,', model: 'write_death_read' },
  { what: 'a grant of a dead holder loses the news when it is returned', file: abandoned, find: 'if result == WaitResult::AcquiredFromDead {', put: 'if false {', cargo: ['line', ''] },
  { what: 'a thief is not told of a death of which the loser was told', file: 'core/src/lock/names.rs', find: 'if were_told {', put: 'if false {', cargo: ['names', ''] },
  { what: 'a thief is told of a death that the loser has repaired', file: 'core/src/lock/abandoned.rs', find: 'told.map(|told| *told = false).is_some()', put: 'told.is_some()', cargo: ['names', ''] },
  { what: 'a theft from nobody takes over', file: 'core/src/lock/names.rs', find: 'let took_over = !stolen.is_empty();', put: 'let took_over = true;', cargo: ['names', ''] },
  { what: 'a loser is not told of the theft', file: 'core/src/lock/names.rs', find: '&& outbox.lose(id) == Ring::Needed', put: '&& outbox.lose(0) == Ring::Needed', cargo: ['names', ''] },
  { what: 'a loser is not rung', file: 'core/src/lock/names.rs', find: '&& outbox.lose(id) == Ring::Needed', put: '&& outbox.lose(id) != Ring::Needed', cargo: ['names', 'rung'] },
  { what: 'a theft looks at all that is held', file: 'core/src/lock/names.rs', find: 'named.range((location, 0)..=(location, u32::MAX)).map(', put: 'named.iter().filter(|((at, _), _)| *at == location).map(', cargo: ['scale', 'stealing'] },
  { what: 'a name that a dead holder has left gets another word', file: 'core/src/lock/name_table.rs', find: 'left.map_or_else(new, |(_, name)| name)', put: 'left.map_or_else(new, |_| new())', cargo: ['names', ''] },
  { what: 'a name is where memory of JavaScript can be', file: 'core/src/queue/location.rs', find: 'Self(address | 1)', put: 'Self(address)', cargo: ['lib', 'a_name_is_at'] },
  { what: 'the note of a death is taken from a memory that lives', file: memories, find: 'if memory.objects > 0 {\n            return Left::Known;', put: 'if false {\n            return Left::Known;', cargo: ['memories', ''] },
  { what: 'a memory of which no object is known counts as gone', file: memories, find: 'if !store.any_abandoned_in(&memory.addresses(base)) {', put: 'if true {', cargo: ['memories', ''] },
  { what: 'a memory that has been freed is remembered', file: memories, find: 'for freed in (self.find_freed)(left) {', put: 'for freed in (self.find_freed)(left).into_iter().take(0) {', cargo: ['memories', ''] },
  { what: 'a memory that was freed is forgotten after it has been registered anew', file: memories, find: '            remove(&mut registry.left, base);\n            if had_lost {', put: '            if had_lost {', cargo: ['memories', ''] },
  { what: 'only the first cache line of a memory is looked at', file: store, find: 'let lines = addresses.start / CACHE_LINE..addresses.end.div_ceil(CACHE_LINE);', put: 'let lines = addresses.start / CACHE_LINE..addresses.start / CACHE_LINE + 1;', cargo: ['memories', ''] },
  { what: 'the last cache line of a memory is not looked at', file: store, find: 'addresses.end.div_ceil(CACHE_LINE)', put: 'addresses.end / CACHE_LINE', cargo: ['memories', ''] },
  { what: 'of a long memory no bucket is looked at', file: store, find: '.chain(0..all)', put: '.chain(0..all / 2)', cargo: ['memories', ''] },
  { what: 'what a memory overlaps is remembered', file: memories, find: '            registry.forget_overlapped(store, base, length);\n', put: '', cargo: ['memories', 'overlaps'] },
  { what: 'a memory that another one overlapped takes its notes along', file: memories, find: '        memory.length = 0;\n', put: '', cargo: ['memories', 'overlaps'] },
  { what: 'any number of memories is remembered of which no object is known', file: memories, find: 'if self.left.len() > MOST_LEFT {', put: 'if false {', cargo: ['memories', ''] },
  { what: 'memory that exists counts as freed', file: 'src/process/memory_probe.rs', find: 'filter(|(_, memory)| memory.end > start)', put: 'filter(|_| true)', cargo: ['addon', 'memory_probe'] },
  { what: 'one free piece hides another of its length', file: 'src/process/memory_probe.rs', find: 'const MISSES_OF_LONG: usize = 4;', put: 'const MISSES_OF_LONG: usize = 1;', cargo: ['addon', 'memory_probe'] },
  { what: 'no memory is found of which something else has a part', file: 'src/process/memory_probe.rs', find: 'const PART: usize = 8;', put: 'const PART: usize = 1;', cargo: ['addon', 'memory_probe'] },
  { what: 'freed memories are found outside of the lock of the registry', file: memories, find: '        for freed in (self.find_freed)(left) {\n            registry.forget(store, freed.start);', put: '        drop(registry);\n        for freed in (self.find_freed)(left) {\n            lock(&self.registry).forget(store, freed.start);', model: 'lose_register_death' },

  { what: 'a name stays when its memory is gone', file: memories, find: 'self.labels.range(addresses.clone()).next()', put: 'self.labels.range(0..0).next()', cargo: ['memories', ''] },

  // ——— who holds a lock ———
  { what: 'a robust list that changes while it is read has no hold', file: 'src/held/robust_table.rs', find: 'if moves.is_multiple_of(2) && self.moves() == moves {\n                return false;', put: 'if true {\n                return false;', cargo: ['addon', 'whoever_holds'] },
  { what: 'what is being released in line has no holder', file: 'src/held/robust_table.rs', find: 'index < len || self.number(index) != 0', put: 'index < len', cargo: ['addon', 'whoever_holds'] },

  // ——— what a hold owes ———
  { what: 'an abandoned hold keeps its notification', file: 'src/agent/locking.rs', find: '        self.robust_list.retract();\n        pass_on_notification(owed);', put: '        self.robust_list.retract();', test: 'locks/condition-owed' },
  { what: 'a dead thread keeps the notifications of its holds', file: 'src/agent/ending.rs', find: 'contained(|| Unused::Notification(location).pass_on());', put: 'let _ = location;', test: 'ends/condition-deaths' },
  { what: 'what a hold owes is passed on twice', file: 'src/agent/delivery.rs', find: 'index >= progress.adopted', put: 'index >= progress.told', test: 'ends/condition-deaths' },
  { what: 'a claim that gives up keeps its notification', file: 'src/agent/waiting.rs', find: '            pass_on_notification(claim.relay);\n', put: '', test: 'locks/condition' },

  // ——— rings ———
  {
    what: 'a ring of one look counts',
    file: rings,
    find: 'rings.into_iter().filter(|ring| ring.iter().all(stands)).collect()',
    put: '{ let _ = stands; rings }',
    cargo: ['rings', 'a_ring_counts']
  },
  {
    what: 'a blocked thread waits for what its promises wait for',
    file: rings,
    find: 'self.nodes[node].blocked != claim.blocked',
    put: 'false',
    cargo: ['rings', 'each_thread']
  },
  { what: 'a thread waits for itself', file: rings, find: '!is_own(hold) && is_kept_by', put: 'is_kept_by', cargo: ['rings', 'each_thread'] },
  { what: 'a reader does not wait for the writer ahead', file: rings, find: 'self.add_ahead(node, index, ahead);', put: 'let _ = ahead;', cargo: ['rings', 'a_reader'] },
  { what: 'a claim for permits does not wait for those ahead of the one ahead', file: rings, find: 'self.nodes[place].edges.push(Edge { waits_for: None, has: None, to: self.places[&ahead] });', put: 'let _ = ahead;', cargo: ['rings', 'ahead'] },
  { what: 'a ring is returned once for each of its threads', file: rings, find: 'for edge in &ring {\n                    self.nodes[edge.to].is_on_ring = true', put: 'for edge in &ring {\n                    self.nodes[edge.to].is_on_ring = false', cargo: ['rings', 'each_thread'] },
  { what: 'a ring of tasks of one thread hides those of several threads', file: rings, find: 'filter(|_| threads.len() > 1)', put: 'filter(|_| true)', cargo: ['rings', 'hides'] },
  { what: 'a task awaits what it holds of a limit as if others held it', file: taskRings, find: 'Request::Limited { .. } if self.own.contains_key(&index)', put: 'Request::Limited { .. } if false', cargo: ['rings', 'permits'] },
  { what: 'the promises of a blocked thread count as those of its tasks', file: taskRings, find: '.filter(|&&(claim, _)| !blocked.contains(&waiting[claim].thread))', put: '.filter(|_| true)', cargo: ['rings', 'each_hold'] },
  { what: 'a task waits for the nearest claim ahead for permits only', file: taskRings, find: '            self.add_edge(place, None, ahead);\n', put: '', cargo: ['rings', 'each_claim'] },

  // ——— words ———
  { what: 'a reader enters beside a writer', file: request, find: 'current.checked_add(1).filter(|&readers| readers > 0)', put: 'current.checked_add(1)', cargo: ['line', ''] },
  { what: 'a writer enters beside readers', file: request, find: 'Self::Exclusive | Self::Named(Mode::Exclusive, _) => (current == UNLOCKED).then_some(WRITING),', put: 'Self::Exclusive | Self::Named(Mode::Exclusive, _) => (current >= UNLOCKED).then_some(WRITING),', cargo: ['line', ''] },
  { what: 'more permits are taken than there are', file: request, find: '.filter(|&left| left >= 0)', put: '.filter(|&left| left >= -1)', cargo: ['line', ''] },
  { what: 'a limit grants one permit too many', file: request, find: '.filter(|&taken| taken.unsigned_abs() <= limit)', put: '.filter(|&taken| taken.unsigned_abs() <= limit + 1)', cargo: ['line', 'limit'], orModel: 'limit_newcomer_claim' },
  { what: 'a negative word raises a limit', file: request, find: 'current.max(0).checked_add_unsigned(amount)', put: 'current.checked_add_unsigned(amount)', cargo: ['line', 'limit'] },
  { what: 'more than was taken of a limit comes back', file: request, find: 'current.saturating_sub_unsigned(amount).max(0)', put: 'current.saturating_sub_unsigned(amount)', cargo: ['line', 'limit'] },
  { what: 'what a dead thread held of a limit stays taken', file: request, find: 'Self::Limited { amount, .. } => current.saturating_sub_unsigned(amount).max(0)', put: 'Self::Limited { .. } => current', cargo: ['line', 'limit'] },
  { what: 'a word is taken by a plain write', file: request, find: 'Some(next) if word.compare_exchange(current, next) => return true,', put: 'Some(next) => { word.compare_exchange(current, next); return true },', model: 'unlock_newcomer_claim' },

  // Deadlocks, snapshots, names.
  { what: 'what is on its way to its holder has no place', file: 'src/observe/survey.rs', find: 'call: call(agent.notes.get(slot, location)),', put: 'call: NONE,', test: 'locks/observe/holder-stacks' },
  { what: 'a hold is known since it was seen, and not since it was taken', file: 'src/held/holders.rs', find: 'return Some(taken.since);', put: 'let _ = taken.since;', test: 'locks/observe/holder-stacks' },
  { what: 'a reader does not wait for the writer ahead of it', file: 'core/src/lock/wait_for_graph.rs', find: 'section.before(key).filter(|_| !blocked.request.is_exclusive())', put: 'section.before(key).filter(|_| false)', cargo: ['deadlock', 'a_cycle_through_a_writer'] },
  { what: 'of the waiters ahead of a reader only the nearest is looked at', file: 'core/src/lock/wait_for_graph.rs', find: 'section.before(key).filter(|_| !blocked.request.is_exclusive())', put: 'section.before(key).take(1).filter(|_| !blocked.request.is_exclusive())', cargo: ['deadlock', 'a_cycle_past_a_writer'] },
  { what: 'a writer ahead that holds something stands for those ahead of it', file: 'core/src/lock/wait_for_graph.rs', find: 'is_over |= !keeper.holds && matches!', put: 'is_over |= matches!', cargo: ['deadlock', 'a_cycle_past_a_writer'] },
  { what: 'a claim of a limit does not wait for the one ahead of it', file: 'core/src/lock/wait_for_graph.rs', find: 'other.is_exclusive() || matches!(blocked.request, Request::Limited { .. })', put: 'other.is_exclusive()', cargo: ['deadlock', 'a_cycle_through_a_claim'] },
  { what: 'what a thread holds of a limit leaves room for what it wants besides', file: 'core/src/lock/wait_for_graph.rs', find: 'sum.and(own).unwrap_or(sum)', put: 'sum.and(own).map_or(sum, |_| sum)', cargo: ['deadlock', 'a_cycle_of_two_threads_that_want_more'] },
  { what: 'who holds a little of a limit keeps everyone waiting', file: 'core/src/lock/wait_for_graph.rs', find: 'held.saturating_add(amount) > limit', put: 'held.saturating_add(amount) >= limit', cargo: ['deadlock', 'no_cycle_through_a_limit'] },
  { what: 'a writer ahead is only known if it is published', file: 'core/src/lock/wait_for_graph.rs', find: 'if holds { self.published.get(&key(&thread)).cloned() } else { claim }', put: 'self.published.get(&key(&thread)).cloned()', cargo: ['deadlock', 'a_cycle_through_a_writer'] },
  { what: 'a writer ahead that holds something is known before it is published', file: 'core/src/lock/wait_for_graph.rs', find: 'if holds { self.published.get(&key(&thread)).cloned() } else { claim }', put: 'claim.or_else(|| self.published.get(&key(&thread)).cloned())', cargo: ['deadlock', 'a_cycle_is_found_once'] },
  { what: 'a thread that finds no cycle is not published', file: 'core/src/lock/wait_for_graph.rs', find: '            published.insert(key(&blocked.thread), blocked.clone());\n            return None;', put: '            return None;', cargo: ['deadlock', 'a_cycle_of_two'] },
  { what: 'a thread that holds a lock is looked at again and again', file: 'src/agent/locking.rs', find: 'if is_certain || now()', put: 'if now()', test: 'locks/every-class/scaling' },
  { what: 'a promise that is granted a lock while its thread blocks is not looked at', file: 'src/agent/blocking.rs', find: 'self.outbox.granted() != self.grants_seen.get()', put: 'false', test: 'locks/deadlock' },
  { what: 'a thread that is interrupted does not interrupt the other blocked ones', file: 'src/process/registry.rs', find: '            thread.interrupt();', put: '            let _ = thread;', test: 'ends/termination', otherSystems: true },

  // ——— the profile of waits ———
  { what: 'a wait that is recorded for others counts for itself only', file: profile, find: '.saturating_mul(self.factor.into())', put: '', cargo: ['addon', 'a_wait_counts'] },
  { what: 'the waits of a thread do not end with it', file: 'src/agent/ending.rs', find: '        |agent, _| profile::end_thread(agent.id()),', put: '        |_, _| {},', test: 'locks/observe/profile' },
  { what: 'the file is not written at the end', file: profile, find: '        contained(write_now);', put: '', test: 'locks/observe/profile' },

  // ——— reports ———
  { what: 'each thread of a ring reports it', file: reports, find: 'let is_first = !reported.contains_key(&ring);', put: 'let is_first = true;', test: 'locks/observe/stall-rings' },
  { what: 'a ring that has gone counts as reported', file: reports, find: 'all.contains(ring) || *reported_at >= looked_at', put: 'true', test: 'locks/observe/stall-rings' },
  { what: 'a thread that had looked before the ring was there forgets it', file: reports, find: ' || *reported_at >= looked_at', put: '', cargo: ['addon', 'a_ring_is_reported_once'] },
  { what: 'each wait of a thread on a ring is reported beside it', file: reports, find: 'Some(ring) if told.contains(ring) => {}', put: 'Some(ring) if told.contains(ring) => reports.add_wait(n, index, wait[1]),', test: 'locks/observe/stall-rings' },
  { what: 'all stalls are reported one by one', file: reports, find: 'report.ring.is_none()) >= MOST', put: 'report.ring.is_none()) >= usize::MAX', test: 'locks/observe/stalls' }
]
