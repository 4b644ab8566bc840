'use strict'

// The memory of one round: the words under test, and what the threads note of them (the ledger). Every thread of the
// round has the same two buffers.
//
// An actor is one sequence of operations; a thread has up to ACTORS of them. The number of an actor is
// `ACTORS * id + n`, where `id` is its thread's. It is what the ledger calls a holder.

const { TAIL, FREED, HEAD, MOST_POSITIONS, PUTTERS, RETURNS } = require('../../lib/queue/layout')
const { Atomics, api } = require('./subject')

const CAN_GROW = typeof SharedArrayBuffer.prototype.grow === 'function'

/** Threads of one round, dead ones included. */
const IDS = 256
const ACTORS = 4
// Names and files need no words, but the others are found by their kinds, too.
/**
 * Instances of Queue are closed one after the other: so many lanes, each with so many queues, of which one is in use at
 * a time.
 */
const LANES = 3
const GENERATIONS = 12
const COUNT = {
  value: 400, gate: 4, fifo: 6, lock: 6, rw: 4, semaphore: 4, queue: 3, messages: LANES * GENERATIONS, barrier: 2,
  latch: 1, name: 4, file: 3
}
const KINDS = Object.keys(COUNT)
/** Of all queues of a lane; the first lane has one consumer. */
const CAPACITIES = [5, 1, 3]
const MESSAGE_SIZE = 107
/** Messages of one round. */
const MESSAGES = 2 ** 17
const PERMITS = 5
const TICKETS = 4096
const GATE_TIMES = 16
const BIG = typeof BigInt64Array === 'function' ? 16 : 0

const laneOf = (queue) => Math.floor(queue / GENERATIONS)
/** Returns how many words a Queue has. */
const queueWords = (queue) => api.Queue.byteLength(CAPACITIES[laneOf(queue)], MESSAGE_SIZE) / 4

/**
 * Returns how many words an object takes: with those behind it that stay unwritten. An instance of Queue begins at a
 * multiple of 8.
 */
function spaceFor (kind, index) {
  switch (kind) {
    case 'value': return 1
    case 'queue': return 6
    case 'messages': return queueWords(index) + 2
    default: return 2
  }
}

// Each object has a word that must not be written behind it. Values lie side by side: their words must stay 0.
const places = {}
let length = 1
for (const kind of KINDS) {
  length += length % 2
  places[kind] = Array.from({ length: COUNT[kind] }, (_, index) => {
    const at = length
    length += spaceFor(kind, index)
    return at
  })
  length++
}
length += length % 2
const BIG_AT = length / 2
const WORDS = length + 2 * BIG
const tested = new Set([].concat(...KINDS.filter(kind => kind !== 'queue').map(kind => places[kind]),
  // The lock, the condition and the number of items.
  ...places.queue.map(at => [at, at + 2, at + 4]),
  ...places.messages.map((at, queue) => Array.from({ length: queueWords(queue) }, (_, word) => at + word))))
const canary = (at) => tested.has(at) || at >= length ? 0 : 0x5EED0000 | at

// The words of the ledger: from the name of a field to where its first word is.
const fields = {}
let size = 0
const field = (name, words) => {
  fields[name] = size
  size += words
}
const SINGLE = [
  'stop', 'dying', 'deaths', 'violated', 'start', 'ticks', 'lastId', 'steals', 'stolen', 'tickets', 'lastTicket',
  'messageCount', 'consumer'
]
for (const name of SINGLE) field(name, 1)
field('ticketState', TICKETS)
field('fileToken', COUNT.file)
for (const name of ['begun', 'ok', 'over', 'notified', 'notifying']) field(name, COUNT.value + BIG)
field('gateDone', COUNT.gate)
// By the value that they wait to change.
for (const name of ['gateTimes', 'gateBegun', 'gateEnded']) field(name, COUNT.gate * GATE_TIMES)
for (const name of ['fifoMutex', 'fifoNext', 'fifoNotified']) field(name, COUNT.fifo)
field('fifoState', COUNT.fifo * TICKETS)
// What a holder writes first and last; the two are equal whenever nobody holds it alone.
for (const kind of ['lock', 'rw', 'name', 'file'])
  for (const what of ['Holder', 'Taken', 'Inherited', 'First', 'Last']) field(kind + what, COUNT[kind])
