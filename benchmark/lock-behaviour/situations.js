'use strict'

// The situations that the locks are put into, each in a process of its own, and what is said of what happened there.

const { setTimeout: sleep } = require('timers/promises')
const { COUNTER, OWN, TOGETHER, countFor } = require('./thread')

/** What has not happened after so many milliseconds will not. */
const EVER = 3000

/** What the promise resolves to, null if it has not after so long. */
const within = (promise, milliseconds) => Promise.race([promise, sleep(milliseconds, null)])
const heard = worker => new Promise(resolve => worker.once('message', resolve))
const exited = worker => new Promise(resolve => worker.once('exit', resolve))
/** How long it is since `begin`, as exact as it says something on a machine that does other things, too. */
const since = begin => performance.now() - begin < 200 ? 'at once' : `after ${((performance.now() - begin) / 1000).toFixed(1)} s`

/** Milliseconds. */
const COUNTING = 1000
const ROUNDS = 10

const NOT_EXCLUDED = '**main has it at once, while a worker holds it**'

const situations = {
  exclusion: {
    title: `three threads with two tasks each count together, ${ROUNDS} times for ${COUNTING / 1000} s`,
    async run ({ lock, start }) {
      let [sum, lost, together, stopped] = [0, 0, 0, false]
      for (let round = 0; round < ROUNDS && !stopped; round++) {
        const words = new Int32Array(new SharedArrayBuffer(4 * (OWN + 3)))
        const workers = [1, 2].map(thread => start('count', { counter: words.buffer, thread, milliseconds: COUNTING }))
        await Promise.all(workers.map(heard))
        const ended = workers.map(heard)
        for (const worker of workers) worker.postMessage('go')
        const over = await within(Promise.all([countFor(COUNTING, lock, words, 0), ...ended]), COUNTING + EVER)
        const counts = words.slice(OWN).reduce((sum, count) => sum + count)
        sum += counts
        lost += counts - words[COUNTER]
        together += words[TOGETHER]
        stopped = over === null
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
      const worker = start('hold')
      await heard(worker)
      const next = lock.acquire()
      if (await within(next, 100) !== null) return NOT_EXCLUDED
      const begin = performance.now()
      await worker.terminate()
      const held = await within(next, EVER)
      if (held === null) return '**the next waits for ever**'
      return `the next has it ${since(begin)}${held.told ? ' and learns of the death' : '; **it does not learn of the death**'}`
    }
  },

  givingUp: {
    title: 'a waiter gives up after 50 ms',
    async run ({ lock, start }) {
      const worker = start('hold')
      await heard(worker)
      // Main gives up, and behind it in the line stands another worker.
      const options = lock.patience && lock.patience(50)
      let ran = false
      const mine = lock.byCallback
        ? lock.execute(() => { ran = true })
        : lock.acquire(options).then(() => null, error => error)
      const behind = start('awaitIt')
      await heard(behind)
      let error
      if (options) {
        error = await within(mine, EVER)
        if (!error) return NOT_EXCLUDED
      } else {
        // All that it can do is to stop waiting for the promise.
        await sleep(50)
      }
      const had = heard(behind)
      await sleep(50)
      worker.postMessage('release')
      const next = await within(had, EVER) === null ? '**the one behind it waits for ever**' : 'the one behind it gets the lock in its turn'
      if (error) return `${error.name}; ${next}`
      return `it cannot: ${ran ? 'its callback runs all the same, later' : 'a promise that is no longer awaited gets the lock'}; ${next}`
    }
  },

  idle: {
    title: 'main has nothing else to do than wait for it',
    async run ({ lock, start, print }) {
      const worker = start('hold', { milliseconds: 300 })
      await heard(worker)
      // The other thread alone shall not keep the process.
      worker.unref()
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
    async run ({ lock, start }) {
      const { release } = await lock.acquire()
      const worker = start('awaitIt', { alone: true })
      await heard(worker)
      const had = Promise.race([heard(worker), exited(worker).then(() => 'ended')])
      const early = await within(had, 500)
      if (early === 'ended') return '**it ends at once, without the lock**'
      if (early !== null) return NOT_EXCLUDED.replace('main', 'it').replace('a worker', 'main')
      release()
      const late = await within(had, EVER)
      return late === 'had it' ? 'waits and gets it' : '**it never gets it**'
    }
  },

  blocking: {
    title: 'a worker blocks for it',
    async run ({ lock, start }) {
      if (!lock.block) return 'has no such form'
      const { release } = await lock.acquire()
      const worker = start('block')
      await heard(worker)
      const had = heard(worker)
      if (await within(had, 100) !== null) return NOT_EXCLUDED
      release()
      if (await within(had, EVER) === null) return '**it waits for ever**'
      // And one that never gets it.
      await lock.acquire()
      const other = start('block')
      await heard(other)
      await sleep(100)
      const begin = performance.now()
      if (await within(other.terminate(), EVER) === null) return 'gets it in its turn; **while it waits, it cannot be terminated**'
      return `gets it in its turn; terminated while it waits, it ends ${since(begin)}`
    }
  },

  blockingMain: {
    title: 'main blocks for it',
    async run ({ lock, start }) {
      if (!lock.block) return 'has no such form'
      const worker = start('hold', { milliseconds: 300 })
      await heard(worker)
      const begin = performance.now()
      try {
        lock.block()
      } catch (error) {
        return `${error.name}: ${error.message}`
      }
      return performance.now() - begin < 100 ? NOT_EXCLUDED : 'gets it in its turn; **its event loop stands still until then**'
    }
  },

  itself: {
    title: 'a worker blocks for what it holds itself',
    async run ({ lock, start }) {
      if (!lock.block) return 'has no such form'
      const worker = start('blockTwice')
      await heard(worker)
      return await within(heard(worker), 1000) || '**it hangs**'
    }
  }
}

module.exports = situations
