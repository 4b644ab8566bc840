'use strict'

// Processes that request locks by an engine, and their messages (see actor.mjs).
//
// Invariant: what does not happen within two minutes is an error, as is anything that happens in a process outside of a
// promise.

const assert = require('assert')
const { fork } = require('child_process')
const path = require('path')

const LATE = 120 * 1000 // milliseconds: the machine may be busy

/** Whether a message has these values: for each key one, or a list of those that are meant. */
const fits = meant => message => Object.entries(meant).every(([key, value]) => [].concat(value).includes(message[key]))

class Team {
  /** `description`: of actor.mjs, and the Node that runs it. */
  constructor ({ node, ...description }) {
    Object.assign(this, { node, description, members: new Set() })
  }

  /**
   * Starts a process, until it is ready. `args`: for its engine, other than those of the team; `more`: of engine-of.js.
   */
  async process (args = this.description.args, more = {}) {
    const member = new Member(this.node, { ...this.description, args, ...more })
    this.members.add(member)
    await member.next({ event: 'ready' })
    return member
  }

  processes (number, args, more) {
    return Promise.all(Array.from({ length: number }, () => this.process(args, more)))
  }

  /** Starts a process that has a lock, and one that waits. */
  async inLine (name, args) {
    const [holder, next] = await this.processes(2, args)
    const held = await holder.holds(name)
    return { holder, next, held, waiter: await next.waits(name) }
  }

  /** Ends all. */
  async end () {
    const members = Array.from(this.members)
    for (const member of members) member.kill('SIGKILL')
    await Promise.all(members.map(({ ended }) => ended))
    const outside = members.flatMap(({ messages }) => messages).filter(fits({ event: 'outside' }))
    if (outside.length > 0) throw new Error(`outside of a promise: ${outside.map(({ error }) => error).join(', ')}`)
  }
}

let ids = 0

class Member {
  constructor (node, description) {
    this.messages = []
    this.listeners = new Set()
    this.child = fork(path.join(__dirname, 'actor.mjs'), [JSON.stringify(description)], {
      execPath: node,
      execArgv: ['--no-warnings'],
      env: { ...process.env, NODE_COMPILE_CACHE: path.join(description.home, '..', 'compiled') }
    })
    this.child.on('message', message => this.hear(message)).on('error', () => {})
    this.ended = new Promise(resolve => this.child.on('exit', (code, signal) => {
      resolve()
      this.hear({ event: 'ended', code, signal })
    }))
  }

  hear (message) {
    // Of those that come and go only errors outside of a promise are kept.
    if (!this.isQuiet || message.event === 'outside') this.messages.push(message)
    for (const listen of this.listeners) listen(message)
  }

  do (action, more) { this.child.send({ do: action, ...more }, () => {}) }

  kill (signal) { this.child.kill(signal) }

  has (meant) { return this.messages.some(fits(meant)) }

  /** Returns the first message that fits, also one that has come already: from which one on. */
  next (meant, from = 0) {
    const there = this.messages.slice(from).find(fits(meant))
    if (there !== undefined) return Promise.resolve(there)
    return new Promise((resolve, reject) => {
      const end = (settle, value) => {
        clearTimeout(timer)
        this.listeners.delete(listen)
        settle(value)
      }
      const fail = why => end(reject, new Error(
        `${why} before ${JSON.stringify(meant)}; it has said ${JSON.stringify(this.messages.slice(-5))}`
      ))
      const timer = setTimeout(() => fail(`${LATE / 1000} s were over`), LATE)
      const listen = message => {
        if (fits(meant)(message)) end(resolve, message)
        else if (message.event === 'ended') fail('the process ended')
      }
      this.listeners.add(listen)
    })
  }

  /** Returns the number of a thread of it that is ready. `args`: for its engine, other than those of the process. */
  async worker (args) {
    const from = this.messages.length
    this.do('start', { args })
    return (await this.next({ event: 'ready' }, from)).thread
  }

  /** Lets it request a name. */
  request (name, options, thread) { return new Request(this, name, options, thread) }

  /** Makes a request that has the lock. */
  async holds (name, options, thread) {
    const request = this.request(name, options, thread)
    request.token = (await request.gets()).token
    return request
  }

  /** Makes a request, and waits until the engine is asked for it. */
  async waits (name, options, thread) {
    const from = this.messages.length
    const request = this.request(name, options, thread)
    await this.next({ event: 'asked', name: name.slice(0, 100), thread }, from)
    return request
  }

  /** Checks that a free lock is granted, and ends well. */
  passes (name, expected) { return this.request(name).passes(expected) }

  /** Lets it do something that has a result. */
  result (action, more) {
    const id = ++ids
    this.do(action, { id, ...more })
    return this.next({ id, event: 'done' })
  }

  /** Ends by itself, and well. */
  async exits () {
    const { code, signal } = await this.next({ event: 'ended' })
    assert.deepStrictEqual({ code, signal }, { code: 0, signal: null })
  }

  closes () {
    this.do('close')
    return this.exits()
  }

  /** Ends by itself, without a call of close(). */
  leaves () {
    this.do('leave')
    return this.exits()
  }
}

class Request {
  constructor (member, name, options, thread) {
    Object.assign(this, { member, name, thread, id: ++ids })
    member.do('request', { id: this.id, thread, name, options })
  }

  has (event) { return this.member.has({ id: this.id, event }) }

  next (...event) { return this.member.next({ id: this.id, event }) }

  /** Lets its callback `finish` or `throw`, or lets it `abort`. */
  end (way) {
    this.member.do('end', { id: this.id, thread: this.thread, way })
    return this
  }

  /** Resolves with the message of the grant. `ownerDied`: its expected value; `after`: the token that is lower. */
  async gets ({ ownerDied, after = -1 } = {}) {
    const said = await this.next('granted')
    assert.ok([undefined, said.ownerDied].includes(ownerDied) && said.token > after, JSON.stringify(said))
    return said
  }

  /** Ends well. */
  async ends () {
    const { error } = await this.end('finish').next('fulfilled', 'rejected')
    assert.strictEqual(error, undefined)
  }

  /** Checks that it is granted, and ends well. Gives the message of the grant. */
  async passes (expected) {
    const said = await this.gets(expected)
    await this.ends()
    return said
  }

  /** Rejects with an error that has this code, name or message. Gives that. */
  async fails (why) {
    const { error } = await this.next('fulfilled', 'rejected')
    assert.ok(error && [error.code, error.name, error.message].includes(why), `not ${why}: ${JSON.stringify(error)}`)
    return error
  }
}

module.exports = { Team, LATE }
