#!/usr/bin/env node
'use strict'

/**
 * `npx --no-install atomics-waitasync dump <pid>`: who holds and awaits what in a process, and where its threads are.
 *
 * A signal opens its inspector, as `node inspect -p` does. By that main answers, and for it the Workers, in the midst
 * of JavaScript and while they are blocked. No thread is paused: a pause within an evaluation can hang Node 26. Main is
 * first asked for a timer that closes the inspector, should this command be killed; other signals close it at once.
 */

const { EventEmitter, once } = require('events')
const { readFile } = require('fs').promises
const http = require('http')
const { constants } = require('os')
const { setTimeout: sleep } = require('timers/promises')
const { fileURLToPath } = require('url')
const { parseArgs } = require('util')

// Milliseconds until an inspector opens, or main answers; until a Worker does; until all do; until the timer fires.
const LIMIT = 5000
const WORKER_LIMIT = 1000
const DEADLINE = 9000
const GUARD = 15000
const OWN = require('path').join(__dirname, '..', 'lib', '/')
/** The native library's exports, once a thread has used the package: see lib/agent/starting-workers.js. */
const BINDING = '(Object.getPrototypeOf(Object.getPrototypeOf(process)).constructor[' +
  'Symbol.for("atomics-waitasync.starting-workers")] || {}).binding'
const CLOSED = 'its inspector has closed, the process ends, or its threads have not all answered in time'
const TEXT = 0x81
const REFUSED = { ESRCH: 'there is no such process', EPERM: 'it belongs to another user' }

/** Gives what the first promise gives; undefined after a time. */
const within = (milliseconds, ...promises) => Promise.race([...promises, sleep(milliseconds)])

/** Reads what Linux tells of a process; '' on other systems. */
const read = (pid, name) => readFile(`/proc/${pid}/${name}`, 'latin1').catch(() => '')

async function portOf (pid) {
  const setting = /--(?:inspect|debug)(?:-port|-brk|-wait)?[=\0 ](?:[^\0 ]*:)?(\d+)/
  return Number((setting.exec(await read(pid, 'cmdline') + '\0' + await read(pid, 'environ')) || [])[1]) || 9229
}

/** Asks a port for an inspector's address. Undefined: nothing listens; null: something else does, or it is mute. */
const addressAt = port => new Promise(resolve => {
  http.get({ agent: false, host: '127.0.0.1', port, path: '/json/list' }, response => response.once('data', data => {
    resolve((/"webSocketDebuggerUrl": "(.*?)"/.exec(data) || [null, null])[1])
  })).on('error', ({ code }) => resolve(code === 'ECONNREFUSED' ? undefined : null))
  setTimeout(resolve, LIMIT, null)
})

/** Opens a process's inspector, and returns its address. */
async function open (pid, port) {
  const [, caught] = /^SigCgt:\s*(\w+)/m.exec(await read(pid, 'status')) || []
  // The signal would end a process of another kind.
  if (caught && !(parseInt(caught.slice(-8), 16) & 1 << constants.signals.SIGUSR1 - 1))
    throw new Error('it opens no inspector: it runs with --disable-sigusr1 or --permission, or is not Node')
  process._debugProcess(pid)
  for (const end = Date.now() + LIMIT; Date.now() < end; await sleep(20)) {
    const address = await addressAt(port)
    if (address) return address
  }
  throw new Error(`it has opened no inspector on port ${port} in ${LIMIT} ms. Its main thread is in native code, and ` +
    'opens one later (--close closes it); or it listens to SIGUSR1 itself, or has another port (--port) or network')
}

/** The messages to a thread's inspector, and their answers; its events are emitted. */
class Channel extends EventEmitter {
  constructor (post, limit, thread) {
    super()
    Object.assign(this, { post, limit, thread, answers: [] })
    this.closed = new Promise(resolve => { this.onclose = () => resolve() })
  }

  /** Gives undefined if no answer comes in time. */
  send (method, params) {
    const answer = new Promise(resolve => this.answers.push(resolve))
    this.post(JSON.stringify({ id: this.answers.length, method, params }))
    return within(this.limit, answer, this.closed)
  }

  receive (text) {
    const { id, result = {}, method, params } = JSON.parse(text)
    if (id === undefined) this.emit(method, params)
    else this.answers[id - 1](result)
  }
}

