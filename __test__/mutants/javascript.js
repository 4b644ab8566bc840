'use strict'

// Mutations of lib/. See run.js. `test` names a file of __test__/.
//
// Not in the list, since only what happens within a few instructions would show them (a thread is ended, a stack ends,
// another thread takes a lock): that slots.js notes a notification in a register before it settles it, and how far a
// batch has come; that waiter.js forgets its slot, and goes on after an error of a signal; that robust-list.js
// removes the number of an attempt that failed.

const of = require('./of')

const word = 'lib/holding/word.js'
const entries = 'lib/holding/entries.js'
const list = 'lib/holding/robust-list.js'
const request = 'lib/holding/request.js'
const acquire = 'lib/holding/acquire.js'
const hold = 'lib/holding/hold.js'
const run = 'lib/holding/run.js'
const waiter = 'lib/waiting/waiter.js'
const notice = 'lib/waiting/notice.js'
const slots = 'lib/agent/slots.js'
const agent = 'lib/agent/agent.js'
const functions = 'lib/atomics/functions.js'
const waitSignals = 'lib/atomics/signals.js'
const queueSteps = 'lib/queue/steps.js'
const queueMemory = 'lib/queue/memory.js'
const queueLayout = 'lib/queue/layout.js'
const queueWaits = 'lib/queue/waits.js'
const condition = 'lib/locks/condition.js'
const barrier = 'lib/locks/barrier.js'
const registers = 'lib/agent/registers.js'
const stalls = 'lib/observe/stalls.js'
const tasks = 'lib/holding/tasks.js'
const names = 'lib/named/names.js'

