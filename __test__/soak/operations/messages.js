'use strict'

// Messages of a Queue. Laws: what was put is delivered, and whole, unless the thread died that took it; what was
// refused is not; none comes twice but to `use`, where each delivery counts, and none after a use has ended; a single
// consumer gets the messages of each producer in their order, and what has come back before all others, unless it was
// put back last; a delivery that was not seen was ended by a death; the end is told when nothing is left.
// `checkMessages` has those of the end, and watcher.js that of those who wait until a queue is idle.

const { Atomics } = require('../subject')
const { COUNT, GENERATIONS, LANES, MESSAGES, encode } = require('../arena')

// The fate of a message. With the actor behind it: `fate + FATES * actor`.
/** It is being put. */
const PUTTING = 1
const IN = 2
/** The put has failed. */
const REFUSED = 3
const USED = 4
/** The callback is over, and the use is not. */
const ENDING = 5
/** The callback has given it back. */
const BACK = 6
const GONE = 7
const DESCRIPTIONS = ['not put', 'being put', 'in', 'refused', 'used', 'used to the end', 'put back', 'gone']
const FATES = DESCRIPTIONS.length

/** The error of a callback. */
const FAILURE = new Error('thrown by a callback of the soak')
/** How many messages the single consumer takes in a row. */
const MOST_IN_A_ROW = 30

/** Returns the message with a number: bytes, or what has a format. */
function messageOf (id) {
  if (id % 3 === 0) return Uint8Array.from({ length: 4 + id % 100 }, (_, n) => n < 4 ? id >>> (8 * n) : id)
  return { id, text: 'Grüße'.repeat(id % 10) }
}

/** Returns the number of a message that came out of a queue. */
function idOf (actor, value) {
  const id = value instanceof Uint8Array ? value.slice(0, 4).reduceRight((sum, byte) => 256 * sum + byte, 0) : value.id
  const isWhole = id < MESSAGES && String(Object.entries(value)) === String(Object.entries(messageOf(id)))
  actor.require(isWhole, () => `a message came out as ${JSON.stringify(value)}`)
  return id
}

const described = (id, fate) => `message ${id}, which was ${DESCRIPTIONS[fate % FATES]}`

/** Notes a delivery. Once a message is taken, nobody else may get it. */
function deliver (actor, value, next) {
  const { arena } = actor
  const id = idOf(actor, value)
  const before = Atomics.exchange(arena.ledger, arena.at('fate', id), next + FATES * actor.number)
  const fate = before % FATES
  const isFree = fate === PUTTING || fate === IN || fate === BACK
  const wasLost = (fate === USED || fate === ENDING) && arena.isDying(Math.floor(before / FATES))
  actor.require(isFree || wasLost, () => `${described(id, before)}, was delivered to thread ${actor.id}`)
  return id
}

/** Changes the fate of a message of this actor's. */
function change (actor, id, from, to) {
  const { arena } = actor
  const mine = FATES * actor.number
  const before = Atomics.compareExchange(arena.ledger, arena.at('fate', id), from + mine, to + mine)
  actor.require(
    before === from + mine,
    () => `${described(id, before)}, was delivered, and is in use by thread ${actor.id}`
  )
}

// ——— Putting ———

function put (actor, index) {
  if (index < GENERATIONS && isConsumer(actor)) return undefined
  // Without a turn between them, they keep their order.
  const some = actor.blocks || actor.chance(0.7) ? 1 : 1 + actor.below(8)
  return Promise.all(Array.from({ length: some }, () => putOne(actor, index)))
}

async function putOne (actor, index) {
  const { arena } = actor
  const queue = arena.messages[index]
  const id = arena.newMessage(actor.number, index)
  if (id === undefined) return
  arena.set('fate', id, PUTTING)
  const isIn = await unlessClosed(actor, queue, () => putIn(actor, queue, messageOf(id)))
  const before = Atomics.compareExchange(arena.ledger, arena.at('fate', id), PUTTING, isIn ? IN : REFUSED)
  actor.require(isIn || before === PUTTING, () => `${described(id, before)}, was refused`)
}