for (const name of ['inUse', 'semaphoreTaken']) field(name, COUNT.semaphore)
field('queueTaken', COUNT.queue)
// By message, see operations/messages.js: what became of it, its deliveries to `use`, how many of these were ended by a
// death, and which actor has put it into which queue.
for (const name of ['fate', 'attempts', 'messageDeaths', 'origin']) field(name, MESSAGES)
field('generation', LANES)
// By queue: how many died while they took of it, or used a message of it; how many messages were cleared, and whether
// what was left was discarded.
for (const name of ['takersDied', 'usersDied', 'cleared', 'discarded']) field(name, COUNT.messages)
field('generations', COUNT.barrier * ACTORS * 16)
field('leaders', COUNT.barrier)
// By thread: whether it is dying or dead; whether it computes for long; whether it has begun; its threadId, when it is
// gone.
for (const name of ['isDying', 'isPaused', 'isOnline', 'gone']) field(name, IDS)
// By actor: what it reads, as bits; the permits it uses, by semaphore; what it is doing (0: nothing) and what to; when
// it began.
for (const name of ['rwReads', 'nameReads', 'fileReads']) field(name, IDS * ACTORS)
field('uses', IDS * ACTORS * COUNT.semaphore)
// By actor: 1 + the queue of which it takes or uses a message.
for (const name of ['taking', 'using', 'most']) field(name, IDS * ACTORS)
for (const name of ['operation', 'object', 'since']) field(name, IDS * ACTORS)

/** Returns an object as one number: its kind and index. */
const encode = (kind, index) => (1 + KINDS.indexOf(kind)) * 1024 + index
const decode = (code) => code < 1024 ? '' : `${KINDS[(code >> 10) - 1]} ${code % 1024}`

class Arena {
  /**
   * Makes an arena. `buffers`: those of another thread's arena; without them, a new one. `clones`: what structured
   * cloning made of another's instances.
   */
  constructor ({ growable = false, buffers, clones, steady }) {
    const bytes = 4 * WORDS
    const options = growable && CAN_GROW ? { maxByteLength: 16 * bytes } : undefined
    this.buffers = buffers || {
      words: options ? new SharedArrayBuffer(bytes, options) : new SharedArrayBuffer(bytes),
      ledger: new SharedArrayBuffer(4 * size)
    }
    this.steady = steady
    this.words = new Int32Array(this.buffers.words, 0, WORDS)
    this.bigs = BIG > 0 ? new BigInt64Array(this.buffers.words, 8 * BIG_AT, BIG) : undefined
    this.ledger = new Int32Array(this.buffers.ledger)
    if (!buffers) for (let at = 0; at < WORDS; at++) this.words[at] = canary(at)
    const view = (Class, name, kind, more, further = () => ({})) => {
      const options = (at, n) => Object.assign({ byteOffset: 4 * (at + more) }, further(n))
      const make = (at, n) => clones ? new Class(clones[name][n]) : new Class(this.buffers.words, options(at, n))
      return places[kind].map(make)
    }
    /** All instances, by name. */
    this.instances = {
      locks: view(api.AsyncLock, 'locks', 'lock', 0),
      rws: view(api.RwLock, 'rws', 'rw', 0),
      // Every other one has a limit.
      semaphores: view(api.Semaphore, 'semaphores', 'semaphore', 0, n => n % 2 === 1 ? { permits: PERMITS } : {}),
      queueLocks: view(api.AsyncLock, 'queueLocks', 'queue', 0),
      conditions: view(api.Condition, 'conditions', 'queue', 2),
      barriers: view(api.Barrier, 'barriers', 'barrier', 0, () => ({ parties: steady })),
      latches: view(api.Latch, 'latches', 'latch', 0, () => ({ count: steady }))
    }
    const { queueLocks, conditions } = this.instances
    const format = (n) => n % 2 === 0 ? 'clone' : 'json'
    this.instances.messages = places.messages.map((at, n) => {
      if (clones) return new api.Queue(clones.messages[n], { format: format(n) })
      const sizes = { capacity: CAPACITIES[laneOf(n)], messageSize: MESSAGE_SIZE }
      return new api.Queue(this.buffers.words, Object.assign({ byteOffset: 4 * at, format: format(n) }, sizes))
    })
    Object.assign(this, this.instances)
    this.queues = queueLocks.map((lock, n) => ({ lock, condition: conditions[n], items: this.place('queue', n, 4) }))
    if (!buffers)
      for (const semaphore of this.semaphores) if (semaphore.permits === undefined) semaphore.release(PERMITS)
  }