module.exports = [
  // ——— words ———
  ...of(word, { test: 'locks/claim-during-release' }, [
    ['a release does not look at the counter again',
      'so it is seen now.\n      if ((FENCED ? counts[this.counter] : load(counts, this.counter)) !== 0) {',
      'so it is seen now.\n      if (false) {'],
    ['plain waiters of the host are not notified of a release beside others',
      '      list.releaseInLine(index, false, inJob)\n      if (notify !== undefined) notify(this.array, 0, 1)\n',
      '      list.releaseInLine(index, false, inJob)\n']
  ]),
  ...of(word, { test: 'locks/async-lock' }, [
    ['a release does not look at the counter before',
      '    if (counts[this.counter] !== 0) {\n      list',
      '    if (false) {\n      list']
  ]),
  ...of(list, { test: 'locks/freed-without-wake' }, [
    ['a release does not say that it is releasing',
      '    floats[RELEASING] = word.address\n    if (frees)',
      '    if (frees)']
  ]),
  ...of('lib/install/index.js', { test: 'install/entry-points' }, [
    ['the exported notify is that of the host', '? notify : bothNotify(realm)', '? notify : notify']
  ]),
  ...of(word, { test: 'atomics/limits' }, [
    ['an install that leaves Workers alone notifies no plain waiters of theirs', ' || native.besideHost ?', ' ?']
  ]),
  ...of(request, { test: 'locks/async-lock' }, [
    ['a lock that is held is taken',
      'kind === LEASE) return current === UNLOCKED ? LOCKED : UNAVAILABLE',
      'kind === LEASE) return current <= LOCKED ? LOCKED : UNAVAILABLE']
  ]),
  ...of(word, { test: 'locks/rw-lock' }, [
    ['strict lines are overtaken without a call',
      'if (isStrict(request) && counters.read(this.counter) !== 0) return',
      'if (false) return'],
    ['a downgrade tells nobody',
      'list.downgrade(index, ownerDied, shared)\n' +
      '    if ((FENCED ? counts[this.counter] : load(counts, this.counter)) !== 0) {',
      'list.downgrade(index, ownerDied, shared)\n    if (false) {']
  ]),
  ...of(word, { test: 'ends/owner-death' }, [
    ['a death is not inquired about', 'if (token !== null && counts[this.abandoned] !== 0)', 'if (false)']
  ]),
  ...of(list, { test: 'locks/rw-lock' }, [
    ['a downgraded writer leaves no reader', 'store(word.array, 0, 1)', 'store(word.array, 0, 0)'],
    ['a reader that leaves frees the lock', 'sub(word.array, 0, 1)', 'store(word.array, 0, 0)']
  ]),
  ...of(word, { test: 'locks/semaphore' }, [
    ['added permits are given to nobody', 'isAdded && (FENCED', 'false && (FENCED'],
    ['permits overflow', 'if (current + amount > MOST) return false', 'if (current + amount > Infinity) return false']
  ]),
  ...of(list, { test: 'locks/holds' }, [
    ['permits of use are released one by one', 'add(word.array, 0, comingBack(request))', 'add(word.array, 0, 1)']
  ]),
  ...of(acquire, { test: 'locks/async-lock' }, [
    ['a thread does not know that it awaits a lock', 'isAwaited(word)', 'false']
  ]),
  ...of(request, { test: 'locks/rw-lock' }, [
    ['a reader enters beside a writer',
      'return current >= 0 && current < MOST',
      'return current >= -1 && current < MOST'],
    ['a writer enters beside readers', 'return current === UNLOCKED ? WRITING', 'return current >= UNLOCKED ? WRITING']
  ]),
  ...of(request, { test: 'locks/semaphore' }, [
    ['a permit too many is kept back',
      'return current >= amount ? current - amount',
      'return current > amount ? current - amount']
  ]),
  ...of(request, { test: 'locks/semaphore-permits' }, [
    ['a limit grants one permit too many', 'return taken <= limit ?', 'return taken <= limit + 1 ?'],
    ['a negative word raises a limit', 'current > 0 ? current + amount : amount', 'current + amount'],
    ['what comes back to a limit counts as taken once more',
      '? -amountOf(request) : amountOf(request)',
      '? amountOf(request) : amountOf(request)']
  ]),
  ...of('lib/agent/registers-view.js', { test: 'locks/semaphore-permits' }, [
    ['native code does not get the limit of what is claimed or taken in line', '  words[LIMIT] = word.limit\n', '']
  ]),
  ...of('lib/locks/semaphore.js', { test: 'locks/semaphore-permits' }, [
    ['a limit can be raised', '  if (limit !== NO_LIMIT) {', '  if (false) {']
  ]),
  ...of(acquire, { test: 'locks/semaphore-permits' }, [
    ['a thread does not know that it holds too much of a limit to get more',
      'permitsOf(word) + amountOf(request) > word.limit',
      'false']
  ]),
  ...of(list, { test: 'ends/owner-death-memory' }, [
    ['a claim that was interrupted keeps no memory',
      'if (this.entries[2 * index] === address) this.held[index] = this.expected',
      '']
  ]),
  ...of(acquire, { test: 'ends/stack-overflow' }, [
    ['a claim that blocks needs no stack for what comes after it', '  assertStack()\n  const list', '  const list']
  ]),
  ...of(list, { test: 'locks/robust-list' }, [
    ['a lock is announced only once it is taken', '      if (token !== null) serials[index] = serial\n', '']
  ]),

  ...of(list, { test: 'locks/observe/holder-stacks' }, [
    ['what was granted to a claim has no place', 'hold.request, hold.token, hold.place)', 'hold.request, hold.token)']
  ]),
  ...of(list, { test: 'locks/observe/snapshot' }, [
    ['a part that has left the list is not known to have',
      '    floats[RELEASING] = -word.address\n    this.serials[last]',
      '    this.serials[last]']
  ]),

  // ——— repairs ———
  ...of(hold, { test: 'locks/repair' }, [
    ['a repair that gives its lock back leaves no mark', '    this.word.noteDeath()\n', ''],
    ['a repair that gave its lock back has ended well',
      "    if (index < 0) throw notLocked(caller + ': repair has",
      "    if (false) throw notLocked(caller + ': repair has"],
    ['a death that was repaired is reported again', "    onEntry(index, 'repaired')\n", ''],
    ['the callback sees a death that was repaired', '      this.token.ownerDied = false\n', ''],
    ['an error in a callback that has a repair leaves no mark',
      '(hasRepair || sawOwnerDied(token))',
      'sawOwnerDied(token)']
  ]),
  ...of(run, { test: 'locks/repair' }, [
    ['a reader that saw it repairs beside others',
      '    if (!hold.isShared) {\n      await',
      '    if (true) {\n      await'],
    ['each of many readers repairs', '        if (writer.token.ownerDied) await', '        await'],
    ['a reader does not look again whether a writer died',
      '      share = await this.acquire(true, this.left)\n    } while (share !== null && share.token.ownerDied)',
      '      share = await this.acquire(true, this.left)\n    } while (false)'],
    ['repairing counts as waiting',
      'hold.given, hold.word)\n    hold.repaired(caller)\n    this.end += now() - since',
      'hold.given, hold.word)\n    hold.repaired(caller)'],
    ['each wait has the whole timeout', 'return max(0, this.end - now())', 'return 10000'],
    ['a repair that blocks may return a promise',
      "assertNoPromise(repair(hold.given), caller + ': repair', twin)",
      'repair(hold.given)']
  ]),
  ...of(names, { test: 'locks/repair' }, [
    ['a repair that abandons its name has ended well', '    if (this.isAbandoned) throw', '    if (false) throw'],
    ['a thief sees a death that was repaired',
      "if (index < 0 || !onEntry(index, 'repaired')) {",
      'if (index < 0) {']
  ]),
  ...of('lib/named/lock-manager.js', { test: 'locks/repair' }, [
    ['a request whose callback does not begin leaves a mark', '  let hasRepair = false\n', '  let hasRepair = true\n']
  ]),
  ...of(run, { test: 'locks/repair' }, [
    ['a second wait of a promise is not found by ref and unref',
      'if (call.promise !== undefined && claim.slot >= 0) agent',
      'if (false) agent']
  ]),

  // ——— code of the program's within a wait ———
  ...of(condition, { test: 'locks/every-class/hostile' }, [
    ['a token that was unlocked while its signal was joined waits',
      '          if (!isHeld(held)) throw notHeld(caller)\n',
      ''],
    ['a wait that has released nothing takes the lock again', 'if (isReleased) await lockAgain', 'await lockAgain']
  ]),
  ...of(condition, { test: 'locks/condition' }, [
    ['the end of one wait forgets another with the same token',
      'if (stepsOf.get(held.serial) === steps) stepsOf',
      'stepsOf'],
    ['waitForAsync resolves without the lock',
      "    assertHeld(token, 'waitForAsync')\n    return !!isOver",
      '    return !!isOver']
  ]),
  ...of(notice, { test: 'locks/every-class/hostile' }, [
    ['hooks of a wait are inherited', '{ __proto__: null }', '{}']
  ]),

  // ——— stalls ———
  ...of(stalls, { test: 'locks/observe/holder-stacks' }, [
    ['a claim does not say where it was made',
      'words[CALL] = hold.place = call',
      'hold.place = call'],
    ['the end of a hold is not noted', '    this.binding.holdEnds(serial)', ''],
    ['the look for collected tokens keeps them',
      'createWeakRef(token))\n      this.tokens.delete(serial)',
      'createWeakRef(token))'],
    ['a token that is collected is told to nobody', 'this.binding.holdIsOrphaned(serial)', 'void 0']
  ]),
  ...of('lib/observe/call-stacks.js', { test: 'locks/observe/places' }, [
    ['after an interrupt no stack is taken',
      'if (time - takingSince < LONGEST) return 0',
      'if (takingSince > 0) return 0']
  ]),
  ...of(stalls, { test: 'locks/observe/places' }, [
    ['a place that is probable is certain',
      '(known.place = placeHere()) : known.place | PROBABLY',
      '(known.place = placeHere()) : known.place']
  ]),
  ...of(stalls, { test: 'locks/observe/stalls' }, [
    ['a busy thread reports what it has been granted',
      'setImmediate(() => { setImmediate(tellAll) })',
      'tellAll()']
  ]),
  ...of('lib/agent/registers-view.js', { test: 'locks/observe/stall-channel' }, [
    ['what blocked threads report is not published', '  if (native.onReports !== undefined) native.onReports()\n', '']
  ]),

  // ——— the robust list and tokens ———
  ...of(list, { equivalent: 'native code has removed it before (`retract` in src/agent/robust_list.rs)' }, [
    ['an entry that goes leaves its number',
      '  vacate (index) {\n    this.serials[index] = 0\n',
      '  vacate (index) {\n']
  ]),
  ...of(list, { test: 'locks/async-lock' }, [
    ['the last entry goes instead of the released one',
      'return index === last ? last : this.swap(index, last)',
      'return last'],
    ['the list does not grow',
      'if (index >= this.room || this.shortRoom === 0) this.makeRoom()\n    const { entries, held',
      'if (this.capacity === 0) this.makeRoom()\n    const { entries, held']
  ]),
  // ——— the short way of a free lock ———
  ...of(entries, { test: 'locks/claim-during-release' }, [
    ['the short way does not look at the counter again', '      if (counts[counter] !== 0) {', '      if (false) {']
  ]),
  ...of(entries, { test: 'locks/freed-without-wake' }, [
    ['the short way does not say that it is releasing', '    floats[RELEASING] = address\n    if', '    if']
  ]),
  ...of(entries, { test: 'ends/free-lock-deaths' }, [
    ['the short way removes the entry before the lock is free',
      '    if (isShared) array[0] = UNLOCKED\n    else store(array, 0, UNLOCKED)\n    words[HELD] = last\n',
      '    words[HELD] = last\n    if (isShared) array[0] = UNLOCKED\n    else store(array, 0, UNLOCKED)\n']
  ]),
  ...of(entries, { test: 'ends/owner-death' }, [
    ['the short way does not inquire about a death', 'if (counts[word.abandoned] !== 0) word', 'if (false) word']
  ]),
  ...of(entries, { test: 'locks/short-way' }, [
    ['the short way takes more than its memory has room for', 'index >= this.shortRoom || ', 'index >= 63 || '],
    ['the short way tells no subscriber of a hold that begins', '    if (channel.hasSubscribers) return false\n', ''],
    ['the short way tells no subscriber of a hold that ends', ' || holds.count !== 0 ||', ' ||'],
    ['the short way releases a share as a lock', ' && entries[2 * last + 1] === LOCK', ''],
    ['the short way releases the latest lock by any token', ' && serials[last] === serial &&', ' &&']
  ]),
  ...of(entries, { test: 'locks/short-way' }, [
    ['a list that has moved leaves its entries behind', '  apply(fill, first.entries, [0])\n', ''],
    ['a list that has moved leaves its numbers behind', '  apply(fill, first.serials, [0])\n', ''],
    ['an empty list stays in the memory that many holds needed', 'this.resize(FEW)', 'void 0']
  ]),
  ...of(run, { test: 'locks/short-way' }, [
    ['a callback form whose lock was taken in its midst runs nothing',
      'return token[INDEX] === MISSED ? undefined : promise',
      'return promise'],
    ['a callback form that has no stack left keeps its lock',
      '      // As in `run`.\n      await undefined\n      end(token, failed, false)\n',
      ''],
    ['a callback that fails under a free lock keeps it', '    try {\n      end(token, failed, inJob)\n', '    try {\n']
  ]),
  ...of(entries, { test: 'locks/robust-list' }, [
    ['a token that keeps its number is not found at its new index',
      '      if (above < length && values[step * above] === value) return above\n',
      ''],
    ['an entry that has moved is looked for in one direction',
      '      if (below >= 0 && values[step * below] === value) return below\n',
      '']
  ]),
  ...of(list, { test: 'locks/robust-list' }, [
    ['the last entry goes, and one that comes in its place is not looked for', '      this.counted = last\n', ''],
    ['an entry that takes the place of a counted one is not counted', '      this.count(entries[2 * last], 1)\n', ''],
    ['an entry that gives up its place stays counted', '      this.count(address, -1)\n', '']
  ]),
  ...of(entries, { test: 'locks/every-class/scaling' }, [
    ['the search for an entry that has moved begins anywhere',
      'let above = this.hole < length ? this.hole : length - 1',
      'let above = length >> 1']
  ]),
  ...of(hold, { test: 'locks/async-lock' }, [
    ['a token is live for ever',
      'function releaseHold (token, reportsOwnerDied = false, inJob = false, failed = false) {\n' +
      '  const index = indexOf(token)\n  if (index < 0) return rejectWait(token)\n',
      'function releaseHold (token, reportsOwnerDied = false, inJob = false, failed = false) {\n' +
      '  const index = indexOf(token)\n  if (index < 0) return true\n']
  ]),
  ...of(hold, { test: 'locks/condition' }, [
    ['a wait with a token that is unlocked goes on',
      '  steps.reject(notLocked(',
      '  if (false) steps.reject(notLocked(']
  ]),
  ...of(acquire, { test: 'locks/robust-list' }, [
    ["what was a dead thread's is released without a word",
      'release(index, this.ownerDied, false, true)',
      'release(index, false, false, true)']
  ]),

  // ——— waiting for a lock ———
  ...of(acquire, { test: 'locks/robust-list' }, [
    ['a claim that has given up keeps what it is granted',
      'if (index >= 0) release(index, this.ownerDied, false, true)',
      ''],
    ['permits that are granted too late are lost', '      this.word.addPermits(amountOf(this.request))\n', '']
  ]),
  ...of(hold, { test: 'locks/failure-while-holding' }, [
    ['a callback that fails says that it has repaired',
      'failed && (hasRepair || sawOwnerDied(token))',
      'failed && hasRepair'],
    ['a reader that executeLocked acquired as a writer stays',
      'if (reading !== undefined) releaseHold(reading, false, inJob)',
      'if (reading !== undefined) {}']
  ]),
  ...of('lib/named/lock-manager.js', { test: 'named/threads' }, [
    ['a stolen grant begins its callback',
      '    if (grant !== null && grant.isStolen) throw stolenError(grant.name)\n',
      '']
  ]),
  ...of('lib/named/lock-manager.js', { test: 'named/several' }, [
    ['the names of a failed attempt stay', '  if (ifAvailable && !isTaken) grant.end(true)\n', '']
  ]),
  ...of('lib/named/grants.js', { test: 'named/several' }, [
    ['a steal leaves the others held', '    this.end(true)\n    const claim', '    const claim'],
    ['what is half changed is given back as any', 'if (this.isWhole && !this.isShared) this.markAbandoned()\n', '\n'],
    ['each name has a deadline of its own', 'timeout: max(0, end - now()), signal', 'timeout, signal']
  ]),
  ...of('lib/named/grants.js', { test: 'named/several-threads' }, [
    ['a blocked thread is not told of a steal',
      '    if (this.learnWhetherStolen()) throw stolenError(this.name)\n',
      ''],
    ['a promise awaits the next name after a steal', '      if (this.isStolen) throw stolenError(this.name)\n', '']
  ]),
  ...of(names, { test: 'named/threads' }, [['the entry of a stolen lock stays', '    this.release(index)\n', '']]),
  ...of(entries, { test: 'named/threads' }, [
    ['a stolen share is not found', 'entries[2 * index + 1] !== shared && ', '']
  ]),
  ...of(names, { test: 'locks/failure-while-holding' }, [
    ['a name that is not used loses the news of a death', '(hasRepair || sawDeath)', 'hasRepair']
  ]),
  ...of(names, { test: 'named/stolen' }, [
    ['a name that was abandoned is given back as any', 'this.isAbandoned || ', ''],
    ['a robbed callback learns nothing before its event loop turns',
      "    if (index >= 0 && onEntry(index, 'wasStolen')) this.lose(index)\n",
      ''],
    ['a callback that has ended is not told that it was robbed',
      '    this.isStolen = !wasHeld\n    if (!wasHeld) this.noteLoss()\n',
      ''],
    ['a thief does not see what was abandoned', "onEntry(index, 'abandoned')", "!onEntry(index, 'wasStolen')"],
    ['a signal that is asked for after a theft is not aborted',
      'if (this.learnWhetherStolen(index) && ',
      'if (false && ']
  ]),
  ...of(list, { test: 'named/stolen' }, [
    ['a theft from nobody takes over', 'word.tookOver = words[AMOUNT] !== 0', 'word.tookOver = true']
  ]),
  ...of('lib/named/lock-manager.js', { test: 'named/stolen' }, [
    ['a request that learns of a theft while its callback begins waits for ever',
      '  if (grant.isStolen) reject()\n  else grant',
      '  grant']
  ]),
  ...of(word, { test: 'locks/failure-while-holding' }, [
    ['a downgrade says that the writer has repaired', '    if (ownerDied) this.noteDeath()\n', '']
  ]),
  ...of(run, { test: 'locks/tasks-of-one-thread' }, [
    ['a callback that was awaited hands over by a turn of the event loop',
      "further turn.\n    if (typeof result === 'object' || typeof result === 'function') {\n      inJob = true",
      "further turn.\n    if (typeof result === 'object' || typeof result === 'function') {\n      inJob = false"]
  ]),
  ...of('lib/named/lock-manager.js', {
    equivalent: 'a release outside of a job serves promises in the next microtask, too: it takes a fifth longer'
  }, [
    ['a name is handed over as if no job ended with that',
      'if (grant !== null && !grant.end(false, true, hasRepair))',
      'if (grant !== null && !grant.end(false, false, hasRepair))']
  ]),
  ...of(list, { test: 'locks/tasks-of-one-thread' }, [
    ['what is granted within a release loses its word', 'if (words[HELD] <= last) {', '{']
  ]),
  ...of(run, { test: 'locks/holds' }, [
    ['executeLocked does not unlock',
      '      releaseAfter(token, failed, inJob, repairing !== undefined)\n    } catch (_) {',
      '    } catch (_) {']
  ]),
  ...of(acquire, { equivalent: 'native code does not enqueue a claim with a timeout of 0 either' }, [
    ['a timeout of 0 waits', 'if (timeout === 0) throw lateError({ word, request }, 0)', '']
  ]),
  ...of('lib/waiting/wait-options.js', { test: 'locks/async-lock' }, [
    ['main blocks', 'if (isMainThread) throw', 'if (false) throw']
  ]),
  ...of(acquire, { test: 'locks/every-class/forms' }, [
    ['an aborted signal is not noticed',
      '  throwIfAborted(signal)\n  // Without time',
      '  // Without time']
  ]),
  ...of('lib/holding/word.js', { test: 'locks/tasks-in-turns' }, [
    ['a promise overtakes an earlier one of its thread',
      'return isInLine ? takeInLine(this, request, token, isQuiet) : this.take(request, token, isQuiet)',
      'return this.take(request, token, isQuiet)']
  ]),
  ...of('lib/holding/robust-list.js', { test: 'locks/tasks-of-one-thread' }, [
    ['a promise tries in the next turn only', '    if (wakes) door.note(servePromises)\n', '']
  ]),
  ...of(slots, { test: 'locks/tasks-in-turns' }, [
    ['the promises of a queue have no pace', 'first === undefined && !isSettling && goesOn()', 'true'],
    ['a promise that settles at once overtakes one that awaits a turn',
      'first === undefined && !isSettling', '!isSettling'],
    ['a promise that settles at once overtakes one that has had its turn', ' && !isSettling', ''],
    ['promises seem to await a turn for ever', '    queue.awaitingTurn--\n', ''],
    ['a turn settles all promises', 'while (first !== undefined && goesOn())', 'while (first !== undefined)']
  ]),
  ...of(queueWaits, { test: 'locks/tasks-in-turns' }, [
    ['a promise that had to wait overtakes one that awaits a turn', 'memory.awaitingTurn !== 0', 'false']
  ]),
  ...of(waiter, { test: 'locks/every-class/signals' }, [
    ['a settled waiter still listens to its signal', '    leave(this)\n', '']
  ]),
  ...of(waiter, { test: 'locks/every-class/ref', orTest: 'locks/condition' }, [
    ["an unref'd step holds the loop", 'if (!this.refed) this.setRefed(false)', '']
  ]),
  ...of(waiter, { test: 'locks/every-class/signals' }, [
    ['of the waiters of a signal one is told',
      '        this.remove(waiter)\n',
      '        if (!this.listens) return\n        this.listens = false\n        this.remove(waiter)\n']
  ]),
  ...of(waiter, { test: 'ends/stack-overflow' }, [
    ['an abort begins near the end of the stack', '      assertStack()\n', '']
  ]),
  ...of(waiter, { test: 'locks/condition' }, [
    ['a step that is rejected goes on', 'if (this.waiter !== undefined) this.waiter.giveUp(reason)', '']
  ]),
  ...of(notice, { test: 'locks/condition' }, [
    ['a notification is not used at once',
      'else this.onNotified(this.resolve, this.reject)',
      'else this.resolve(result)']
  ]),
  ...of(notice, { test: 'locks/latch', orTest: 'locks/barrier' }, [
    ['a wait for a word ends with the first notification',
      '    result = blockFor(word.address, value, left(), waitKind)',
      '    blockFor(word.address, value, left(), waitKind); return']
  ]),

  // ——— settling ———
  ...of(slots, { test: 'locks/settling' }, [
    ['a settlement that fails takes the others along', '      nextTick(() => { throw error })', '      throw error']
  ]),
  ...of(slots, { test: 'locks/every-class/ref' }, [
    ['a waiter that began after the first call of ref is not found',
      '  if (slots !== null) slots.set(promise, slot)\n}',
      '}']
  ]),
  ...of(slots, { test: 'atomics/memory' }, [
    ['a slot is not vacated', '  vacate(slot)\n  if (resolve !== WAITER) {', '  if (resolve !== WAITER) {']
  ]),
  ...of(slots, { test: 'locks/cancelled-claims' }, [
    ['a cancelled wait is not vacated',
      '  if (words[ANSWER] === 0) return false\n  vacate(waiter.slot)',
      '  if (words[ANSWER] === 0) return false']
  ]),
  ...of(agent, { test: 'ends/grant-to-terminated', node: '16' }, [
    ["a blocked thread's gift is not accepted", '    if (isAlive) floats[GIVEN] = 0', '    floats[GIVEN] = 0']
  ]),
  ...of(slots, { test: 'ends/condition-deaths' }, [
    ['a notification that JavaScript was kept from using is forgotten',
      '  if (floats[RELAY] !== 0) operations.relay()\n',
      '']
  ]),
  ...of(registers, { test: 'atomics/notify' }, [
    ['the counter of another word is read', 'word >>> 4 << 14) & mask', 'word >>> 4 << 14 ^ 1) & mask']
  ]),
  ...of(registers, { test: 'ends/owner-death' }, [
    ['the death of a holder is looked for at another place',
      'mask + 1 + (ofWord(address / 4) & left - 1)',
      'mask + 1 + (ofWord(address / 4 + 1) & left - 1)']
  ]),

  // ——— Atomics ———
  ...of(functions, { test: 'atomics/notify', orTest: 'install/install' }, [
    ['threads without the package are not notified',
      '        woken += hostNotify(typedArray, i, c === Infinity ? undefined : c - woken)',
      '        woken += 0']
  ]),
  ...of(functions, { equivalent: 'the rest of the count is 0 then; this is for speed' }, [
    ['notify wakes more than count', '      if (woken >= c) return woken\n', '']
  ]),
  ...of(functions, { test: 'atomics/bad-input' }, [
    ['notify counts on an array that is not shared', 'if (!view.shared || c === 0) return 0', 'if (c === 0) return 0'],
    ['a length that a conversion has changed counts',
      'index >>> 0 === index && index < length) return',
      'index >>> 0 === index) return']
  ]),
  ...of(functions, { equivalent: 'native code compares again in the critical section; this is for speed' }, [
    ['another value does not matter',
      'return (!view.wide || !NARROW_ATOMICS) && load(typedArray, i) !== v',
      'return false']
  ]),
  ...of(functions, { test: 'atomics/timeouts', orTest: 'atomics/bad-input' }, [
    ['NaN is no timeout', 'return q !== q ? Infinity : q > 0 ? q : 0', 'return q > 0 ? q : 0']
  ]),
  ...of(notice, { test: 'atomics/wait-async-signal' }, [
    ['a wait that has been notified is cancelled',
      'if (this.slot < 0 || this.dequeue()) this.reject(reason)',
      'this.dequeue()\n    this.reject(reason)'],
    ['a wait that is cancelled stays in the line',
      'if (this.slot < 0 || this.dequeue()) this.reject(reason)',
      'this.reject(reason)']
  ]),
  ...of(waitSignals, { test: 'atomics/wait-async-signal' }, [
    ['a wait begins although its signal is aborted', '  if (signal.aborted) {', '  if (false) {']
  ]),
  ...of(functions, { test: 'atomics/wait-async-signal' }, [
    ['a timeout of 0 is cancelled', 'if (signal !== undefined && t !== 0) return', 'if (signal !== undefined) return']
  ]),
  ...of('lib/atomics/host-queue.js', { test: 'atomics/keep-alive' }, [
    ['a wait that is over holds the loop', '    clearInterval(pending.get(promise))\n', '']
  ]),
  ...of(names, { test: 'company/realms' }, [
    ['each copy of the package leaves its realm with the agent', 'if (native.onSteal === undefined) native', 'native']
  ]),
  ...of('lib/install/contexts.js', { test: 'company/realms' }, [
    ['each install keeps its realm', 'refer: createWeakRef || strong', 'refer: strong']
  ]),
  ...of('lib/install/workers/reach.js', { test: 'company/realms' }, [
    ['each copy of the package replaces the parent of Worker', 'if (!isInterposed(HostWorker)) state', 'state']
  ]),
  ...of(acquire, { test: 'locks/every-class/async-context' }, [
    ['what follows a notification is told of in no context',
      'waits(steps === undefined ? undefined : steps.context)',
      'waits()']
  ]),
  ...of(waiter, { test: 'locks/every-class/signals' }, [
    ['an earlier listener stops an abort', 'addAbortListener !== undefined && isOfNode(signal)', 'false']
  ]),
  ...of('lib/atomics/host-queue.js', { test: 'install/entry-points' }, [
    ["the host's waitAsync is exported with a signal that it ignores",
      'if (isExported && options !== undefined) refuseSignal(options)\n',
      '']
  ]),
  ...of(functions, { test: 'atomics/bad-input' }, [
    ['an index is not converted',
      'const accessIndex = ToIntegerOrInfinity(requestIndex)',
      'const accessIndex = requestIndex'],
    ['a detached array is accepted', '    apply(values, typedArray, [])\n', '']
  ]),

  // ——— Queue ———
  ...of(queueSteps, { test: 'ends/queue-deaths' }, [
    ['a thread in a step of a queue owes nothing', 'begun.owed = list.addEntry(memory.filled, OWED_TO_ALL)', '0'],
    ['a thread in a step of a queue owes putters nothing', 'requestOf(OWED, PUT_RETURNS)', 'OWED'],
    ['a step of a queue that a time limit has interrupted stays so',
      'if (begun.memory !== undefined) undo(list)',
      ''],
    ['a message whose use was interrupted as it began stays in use',
      'lease = lease.next) memory.removeLease(lease)',
      'lease = lease.next);']
  ]),
  ...of(queueSteps, { test: 'locks/queue-states' }, [
    ['a step that was interrupted is not undone', '  if (begun.memory !== undefined) undo(list)\n', '']
  ]),
  ...of('lib/queue/reading.js', { test: 'locks/queue-iterators' }, [
    ['a message that was taken, and not delivered, is lost with its iterator',
      'if (this.lease !== undefined) owingOn(memory, putBack, this.lease)\n    else if (',
      'if (this.lease === undefined && '],
    ['a call of next goes on waiting once the iteration is over',
      '    else if (this.waiter !== undefined) this.waiter.withdraw()\n', ''],
    ['the end of an iteration takes back a message that has been removed',
      '    if (this.lease !== undefined && this.lease.serial === 0) return\n', ''],
    ['a call of next misses that the iteration has ended within it', 'if (next.iteration.isOver) return ENDED',
      'if (next.isOver) return ENDED']
  ]),
  ...of(queueWaits, { test: 'locks/queue-iterators' }, [
    ['what ends an iteration keeps a notification',
      "if (this.state === OVER && result === 'ok') this.forwardNotify()", ''],
    ['a promise that its signal has ended is enqueued', "    if (this.state === OVER) return 'over'\n", '']
  ]),
  ...of(queueMemory, { test: 'install/two-copies' }, [
    ['each copy of the package has answers of its own', "Symbol.for('atomics-waitasync.nothing')", "Symbol('nothing')"]
  ]),
  ...of(queueSteps, { test: 'ends/queue-deaths' }, [
    ['the end of a queue is told to one taker',
      'if (found === ENDED) filled.raise(Infinity)',
      'if (found === ENDED) filled.raise(0)'],
    ['a closed queue is told to one putter',
      'if (found === ENDED) emptied.raise(Infinity)',
      'if (found === ENDED) emptied.raise(0)']
  ]),
  ...of(queueSteps, { test: 'locks/queue-values' }, [
    ['a value is written once there is room', '      if (mode === PUT) argument.keep()\n', '']
  ]),
  ...of('lib/queue/index.js', { test: 'locks/queue-values' }, [
    ['a call from the depth of the stack takes what it cannot read',
      "readBatch(memory, found, 'tryTake', true)",
      "readBatch(memory, found, 'tryTake', false)"]
  ]),
  ...of(queueMemory, { test: 'locks/queue-batches' }, [
    ['a queue that was cleared has a message that is gone', '    words[TAIL_READ] = tail\n', ''],
    ['what comes back to a queue that discards is delivered',
      'if (words[DISCARD] !== 0 && this.isClosed) {',
      'if (words[DISCARD] === 2) {']
  ]),
  ...of(queueSteps, { test: 'ends/queue-deaths' }, [
    ['the last message of a batch that was interrupted comes back alone',
      'lease !== undefined; lease = lease.next',
      'lease !== undefined; lease = undefined']
  ]),
  ...of(queueLayout, { test: 'locks/queue-waits' }, [
    ['the numbers of a queue are those of several moments',
      'if (load(words, HEAD) !== head || load(words, FREED) !== freed) continue',
      '']
  ]),
  ...of(queueWaits, { test: 'locks/queue-waits' }, [
    ['a promise that is aborted keeps its notification',
      'if (state !== TRIES && state !== AT_EVENTS) this.forwardNotify()',
      'if (this.isForLock) this.forwardNotify()'],
    ['a promise that is aborted keeps the notification of a lock',
      'if (this.isForLock) agent().notifyWaiting(side.lock.word.address, 1)',
      '']
  ]),
  ...of(queueMemory, { test: 'ends/queue-deaths' }, [
    ['a slot that a dead taker has left lost stays so',
      'if (inRing[slot] === 0 && words[at + MARK] === 0) this.free(slot)',
      '']
  ]),
  ...of(queueMemory, { test: 'locks/queue' }, [
    ['a message is passed before it is marked', 'if (kind === READY && toUse) store(words, mark, head + 1)', ''],
    ['what has come back waits for its turn',
      'if (returns === words[LOOKED]) return NOTHING',
      'if (load(words, HEAD) !== this.tail) return NOTHING'],
    ['a full queue takes one more',
      'return this.distance(words[ROOM], position) < capacity',
      'return this.distance(words[ROOM], position) <= capacity'],
    ['a putter does not look again for room', 'words[ROOM] = load(words, FREED)', ''],
    ['a taker does not look again for messages', 'words[TAIL_READ] = this.tail', ''],
    ['a taker does not look for what has come back',
      'const mayReturn = head !== words[FREED]',
      'const mayReturn = false']
  ]),
  ...of(queueSteps, { test: 'locks/queue' }, [
    ['an error in a use removes the message', '  add(memory.first.array, 0, 1)\n', '']
  ]),
  ...of(queueSteps, { test: 'locks/queue-idle' }, [
    ['a queue that is empty has not ended for those who wait until it is idle', '  idled(memory)\n}\n', '}\n'],
    ['who finds the queue idle tells no other', '  memory.idled.wake(Infinity)\n', ''],
    ['who waits until it is idle leaves what is to be discarded',
      '  clear(memory)\n  memory.idled.raise(Infinity)\n',
      '']
  ]),
  ...of(queueSteps, { test: 'locks/queue-idle' }, [
    ['a thread that blocks to put is not counted', 'mode === PUT ? waitToPut : waitAndStep', 'waitAndStep'],
    ['a thread that waits for itself until it is idle blocks',
      'if (memory.isStuck(mode)) throw',
      'if (mode !== 7 && memory.isStuck(mode)) throw'],
    ['threads that all block to put do so for ever',
      'if (threads !== null) throw deadlockOfPutters(caller, memory.first, threads)',
      ''],
    ['a put with a timeout is part of a ring', 'mode === PUT && timeout === Infinity', 'mode === PUT']
  ]),
  ...of(queueLayout, { test: 'locks/queue-idle' }, [
    ['a queue is idle though somebody waits to put', ' && load(words, PUTTERS) <= 0', '']
  ]),
  ...of(queueWaits, { test: 'locks/queue-idle' }, [
    ['promises that wait to put are counted for ever', 'list.removePutter(serial, entry, putting)', ''],
    ['the last promise that gives up to put tells nobody', '    idled(this.memory)\n', '']
  ]),
  ...of(queueLayout, { test: 'locks/queue-retry' }, [
    ['a message that is put back last comes at once',
      'store(words, at + DUE, this.tail + 1)',
      'store(words, at + DUE, words[HEAD] + 1)'],
    ['a message that is put back last waits for those put later, too',
      'return before === 0 || before > this.capacity',
      'return false']
  ]),
  ...of(queueMemory, { test: 'ends/queue-deaths' }, [
    ['a message that was about to be put back last is lost',
      'if (isDeferred[slot] === 0 && words[at + DUE] !== 0) store(words, at + DUE, 0)',
      '']
  ]),
  ...of(queueMemory, { test: 'locks/queue-retry' }, [
    ['the order of deaths and errors is not told apart', 'this.words[this.slotAt(slot) + DEATHS] = deaths\n', ''],
    ['a taker does not wake the next for what was put back last',
      'this.hasMessageAt(next) || this.hasDeferred ||',
      'this.hasMessageAt(next) ||'],
    ['what was put back last survives a clear', 'for (; this.hasDeferred && this.drop', 'for (; false && this.drop'],
    ['the next message in a slot has the deaths of the last', '    words[at + DEATHS] = 0\n', '']
  ]),
  ...of(queueLayout, { test: 'locks/queue-retry' }, [
    ['what was put back last counts as in use', ' + this.distance(first, end)', '']
  ]),
  ...of(queueSteps, { test: 'locks/observe/stalls' }, [
    ['a step of a wait for room begins it anew', 'wait.began = observer.goesOn(wait.began)', 'void 0']
  ]),
  ...of(agent, { test: 'locks/observe/ended' }, [
    ['an exit without its listener counts as terminated',
      'if (listener === exit) binding.endsBy(MANNERS.UNKNOWN)', '']
  ]),
  ...of(queueWaits, { test: 'locks/queue' }, [
    ['a promise that puts overtakes those before it',
      'const found = first.carryOut()',
      'const found = this.carryOut()']
  ]),

  // ——— Condition, Barrier, Latch ———
  ...of(condition, { test: 'locks/condition' }, [
    ['an awaiting Condition keeps its lock', '          release(indexOfHold(held), false)\n', ''],
    ['a blocking wait does not take the lock again', 'if (!isHeld(held)) acquire(held, Infinity, caller)', ''],
    ['an aborted wait does not take the lock again',
      '      if (isReleased) await lockAgain(held, steps)\n      throw reason',
      '      throw reason'],
    ['a timed-out wait does not take the lock again', "    if (result !== 'ok') await lockAgain(held, steps)\n", ''],
    ['a predicate is asked once',
      '!isOver && !isLate; isOver = await predicate()) {',
      '!isOver && !isLate; isOver = true) {'],
    ['a thread blocks for a lock that its own promise gets',
      "if (isAwaited(held.word)) throw deadlock(caller, held.word, described(held.request), 'awaits')",
      '']
  ]),
  ...of(condition, { test: 'locks/failure-while-holding' }, [
    ['an awaiting Condition says that its holder has repaired', '          if (ownerDied) held.word.noteDeath()\n', ''],
    ['a blocking wait says that its holder has repaired',
      '  if (ownerDied) held.word.noteDeath()\n  const index',
      '  const index']
  ]),
  ...of(request, { test: 'locks/condition-owed' }, [
    ['a hold owes nothing', '  entries[2 * index + 1] = number\n', '']
  ]),
  ...of(request, { test: 'locks/condition' }, [
    ['a notification of a blocked thread is used twice', '  if (floats[RELAY] === address) floats[RELAY] = 0\n', '']
  ]),
  ...of(hold, { test: 'locks/condition-owed' }, [
    ['a callback that fails keeps its notification', '!(failed && owes(number))', 'true']
  ]),
  ...of(condition, { test: 'locks/every-class/ref' }, [
    ["a promise that asks its predicate first cannot be unref'd", '    steps.isPending = true\n', '']
  ]),
  ...of('lib/waiting/errors.js', { test: 'locks/every-class/names' }, [
    ['an error of a deadlock does not say of which lock', ', { kind, id: word.id })', ', { kind })']
  ]),
  ...of(barrier, { test: 'locks/barrier' }, [
    ['an aborted party stays counted',
      'if (mine === LEADER || withdraw(word, mine)) steps',
      'steps'],
    ['a party that gives up stays counted',
      'if (compareExchange(word.array, 0, state, state - 1) === state) return true',
      'return true'],
    ['the leader wakes one', 'notify(word, Infinity)\n    return LEADER', 'notify(word, 1)\n    return LEADER']
  ]),
  ...of(notice, { test: 'locks/barrier' }, [
    ['an aborted party is forgotten between two steps',
      '      if (steps.reason !== undefined) throw steps.reason\n',
      '']
  ]),
  ...of(barrier, { test: 'locks/barrier', orTest: 'soak/short' }, [
    ['a party withdraws from the next generation', 'if (generation(state) !== mine) return false\n', '']
  ]),
  ...of(barrier, { test: 'locks/latch' }, [
    ['an open latch wakes nobody', 'if (next === this.count) notify(word, Infinity)\n', ''],
    ['a latch counts on when it is open', 'const next = min(this.count, happened + n)', 'const next = happened + n']
  ]),

  // ——— holds and waits that are told of ———
  ...of(condition, { test: 'locks/observe/hold-channel' }, [
    ["a hold of a Condition's token does not end by its wait", '  theList().ends(index)\n', '']
  ]),
  ...of(hold, { test: 'locks/observe/hold-channel' }, [
    ['a thread that never turns its loop tells of no hold',
      '  forget(token)\n  theList().door.open()\n',
      '  forget(token)\n']
  ]),
  ...of('lib/observe/channels.js', { test: 'locks/observe/company' }, [
    ['a release tells in its midst',
      'agent().door.note(() => holdChannel.publish(message))',
      'holdChannel.publish(message)']
  ]),
  ...of('lib/waiting/waiter.js', { test: 'locks/observe/company' }, [
    ['a wait does not see an abort before it listens', 'if (hears(waiter) && signal.aborted) {', 'if (false) {']
  ]),
  ...of(tasks, { test: 'locks/observe/task-cycles' }, [
    ['a callback that has ended keeps the one around it', '    scope.outer = undefined\n', '']
  ]),
  ...of(list, { test: 'locks/observe/task-cycles' }, [
    ['the hold of a writer that has become a reader is of no task',
      'this.tasks.rename(this.serials[index], serial)',
      'void 0']
  ]),
  ...of('lib/observe/profile.js', { test: 'locks/observe/profile' }, [
    ['the file is not written at the end', "process.on('exit', () => write(tell))", 'void 0'],
    ['the file is written where it is to be', 'writeFileSync(beside, text, NEW_FILE)', 'writeFileSync(file, text)'],
    ['a thread takes a stack for each wait', 'sampling.factor *= 2', 'sampling.factor *= 1']
  ]),
  // ——— classes, entries and memories ———
  ...of('lib/lazy.js', { test: 'install/spies' }, [
    ['frozen prototypes refuse tokens', 'if (!isShield(prototype, key)) deleteProperty', 'deleteProperty']
  ]),
  ...of(names, { test: 'install/spies' }, [
    ['a granted Lock has another prototype than its class', '  GrantedLock.prototype = prototype\n', '']
  ]),
  ...of(entries, { test: 'locks/serial-numbers' }, [
    ['numbers that come again may be in use', 'if (used[n] - used[n - 1] > used', 'if (used[n] - used[n - 1] < used'],
    ['the number of a waiting token may come again', '    this.stepsOf.forEach(note)\n', '']
  ]),
  ...of('lib/agent/load-binding.js', { test: 'install/emptied-registry' }, [
    ['each copy in a thread loads the library', "shared('library-1', () => ({ binding: undefined }))",
      '{ binding: undefined }']
  ]),
  ...of('lib/create-entry.js', { test: 'install/loaded-workers' }, [
    ['a Worker counts from its first use', '  else if (!isMainThread) noteThread()\n', '']
  ]),
  ...of(agent, { test: 'install/entry-points' }, [
    ['an unused entry makes a tick at the end', 'findsWork() || !slots.someWaiter(() => true)', 'findsWork()']
  ]),
  ...of('lib/waiting/wait-options.js', { test: 'locks/every-class/callback-sync' }, [
    ['an async callback of a blocking form begins', 'getPrototypeOf(argument) === AsyncFunctionPrototype', 'false']
  ]),
  ...of('lib/install/navigator.js', { test: 'named/web-locks' }, [
    ['navigator.locks takes any object', 'this === navigator ||', 'true ||']
  ]),
  ...of('lib/holding/tracked-buffers.js', { test: 'ends/owner-death-memory' }, [
    ['a fake setImmediate holds up all reports', 'if (scheduledBy === setImmediate) return', 'if (scheduledBy) return']
  ]),
  // ——— locks of several processes ———
  ...of('lib/processes/batch.js', { test: 'processes/process-locks' }, [
    ['whether the lock is held is asked while it is given back', 'this.isAsking || this.isOver ||', 'this.isAsking ||']
  ]),
  ...of('lib/processes/engines/server-lease.js', { test: 'processes/lease' }, [
    ['a lease counts by a clock that stands still while the machine sleeps',
      'Math.max(steadyClock() - moment.steady, wallClock() - moment.wall)', 'steadyClock() - moment.steady'],
    ['a renewal counts from its answer', 'if (isOurs) this.#sent = sent', 'if (isOurs) this.#sent = now()']
  ]),
  ...of('lib/processes/engines/files-query.js', { test: 'processes/files-query' }, [
    ['a lock on another drive counts', 'if (where !== device) continue', 'if (where === undefined) continue'],
    ['whoever has the gate of a lock is not in line', '[...early, ...waiters, ...behind]', '[...waiters, ...behind]'],
    ['a state is believed that says whose it is', 'state.isMarked && info.isOurs === isOurs', 'state.isMarked'],
    ['the loop waits for all of a folder', 'if (now() - began < SLICE) continue', 'continue']
  ]),
  ...of('lib/processes/engines/holder.js', { test: 'processes/files-query' }, [
    ['a field has whatever type it has', '[key, read(found[key])]', '[key, found[key]]'],
    ['a state of another name is shown', 'return isCut || hash(name) === key ? name : key', 'return name']
  ]),
  ...of('lib/util/timers.js', { test: 'processes/fake-timers' }, [
    ['a clock that a test has put in place counts',
      'const { now: wallClock } = Date', 'const wallClock = () => Date.now()']
  ]),
  ...of('lib/processes/engines/etcd-cluster.js', { test: 'processes/servers' }, [
    ['a silent member of etcd is asked again', 'this.current = (index + 1) % this.endpoints.length', 'this.current = 0']
  ]),
  ...of('lib/processes/batch.js', { test: 'processes/process-locks' }, [
    ['a lock is not asked for after its callbacks',
      'if (!await this.unlessLost(answer)) this.lose()',
      'await answer'],
    ['a callback runs although its lock was lost in the repair', '    if (this.isLost) throw this.error\n', '']
  ]),
  ...of('lib/processes/process-locks.js', { test: 'processes/process-locks' }, [
    ['results count before the named lock in front is free',
      '    if (line.batch === batch) line.batch = undefined\n',
      '    if (line.batch === batch) line.batch = undefined\n    batch.settle()\n']
  ])
]
