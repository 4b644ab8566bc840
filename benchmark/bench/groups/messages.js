'use strict'

// Messages from thread to thread: by a Queue, by `postMessage` with as many on the way (host), and by the channel of
// multithreading.

const { MessageChannel, MessagePort } = require('worker_threads')
const { Queue } = require('../../../pure')
const { now, takeTurns } = require('../sampling')
const { available } = require('../locks')
const { Member, cores } = require('../team')

/** Messages on the way at most, whatever carries them. */
const CAPACITY = 1024
/** A receiver of `postMessage` acknowledges so many at once. */
const ACKNOWLEDGED = CAPACITY / 4
const MESSAGES = 60000
/** Messages before a sample of threads that are warm. */
const WARMING = 600000
const BATCH = 64
const TRIPS = 2000
/** Bytes of the memory of a channel of multithreading: no message has to make room for another. */
const CHANNEL_BYTES = 2 ** 25

const VALUES = {
  8: { value: new Uint8Array(8), text: '8 bytes.' },
  200: { value: new Uint8Array(200), text: 'x'.repeat(200) },
  // 130 bytes as JSON.
  object: {
    value: {
      id: 4711, kind: 'resize', done: false, size: [1920, 1080], crop: { x: 12, y: 34 },
      from: '/images/4711.png', to: '/out/4711.webp'
    }
  }
}

/**
 * By figure: the value, how a Queue puts and takes it, and the peers. `state`: threads are 'cold' if each sample has
 * new ones, and 'warm' after many messages; otherwise they have carried as many as a sample has.
 */
const STREAMS = {
  'message-8': { value: '8', put: 'put', take: 'take', peers: ['multithreading'] },
  'message-200': { value: '200', put: 'put', take: 'take', peers: ['multithreading'] },
  'message-await': { value: '200', put: 'put', take: 'takeAsync' },
  'message-await-both': { value: '200', put: 'putAsync', take: 'takeAsync' },
  'message-use': { value: '200', put: 'put', take: 'useSync' },
  'message-producers': { value: '200', put: 'put', take: 'take', producers: 4 },
  'message-many': { value: '200', put: 'put', take: 'takeMany', single: 'take' },
  'message-warm': { value: '200', state: 'warm', put: 'put', take: 'take' },
  ...objects('json', 1, 'cold'),
  ...objects('json', 1, 'warm'),
  ...objects('json', 4, 'cold'),
  ...objects('json', 4, 'warm'),
  ...objects('clone', 1, 'cold'),
  ...objects('clone', 1, 'warm')
}

function objects (format, producers, state) {
  return {
    [`message-${format}-${producers}-${state}`]: {
      value: 'object', put: 'put', take: 'take', format, producers, state
    }
  }
}

// ——— carriers of messages ———

// Each has `link(producers)`: two ends for each of so many producers, `[from, to]`, as threads get them. In the
// threads, `putter(task, end)` and `taker(task, ends)` give functions that put or take so many messages.

/** Repeated acts with a Queue. */
const loops = {
  put (queue, count, message) { for (let n = 0; n < count; n++) queue.put(message) },
  async putAsync (queue, count, message) { for (let n = 0; n < count; n++) await queue.putAsync(message) },
  takeMany (queue, count) { while (count > 0) count -= queue.takeMany(BATCH).length },
  take (queue, count) { for (let n = 0; n < count; n++) queue.take() },
  async takeAsync (queue, count) { for (let n = 0; n < count; n++) await queue.takeAsync() },
  useSync (queue, count) { for (let n = 0; n < count; n++) queue.useSync(() => {}) }
}

const queues = {
  link (producers) {
    const queue = Queue.create({ capacity: CAPACITY, messageSize: 256 })
    return new Array(producers).fill([queue, queue])
  },
  putter ({ value, put, format }, end) {
    const queue = new Queue(end, { format })
    return count => loops[put](queue, count, VALUES[value].value)
  },
  taker ({ take }, [end]) {
    const queue = new Queue(end)
    return count => loops[take](queue, count)
  }
}

const symbolOf = (object, description) => {
  for (let at = object; ; at = Object.getPrototypeOf(at)) {
    const symbol = Object.getOwnPropertySymbols(at).find(each => each.description === description)
    if (symbol !== undefined) return symbol
  }
}

/** Returns the message that the package posts to workers of its own. */
const serialized = (end) => end[symbolOf(end, 'Thread.Serialize')]()[0]

async function endOf (Class, given) {
  const { [Class]: End } = await import('multithreading')
  return End[symbolOf(End, 'Thread.Deserialize')](given)
}

const multithreading = {
  async link () {
    const { channel } = await import('multithreading')
    return [channel(CAPACITY, { size: CHANNEL_BYTES }).map(serialized)]
  },
  async putter ({ value }, end) {
    const sender = await endOf('Sender', end)
    return count => { for (let n = 0; n < count; n++) sender.blockingSend(VALUES[value].text) }
  },
  async taker (_, [end]) {
    const receiver = await endOf('Receiver', end)
    return count => { for (let n = 0; n < count; n++) receiver.blockingRecv() }
  }
}

