'use strict'

// Processes that request locks by an engine, and what they say (see actor.mjs).
//
// Invariant: what does not happen within two minutes is an error, as is anything that happens in a process outside of a
// promise.

const { fork } = require('child_process')
const path = require('path')

const LATE = 120 * 1000 // milliseconds: the machine may be busy

class Team {
  /** @param {{ node: string, home: string, module: string, args: any[], options: object }} description of actor.mjs */
  constructor ({ node, ...description }) {
    Object.assign(this, { node, description, members: new Set() })
  }

  /** A process that is ready. `args`: for its engine, other than those of the team. */
  async process (args = this.description.args) {
    const member = new Member(this.node, { ...this.description, args })
    this.members.add(member)
    await member.next(({ event }) => event === 'ready')
    return member
  }

  processes (number, args) { return Promise.all(Array.from({ length: number }, () => this.process(args))) }

  /** Ends all. */
  async end () {
    for (const member of this.members) member.kill('SIGKILL')
    await Promise.all(Array.from(this.members, ({ ended }) => ended))
    const outside = Array.from(this.members, ({ messages }) =>
      messages.filter(({ event }) => event === 'outside')
    ).flat()
    if (outside.length > 0) throw new Error(`outside of a promise: ${outside.map(({ error }) => error).join(', ')}`)
  }
}

let requests = 0

class Member {
  constructor (node, description) {
    this.messages = []
    this.listeners = new Set()
    this.child = fork(path.join(__dirname, 'actor.mjs'), [JSON.stringify(description)], {
      execPath: node,
      execArgv: ['--no-warnings'],
      env: { ...process.env, NODE_COMPILE_CACHE: path.join(description.home, '..', 'compiled') }
    })
    this.child.on('message', message => {
      // Of those that come and go only what is outside of a promise is kept.
      if (!this.isQuiet || message.event === 'outside') this.messages.push(message)
      for (const listen of this.listeners) listen(message)
    })
    this.child.on('error', () => {})
    this.ended = new Promise(resolve => this.child.on('exit', (code, signal) => {
      this.exit = { code, signal }
      resolve(this.exit)
      for (const listen of this.listeners) listen({ event: 'ended' })
    }))
  }

  /** How it ended, which it does by itself. */
  async exits () {
    let timer
    const late = new Promise((resolve, reject) => {
      timer = setTimeout(() => reject(new Error(`process ${this.child.pid} does not end`)), LATE)
    })
    return Promise.race([this.ended, late]).finally(() => clearTimeout(timer))
  }

  do (action, more = {}) { this.child.send({ do: action, ...more }, () => {}) }

  kill (signal) { this.child.kill(signal) }

  /** The first message of this kind, also one that has come already: from which one on. */
  next (isMeant, what = String(isMeant), from = 0) {
    const there = this.messages.slice(from).find(isMeant)
    if (there !== undefined) return Promise.resolve(there)
    return new Promise((resolve, reject) => {
      const end = (settle, value) => {
        clearTimeout(timer)
        this.listeners.delete(listen)
        settle(value)
      }
      const fail = (why) =>
        end(reject, new Error(`${why} before ${what}; it has said ${JSON.stringify(this.messages.slice(-5))}`))
      const timer = setTimeout(() => fail(`${LATE / 1000} s were over`), LATE)
      const listen = message => {
        if (isMeant(message)) end(resolve, message)
        else if (message.event === 'ended') fail('the process ended')
      }
      this.listeners.add(listen)
    })
  }

  /** A thread of it that is ready. `args`: for its engine, other than those of the process. */
  async worker (args) {
    const thread = this.messages.filter(({ event, thread }) => event === 'ready' && thread !== undefined).length
    this.do('worker', { thread, args })
    await this.next(message => message.event === 'ready' && message.thread === thread)
    return thread
  }

  /** Lets it request a name. */
  request (name, options = {}, more = {}) { return new Request(this, name, options, more) }

  /** One that has the lock. */
  async holds (name, options, more) {
    const request = this.request(name, options, more)
    await request.granted
    return request
  }

  /** One of which the engine has been asked. */
  async waits (name, options, more) {
    const request = this.request(name, options, more)
    await request.asked
    return request
  }

  /** Lets it do something that it says the result of. */
  async result (action, event, more) {
    const id = ++requests
    this.do(action, { id, ...more })
    return this.next(message => message.id === id && message.event === event, event)
  }
}

class Request {
  constructor (member, name, options, { thread, ...more }) {
    Object.assign(this, { member, name, thread, id: ++requests, from: member.messages.length })
    member.do('request', { id: this.id, thread, name, options, ...more })
  }

  next (...events) {
    return this.member.next(({ id, event }) => id === this.id && events.includes(event), `${events} of a request`)
  }

  get granted () {
    return this.next('granted')
  }

  get fulfilled () {
    return this.next('fulfilled', 'rejected').then((said) => {
      if (said.event === 'rejected') throw new Error(`rejected: ${said.error.message}`)
    })
  }

  get error () {
    return this.next('fulfilled', 'rejected').then((said) => said.error || { code: 'none' })
  }

  get lost () {
    return this.next('lost')
  }

  get isGranted () {
    return this.member.messages.some(({ id, event }) => id === this.id && event === 'granted')
  }

  /** Resolves once the engine has been asked for it. */
  get asked () {
    return this.member.next(
      ({ event, name, thread }) => event === 'asked' && name === this.name.slice(0, 100) && thread === this.thread,
      'asking',
      this.from
    )
  }

  finish () {
    return this.act('finish')
  }

  /** Ends well. */
  ends () {
    return this.finish().fulfilled
  }

  /** Is granted, and ends well. Gives what was said of the grant. */
  async passes () {
    const said = await this.granted
    await this.ends()
    return said
  }

  act (action, more) {
    this.member.do(action, { id: this.id, thread: this.thread, ...more })
    return this
  }

  async write (resource, value) {
    this.act('write', { resource, value })
    return this.next('written')
  }
}

module.exports = { Team }