async function putIn (actor, queue, value) {
  const dice = actor.random()
  if (dice < 0.2) return queue.tryPut(value)
  const options = actor.options()
  const blocks = actor.blocks && dice < 0.9
  const call = () => blocks ? queue.put(value, options) : queue.putAsync(value, options)
  return await actor.attempt(options, call) === true
}

/** Returns the result of `call()`; false if the queue is closed. */
async function unlessClosed (actor, queue, call) {
  try {
    return await call()
  } catch (error) {
    if (error.code !== 'ERR_QUEUE_CLOSED') throw error
    actor.require(queue.closed, () => 'a queue that is open has refused a message as closed')
    return false
  }
}

// ——— Taking and using ———

const isConsumer = (actor) => actor.number === actor.arena.get('consumer')

/** Whether any actor may take there: the lane with one consumer is that one's. */
const isAllowed = (index) => index >= GENERATIONS
const ifAllowed = (run) => (actor, index) => isAllowed(index) ? run(actor, index) : undefined

/** Says meanwhile what the actor is doing: if it dies, so many messages may be lost with it. */
async function meanwhile (actor, doing, index, run, most = 1) {
  if (doing === 'taking') actor.arena.set('most', actor.number, most)
  actor.arena.set(doing, actor.number, index + 1)
  const result = await run()
  actor.arena.set(doing, actor.number, 0)
  return result
}

/** Returns the number of the message that has been taken; undefined if there is none. */
async function take (actor, index) {
  return meanwhile(actor, 'taking', index, async () => {
    const queue = actor.arena.messages[index]
    const dice = actor.random()
    const options = actor.options()
    const value = dice < 0.2 ? queue.tryTake()
      : await actor.attempt(options, () => actor.blocks && dice < 0.9 ? queue.take(options) : queue.takeAsync(options))
    if (value === undefined) return undefined
    if (value !== true) return deliver(actor, value, GONE)
    // `attempt` gives that for undefined.
    assertEnd(actor, queue)
    return undefined
  })
}

function takeMany (actor, index) {
  const max = 1 + actor.below(6)
  return meanwhile(actor, 'taking', index, async () => {
    const queue = actor.arena.messages[index]
    const dice = actor.random()
    const options = actor.options()
    const blocks = actor.blocks && dice < 0.9
    const values = dice < 0.2 ? queue.tryTakeMany(max) : await actor.attempt(options, () => (
      blocks ? queue.takeMany(max, options) : queue.takeManyAsync(max, options)))
    if (values === undefined) return
    actor.require(values.length <= max, () => `a batch of ${max} has ${values.length} messages`)
    for (const value of values) deliver(actor, value, GONE)
    if (values.length === 0 && dice >= 0.2) assertEnd(actor, queue)
  }, max)
}

/** Removes what waits. Which messages these are is not known, only how many. */
function clear (actor, index) {
  const { arena } = actor
  const queue = arena.messages[index]
  return meanwhile(actor, 'taking', index, async () => {
    arena.add('cleared', index, actor.chance(0.5) ? queue.clear() : await queue.clearAsync())
  }, queue.capacity)
}

function assertEnd (actor, queue) {
  actor.require(queue.ended, () => 'the end of a queue was told that has not ended')
}