const ports = {
  link: producers => Array.from({ length: producers }, () => {
    const { port1, port2 } = new MessageChannel()
    return [port1, port2]
  }),
  putter ({ value }, port) {
    let acknowledged = 0
    let goOn
    port.on('message', all => {
      acknowledged = all
      if (goOn !== undefined) goOn()
    })
    return async count => {
      for (let n = 0; n < count; n++) {
        while (n - acknowledged >= CAPACITY) await new Promise(resolve => { goOn = resolve })
        port.postMessage(VALUES[value].value)
      }
    }
  },
  taker: (_, ends) => count => new Promise(resolve => {
    for (const port of ends) {
      let taken = 0
      port.on('message', () => {
        if (++taken % ACKNOWLEDGED === 0) port.postMessage(taken)
        if (--count > 0) return
        for (const each of ends) each.close()
        resolve()
      })
    }
  })
}

const carriers = { host: ports, ours: queues, again: queues, single: queues, multithreading }

/** Two threads that send each other one message so often, the `first` and the one that answers it. */
const players = {
  queues ([out, back], first) {
    const [mine, theirs] = [new Queue(out), new Queue(back)]
    return count => {
      for (let n = 0; n < count; n++) {
        if (first) mine.put(VALUES[8].value)
        theirs.take()
        if (!first) mine.put(VALUES[8].value)
      }
    }
  },
  ports: ([port], first) => count => new Promise(resolve => {
    port.on('message', message => {
      count--
      if (!first || count > 0) port.postMessage(message)
      if (count > 0) return
      if (first) port.close()
      resolve()
    })
    if (first) port.postMessage(VALUES[8].value)
  })
}

const threads = {
  /** Hears its task, says that it is ready, and does it. */
  end () {
    let work
    return async ({ role, task, ends, count }) => {
      if (role === undefined) return work(count)
      const { variant, first } = task
      work = role === 'player' ? players[variant](ends, first) : await carriers[variant][role](task, ends)
    }
  }
}

// ——— the figures ———

/** Tells a thread its role; ports are its own from then on. */
const cast = (member, role, task, ends) =>
  member.ask({ role, task, ends }, [].concat(ends).filter(end => end instanceof MessagePort))

async function run ({ rounds, quick }) {
  const results = {}
  for (const [figure, task] of Object.entries(STREAMS)) {
    Object.assign(results, await stream(figure, task, rounds, quick))
  }
  const members = team(2)
  const places = cores()
  if (places !== undefined && places.length > 1) await Promise.all([0, 1].map(n => members[n].ask({ core: places[n] })))
  Object.assign(results, await takeTurns(['host', 'ours', 'again'], rounds(15), async (variant) => ({
    'message-trip': await trip(members, variant, quick ? 100 : TRIPS)
  })))
  await end(members)
  return results
}

const team = size => Array.from({ length: size }, () => new Member('messages', 'end'))
const end = members => Promise.all(members.map(member => member.end()))

/** Takes the samples of one figure. Each variant has threads of its own, so that none changes another's code. */
async function stream (figure, { state, single, peers = [], ...task }, rounds, quick) {
  const { producers = 1 } = task
  const names = ['host', 'ours', 'again', ...single ? ['single'] : [], ...available(peers)]
  const teams = {}
  const measure = (variant, members, count) =>
    rate(members, { variant, ...task, ...variant === 'single' ? { take: single } : {} }, quick ? 2000 : count)
  if (state !== 'cold') for (const name of names) teams[name] = team(1 + producers)
  if (state === 'warm') for (const name of names) await measure(name, teams[name], WARMING)
  const samples = await takeTurns(names, rounds(9), async (variant) => {
    const members = teams[variant] || team(1 + producers)
    const value = await measure(variant, members, MESSAGES)
    if (state === 'cold') await end(members)
    return { [figure]: value }
  })
  for (const name of Object.keys(teams)) await end(teams[name])
  return samples
}

/** Thousands of messages a second. */
async function rate ([consumer, ...others], task, count) {
  const { variant, producers = 1 } = task
  const links = await carriers[variant].link(producers)
  await cast(consumer, 'taker', task, links.map(([, to]) => to))
  const senders = others.slice(0, producers)
  await Promise.all(senders.map((member, n) => cast(member, 'putter', task, links[n][0])))
  const begin = now()
  await Promise.all([consumer.ask({ count }), ...senders.map(member => member.ask({ count: count / producers }))])
  return count / (now() - begin) * 1e6
}

/** Microseconds from one thread to another and back. */
async function trip (members, variant, count) {
  const isPort = variant === 'host'
  const [one, other] = isPort
    ? ports.link(1)[0]
    : [1, 2].map(() => Queue.create({ capacity: 1, messageSize: 8 }))
  const ends = isPort ? [[one], [other]] : [[one, other], [other, one]]
  const task = { variant: isPort ? 'ports' : 'queues' }
  await Promise.all(members.map((member, n) => cast(member, 'player', { ...task, first: n === 0 }, ends[n])))
  const begin = now()
  await Promise.all(members.map(member => member.ask({ count })))
  return (now() - begin) / count / 1e3
}

module.exports = { run, threads }
