'use strict'

// The situations of the locks, and their outcomes in words. Each is in a process of its own.

const { setTimeout: sleep } = require('timers/promises')
const { COUNTER, OWN, TOGETHER, countFor } = require('./thread')

/** The milliseconds after which an event will not come. */
const EVER = 3000

/** Returns the promise's value; null if it is pending after so long. */
const within = (promise, milliseconds) => Promise.race([promise, sleep(milliseconds, null)])
/** Says how long it is since `begin`, roughly: the machine does other things, too. */
const since = (begin) =>
  performance.now() - begin < 200 ? 'at once' : `after ${((performance.now() - begin) / 1000).toFixed(1)} s`

/** Milliseconds. */
const COUNTING = 1000
const ROUNDS = 10

const NOT_EXCLUDED = '**main has it at once, while a worker holds it**'

/** Starts a worker that has the lock for so many milliseconds: or until a release is asked for. */
async function holder (start, milliseconds) {
  const member = start()
  await member.ask({ act: 'acquire', milliseconds })
  return member
}

/** Begins an act of a worker; `done` is the promise of its end. */
async function begun (start, request) {
  const member = start()
  await member.ask({ act: 'begin' })
  return { done: member.ask(request) }
}

/** Describes a worker that wants the lock while main holds it. */
async function wanting ({ lock, start }, request) {
  const { release } = await lock.acquire()
  const { done } = await begun(start, request)
  const had = done.catch(() => 'ended')
  const early = await within(had, 500)
  if (early === 'ended') return '**it ends at once, without the lock**'
  if (early !== null) return '**it has it at once, while main holds it**'
  release()
  return await within(had, EVER) === request.act ? 'waits and gets it' : '**it never gets it**'
}

/**
 * The columns of the table, with their titles and the words for a lock; those with `blocks`, only of one that has a
 * blocking form.
 */
module.exports = {
  exclusion: {
    title: `three threads with two tasks each count together, ${ROUNDS} times for ${COUNTING / 1000} s`,
    async run ({ lock, start }) {
      let [sum, lost, together, stopped] = [0, 0, 0, false]
      const members = [start(), start()]
      await Promise.all(members.map(member => member.ask({ act: 'begin' })))
      for (let round = 0; round < ROUNDS && !stopped; round++) {
        const words = new Int32Array(new SharedArrayBuffer(4 * (OWN + 3)))
        const others = members.map((member, n) =>
          member.ask({ act: 'count', words, thread: n + 1, milliseconds: COUNTING })
        )
        stopped = await within(Promise.all([countFor(COUNTING, lock, words, 0), ...others]), COUNTING + EVER) === null
        const counts = words.slice(OWN).reduce((sum, count) => sum + count)
        sum += counts
        lost += counts - words[COUNTER]
        together += words[TOGETHER]
      }
      const wrong = []
      if (together > 0) wrong.push(`two inside at once, ${together} time${together === 1 ? '' : 's'}`)
      if (lost !== 0) wrong.push(`${lost} of ${sum} counts lost`)
      if (stopped) wrong.push(`after ${sum} counts all wait for ever`)
      return wrong.length === 0 ? 'exact' : `**${wrong.join('; ')}**`
    }
  },

  death: {
    title: 'a holder dies (`terminate()`)',
    async run ({ lock, start }) {
      const member = await holder(start)
      const next = lock.acquire()
      if (await within(next, 100) !== null) return NOT_EXCLUDED
      const begin = performance.now()
      await member.end()
      const held = await within(next, EVER)
      if (held === null) return '**the next waits for ever**'
      const death = held.told ? ' and learns of the death' : '; **it does not learn of the death**'
      return `the next has it ${since(begin)}${death}`
    }
  },

  givingUp: {
    title: 'a waiter gives up after 50 ms',
    async run ({ lock, start }) {
      const member = await holder(start)
      // Main gives up, and behind it in the line stands another worker.
      const options = lock.patience && lock.patience(50)
      let ran = false
      const mine = lock.byCallback
        ? lock.execute(() => { ran = true })
        : lock.acquire(options).then(() => null, error => error)
      const behind = await begun(start, { act: 'acquire' })
      // Where it cannot give up, all that it can do is to stop waiting for the promise.
      const error = options ? await within(mine, EVER) : await sleep(50)
      if (options && !error) return NOT_EXCLUDED
      await sleep(50)
      member.ask({ act: 'release' })
      const next =
        (await within(behind.done, EVER)) === null
          ? '**the one behind it waits for ever**'
          : 'the one behind it gets the lock in its turn'
      if (error) return `${error.name}; ${next}`
      const runs = ran ? 'its callback runs all the same, later' : 'a promise that is no longer awaited gets the lock'
      return `it cannot: ${runs}; ${next}`
    }
  },

  idle: {
    title: 'main has nothing else to do than wait for it',
    async run ({ lock, start, print }) {
      const member = await holder(start, 300)
      // The other thread alone shall not keep the process.
      member.worker.unref()
      const begin = performance.now()
      let granted = false
      process.on('exit', () => {
        if (!granted) print(`**the process ends ${since(begin)}, without the lock**`)
      })
      await lock.acquire()
      granted = true
      return performance.now() - begin < 100 ? NOT_EXCLUDED : 'waits and gets it'
    }
  },

  idleWorker: {
    title: 'a worker has nothing else to do than wait for it',
    run: context => wanting(context, { act: 'acquire', alone: true })
  },

  blocking: {
    title: 'a worker blocks for it',
    blocks: true,
    run: context => wanting(context, { act: 'block' })
  },

  blockingMain: {
    title: 'main blocks for it',
    blocks: true,
    async run ({ lock, start }) {
      await holder(start, 300)
      const begin = performance.now()
      try {
        lock.block()
      } catch (error) {
        return `${error.name}: ${error.message}`
      }
      return performance.now() - begin < 100
        ? NOT_EXCLUDED
        : 'gets it in its turn; **its event loop is blocked until then**'
    }
  },

  itself: {
    title: 'a worker blocks for what it holds itself',
    blocks: true,
    async run ({ start }) {
      const member = start()
      await member.ask({ act: 'block' })
      return await within(member.ask({ act: 'blockAgain' }), 1000) || '**it hangs**'
    }
  }
}
