'use strict'

// What the engines of servers cost, beside programs by hand that promise the same, and less.
//
//   node __test__/engines/price.js [--only redis] [--node 20,24] [--rounds 5] [--locks 200]
//
// The subjects (see price-process.js) are processes of their own that take turns, with the same client and server. For
// each, the least of all rounds:
//
// - a free lock, taken and given back: the median, the least, and the processor time of the client, in microseconds;
//   and how many messages it sends for one;
// - a lock that is handed over: the median from the release in one process to the grant in another.
//
// The ratio is to the program by hand that promises the same. A server that is not there is skipped.

const { fork } = require('child_process')
const fs = require('fs')
const path = require('path')
const { argumentsOf, command, whole } = require('../../scripts/lib/arguments')
const { copyExample } = require('../../scripts/lib/example')
const { LOCKED, installed } = require('../../scripts/lib/npm')
const { withScratch } = require('../../scripts/lib/scratch')
const nodes = require('../../scripts/nodes')
const { engines } = require('./abilities')
const { Relay } = require('./relay')
const servers = require('./servers')

const EXAMPLE = path.join(__dirname, '..', '..', 'examples', 'processes')
const ENGINES = ['postgresql', 'redis', 'node-redis']
const SUBJECTS = ['less by hand', 'by hand', 'engine', 'request']
const SETTLE = 5 // milliseconds, until a process that has asked is in line
const COUNTED = 20 // locks whose messages are counted

/** A process that takes locks, and answers one task after the other. */
class Locker {
  static async start (node, description) {
    const locker = new Locker()
    locker.child = fork(path.join(__dirname, 'price-process.js'), [JSON.stringify(description)], { execPath: node })
    locker.ended = new Promise(resolve => locker.child.once('exit', resolve))
    await locker.answer()
    return locker
  }

  answer () {
    return new Promise((resolve, reject) => {
      this.child.once('message', resolve)
      this.ended.then(() => reject(new Error('a process of the measurement has ended')))
    })
  }

  do (task, options) {
    this.child.send({ task, ...options })
    return this.answer()
  }

  end () {
    this.child.kill()
    return this.ended
  }
}

/** Returns the median of microseconds from the release in one process to the grant in another. */
async function handedOver ([one, other], count) {
  const times = []
  await one.do('take')
  for (let n = 0; n < count; n++) {
    const taken = other.do('take')
    await new Promise(resolve => setTimeout(resolve, SETTLE))
    const released = await one.do('release')
    times.push((await taken - released) * 1000)
    ;[one, other] = [other, one]
  }
  await one.do('release')
  return times.sort((a, b) => a - b)[count >> 1]
}

/** Counts the messages of a free lock, by a relay. */
async function messages (node, description, url) {
  const relay = await Relay.start(new URL(url))
  const behind = new URL(url)
  behind.host = `127.0.0.1:${relay.port}`
  const locker = await Locker.start(node, { ...description, url: String(behind) })
  try {
    await locker.do('free', { count: 1 })
    const before = relay.messages
    await locker.do('free', { count: COUNTED })
    return (relay.messages - before) / COUNTED
  } finally {
    await locker.end()
    await relay.close()
  }
}

/** Returns the figures of each subject: the least of all rounds. */
async function price (node, description, url, { rounds, locks }) {
  const pairs = []
  const figures = []
  try {
    for (const subject of SUBJECTS) {
      const start = () => Locker.start(node, { ...description, subject, url })
      pairs.push([await start(), await start()])
      figures.push({ subject, messages: await messages(node, { ...description, subject }, url) })
    }
    for (let round = 0; round < rounds; round++) {
      for (let n = 0; n < SUBJECTS.length; n++) {
        const turn = (round + n) % SUBJECTS.length
        const found = await pairs[turn][0].do('free', { count: locks })
        found.handedOver = await handedOver(pairs[turn], Math.ceil(locks / 4))
        for (const [key, value] of Object.entries(found))
          figures[turn][key] = Math.min(value, round === 0 ? Infinity : figures[turn][key])
      }
    }
    return figures
  } finally {
    await Promise.all(pairs.flat().map(locker => locker.end()))
  }
}

/** Prints the figures, as rows of Markdown. */
function print (title, figures) {
  const base = figures[SUBJECTS.indexOf('by hand')]
  console.log(`\n| ${title} | free | × | least | processor | × | messages | handed over | × |`)
  console.log('|---|---|---|---|---|---|---|---|---|')
  for (const figure of figures) {
    const ratio = key => (figure[key] / base[key]).toFixed(2)
    const { subject, median, least, processor, messages, handedOver } = figure
    console.log(`| ${[
      subject, median.toFixed(0), ratio('median'), least.toFixed(0), processor.toFixed(0), ratio('processor'),
      messages, handedOver.toFixed(0), ratio('handedOver')
    ].join(' | ')} |`)
  }
}

async function main () {
  const { only, node: asked, ...counts } = argumentsOf(__filename, {
    only: { type: 'string', default: '', read: text => new RegExp(text) },
    node: { type: 'string', default: 'current', read: nodes.read },
    rounds: { type: 'string', default: '5', read: whole },
    locks: { type: 'string', default: '200', read: whole }
  })
  const modules = path.join(await installed('processes', EXAMPLE, LOCKED), 'node_modules')
  await withScratch(async scratch => {
    fs.chmodSync(scratch, 0o755) // for the servers' account
    const home = copyExample(scratch, modules, EXAMPLE)
    for (const name of ENGINES.filter(each => only.test(each))) {
      const { module, server: kind } = engines[name]
      const absent = servers.missing(kind)
      if (absent) {
        console.log(`${name} is skipped: ${absent}`)
        continue
      }
      const folder = path.join(scratch, name)
      fs.mkdirSync(folder)
      const server = await servers.start(kind, folder)
      try {
        await nodes.each(asked, async ({ path: node, version }) =>
          print(`${name}, Node ${version}`, await price(node, { home, module }, server.url, counts)))
      } finally {
        await server.stop()
      }
    }
  })
}

command(main)