const evaluate = (channel, expression) => channel.send('Runtime.evaluate', { expression, silent: true })

/** Connects to main. Node 18 and 20 have no WebSocket; this is as much of one as an inspector needs: no fragments. */
async function connect (url) {
  const key = Buffer.alloc(16).toString('base64')
  const headers = { Upgrade: 'websocket', Connection: 'Upgrade', 'Sec-WebSocket-Version': 13, 'Sec-WebSocket-Key': key }
  const [, socket, head] = await once(http.get(url.replace('ws:', 'http:'), { headers }), 'upgrade')
  const main = new Channel((text) => {
    // Of less than 64 kilobytes. The mask is 0, since no proxy is in between.
    const length = Buffer.byteLength(text)
    const size = length < 126 ? [0x80 | length] : [0x80 | 126, length >> 8, length & 255]
    socket.write(Buffer.concat([Buffer.from([TEXT, ...size, 0, 0, 0, 0]), Buffer.from(text)]))
  }, LIMIT, { threadId: 0 })
  // A listener that stays for what is readable: the first one is called at once, and again, before more can come.
  socket.on('error', () => {}).on('readable', () => {}).once('close', main.onclose).unshift(head)
  receive(socket, main).catch(() => socket.destroy())
  return { main, socket }
}

async function receive (socket, main) {
  const take = async length => socket.read(length) || once(socket, 'readable').then(() => take(length))
  for (;;) {
    const [kind, length] = await take(2)
    if (kind !== TEXT) return socket.destroy()
    const size = length < 126 ? Buffer.from([length]) : await take(length === 126 ? 2 : 8)
    main.receive((await take(Number('0x' + size.toString('hex')))).toString())
  }
}

