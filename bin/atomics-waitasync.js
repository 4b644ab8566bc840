#!/usr/bin/env node
'use strict'

/**
 * `npx --no-install atomics-waitasync dump <pid>`: who holds and awaits what in a process, and where its threads are.
 *
 * A signal opens its inspector, as `node inspect -p` does. By that main answers, and for it the Workers, in the midst
 * of JavaScript and while they are blocked. No thread is paused: a pause within an evaluation can hang Node 26. Main is
 * first asked for a timer that closes the inspector, should this command be killed; other signals close it at once.
 */

const { readFile } = require('fs').promises
const http = require('http')
const { constants } = require('os')
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
/** Rather Node's timers than those that a program may have put into their place. */
const TIMERS = '(process.getBuiltinModule ? process.getBuiltinModule("timers") : globalThis)'
const CLOSED = 'its inspector has closed, the process ends, or its threads have not all answered in time'
const SILENT = 'its main thread does not answer: it is in native code'
const REFUSED = { ESRCH: 'there is no such process', EPERM: 'it belongs to another user' }

/** Gives what the first promise gives; undefined after a time. */
async function within (milliseconds, ...promises) {
  let timer
  const end = new Promise(resolve => { timer = setTimeout(resolve, milliseconds) })
  return Promise.race([...promises, end]).finally(() => clearTimeout(timer))
}

/** Reads what Linux tells of a process; '' on other systems. */
const read = (pid, name) => readFile(`/proc/${pid}/${name}`, 'latin1').catch(() => '')

async function portOf (pid) {
  const setting = /--(?:inspect|debug)(?:-port|-brk|-wait)?[=\0 ](?:[^\0 ]*:)?(\d+)/
  return Number((setting.exec(await read(pid, 'cmdline') + '\0' + await read(pid, 'environ')) || [])[1]) || 9229
}

/** Asks a port for an inspector's address. Undefined: nothing listens; null: something else does, or it is mute. */
function addressAt (port) {
  let request
  return new Promise(resolve => {
    request = http.get({ host: '127.0.0.1', port, path: '/json/list' }, response => response.once('data', data => {
      resolve((/"webSocketDebuggerUrl": "(.*?)"/.exec(data) || [null, null])[1])
    })).on('error', ({ code }) => resolve(code === 'ECONNREFUSED' ? undefined : null))
    setTimeout(resolve, LIMIT, null).unref()
  }).finally(() => request && request.destroy())
}

/** Returns a process's number. The system would cut a greater one to 32 bits, and by a thread's signal its process. */
async function processOf (id) {
  if (Number(id) > 0x7fffffff) throw new Error(`${id} is no process: a pid is an integer from 1 to 2147483647`)
  const [, owner] = /^Tgid:\s*(\d+)$/m.exec(await read(id, 'status')) || []
  if (process.platform === 'linux' && owner !== id)
    throw new Error(owner === undefined ? REFUSED.ESRCH : `${id} is a thread of process ${owner}`)
  return Number(id)
}

/** Opens a process's inspector, and returns its address. */
async function open (pid, port) {
  const [, caught] = /^SigCgt:\s*(\w+)/m.exec(await read(pid, 'status')) || []
  // The signal would end a process of another kind.
  if (caught && !(parseInt(caught.slice(-8), 16) & 1 << constants.signals.SIGUSR1 - 1))
    throw new Error('it opens no inspector: it runs with --disable-sigusr1 or --permission, or is not Node')
  process._debugProcess(pid)
  for (const end = Date.now() + LIMIT; Date.now() < end; await within(20)) {
    const address = await addressAt(port)
    if (address) return address
  }
  throw new Error(`it has opened no inspector on port ${port} in ${LIMIT} ms. Its main thread is in native code, and ` +
    'opens one later (--close closes it); or it listens to SIGUSR1 itself, or has another port (--port) or network')
}

/** The messages to a thread's inspector, and their answers. */
class Channel {
  constructor (post, limit) {
    Object.assign(this, { post, limit, answers: [], onEvent: () => {} })
    this.closed = new Promise(resolve => { this.onclose = () => resolve() })
    this.closed.then(() => { this.isClosed = true })
  }

  send (method, params) {
    const answer = new Promise(resolve => this.answers.push(resolve))
    this.post(JSON.stringify({ id: this.answers.length, method, params }))
    return Promise.race([answer, this.closed])
  }

  /** Evaluates code. Gives undefined if no answer comes in time. */
  evaluate (expression) {
    return within(this.limit, this.send('Runtime.evaluate', { expression, silent: true }))
  }

  receive (text) {
    const { id, result = {}, method, params } = JSON.parse(text)
    if (id === undefined) this.onEvent(method, params)
    else this.answers[id - 1](result)
  }
}

/** Connects to main, and asks it for the timer, on a condition. Gives the timer's id, too. */
async function connect (address, condition) {
  const socket = new (globalThis.WebSocket || require('./web-socket'))(address)
  const main = new Channel(text => { socket.send(text) }, LIMIT)
  Object.assign(socket, { onclose: main.onclose, onmessage: ({ data }) => { main.receive(data) } })
  const opened = new Promise(resolve => { socket.onopen = () => resolve(true) })
  if (!await within(LIMIT, main.closed, opened)) throw new Error(CLOSED)
  const timer = `${TIMERS}.setTimeout(() => { process._debugEnd() }, ${GUARD}).unref()`
  const { result } = await main.evaluate(`${condition} ? ${timer} : undefined`) || {}
  if (result === undefined) throw new Error(main.isClosed ? CLOSED : SILENT)
  return { main, socket, objectId: result.objectId }
}

