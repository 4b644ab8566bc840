'use strict'

// Threads that work for a group of figures: started, asked, told to end.

const path = require('path')
const { execFileSync } = require('child_process')
const fs = require('fs')
const { Worker } = require('worker_threads')
const { sleep } = require('./sampling')

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

  ask (request, transfer) {
    const answer = new Promise(resolve => this.worker.once('message', resolve))
    this.worker.postMessage(request, transfer)
    return Promise.race([answer, this.failed])
  }

  end () {
    return this.worker.terminate()
  }
}

/**
 * Asks members that begin at once, and gives their answers and the processor time of all of it, in microseconds. The
 * second of the `words` that they share counts those that are ready, the third becomes 1 once they may begin.
 */
async function together (members, words, request, meanwhile = async () => {}) {
  words.fill(0, 1, 3)
  const all = Promise.all(members.map(member => member.ask(request)))
  while (Atomics.load(words, 1) < members.length) await sleep(1)
  const before = process.cpuUsage()
  Atomics.store(words, 2, 1)
  Atomics.notify(words, 2)
  await meanwhile()
  const answers = await all
  const { user, system } = process.cpuUsage(before)
  return { answers, cpu: user + system }
}

/** The cores that this process may use; undefined where threads cannot be tied to cores. */
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

/** Ties the calling thread to a core. */
function tie (core) {
  // Read by the calling thread itself: its own number.
  const [, thread] = fs.readlinkSync('/proc/thread-self').split('/task/')
  execFileSync('taskset', ['-c', '-p', String(core), thread], { stdio: 'ignore' })
}

module.exports = { Member, cores, tie, together }
