#!/usr/bin/env node
'use strict'

/**
 * `npx --no-install atomics-waitasync dump <pid>`: who holds and awaits what in a process, and where its threads are.
 *
 * A signal opens its inspector, as `node inspect -p` does. By that main answers, and for it the Workers, in the midst
 * of JavaScript and while they are blocked. No thread is paused: a pause within an evaluation can hang Node 26. Main is
 * first asked for a timer that closes the inspector, should this command be killed; other signals do not end it.
 */

const { readFile } = require('fs').promises
const http = require('http')
const { constants } = require('os')
const { fileURLToPath } = require('url')
const { parseArgs } = require('util')

/** Milliseconds until an inspector has opened, or main has answered; until a Worker has; and until the timer fires. */
const [LIMIT, WORKER_LIMIT, GUARD] = [5000, 1000, 15000]
const OWN = require('path').join(__dirname, '..', 'lib', '/')
/** The native library's exports, once a thread has used the package: see lib/agent/starting-workers.js. */
const BINDING = '(Object.getPrototypeOf(Object.getPrototypeOf(process)).constructor[' +
  'Symbol.for("atomics-waitasync.starting-workers")] || {}).binding'
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

/** Asks a port for an inspector's address. Undefined: nothing listens; null: something else does. */
function addressAt (port) {
  return within(LIMIT, new Promise(resolve => {
    http.get({ host: '127.0.0.1', port, path: '/json/list' }, response => response.once('data', data => {
      resolve((/"webSocketDebuggerUrl": "(.*?)"/.exec(data) || [null, null])[1])
    })).once('error', ({ code }) => resolve(code === 'ECONNREFUSED' ? undefined : null))
  }))
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
  constructor (post) {
    this.post = post
    this.answers = []
    this.onEvent = () => {}
    this.closed = new Promise(resolve => { this.onclose = () => resolve() })
  }

  send (method, params) {
    const answer = new Promise(resolve => this.answers.push(resolve))
    this.post(JSON.stringify({ id: this.answers.length, method, params }))
    return Promise.race([answer, this.closed])
  }

  /** Evaluates code. Gives undefined if no answer comes in time. */
  evaluate (expression, limit = LIMIT) {
    return within(limit, this.send('Runtime.evaluate', { expression, silent: true }))
  }

  receive (text) {
    const { id, result = {}, method, params } = JSON.parse(text)
    if (id === undefined) this.onEvent(method, params)
    else this.answers[id - 1](result)
  }
}

/** Connects to main, and checks whose it is. Gives the timer's id, too. */
async function connect (address, pid, closes) {
  const socket = new (globalThis.WebSocket || require('./web-socket'))(address)
  const main = new Channel(text => { socket.send(text) })
  Object.assign(socket, { onclose: main.onclose, onmessage: ({ data }) => { main.receive(data) } })
  await within(LIMIT, main.closed, new Promise(resolve => { socket.onopen = resolve }))
  const timer = closes ? `setTimeout(() => { process._debugEnd() }, ${GUARD}).unref()` : '{}'
  const { result } = await main.evaluate(`process.pid === ${pid} ? ${timer} : process.pid`) || {}
  if (result === undefined) throw new Error(SILENT)
  if (result.type === 'number') throw new Error(`process ${result.value} has the inspector on its port`)
  return { main, socket, objectId: result.objectId }
}

/** Returns where a thread is, by the stack of an exception of ours there. Undefined if it does not answer. */
async function placesOf (channel, limit) {
  channel.send('Runtime.enable')
  const thrown = await channel.evaluate('throw 0', limit)
  if (thrown === undefined) return undefined
  const { callFrames } = thrown.exceptionDetails.stackTrace || { callFrames: [] }
  const all = callFrames.slice(1).map(placeOf)
  const shown = all.filter(place => !place.includes(OWN))
  // Node's frames around the program say nothing.
  while (shown.length > 1 && shown[shown.length - 1].includes('node:internal/')) shown.pop()
  return shown.length > 0 ? shown.slice(0, 10) : ['idle, in its event loop']
}

function placeOf ({ columnNumber, functionName, lineNumber, url }) {
  const file = url.startsWith('file:') ? fileURLToPath(url) : url || '<anonymous>'
  return `at ${functionName} (${file}:${lineNumber + 1}:${columnNumber + 1})`.replace(/^at {2}\((.*)\)$/, 'at $1')
}

/** Asks the threads where they are, and the first of them that has used the package for a dump. */
async function look (main, isJson) {
  const threads = [{ threadId: 0, now: await placesOf(main, LIMIT) }]
  if (threads[0].now === undefined) throw new Error(SILENT)
  const channels = new Map([['', main]])
  main.onEvent = (method, { sessionId, workerInfo, message }) => {
    if (method === 'NodeWorker.receivedMessageFromWorker') channels.get(sessionId).receive(message)
    if (method !== 'NodeWorker.attachedToWorker') return
    const channel = new Channel(message => { main.send('NodeWorker.sendMessageToWorker', { sessionId, message }) })
    channels.set(sessionId, channel)
    const [, id, threadName] = /^\[worker (\d+)\] ?(?:WorkerThread$)?(.*)$/s.exec(workerInfo.title)
    threads.push({ threadId: Number(id), threadName, now: placesOf(channel, WORKER_LIMIT) })
  }
  await within(LIMIT, main.send('NodeWorker.enable', { waitForDebuggerOnStart: false }))
  const noAnswer = ['in native code, at its end, or short of processor time: no answer for 1 s']
  for (const thread of threads) thread.now = await thread.now || noAnswer
  let dump
  for (const channel of channels.values()) {
    const { result = {} } = await channel.evaluate(`${BINDING} && ${BINDING}.dumpText(${isJson})`) || {}
    if ((dump = result.value) !== undefined) break
  }
  return { dump, threads: threads.sort((one, other) => one.threadId - other.threadId) }
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
  const pid = Number(id)
  const { port = await portOf(pid) } = values
  const found = await addressAt(port)
  if (found === null) throw new Error(`port ${port} is taken by something else than an inspector`)
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => {})
  const closes = values.close || found === undefined
  const { main, socket, objectId } = await connect(found || await open(pid, port), pid, closes)
  const seen = await look(main, Boolean(values.json))
  const functionDeclaration = 'function () { clearTimeout(this); process._debugEnd() }'
  if (closes) await within(LIMIT, main.send('Runtime.callFunctionOn', { objectId, functionDeclaration }))
  socket.close()
  // What a terminal obeys in the names of threads and functions; elsewhere native code has replaced it.
  const shown = character => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  process.stdout.write(textOf(pid, seen, values.json).replace(/(?!\n)[\p{Cc}\p{Cf}]/gu, shown))
}

run().catch(({ code, message }) => {
  console.error(`atomics-waitasync: ${REFUSED[code] || message}`)
  process.exit(1)
})