/** Returns where a thread is. An exception of ours there tells, and also if it uses the package. */
async function placesOf (channel) {
  channel.send('Runtime.enable')
  const { exceptionDetails: thrown = {} } = await evaluate(channel, `throw ${BINDING} !== undefined`) || {}
  if (!thrown.exception) return ['in native code, at its end, or short of processor time: no answer for 1 s']
  channel.uses = thrown.exception.value
  const all = (thrown.stackTrace?.callFrames || []).slice(1).map(placeOf)
  const shown = all.filter(place => !place.includes(OWN) && !/[( ]node:/.test(place))
  if (shown.length === 0) return [all.length > 0 ? 'in code of Node' : 'idle, in its event loop']
  return shown.slice(0, 10)
}

function placeOf ({ columnNumber, functionName, lineNumber, url }) {
  let file = url || '<anonymous>'
  try {
    file = fileURLToPath(url)
  } catch {} // It is Node's, another machine's, or of a name that no file can have.
  const place = `${file}:${lineNumber + 1}:${columnNumber + 1}`
  return functionName === '' ? `at ${place}` : `at ${functionName} (${place})`
}

/** Returns the channels to main and to the Workers, but not to those that start later. */
async function channelsTo (main) {
  const workers = new Map()
  main.on('NodeWorker.attachedToWorker', ({ sessionId, workerInfo }) => {
    const post = message => main.send('NodeWorker.sendMessageToWorker', { sessionId, message })
    const [, id, threadName] = /^\[worker (\d+)\] ?(?:WorkerThread$)?(.*)$/s.exec(workerInfo.title)
    workers.set(sessionId, new Channel(post, WORKER_LIMIT, { threadId: Number(id), threadName }))
  })
  main.on('NodeWorker.receivedMessageFromWorker', ({ sessionId, message }) => workers.get(sessionId).receive(message))
  main.on('NodeWorker.detachedFromWorker', ({ sessionId }) => workers.get(sessionId).onclose())
  await main.send('NodeWorker.enable', { waitForDebuggerOnStart: false })
  return [main, ...workers.values()].sort((one, other) => one.thread.threadId - other.thread.threadId)
}

/** Asks the threads where they are. The first of them that has used the package is asked for a dump. */
async function look (main, pid, isJson) {
  const owner = (await evaluate(main, 'process.pid'))?.result?.value
  if (owner === undefined) throw new Error('its main thread does not answer: it is in native code')
  if (owner !== pid) throw new Error(`process ${owner} has the inspector on its port`)
  // Main's own context, which was the first: the process ends once this command has left it.
  main.on('Runtime.executionContextDestroyed', ({ executionContextId }) => executionContextId === 1 && main.onclose())
  const asked = await channelsTo(main)
  const threads = await Promise.all(asked.map(async each => ({ ...each.thread, now: await placesOf(each) })))
  const users = asked.filter(({ uses }) => uses)
  for (const each of users) {
    const dump = (await evaluate(each, `${BINDING}.dumpText(${Boolean(isJson)})`))?.result?.value
    if (dump !== undefined) return { dump, threads }
  }
  if (main.uses === undefined || users.length > 0) throw new Error('its threads that have answered no longer do')
  return { threads }
}

function textOf (pid, { dump, threads }, isJson) {
  if (isJson) return [dump, ...threads.map(each => `${JSON.stringify({ pid, list: 'threads', ...each })}\n`)].join('')
  return threads.reduce((text, { threadId, threadName, now }) => {
    const name = threadId === 0 ? 'the main thread' : `thread ${threadId}${threadName && ` "${threadName}"`}`
    return `${text}  ${[name, ...now].join('\n      ')}\n`
  }, `${dump || `No thread of process ${pid} that answers has used atomics-waitasync.\n`}\nNow:\n`)
}

/** Asks main for the timer, then all threads, and closes again. Gives what is to be printed. */
async function ask (pid, port, { close, json }) {
  const found = await addressAt(port)
  if (found === null) throw new Error(`port ${port} is taken by something else than an inspector, or does not answer`)
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'].map(name => new Promise(resolve => { process.on(name, resolve) }))
  const { main, socket } = await within(LIMIT, connect(found || await open(pid, port)).catch(() => {})) || {}
  if (!main) throw new Error(CLOSED)
  // What has opened by our signal is to be closed also if its pid is another one, as in a container.
  const condition = found === undefined || (Boolean(close) && `process.pid === ${pid}`)
  // Rather Node's timers than those that a program may have put into their place.
  const timers = '(process.getBuiltinModule ? process.getBuiltinModule("timers") : globalThis)'
  const timer = evaluate(main, `${condition} && ${timers}.setTimeout(() => { process._debugEnd() }, ${GUARD}).unref()`)
  const seen = await within(DEADLINE, ...signals, main.closed, look(main, pid, json)).finally(async () => {
    const functionDeclaration = 'function () { try { this.close() } finally { process._debugEnd() } }'
    const objectId = (await timer)?.result?.objectId
    if (objectId) await main.send('Runtime.callFunctionOn', { objectId, functionDeclaration })
    socket.destroy()
  })
  if (typeof seen !== 'object') throw new Error(seen ? `got ${seen}` : CLOSED)
  return textOf(pid, seen, json)
}

async function run () {
  const options = { json: { type: 'boolean' }, port: { type: 'string' }, close: { type: 'boolean' } }
  const { positionals: [command, id], values } = parseArgs({ options, allowPositionals: true })
  if (command !== 'dump' || !/^[1-9]\d*$/.test(id))
    throw new Error('usage: atomics-waitasync dump <pid> [--json] [--port <number>] [--close]')
  // The system would cut a greater number to 32 bits, and by a thread's signal its process.
  if (Number(id) > 0x7fffffff) throw new Error(`${id} is no process: a pid is an integer from 1 to 2147483647`)
  const [, owner] = /^Tgid:\s*(\d+)$/m.exec(await read(id, 'status')) || []
  if (process.platform === 'linux' && owner !== id)
    throw new Error(owner === undefined ? REFUSED.ESRCH : `${id} is a thread of process ${owner}`)
  const text = await ask(Number(id), values.port || await portOf(id), values)
  // What a terminal obeys in the names of threads and functions; elsewhere native code has replaced it.
  const shown = obeyed => obeyed.replace(/[^]/g, unit => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
  process.stdout.on('error', () => {}).write(text.replace(/(?!\n)[\p{Cc}\p{Cf}]/gu, shown), () => process.exit())
}

run().catch(({ code, message }) => {
  console.error(`atomics-waitasync: ${REFUSED[code] || message}`)
  process.exit(1)
})