  place (kind, index, more = 0) { return places[kind][index] + more }
  /** Returns a name of this round: the death of a holder at the end of another one is not told in this one. */
  nameOf (index) { return `soak ${this.get('start')} ${index}` }
  /** Returns the index of a word of the ledger. */
  at (name, index = 0) { return fields[name] + index }
  get (name, index = 0) { return Atomics.load(this.ledger, fields[name] + index) }
  set (name, index, value) { Atomics.store(this.ledger, fields[name] + index, value) }
  /** Returns the new value. */
  add (name, index, value) { return Atomics.add(this.ledger, fields[name] + index, value) + value }

  /** How many actors there may be, those of threads that are gone included. */
  get actors () { return ACTORS * (this.get('lastId') + 1) }

  /** Returns where a value is whose notifications are counted: words, and behind them bigints. */
  valueAt (n) {
    return n < COUNT.value
      ? { array: this.words, at: this.place('value', n), zero: 0 }
      : { array: this.bigs, at: n - COUNT.value, zero: BigInt(0) }
  }

  /** Notifies so many of those that wait at a value. */
  notifyValue (n, count, { notify } = Atomics) {
    const { array, at } = this.valueAt(n)
    this.add('notifying', n, 1)
    this.add('notified', n, notify(array, at, count))
    this.add('notifying', n, -1)
  }

  /** Runs `body` unless another thread is in the midst of the same; undefined then. */
  tryFifo (index, body) {
    const mutex = this.at('fifoMutex', index)
    if (Atomics.compareExchange(this.ledger, mutex, 0, 1) !== 0) return undefined
    try {
      return { result: body() }
    } finally {
      Atomics.store(this.ledger, mutex, 0)
    }
  }

  notifyFifo (index, count) {
    return this.add('fifoNotified', index, Atomics.notify(this.words, this.place('fifo', index), count))
  }

  /** Returns the queue of a lane that is in use. */
  queueOf (lane) { return lane * GENERATIONS + this.get('generation', lane) }

  /** Closes a queue, if there is another one for its lane. */
  closeQueue (queue, discard) {
    const lane = laneOf(queue)
    const generation = queue % GENERATIONS
    if (generation === GENERATIONS - 1) return
    if (discard) this.set('discarded', queue, 1)
    this.messages[queue].close({ discard })
    Atomics.compareExchange(this.ledger, this.at('generation', lane), generation, generation + 1)
  }

  /** Returns the number of a new message for a queue; undefined if there were too many. */
  newMessage (actor, queue) {
    const id = this.add('messageCount', 0, 1)
    if (id >= MESSAGES) return undefined
    this.set('origin', id, actor * COUNT.messages + queue)
    return id
  }

  /** Returns how many users of a queue's messages died: or are about to. */
  usersLost (queue) {
    let lost = 0
    for (let actor = 0; actor < this.actors; actor++)
      if (this.get('using', actor) === queue + 1 && this.isDying(actor)) lost++
    // Behind those: one that is buried meanwhile is counted twice, and not overlooked.
    return lost + this.get('usersDied', queue)
  }