/** Uses a message: `{ id, isBack }`; undefined if there was none. */
async function use (actor, index) {
  return meanwhile(actor, 'using', index, async () => {
    const queue = actor.arena.messages[index]
    const dice = actor.random()
    const [fails, goesBack, last] = [dice < 0.1, dice < 0.2, actor.chance(0.5)]
    let id
    const begin = (value, { attempt, deaths }) => {
      id = deliver(actor, value, USED)
      assertAttempt(actor, index, id, attempt, deaths)
    }
    const end = ({ putBack }) => {
      change(actor, id, USED, goesBack ? BACK : ENDING)
      if (fails) throw FAILURE
      if (goesBack) putBack({ last })
    }
    const options = Object.assign({ retry: last ? 'last' : 'first' }, actor.options())
    const result = await callUse(actor, queue, options, begin, end)
    if (result === false) assertEnd(actor, queue)
    else if (id !== undefined && !goesBack) change(actor, id, ENDING, GONE)
    actor.require(result !== true || id !== undefined, () => 'a use has ended that called nothing')
    return id === undefined ? undefined : { id, isBack: goesBack && !last, isLast: goesBack && last }
  })
}

async function callUse (actor, queue, options, begin, end) {
  const blocking = (value, delivery) => {
    begin(value, delivery)
    actor.lingerSync()
    end(delivery)
  }
  const awaiting = async (value, delivery) => {
    begin(value, delivery)
    await actor.linger()
    end(delivery)
  }
  const blocks = actor.blocks && actor.chance(0.9)
  try {
    return await actor.attempt(options, () => blocks ? queue.useSync(blocking, options) : queue.use(awaiting, options))
  } catch (error) {
    if (error !== FAILURE) throw error
    return undefined
  }
}

/**
 * Checks that each delivery to a `use` counts: those that were seen, and those whose thread died before it could say
 * so. All of the latter have ended by a death; the last one that was seen may have.
 */
function assertAttempt (actor, index, id, attempt, deaths) {
  const { arena } = actor
  const before = arena.get('attempts', id)
  actor.require(attempt > before && (attempt === before + 1 || attempt <= before + 1 + arena.usersLost(index)),
    () => `message ${id} was delivered with attempt ${attempt} after ${before}`)
  const unseen = attempt - 1 - before
  const more = deaths - arena.get('messageDeaths', id)
  const isLost = more === unseen || (more === unseen + 1 && before > 0 && arena.usersLost(index) > 0)
  actor.require(isLost, () => `message ${id} was delivered after ${more} more deaths, ${unseen} of which nobody saw`)
  arena.set('attempts', id, attempt)
  arena.set('messageDeaths', id, deaths)
}

/**
 * Consumes the first lane alone. Messages that it has put back come first, and those of each producer in their order,
 * but those that it has put back last.
 */
async function consume (actor) {
  const { arena } = actor
  const index = arena.queueOf(0)
  arena.set('object', actor.number, encode('messages', index))
  if (!actor.seen || actor.seen.index !== index) {
    actor.seen = { index, last: new Map(), back: undefined, late: new Set() }
  }
  const { seen } = actor
  for (let n = 0; n < MOST_IN_A_ROW && !actor.stopped; n++) {
    const used = actor.chance(0.5) ? await use(actor, index) : undefined
    const id = used ? used.id : await take(actor, index)
    if (id === undefined) return
    const producer = Math.floor(arena.get('origin', id) / COUNT.messages)
    if (seen.back !== undefined)
      actor.require(id === seen.back, () => `message ${seen.back} was put back, and message ${id} comes before it`)
    else if (!seen.late.has(id)) {
      actor.require(
        id > (seen.last.get(producer) || -1),
        () => `message ${id} of actor ${producer} comes behind ${seen.last.get(producer)}`
      )
      seen.last.set(producer, id)
    }
    seen.back = used && used.isBack ? id : undefined
    if (used && used.isLast) seen.late.add(id)
  }
}

// ——— All of a queue ———

/** Waits until a queue is idle. It may never be: so the time is limited. */
async function awaitIdle (actor, index) {
  const queue = actor.arena.messages[index]
  const options = Object.assign({ timeout: actor.timeout() }, actor.options())
  const blocks = actor.blocks && actor.chance(0.9)
  await actor.attempt(options, () => blocks ? queue.idle(options) : queue.onIdle(options))
}