/** Returns where a thread is, by an exception of ours there, which also tells if it uses the package. */
async function placesOf (channel) {
  channel.send('Runtime.enable')
  const { exceptionDetails: thrown = {} } = await channel.evaluate(`throw ${BINDING} !== undefined`) || {}
  if (!thrown.exception) return ['in native code, at its end, or short of processor time: no answer for 1 s']
  channel.uses = thrown.exception.value
  const { callFrames } = thrown.stackTrace || { callFrames: [] }
  const all = callFrames.slice(1).map(placeOf)
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

/** Asks the threads where they are, and the first of them that has used the package for a dump. */
async function look (main, pid, isJson) {
  const { result: { value: owner } = {} } = await main.evaluate('process.pid') || {}
  if (owner !== pid) throw new Error(owner ? `process ${owner} has the inspector on its port` : SILENT)
  const threads = new Map([['', { threadId: 0, channel: main }]])
  main.onEvent = (method, { sessionId, workerInfo, message, executionContextId }) => {
    const { channel } = threads.get(sessionId) || {}
    if (channel && method === 'NodeWorker.receivedMessageFromWorker') channel.receive(message)
    if (channel && method === 'NodeWorker.detachedFromWorker') channel.onclose()
    // Main's own context, which was the first: the process ends once this command has left it.
    if (method === 'Runtime.executionContextDestroyed' && executionContextId === 1) main.onclose()
    if (method !== 'NodeWorker.attachedToWorker') return
    const post = text => { main.send('NodeWorker.sendMessageToWorker', { sessionId, message: text }) }
    const [, id, threadName] = /^\[worker (\d+)\] ?(?:WorkerThread$)?(.*)$/s.exec(workerInfo.title)
    threads.set(sessionId, { threadId: Number(id), threadName, channel: new Channel(post, WORKER_LIMIT) })
  }
  await within(LIMIT, main.send('NodeWorker.enable', { waitForDebuggerOnStart: false }))
  // Not those that start later.
  const asked = [...threads.values()].sort((one, other) => one.threadId - other.threadId)
  const places = await Promise.all(asked.map(({ channel }) => placesOf(channel)))
  const seen = { threads: asked.map(({ channel, ...each }, n) => ({ ...each, now: places[n] })) }
  const users = asked.filter(({ channel }) => channel.uses)
  for (const { channel } of users) {
    const { result: { value } = {} } = await channel.evaluate(`${BINDING}.dumpText(${Boolean(isJson)})`) || {}
    if (value !== undefined) return { ...seen, dump: value }
  }
  if (main.uses === undefined || users.length > 0) throw new Error('its threads that have answered no longer do')
  return seen
}

function textOf (pid, { dump, threads }, isJson) {
  if (isJson) return [dump, ...threads.map(each => `${JSON.stringify({ pid, list: 'threads', ...each })}\n`)].join('')
  return threads.reduce((text, { threadId, threadName, now }) => {
    const name = threadId === 0 ? 'the main thread' : `thread ${threadId}${threadName && ` "${threadName}"`}`
    return `${text}  ${[name, ...now].join('\n      ')}\n`
  }, `${dump || `No thread of process ${pid} that answers has used atomics-waitasync.\n`}\nNow:\n`)
}

async function run () {
  const options = { json: { type: 'boolean' }, port: { type: 'string' }, close: { type: 'boolean' } }
  const { positionals: [command, id], values } = parseArgs({ options, allowPositionals: true })
  if (command !== 'dump' || !/^[1-9]\d*$/.test(id))
    throw new Error('usage: atomics-waitasync dump <pid> [--json] [--port <number>] [--close]')
  const pid = await processOf(id)
  const { port = await portOf(pid) } = values
  const found = await addressAt(port)
  if (found === null) throw new Error(`port ${port} is taken by something else than an inspector, or does not answer`)
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'].map(name => new Promise(resolve => { process.on(name, resolve) }))
  // What has opened by our signal is to be closed also if its pid is another one, as in a container.
  const condition = found === undefined || (Boolean(values.close) && `process.pid === ${pid}`)
  const { main, socket, objectId } = await connect(found || await open(pid, port), condition)
  const seen = await within(DEADLINE, ...signals, main.closed, look(main, pid, values.json)).finally(async () => {
    const functionDeclaration = 'function () { try { this.close() } finally { process._debugEnd() } }'
    if (objectId) await within(LIMIT, main.send('Runtime.callFunctionOn', { objectId, functionDeclaration }))
    socket.close()
  })
  if (typeof seen !== 'object') throw new Error(seen ? `got ${seen}` : CLOSED)
  // What a terminal obeys in the names of threads and functions; elsewhere native code has replaced it.
  const shown = text => text.replace(/[^]/g, unit => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
  process.stdout.on('error', () => {}).write(textOf(pid, seen, values.json).replace(/(?!\n)[\p{Cc}\p{Cf}]/gu, shown))
}

run().catch(({ code, message }) => {
  console.error(`atomics-waitasync: ${REFUSED[code] || message}`)
  process.exit(1)
})