  /** Returns a number that changes with every step of a queue. */
  changesOf (queue) {
    return [TAIL, HEAD, FREED, RETURNS]
      .map(word => Atomics.load(this.words, this.place('messages', queue, word)))
      .join()
  }

  /**
   * Whether a queue has a free slot, and is open. Reads its words alone: a method might repair what a dead thread has
   * left.
   */
  hasRoom (queue) {
    const [tail, freed] = [TAIL, FREED].map(word => Atomics.load(this.words, this.place('messages', queue, word)))
    const capacity = CAPACITIES[laneOf(queue)]
    const wrap = Math.floor(MOST_POSITIONS / capacity) * capacity
    return (tail & 1) === 0 && ((tail >>> 1) - freed + wrap) % wrap < capacity
  }

  /** Whether nothing is in a queue, and nobody waits to put, by its words alone as `hasRoom`. */
  isIdle (queue) {
    const [tail, freed, putters] = [TAIL, FREED, PUTTERS]
      .map(word => Atomics.load(this.words, this.place('messages', queue, word)))
    return tail >>> 1 === freed && putters <= 0
  }

  /** Opens a queue again that nobody uses, which no program can. */
  reopen (queue) {
    Atomics.and(this.words, this.place('messages', queue, TAIL), ~1)
    return this.messages[queue]
  }

  /** Whether the thread of an actor is dying or dead. */
  isDying (actor) { return this.get('isDying', Math.floor(actor / ACTORS)) === 1 }

  /** Announces that a thread will end before its time, at any moment. */
  announceDeath (id) {
    if (Atomics.exchange(this.ledger, this.at('isDying', id), 1) === 1) return
    this.add('dying', 0, 1)
    this.add('deaths', 0, 1)
  }

  /** Takes off a thread that is gone, and its uses. */
  bury (id, threadId) {
    this.set('gone', id, threadId)
    for (let actor = id * ACTORS; actor < (id + 1) * ACTORS; actor++) {
      for (let n = 0; n < COUNT.semaphore; n++) {
        const cell = this.at('uses', actor * COUNT.semaphore + n)
        this.add('inUse', n, -this.ledger[cell])
        this.ledger[cell] = 0
      }
      for (const [doing, died] of [['taking', 'takersDied'], ['using', 'usersDied']]) {
        const queue = this.get(doing, actor) - 1
        // A thread that takes several messages may lose as many.
        if (queue >= 0) this.add(died, queue, doing === 'taking' ? this.get('most', actor) : 1)
        this.set(doing, actor, 0)
      }
      this.set('operation', actor, 0)
    }
    if (this.get('isDying', id) === 1) this.add('dying', 0, -1)
  }

  /** Says in words what each actor does; `names` are those of the operations. */
  present (names) {
    return Array.from({ length: this.actors }, (_, actor) => {
      const operation = this.get('operation', actor)
      const state = this.isDying(actor) ? ', dying' : ''
      const ticks = this.get('ticks') - this.get('since', actor)
      const who = `actor ${actor % ACTORS} of thread ${Math.floor(actor / ACTORS)}${state}`
      const object = decode(this.get('object', actor))
      return operation > 0 && `${who}: '${names[operation - 1]}' ${object}, for ${ticks} ticks`
    }).filter(Boolean)
  }

  /** Returns the words that were written although they are nobody's. */
  strayWrites () {
    const stray = []
    for (let at = 0; at < WORDS; at++) {
      const isTested = tested.has(at) && !places.value.includes(at)
      if (!isTested && this.words[at] !== canary(at)) stray.push(`word ${at} holds ${this.words[at]}`)
    }
    return stray
  }
}

module.exports = Object.assign(Arena, {
  ACTORS, BIG, COUNT, GATE_TIMES, GENERATIONS, IDS, LANES, MESSAGES, PERMITS, TICKETS, encode
})