// ——— Main ———

/** Lets those go on that may all wait for the same: puts a message, or takes one. */
function feed (actor) {
  const { arena } = actor
  for (let lane = 0; lane < LANES; lane++) {
    const index = arena.queueOf(lane)
    const queue = arena.messages[index]
    if (queue.waiters === 0 || actor.chance(0.5)) continue
    if (queue.length === 0) {
      putForTakers(actor, index, queue)
    } else if (isAllowed(index)) {
      const value = queue.tryTake()
      if (value !== undefined) deliver(actor, value, GONE)
    }
  }
}

function putForTakers ({ arena, number }, index, queue) {
  const id = arena.newMessage(number, index)
  if (id === undefined) return queue.close()
  arena.set('fate', id, PUTTING)
  const isIn = !queue.closed && queue.tryPut(messageOf(id))
  return Atomics.compareExchange(arena.ledger, arena.at('fate', id), PUTTING, isIn ? IN : REFUSED)
}

/** Returns the errors of the end, when nobody else is there: messages that are lost, and queues that are not whole. */
function checkMessages (actor) {
  const { arena } = actor
  const wrong = []
  arena.messages.forEach((queue, index) => {
    queue.close()
    for (let value = queue.tryTake(); value !== undefined; value = queue.tryTake()) deliver(actor, value, GONE)
    if (!queue.ended) wrong.push(`messages ${index}: ${queue.length} are left, and ${queue.inUse} in use`)
    else wrong.push(...capacityOf(arena.reopen(index)).map(text => `messages ${index}: ${text}`))
  })
  const lost = arena.messages.map(() => 0)
  for (let id = Math.min(arena.get('messageCount'), MESSAGES) - 1; id >= 0; id--) {
    const before = arena.get('fate', id)
    const fate = before % FATES
    const isDead = arena.isDying(Math.floor(before / FATES))
    if ((fate === USED || fate === ENDING) && !isDead) wrong.push(`${described(id, before)}, and that did not end`)
    if (fate === IN || fate === BACK || fate === USED) lost[arena.get('origin', id) % COUNT.messages]++
  }
  lost.forEach((count, index) => {
    const died = arena.get('takersDied', index)
    const cleared = arena.get('cleared', index)
    if (arena.get('discarded', index) === 0 && count > died + cleared) {
      wrong.push(`messages ${index}: ${count} are lost, ${cleared} were cleared, and ${died} in dying threads' hands`)
    }
  })
  return wrong
}

/** Returns the error of an empty queue. */
function capacityOf (queue) {
  const numbers = Array.from({ length: queue.capacity }, (_, n) => n)
  const isIn = numbers.concat(-1).map(n => queue.tryPut(n))
  const out = numbers.concat(-1).map(() => queue.tryTake())
  if (isIn.indexOf(false) !== queue.capacity) return [`of ${queue.capacity} slots ${isIn.indexOf(false)} are free`]
  return String(out) === String(numbers.concat(undefined)) ? [] : [`${numbers} came out as ${out}`]
}

module.exports = {
  checkMessages,
  feed,
  operations: [
    { name: 'put', weight: 12, of: 'messages', bursts: true, run: put },
    { name: 'take', weight: 5, of: 'messages', bursts: true, run: ifAllowed(take) },
    { name: 'take many', weight: 4, of: 'messages', bursts: true, run: ifAllowed(takeMany) },
    { name: 'clear', weight: 0.3, of: 'messages', run: ifAllowed(clear) },
    { name: 'use', weight: 5, of: 'messages', bursts: true, run: ifAllowed(use) },
    { name: 'consume in order', weight: 12, needs: isConsumer, run: consume },
    { name: 'await idle', weight: 2, of: 'messages', run: awaitIdle },
    { name: 'close', weight: 0.3, of: 'messages', run: (actor, index) => {
      actor.arena.closeQueue(index, actor.chance(0.3))
    } }
  ]
}
