'use strict'

// Mutations of lib/. See ../mutants.js. `test` names a file of __test__/.
//
// Not in the list, since only what happens within a few instructions would show them (a thread is ended, a stack ends, another thread takes
// a lock): that slots.js notes a notification in a register before it settles it, and how far a batch has come; that waiter.js forgets its
// slot; that abort-signals.js goes on after an error; that robust-list.js removes the number of an attempt that failed.

const word = 'lib/locks/hold/word.js'
const finder = 'lib/locks/hold/finder.js'
const list = 'lib/locks/hold/robust-list.js'
const request = 'lib/locks/hold/request.js'
const owed = 'lib/locks/hold/owed.js'
const acquire = 'lib/locks/hold/acquire.js'
const hold = 'lib/locks/hold/hold.js'
const claim = 'lib/locks/hold/claim.js'
const run = 'lib/locks/hold/run.js'
const waiter = 'lib/waiting/waiter.js'
const signals = 'lib/waiting/abort-signals.js'
const notice = 'lib/waiting/notice.js'
const steps = 'lib/waiting/steps.js'
const slots = 'lib/agent/slots.js'
const blocking = 'lib/agent/blocking.js'
const functions = 'lib/atomics/functions.js'
const operations = 'lib/atomics/abstract-operations.js'
const waitSignals = 'lib/atomics/signals.js'
const queueSteps = 'lib/locks/queue/steps.js'
const queueMemory = 'lib/locks/queue/memory.js'
const queueToldWait = 'lib/locks/queue/told-wait.js'
const queueWaits = 'lib/locks/queue/waits.js'
const condition = 'lib/locks/condition.js'
const barrier = 'lib/locks/barrier.js'
const latch = 'lib/locks/latch.js'
const counters = 'lib/agent/counters.js'
const stalls = 'lib/locks/observe/stalls.js'
const taken = 'lib/locks/observe/taken.js'
const tasks = 'lib/locks/observe/tasks.js'
const names = 'lib/locks/named/names.js'
const repair = 'lib/locks/hold/repair.js'

