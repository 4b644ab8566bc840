'use strict'

// Threads that work for a group of figures: started, asked, told to end.

const path = require('path')
const { execFileSync } = require('child_process')
const fs = require('fs')
const { Worker } = require('worker_threads')
const { now, sleep } = require('./sampling')

const THREAD = path.join(__dirname, 'thread.js')

/** A thread that answers requests one at a time: on its side, see thread.js. */
class Member {
  constructor (group, name, data) {
    this.worker = new Worker(THREAD, { workerData: { group, name, data } })
    this.failed = new Promise((resolve, reject) => {
      this.worker.once('error', reject)
      this.worker.once('exit', code => reject(new Error(`a thread of ${group} ended with ${code}`)))
    })
    // It is of interest only while something is asked.
    this.failed.catch(() => {})
  }

  /** Asks the thread. `request`: one for the group's thread, or `{ core }`, to which it is tied. */
  ask (request, transfer) {
    const answer = new Promise(resolve => this.worker.once('message', resolve))
    this.worker.postMessage(request, transfer)
    return Promise.race([answer, this.failed])
  }

  end () {
    return this.worker.terminate()
  }
}

// Words by which threads begin and end together: how many are ready, and the state.
const READY = 1
const STATE = 2
const BEGUN = 1
const OVER = 2

/** Resolves once so many threads are ready. */
async function ready (words, count) {
  while (Atomics.load(words, READY) < count) await sleep(1)
}

/** Tells that a member is ready, and blocks until all may begin. */
function begin (words) {
  Atomics.add(words, READY, 1)
  Atomics.wait(words, STATE, 0)
}

/** Whether a member may go on. */
const goesOn = words => Atomics.load(words, STATE) === BEGUN

/**
 * Asks members that `begin` at once, and end when `meanwhile` does: it gets a promise of their answers, which is what
 * it waits for unless another is given, and the time at which they began.
 * @returns {Promise<{ answers: any[], took: number, cpu: number }>} until then: nanoseconds, and microseconds of
 *   processor time of all
 */
async function together (members, words, request, meanwhile = all => all) {
  words.fill(0, READY, STATE + 1)
  const all = Promise.all(members.map(member => member.ask(request)))
  await Promise.race([ready(words, members.length), all])
  const [before, begun] = [process.cpuUsage(), now()]
  Atomics.store(words, STATE, BEGUN)
  Atomics.notify(words, STATE)
  await meanwhile(all, begun)
  const took = now() - begun
  const { user, system } = process.cpuUsage(before)
  Atomics.store(words, STATE, OVER)
  return { answers: await all, took, cpu: user + system }
}

/** Returns the cores that this process may use; undefined where threads cannot be tied to cores. */
function cores () {
  try {
    const list = /list: (.*)/.exec(execFileSync('taskset', ['-c', '-p', String(process.pid)], { encoding: 'utf8' }))[1]
    return [].concat(...list.trim().split(',').map((range) => {
      const [first, last = first] = range.split('-').map(Number)
      return Array.from({ length: last - first + 1 }, (_, n) => first + n)
    }))
  } catch (_) {
    return undefined
  }
}

function tie (core) {
  // Read by the calling thread itself: its own number.
  const [, thread] = fs.readlinkSync('/proc/thread-self').split('/task/')
  execFileSync('taskset', ['-c', '-p', String(core), thread], { stdio: 'ignore' })
}

module.exports = { Member, begin, cores, goesOn, ready, tie, together }
