'use strict'

// Messages from thread to thread: by a Queue, by `postMessage` with as many on the way (host), and by the channel of
// multithreading.

const { MessageChannel } = require('worker_threads')
const { now, takeTurns } = require('../sampling')
const { available } = require('../locks')
const { Member, cores, tie } = require('../team')

/** Messages on the way at most, whatever carries them. */
const CAPACITY = 1024
/** A receiver of `postMessage` acknowledges so many at once. */
const ACKNOWLEDGED = CAPACITY / 4
const MESSAGES = 60000
const TRIPS = 2000
/** Bytes of the memory of a channel of multithreading: no message has to make room for another. */
const CHANNEL_BYTES = 2 ** 25

const VALUES = {
  8: { value: new Uint8Array(8), text: '8 bytes.' },
  200: { value: new Uint8Array(200), text: 'x'.repeat(200) },
  object: { value: { id: 4711, name: 'a job', done: false, parts: [1, 2, 3], place: { x: 1, y: 2 } } }
}

/** By figure: the value, how a Queue puts and takes it, and what it is compared with. */
const STREAMS = {
  'message-8': { value: '8', put: 'put', take: 'take', peers: ['multithreading'] },
  'message-200': { value: '200', put: 'put', take: 'take', peers: ['multithreading'] },
  'message-await': { value: '200', put: 'put', take: 'takeAsync' },
  'message-await-both': { value: '200', put: 'putAsync', take: 'takeAsync' },
  'message-use': { value: '200', put: 'put', take: 'useSync' },
  'message-producers': { value: '200', put: 'put', take: 'take', producers: 4 },
  'message-json': { value: 'object', put: 'put', take: 'take', format: 'json' },
  'message-clone': { value: 'object', put: 'put', take: 'take', format: 'clone' }
}

// ——— what carries messages ———

const isOurs = variant => variant === 'ours' || variant === 'again'
const isPort = variant => variant === 'host'

/** Two ends for each of so many producers, `[from, to]`, as threads get them. */
async function link (variant, producers) {
  if (isOurs(variant)) {
    const { Queue } = require('../../../pure')
    const queue = Queue.create({ capacity: CAPACITY, messageSize: 256 })
    return new Array(producers).fill([queue, queue])
  }
  if (variant === 'multithreading') {
    const { channel } = await import('multithreading')
    const [sender, receiver] = channel(CAPACITY, { size: CHANNEL_BYTES })
    return [[serialized(sender), serialized(receiver)]]
  }
  return Array.from({ length: producers }, () => {
    const { port1, port2 } = new MessageChannel()
    return [port1, port2]
  })
}

const symbolOf = (object, description) => {
  for (let at = object; ; at = Object.getPrototypeOf(at)) {
    const symbol = Object.getOwnPropertySymbols(at).find(each => each.description === description)
    if (symbol !== undefined) return symbol
  }
}

/** What the package posts to workers of its own. */
const serialized = (end) => end[symbolOf(end, 'Thread.Serialize')]()[0]

async function endOf (Class, given) {
  const { [Class]: End } = await import('multithreading')
  return End[symbolOf(End, 'Thread.Deserialize')](given)
}

// ——— in the threads ———

/** A function that puts so many messages. */
async function putter ({ variant, value, put, format }, end) {
  const { value: message, text } = VALUES[value]
  if (isOurs(variant)) {
    const queue = new (require('../../../pure').Queue)(end, { format })
    if (put === 'put') return count => { for (let n = 0; n < count; n++) queue.put(message) }
    return async count => { for (let n = 0; n < count; n++) await queue.putAsync(message) }
  }
  if (variant === 'multithreading') {
    const sender = await endOf('Sender', end)
    return count => { for (let n = 0; n < count; n++) sender.blockingSend(text) }
  }
  return count => post(end, message, count)
}

async function post (port, message, count) {
  let acknowledged = 0
  let goOn
  port.on('message', all => {
    acknowledged = all
    if (goOn !== undefined) goOn()
  })
  for (let n = 0; n < count; n++) {
    while (n - acknowledged >= CAPACITY) await new Promise(resolve => { goOn = resolve })
    port.postMessage(message)
  }
}

/** A function that takes so many messages. */
async function taker ({ variant, take }, ends) {
  if (isOurs(variant)) {
    const queue = new (require('../../../pure').Queue)(ends[0])
    if (take === 'take') return count => { for (let n = 0; n < count; n++) queue.take() }
    if (take === 'useSync') return count => { for (let n = 0; n < count; n++) queue.useSync(() => {}) }
    return async count => { for (let n = 0; n < count; n++) await queue.takeAsync() }
  }
  if (variant === 'multithreading') {
    const receiver = await endOf('Receiver', ends[0])
    return count => { for (let n = 0; n < count; n++) receiver.blockingRecv() }
  }
  return count => receive(ends, count)
}