module.exports = [
  // ——— words ———
  { what: 'a release does not look at the counter again', file: word, find: '(see core/src/lock/).\n        if ((FENCED ? counts[this.counter] : load(counts, this.counter)) !== 0) {', put: '(see core/src/lock/).\n        if (false) {', test: 'locks/claim-during-release' },
  { what: 'a release does not look at the counter before', file: word, find: 'if (counters.peek(this.counter) !== 0) {', put: 'if (false) {', test: 'locks/async-lock' },
  { what: 'a release does not say that it is releasing', file: list, find: '      floats[RELEASING] = word.address\n      if (plainly)', put: '      if (plainly)', test: 'locks/freed-without-wake' },
  { what: 'plain waiters of the host are not notified of a release beside others', file: word, find: '        list.releaseInLine(index, false, inJob)\n        if (notify !== undefined) notify(this.array, 0, 1)\n', put: '        list.releaseInLine(index, false, inJob)\n', test: 'locks/claim-during-release' },
  { what: 'the exported notify is that of the host', file: 'lib/install/index.js', find: '? notify : bothNotify(realm)', put: '? notify : notify', test: 'install/entry-points' },
  { what: 'an install that leaves Workers alone notifies no plain waiters of theirs', file: word, find: ' || native.besideHost ?', put: ' ?', test: 'atomics/limits' },
  { what: 'a lock that is held is taken', file: list, find: 'current === UNLOCKED ? LOCKED : UNAVAILABLE', put: 'current <= LOCKED ? LOCKED : UNAVAILABLE', test: 'locks/async-lock' },
  { what: 'strict lines are overtaken without a call', file: word, find: 'if (isStrict && counters.read(this.counter) !== 0) return', put: 'if (false) return', test: 'locks/rw-lock' },
  { what: 'a death is not inquired about', file: word, find: 'if (token !== null && counters.peek(this.abandoned) !== 0)', put: 'if (false)', test: 'ends/owner-death' },
  { what: 'a downgrade tells nobody', file: word, find: 'list.downgrade(index, ownerDied, shared)\n      if ((FENCED ? counts[this.counter] : load(counts, this.counter)) !== 0) {', put: 'list.downgrade(index, ownerDied, shared)\n      if (false) {', test: 'locks/rw-lock' },
  { what: 'a downgraded writer leaves no reader', file: list, find: 'store(word.array, 0, 1)', put: 'store(word.array, 0, 0)', test: 'locks/rw-lock' },
  { what: 'added permits are given to nobody', file: word, find: 'isAdded && (FENCED', put: 'false && (FENCED', test: 'locks/semaphore' },
  { what: 'permits overflow', file: word, find: 'if (current + amount > MOST) return -1', put: 'if (current + amount > Infinity) return -1', test: 'locks/semaphore' },
  { what: 'permits of use are released one by one', file: list, find: 'add(word.array, 0, comingBack(request))', put: 'add(word.array, 0, 1)', test: 'locks/semaphore' },
  { what: 'a reader that leaves frees the lock', file: list, find: 'sub(word.array, 0, 1)', put: 'store(word.array, 0, 0)', test: 'locks/rw-lock' },
  { what: 'a thread does not know that it awaits a lock', file: acquire, find: 'isAwaited(word)', put: 'false', test: 'locks/async-lock' },
  { what: 'a reader enters beside a writer', file: request, find: 'return current >= 0 && current < MOST', put: 'return current >= -1 && current < MOST', test: 'locks/rw-lock' },
  { what: 'a writer enters beside readers', file: request, find: 'return current === UNLOCKED ? WRITING', put: 'return current >= UNLOCKED ? WRITING', test: 'locks/rw-lock' },
  { what: 'a permit too many is kept back', file: request, find: 'return current >= amount ? current - amount', put: 'return current > amount ? current - amount', test: 'locks/semaphore' },
  { what: 'a limit grants one permit too many', file: request, find: 'return taken <= limit ?', put: 'return taken <= limit + 1 ?', test: 'locks/semaphore-permits' },
  { what: 'a negative word raises a limit', file: request, find: 'current > 0 ? current + amount : amount', put: 'current + amount', test: 'locks/semaphore-permits' },
  { what: 'what comes back to a limit counts as taken once more', file: request, find: '? -amountOf(request) : amountOf(request)', put: '? amountOf(request) : amountOf(request)', test: 'locks/semaphore-permits' },
  { what: 'native code is not told the limit of what is claimed', file: 'lib/agent/native.js', find: '  words[LIMIT] = word.limit\n', put: '', test: 'locks/semaphore-permits' },
  { what: 'native code is not told the limit of what is taken in line', file: list, find: '      words[LIMIT] = word.limit\n', put: '', test: 'locks/semaphore-permits' },
  { what: 'a limit can be raised', file: 'lib/locks/semaphore.js', find: '  if (limit !== NO_LIMIT) {', put: '  if (false) {', test: 'locks/semaphore-permits' },
  { what: 'a thread does not know that it holds too much of a limit to get more', file: acquire, find: 'permitsOf(word) + amountOf(request) > word.limit', put: 'false', test: 'locks/semaphore-permits' },

  { what: 'a claim that was broken off keeps no memory', file: list, find: 'if (this.entries[2 * index] === address) this.held[index] = this.expected', put: '', test: 'ends/owner-death-memory' },
  { what: 'a claim that blocks needs no stack for what comes after it', file: acquire, find: '  assertStack()\n  const list', put: '  const list', test: 'ends/stack-overflow' },
  { what: 'a lock is announced only once it is taken', file: list, find: '        if (request === LOCK) serials[index] = serial\n', put: '', test: 'locks/robust-list' },

  // ——— repairs ———
  { what: 'a repair that gives its lock back leaves no mark', file: hold, find: '    this.word.noteDeath()\n', put: '', test: 'locks/repair' },
  { what: 'a repair that gave its lock back has ended well', file: hold, find: "    if (index < 0) throw notLocked(caller + ': repair has", put: "    if (false) throw notLocked(caller + ': repair has", test: 'locks/repair' },
  { what: 'a death that was repaired is told again', file: hold, find: '    forgetDeath(index)\n', put: '', test: 'locks/repair' },
  { what: 'the callback is told of a death that was repaired', file: hold, find: '      this.token.ownerDied = false\n', put: '', test: 'locks/repair' },
  { what: 'an error in a callback that has a repair leaves no mark', file: hold, find: '(hasRepair || wasTold(token))', put: 'wasTold(token)', test: 'locks/repair' },
  { what: 'a reader that was told repairs beside others', file: repair, find: '    if (!hold.isShared) {\n      await', put: '    if (true) {\n      await', test: 'locks/repair' },
  { what: 'each of many readers repairs', file: repair, find: '        if (writer.token.ownerDied) await', put: '        await', test: 'locks/repair' },
  { what: 'a reader does not look again whether a writer died', file: repair, find: '      share = await this.acquire(true, this.left)\n    } while (share !== null && share.token.ownerDied)', put: '      share = await this.acquire(true, this.left)\n    } while (false)', test: 'locks/repair' },
  { what: 'repairing counts as waiting', file: repair, find: 'repair, hold.given))\n    hold.repaired(caller)\n    this.end += now() - since', put: 'repair, hold.given))\n    hold.repaired(caller)', test: 'locks/repair' },
  { what: 'each wait has the whole timeout', file: repair, find: 'return max(0, this.end - now())', put: 'return 10000', test: 'locks/repair' },
  { what: 'a repair that blocks may return a promise', file: repair, find: "assertNoPromise(repair(hold.given), caller + ': repair', twin)", put: 'repair(hold.given)', test: 'locks/repair' },
  { what: 'a repair that abandons its name has ended well', file: names, find: '    if (this.isAbandoned) throw', put: '    if (false) throw', test: 'locks/repair' },
  { what: 'a thief is told of a death that was repaired', file: names, find: 'if (index < 0 || !forgetDeath(index)) {', put: 'if (index < 0) {', test: 'locks/repair' },
  { what: 'a request whose callback does not begin leaves a mark', file: 'lib/locks/named/lock-manager.js', find: '  let hasRepair = false\n', put: '  let hasRepair = true\n', test: 'locks/repair' },
  { what: 'a second wait of a promise is not found by ref and unref', file: run, find: 'if (promise !== undefined && task.slot >= 0) agent', put: 'if (false) agent', test: 'locks/repair' },

  // ——— code of the program's within a wait ———
  { what: 'a token that was unlocked while its signal was joined waits', file: condition, find: '          if (!isHeld(held)) throw notHeld(caller)\n', put: '', test: 'locks/every-class/hostile' },
  { what: 'a wait that has released nothing takes the lock again', file: condition, find: 'if (isReleased) await lockAgain', put: 'await lockAgain', test: 'locks/every-class/hostile' },
  { what: 'the end of one wait forgets another with the same token', file: condition, find: 'if (stepsOf.get(held.serial) === steps) stepsOf', put: 'stepsOf', test: 'locks/condition' },
  { what: 'waitForAsync resolves without the lock', file: condition, find: '    assertHeld(token, \'waitForAsync\')\n    return !!isOver', put: '    return !!isOver', test: 'locks/condition' },
  { what: 'hooks of a wait are inherited', file: notice, find: '{ __proto__: null }', put: '{}', test: 'locks/every-class/hostile' },

  // ——— stalls ———
  { what: 'a claim does not say where it was made', file: taken, find: 'words[CALL] = hold.place = numberOf(call)', put: 'hold.place = numberOf(call)', test: 'locks/observe/holder-stacks' },
  { what: 'what was granted to a claim has the place of the latest call', file: taken, find: '      words[CALL] = hold.place\n      super.adopt', put: '      super.adopt', test: 'locks/observe/holder-stacks' },
  { what: 'the end of a hold is not noted', file: taken, find: '    this.binding.holdEnds(serial)', put: '', test: 'locks/observe/holder-stacks' },
  { what: 'the look for collected tokens keeps them', file: taken, find: 'createWeakRef(token))\n      this.tokens.delete(serial)', put: 'createWeakRef(token))', test: 'locks/observe/holder-stacks' },
  { what: 'a token that is collected after the report of a wait is told to nobody', file: taken, find: 'if (words.length > 0) require', put: 'if (false) require', test: 'locks/observe/holder-stacks' },
  { what: 'a wait that is over is still watched', file: stalls, find: 'function waitEnds (wait) {\n  waits.delete(wait)', put: 'function waitEnds (wait) {', test: 'locks/observe/stalls' },
  { what: 'a busy thread reports what it has been granted', file: stalls, find: 'setImmediate(() => { setImmediate(check) })', put: 'check()', test: 'locks/observe/stalls' },
  { what: 'a stall keeps the process alive', file: stalls, find: 'setTimeout(turns, milliseconds).unref()', put: 'setTimeout(turns, milliseconds)', test: 'locks/observe/stalls' },
  { what: 'what blocked threads report is not published', file: 'lib/agent/native.js', find: '  if (native.onReports !== undefined) native.onReports()\n', put: '', test: 'locks/observe/stall-channel' },

  // ——— the robust list and tokens ———
  { what: 'an entry that goes leaves its number', file: list, find: '    vacate (index) {\n      this.serials[index] = 0\n', put: '    vacate (index) {\n', equivalent: 'native code has removed it before (`retract` in src/held/robust_list.rs)' },
  { what: 'the last entry goes instead of the released one', file: list, find: 'return index === last ? last : this.swap(index, last)', put: 'return last', test: 'locks/async-lock' },
  { what: 'a token that keeps its number is not found at its new index', file: list, find: '        if (above < length && values[step * above] === value) return above\n', put: '', test: 'locks/robust-list' },
  { what: 'the last entry goes, and one that comes in its place is not looked for', file: finder, find: '    this.counted = this.words[HELD] - 1\n    this.count(entries[2 * this.counted], -1)\n', put: '    this.count(entries[2 * (this.words[HELD] - 1)], -1)\n', test: 'locks/robust-list' },
  { what: 'an entry that takes the place of a counted one is not counted', file: finder, find: '    this.count(entries[2 * (this.words[HELD] - 1)], 1)\n', put: '', test: 'locks/robust-list' },
  { what: 'an entry that gives up its place stays counted', file: finder, find: '    this.count(entries[2 * index], -1)\n', put: '', test: 'locks/robust-list' },
  { what: 'an entry that has moved is looked for in one direction', file: list, find: '        if (below >= 0 && values[step * below] === value) return below\n', put: '', test: 'locks/robust-list' },
  { what: 'the search for an entry that has moved begins anywhere', file: list, find: 'let above = this.hole < length ? this.hole : length - 1', put: 'let above = length >> 1', test: 'locks/every-class/scaling' },
  { what: 'the list does not grow', file: list, find: 'if (index >= this.room) this.resize()\n      const { entries, held', put: 'if (this.capacity === 0) this.resize()\n      const { entries, held', test: 'locks/async-lock' },
  { what: 'a token is live for ever', file: hold, find: 'function giveBack (token, tellsOfDeath = false, inJob = false, failed = false) {\n  const index = indexOf(token)\n  if (index < 0) return rejectWait(token)\n', put: 'function giveBack (token, tellsOfDeath = false, inJob = false, failed = false) {\n  const index = indexOf(token)\n  if (index < 0) return true\n', test: 'locks/async-lock' },
  { what: 'a wait with a token that is unlocked goes on', file: hold, find: '  steps.reject(notLocked(', put: '  if (false) steps.reject(notLocked(', test: 'locks/condition' },
  { what: 'what was a dead thread\'s is released without a word', file: claim, find: 'release(indexOfHold(this), this.ownerDied, false, true)', put: 'release(indexOfHold(this), false, false, true)', test: 'locks/robust-list' },

  // ——— waiting for a lock ———
  { what: 'a claim that has given up keeps what it is granted', file: claim, find: 'if (this.owned) release(indexOfHold(this), this.ownerDied, false, true)', put: 'if (this.owned) {}', test: 'locks/robust-list' },
  { what: 'permits that are granted too late are lost', file: claim, find: '      else this.word.addPermits(amountOf(this.request))\n', put: '', test: 'locks/robust-list' },
  { what: 'a callback that fails says that it has repaired', file: hold, find: 'failed && (hasRepair || wasTold(token))', put: 'failed && hasRepair', test: 'locks/failure-while-holding' },
  { what: 'a reader that executeLocked acquired as a writer stays', file: hold, find: 'if (reading !== undefined) giveBack(reading, false, inJob)', put: 'if (reading !== undefined) {}', test: 'locks/failure-while-holding' },
  { what: 'a stolen grant begins its callback', file: 'lib/locks/named/lock-manager.js', find: '    if (grant !== null && grant.isStolen) throw stolenError(call.name)\n', put: '', test: 'named/threads' },
  { what: 'the entry of a stolen lock stays', file: names, find: '    this.release(index)\n', put: '', test: 'named/threads' },
  { what: 'a stolen share is not found', file: finder, find: 'entries[2 * index + 1] !== shared && ', put: '', test: 'named/threads' },
  { what: 'a name that is not used loses the news of a death', file: names, find: '(hasRepair || token.ownerDied)', put: 'hasRepair', test: 'locks/failure-while-holding' },
  { what: 'a name that was abandoned is given back as any', file: names, find: 'this.isAbandoned || ', put: '', test: 'named/stolen' },
  { what: 'a theft from nobody takes over', file: names, find: 'words[AMOUNT] !== 0', put: 'true', test: 'named/stolen' },
  { what: 'a robbed callback learns nothing before its event loop turns', file: names, find: '    if (index >= 0 && wasStolen(index)) this.lose(index)\n', put: '', test: 'named/stolen' },
  { what: 'a callback that has ended is not told that it was robbed', file: names, find: '    this.isStolen = true\n    this.tellOfLoss()\n    return false\n', put: '    return false\n', test: 'named/stolen' },
  { what: 'a signal that is asked for after a theft is not aborted', file: names, find: '      if (wasStolen) this', put: '      if (false) this', test: 'named/stolen' },
  { what: 'a request that learns of a theft while its callback begins waits for ever', file: 'lib/locks/named/lock-manager.js', find: '  if (grant.isStolen) reject()\n  else grant', put: '  grant', test: 'named/stolen' },
  { what: 'a downgrade says that the writer has repaired', file: word, find: '      if (ownerDied) this.noteDeath()\n', put: '', test: 'locks/failure-while-holding' },
  { what: 'a callback that was awaited hands over by a turn of the event loop', file: run, find: '      inJob = true\n      result = await result', put: '      inJob = false\n      result = await result', test: 'locks/one-thread' },
  { what: 'a name is handed over by a turn of the event loop', file: 'lib/locks/named/lock-manager.js', find: 'grant.end(false, true)', put: 'grant.end(false)', test: 'locks/one-thread' },
  { what: 'what is granted within a release loses its word', file: list, find: '      if (words[HELD] > last) return\n', put: '', test: 'locks/one-thread' },
  { what: 'executeLocked does not unlock', file: run, find: '      giveBackAfter(token, failed, inJob, repairing !== undefined)\n    } catch (_) {', put: '    } catch (_) {', test: 'locks/async-lock' },
  { what: 'a timeout of 0 waits', file: acquire, find: 'if (timeout === 0) throw lateError({ word, request }, 0)', put: '', equivalent: 'native code does not enqueue a claim with a timeout of 0 either' },
  { what: 'main blocks', file: 'lib/waiting/options.js', find: 'if (isMainThread) throw', put: 'if (false) throw', test: 'locks/async-lock' },
  { what: 'an aborted signal is not noticed', file: acquire, find: '  throwIfAborted(signal)\n  if (word.take(request, token)) return true', put: '  if (word.take(request, token)) return true', test: 'locks/async-lock' },
  { what: 'a settled waiter still listens to its signal', file: waiter, find: '    abortSignals.leave(this)\n', put: '', test: 'locks/every-class/signals' },
  { what: 'an unref\'d step holds the loop', file: waiter, find: 'if (!this.refed) this.setRefed(false)', put: '', test: 'locks/every-class/ref', orTest: 'locks/condition' },
  { what: 'of the waiters of a signal one is told', file: signals, find: '        this.remove(waiter)\n', put: '        if (!this.listens) return\n        this.listens = false\n        this.remove(waiter)\n', test: 'locks/every-class/signals' },
  { what: 'an abort begins near the end of the stack', file: signals, find: '      assertStack()\n', put: '', test: 'ends/stack-overflow' },
  { what: 'a step that is rejected goes on', file: steps, find: 'if (this.waiter !== undefined) this.waiter.giveUp(reason)', put: '', test: 'locks/condition' },
  { what: 'a notification is not used at once', file: notice, find: 'else this.onNotified(this.resolve, this.reject)', put: 'else this.resolve(result)', test: 'locks/condition' },
  { what: 'a wait for a word ends with the first notification', file: notice, find: '    result = blockFor(word.address, value, left(), purpose)', put: '    blockFor(word.address, value, left(), purpose); return', test: 'locks/latch', orTest: 'locks/barrier' },

  // ——— settling ———
  { what: 'a settlement that fails takes the others along', file: slots, find: '      nextTick(() => { throw error })', put: '      throw error', test: 'locks/settling' },
  { what: 'a waiter that began after the first call of ref is not found', file: slots, find: '  if (slots !== null) slots.set(promise, slot)\n}', put: '}', test: 'locks/every-class/ref' },
  { what: 'a slot is not vacated', file: slots, find: '  vacate(slot)\n  if (resolve !== WAITER) {', put: '  if (resolve !== WAITER) {', test: 'atomics/memory' },
  { what: 'a cancelled wait is not vacated', file: slots, find: '  if (words[ANSWER] === 0) return false\n  vacate(waiter.slot)', put: '  if (words[ANSWER] === 0) return false', test: 'locks/cancelled-claims' },
  { what: 'a blocked thread\'s gift is not accepted', file: blocking, find: '    if (isAlive) floats[GIVEN] = 0', put: '    floats[GIVEN] = 0', test: 'ends/grant-to-terminated' },
  { what: 'a notification that JavaScript was kept from using is forgotten', file: slots, find: '  if (floats[RELAY] !== 0) operations.relay()\n', put: '', test: 'ends/condition-deaths' },
  { what: 'the counter of another word is read', file: counters, find: 'word >>> 4 << 14) & mask', put: 'word >>> 4 << 14 ^ 1) & mask', test: 'atomics/notify' },
  { what: 'the death of a holder is looked for at another place', file: counters, find: 'mask + 1 + (ofWord(address / 4) & left - 1)', put: 'mask + 1 + (ofWord(address / 4 + 1) & left - 1)', test: 'ends/owner-death' },

  // ——— Atomics ———
  { what: 'threads without the package are not notified', file: functions, find: '        woken += hostNotify(typedArray, i, c === Infinity ? undefined : c - woken)', put: '        woken += 0', test: 'atomics/notify', orTest: 'install/install' },
  { what: 'notify wakes more than count', file: functions, find: '      if (woken >= c) return woken\n', put: '', equivalent: 'the rest of the count is 0 then; this is for speed' },
  { what: 'notify counts on an array that is not shared', file: functions, find: 'if (!view.shared || c === 0) return 0', put: 'if (c === 0) return 0', test: 'atomics/bad-input' },
  { what: 'another value does not matter', file: functions, find: 'return (!view.wide || !NARROW_ATOMICS) && load(typedArray, i) !== v', put: 'return false', equivalent: 'native code compares again in the critical section; this is for speed' },
  { what: 'a length that a conversion has changed counts', file: functions, find: 'index >>> 0 === index && index < length) return', put: 'index >>> 0 === index) return', test: 'atomics/bad-input' },
  { what: 'NaN is no timeout', file: operations, find: 'return q !== q ? Infinity : q > 0 ? q : 0', put: 'return q > 0 ? q : 0', test: 'atomics/timeouts', orTest: 'atomics/bad-input' },
  { what: 'a wait that has been notified is cancelled', file: notice, find: 'if (this.slot < 0 || this.dequeue()) this.reject(reason)', put: 'this.dequeue()\n    this.reject(reason)', test: 'atomics/wait-async-signal' },
  { what: 'a wait that is cancelled stays in the line', file: notice, find: 'if (this.slot < 0 || this.dequeue()) this.reject(reason)', put: 'this.reject(reason)', test: 'atomics/wait-async-signal' },
  { what: 'a wait begins although its signal is aborted', file: waitSignals, find: '  if (signal.aborted) {', put: '  if (false) {', test: 'atomics/wait-async-signal' },
  { what: 'a timeout of 0 is cancelled', file: functions, find: 'if (signal !== undefined && t !== 0) return', put: 'if (signal !== undefined) return', test: 'atomics/wait-async-signal' },
  { what: 'a wait that is over holds the loop', file: 'lib/atomics/keep-alive.js', find: '    clearInterval(pending.get(promise))\n', put: '', test: 'atomics/keep-alive' },
  { what: 'each copy of the package leaves its realm with the agent', file: names, find: 'if (native.onSteal === undefined) native', put: 'native', test: 'company/realms' },
  { what: 'each install keeps its realm', file: 'lib/install/contexts.js', find: 'n === 0 ? strong(each) : weak(each)', put: 'strong(each)', test: 'company/realms' },
  { what: 'each copy of the package replaces the parent of Worker', file: 'lib/install/workers/reach.js', find: 'if (!isInterposed(HostWorker)) state', put: 'state', test: 'company/realms' },
  { what: 'the watch for stalls keeps a context', file: stalls, find: 'agent().native.inRootContext(() => { setTimeout(turns, milliseconds).unref() })', put: 'setTimeout(turns, milliseconds).unref()', test: 'locks/every-class/async-context' },
  { what: 'what follows a notification is told of in no context', file: claim, find: 'waits(this.steps === undefined ? undefined : this.steps.context)', put: 'waits()', test: 'locks/every-class/async-context' },
  { what: 'an earlier listener stops an abort', file: signals, find: 'addAbortListener !== undefined && isOfNode(signal)', put: 'false', test: 'locks/every-class/signals' },
  { what: 'the host\'s waitAsync is exported with a signal that it ignores', file: 'lib/atomics/keep-alive.js', find: 'if (isExported && options !== undefined) refuseSignal(options)\n', put: '', test: 'install/entry-points' },
  { what: 'an index is not converted', file: operations, find: 'const accessIndex = ToIntegerOrInfinity(requestIndex)', put: 'const accessIndex = requestIndex', test: 'atomics/bad-input' },
  { what: 'a detached array is accepted', file: operations, find: '    apply(values, typedArray, [])\n', put: '', test: 'atomics/bad-input' },

  // ——— Queue ———
  { what: 'a thread in a step of a queue owes takers nothing', file: queueSteps, find: 'begun.filled = list.enter(memory.filled, DEBT)', put: '0', test: 'ends/queue-deaths' },
  { what: 'a thread in a step of a queue owes putters nothing', file: queueSteps, find: 'begun.emptied = list.enter(memory.emptied, DEBT)', put: '0', test: 'ends/queue-deaths' },
  { what: 'a slot that a dead taker has left lost stays so', file: queueMemory, find: 'if (inRing[slot] === 0 && words[this.slotAt(slot) + MARK] === 0) this.free(slot)', put: '', test: 'ends/queue-deaths' },
  { what: 'a message is passed before it is marked', file: queueMemory, find: 'if (!isReturned) store(words, at + MARK, head + 1)', put: '', test: 'locks/queue' },
  { what: 'what has come back waits for its turn', file: queueMemory, find: 'if (returns === words[LOOKED]) return NOTHING', put: 'if (load(words, HEAD) !== this.tail) return NOTHING', test: 'locks/queue' },
  { what: 'a full queue takes one more', file: queueMemory, find: 'return this.distance(words[ROOM], position) < capacity', put: 'return this.distance(words[ROOM], position) <= capacity', test: 'locks/queue' },
  { what: 'a putter does not look again for room', file: queueMemory, find: 'words[ROOM] = load(words, FREED)', put: '', test: 'locks/queue' },
  { what: 'a taker does not look again for messages', file: queueMemory, find: 'words[READY] = this.tail', put: '', test: 'locks/queue' },
  { what: 'a taker does not look for what has come back', file: queueMemory, find: 'const mayReturn = head !== words[FREED]', put: 'const mayReturn = false', test: 'locks/queue' },
  { what: 'the end of a queue is told to one taker', file: queueSteps, find: 'if (found === ENDED) filled.raise(Infinity)', put: 'if (found === ENDED) filled.raise(0)', test: 'ends/queue-deaths' },
  { what: 'an error in a use removes the message', file: queueSteps, find: '  add(memory.first.array, 0, 1)\n', put: '', test: 'locks/queue' },
  { what: 'a step of a queue that a time limit has broken off stays so', file: queueSteps, find: 'if (begun.memory !== undefined) backOut()', put: '', test: 'ends/queue-deaths' },
  { what: 'a message whose use was broken off as it began stays in use', file: queueSteps, find: 'if (memory.lease !== undefined) memory.strike(memory.lease)', put: '', test: 'ends/queue-deaths' },
  { what: 'a wait for a message counts as a stall', file: queueToldWait, find: 'const mayStall = mode === PUT', put: 'const mayStall = true', test: 'locks/observe/stalls' },
  { what: 'a promise that puts overtakes those before it', file: queueWaits, find: 'const found = owing(memory, put, first.written, false)', put: 'const found = owing(memory, put, this.written, false)', test: 'locks/queue' },

  // ——— Condition, Barrier, Latch ———
  { what: 'an awaiting Condition keeps its lock', file: condition, find: '          release(indexOfHold(held), false)\n', put: '', test: 'locks/condition' },
  { what: 'an awaiting Condition says that its holder has repaired', file: condition, find: '          if (told) held.word.noteDeath()\n', put: '', test: 'locks/failure-while-holding' },
  { what: 'a blocking wait says that its holder has repaired', file: condition, find: '  if (told) held.word.noteDeath()\n  const index', put: '  const index', test: 'locks/failure-while-holding' },
  { what: 'a blocking wait does not take the lock again', file: condition, find: 'if (!isHeld(held)) acquire(held, Infinity, caller)', put: '', test: 'locks/condition' },
  { what: 'an aborted wait does not take the lock again', file: condition, find: '      if (isReleased) await lockAgain(held, steps)\n      throw reason', put: '      throw reason', test: 'locks/condition' },
  { what: 'a timed-out wait does not take the lock again', file: condition, find: "    if (result !== 'ok') await lockAgain(held, steps)\n", put: '', test: 'locks/condition' },
  { what: 'a hold owes nothing', file: owed, find: '  entries[2 * index + 1] = number\n', put: '', test: 'locks/condition-owed' },
  { what: 'a notification of a blocked thread is used twice', file: owed, find: '  if (floats[RELAY] === address) floats[RELAY] = 0\n', put: '', test: 'locks/condition' },
  { what: 'a callback that fails keeps its notification', file: hold, find: '!(failed && owes(number))', put: 'true', test: 'locks/condition-owed' },
  { what: 'a promise that asks its predicate first cannot be unref\'d', file: condition, find: '    steps.isPending = true\n', put: '', test: 'locks/every-class/ref' },
  { what: 'a predicate is asked once', file: condition, find: '!isOver && !isLate; isOver = await predicate()) {', put: '!isOver && !isLate; isOver = true) {', test: 'locks/condition' },
  { what: 'an error of a deadlock does not say of which lock', file: 'lib/waiting/errors.js', find: "  define(error, 'id', word.id, true, true)\n", put: '', test: 'locks/every-class/names' },
  { what: 'a thread blocks for a lock that its own promise gets', file: condition, find: "if (isAwaited(held.word)) throw deadlock(caller, held.word, described(held.request), 'awaits')", put: '', test: 'locks/condition' },
  { what: 'an aborted party stays counted', file: barrier, find: 'if (this.generation === LEADER || withdraw(this.word, this.generation)) this.steps', put: 'this.steps', test: 'locks/barrier' },
  { what: 'an aborted party is forgotten between two steps', file: notice, find: '      if (steps.reason !== undefined) throw steps.reason\n', put: '', test: 'locks/barrier' },
  { what: 'a party that gives up stays counted', file: barrier, find: 'if (compareExchange(word.array, 0, state, state - 1) === state) return true', put: 'return true', test: 'locks/barrier' },
  { what: 'a party withdraws from the next generation', file: barrier, find: 'if (generation(state) !== mine) return false\n', put: '', test: 'locks/barrier', orTest: 'soak/short' },
  { what: 'the leader wakes one', file: barrier, find: 'notify(word, Infinity)\n    return LEADER', put: 'notify(word, 1)\n    return LEADER', test: 'locks/barrier' },
  { what: 'an open latch wakes nobody', file: latch, find: 'if (next === this.count) notify(word, Infinity)\n', put: '', test: 'locks/latch' },
  { what: 'a latch counts on when it is open', file: latch, find: 'const next = min(this.count, happened + amount)', put: 'const next = happened + amount', test: 'locks/latch' },

  // ——— holds and waits that are told of ———
  { what: 'a hold of a Condition\'s token does not end by its wait', file: condition, find: '  theList().holds.end(theList(), index)\n', put: '', test: 'locks/observe/hold-channel' },
  { what: 'a thread that never turns its loop tells of no hold', file: hold, find: '  list.holds.tell()\n', put: '', test: 'locks/observe/hold-channel' },
  { what: 'a callback that has ended keeps the one around it', file: tasks, find: '    scope.outer = undefined\n', put: '', test: 'locks/observe/task-cycles' },
  { what: 'the hold of a writer that has become a reader is of no task', file: list, find: 'this.tasks.rename(this.serials[index], serial)', put: 'void 0', test: 'locks/observe/task-cycles' },

  { what: 'a thread takes a stack for each wait', file: 'lib/waiting/profile.js', find: 'this.factor *= 2', put: 'this.factor *= 1', test: 'locks/observe/profile' },
  { what: 'a thread that waits for ever is not recorded', file: 'lib/waiting/profile.js', find: '  if (blocked.number === 0) blocked.number = record(1)', put: '  return', test: 'locks/observe/profile' }
]
