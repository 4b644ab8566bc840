'use strict'

// `ref` and `unref` of the promises of locks and their family: the promise that the user has, through all steps that it
// takes.

const assert = require('assert')
const { test } = require('../../harness')
const createPending = require('../../fixtures/pending')
const { run } = require('../../fixtures/programs')
const { turns } = require('../../fixtures/family-toolbox')
const { api } = require('../../subject')

const NAMES = createPending().forms.map(({ name }) => name)
const runOf = ({ forms }, name) => forms.find(form => form.name === name).run

for (const [name, before] of [...NAMES.map(name => [name, 0]), ...NAMES.map(name => [name, 1])]) {
  const when = before ? ', though it began after their first call' : ''
  test(`${name}: ref and unref say whether the promise was pending${when}`, async () => {
    const it = createPending()
    if (before) assert.strictEqual(api.unref(api.waitAsync(it.word, 0, 0).value), true)
    const promise = runOf(it, name)()
    for (let n = 0; n < 2; n++) {
      assert.strictEqual(api.unref(promise), true)
      assert.strictEqual(api.ref(promise), true)
      assert.strictEqual(api.ref(promise), true)
      await turns(1)
    }
    assert.strictEqual(api.unref(promise.then(() => {})), false)
    it.letGo()
    const value = await promise
    assert.strictEqual(api.ref(promise), false)
    assert.strictEqual(api.unref(promise), false)
    if (value instanceof api.UnlockToken) value.unlock()
    assert.strictEqual(it.lock.locked, false)
    assert.strictEqual(it.rwLock.locked, false)
  })
}

test('the table has each method that awaits, but clearAsync, which has no options', () => {
  const classes = ['AsyncLock', 'RwLock', 'Semaphore', 'Condition', 'Barrier', 'Latch', 'Queue']
  const objects = [...classes.map(name => [name, api[name].prototype]), ['locks', Object.getPrototypeOf(api.locks)]]
  const awaits = /Async$|^(use|execute(Locked|Shared)|request|onIdle)$/
  const methods = [].concat(...objects.map(([name, object]) => (
    Object.getOwnPropertyNames(object).filter(key => awaits.test(key)).map(key => `${name} ${key}`))))
  assert.deepStrictEqual(methods.filter(method => !NAMES.includes(method)), ['Queue clearAsync'])
})

/** What says 'ends' beside a thread that does not hold the loop: without one, nothing would hold it. */
const programs = {
  "a process ends although all forms are pending, if they are unref'd": [
    async ({ api, require, say }) => {
      for (const { run } of require('./pending')().forms) say(api.unref(run()))
    },
    NAMES.map(() => 'true')
  ],

  "a process waits for a promise that is ref'd again": [
    async ({ api, data: names, require, say }) => {
      const createPending = require('./pending')
      for (const name of names) {
        const it = createPending()
        const promise = it.forms.find(form => form.name === name).run()
        api.unref(promise)
        api.ref(promise)
        setTimeout(() => it.letGo(), 20).unref()
        await promise
        say(name)
      }
      process.exit()
    },
    NAMES
  ],

  "an unref'd promise stays so through its later steps: a Condition's promise that wants the lock again": [
    async scope => {
      const { api, say, startWorker, until } = scope
      const [lock, condition] = [new api.AsyncLock(), new api.Condition()]
      const token = await lock.lockAsync()
      const other = startWorker([lock, condition], ({ api, data: [lock, condition] }) => {
        // Takes the lock when the condition's promise has unlocked it, notifies, and keeps it.
        new api.AsyncLock(lock).lock()
        new api.Condition(condition).notify()
        setInterval(() => {}, 1000)
      })
      say(api.unref(condition.waitAsync(token)))
      await until(() => condition.waiters === 0 && lock.waiters === 1, 'the promise waits for the lock')
      other.worker.unref()
    },
    ['true']
  ],

  "an unref'd promise stays so between two steps: a predicate that is awaited": [
    async ({ api, newLock, say, sleep, until }) => {
      const [lock, condition] = [newLock(), new api.Condition()]
      let tries = 0
      const promise = condition.waitForAsync(lock.tryLock(), async () => {
        tries++
        await sleep(20)
        return false
      })
      say(api.unref(promise))
      await until(() => tries === 1 && !lock.locked, 'it waits')
      condition.notify()
      await until(() => tries === 2 && !lock.locked, 'it waits again')
    },
    ['true']
  ]
}

for (const name of Object.keys(programs)) {
  test(name, async t => {
    const [program, said] = programs[name]
    const { code, lines, stderr } = await run(t, { data: NAMES }, `async scope => {
      const other = scope.startWorker(({ post }) => { post('runs'); setInterval(() => {}, 1000) })
      await other.next()
      other.worker.unref()
      process.on('exit', () => scope.say('end'))
      await (${program})(scope)
    }`)
    assert.deepStrictEqual([code, lines, stderr], [0, [...said, 'end'], ''])
  })
}