function receive (ports, count) {
  let left = count
  return new Promise(resolve => {
    for (const port of ports) {
      let taken = 0
      port.on('message', () => {
        if (++taken % ACKNOWLEDGED === 0) port.postMessage(taken)
        if (--left > 0) return
        for (const each of ports) each.close()
        resolve()
      })
    }
  })
}

/** A function that answers so many messages, or sends them and waits for each answer. */
function player ({ variant, first }, [from, to]) {
  const { value } = VALUES[8]
  if (!isOurs(variant)) return first ? count => ping(from, value, count) : count => pong(to, count)
  const { Queue } = require('../../../pure')
  const [out, back] = first ? [from, to] : [to, from]
  const [mine, theirs] = [new Queue(out), new Queue(back)]
  return count => {
    for (let n = 0; n < count; n++) {
      if (first) mine.put(value)
      theirs.take()
      if (!first) mine.put(value)
    }
  }
}

const ping = (port, value, count) => new Promise(resolve => {
  let left = count
  port.on('message', () => {
    if (--left > 0) port.postMessage(value)
    else {
      port.close()
      resolve()
    }
  })
  port.postMessage(value)
})

const pong = (port, count) => new Promise(resolve => {
  let left = count
  port.on('message', message => {
    port.postMessage(message)
    if (--left === 0) resolve()
  })
})

const threads = {
  /** Is told what to do, says that it is ready, and does it; or where to run. */
  end () {
    let work
    return async ({ role, task, ends, count, core }) => {
      if (core !== undefined) return tie(core)
      if (role === undefined) return work(count)
      work = await { putter, taker, player }[role](task, ends)
      return true
    }
  }
}

// ——— the figures ———

const transferOf = (variant, ends) => isPort(variant) ? ends : []

async function run ({ rounds, quick }) {
  const members = Array.from({ length: 5 }, () => new Member('messages', 'end'))
  const results = {}
  for (const figure of Object.keys(STREAMS)) {
    const stream = STREAMS[figure]
    const names = ['host', 'ours', 'again'].concat(available(stream.peers || []))
    Object.assign(
      results,
      await takeTurns(names, rounds(9), async (variant) => ({
        [figure]: await rate(members, variant, stream, quick ? 2000 : MESSAGES)
      }))
    )
  }
  const places = cores()
  if (places !== undefined && places.length > 1) await Promise.all([0, 1].map(n => members[n].ask({ core: places[n] })))
  Object.assign(
    results,
    await takeTurns(['host', 'ours', 'again'], rounds(15), async (variant) => ({
      'message-trip': await trip(members, variant, quick ? 100 : TRIPS)
    }))
  )
  await Promise.all(members.map(member => member.end()))
  return results
}

/** Thousands of messages a second. */
async function rate ([consumer, ...others], variant, { value, put, take, format, producers = 1 }, count) {
  const links = await link(variant, producers)
  const task = { variant, value, put, take, format }
  const tos = links.map(([, to]) => to)
  await consumer.ask({ role: 'taker', task, ends: tos }, transferOf(variant, tos))
  const senders = others.slice(0, producers)
  await Promise.all(
    senders.map((member, n) =>
      member.ask({ role: 'putter', task, ends: links[n][0] }, transferOf(variant, [links[n][0]]))
    )
  )
  const begin = now()
  await Promise.all([consumer.ask({ count }), ...senders.map(member => member.ask({ count: count / producers }))])
  return count / (now() - begin) * 1e6
}

/** Microseconds from one thread to another and back. */
async function trip (members, variant, count) {
  const { Queue } = require('../../../pure')
  const ends = isOurs(variant)
    ? [1, 2].map(() => Queue.create({ capacity: 1, messageSize: 8 }))
    : (await link(variant, 1))[0]
  await Promise.all(members.slice(0, 2).map((member, n) => {
    const mine = isPort(variant) ? [n === 0 ? ends[0] : undefined, n === 1 ? ends[1] : undefined] : ends
    return member.ask({ role: 'player', task: { variant, first: n === 0 }, ends: mine }, transferOf(variant, [ends[n]]))
  }))
  const begin = now()
  await Promise.all(members.slice(0, 2).map(member => member.ask({ count })))
  return (now() - begin) / count / 1e3
}

module.exports = { run, threads }
