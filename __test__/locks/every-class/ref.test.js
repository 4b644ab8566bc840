'use strict'

// `ref` and `unref` of the promises of locks and their family: the promise that the user has, through all steps that it takes.

const assert = require('assert')
const { test } = require('../../harness')
const createPending = require('../../fixtures/pending')
const { runChild } = require('../../fixtures/queue-toolbox')
const { turns } = require('../../fixtures/family-toolbox')
const { api } = require('../../subject')

const NAMES = createPending().forms.map(({ name }) => name)
const runOf = ({ forms }, name) => forms.find(form => form.name === name).run

for (const [name, before] of [...NAMES.map(name => [name, 0]), ...NAMES.map(name => [name, 1])]) {
  test(`${name}: ref and unref say whether the promise was pending${before ? ', though it began after their first call' : ''}`, async () => {
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

  test(`${name}: a process ends although it is pending, if it is unref'd, and waits for it if it is ref'd again`, async t => {
    const source = `async scope => {
      const { api, require, say, startWorker, until, words } = scope
      const it = require('./pending')()
      const array = words(1)
      // Without another thread that might settle it, nothing would hold the loop.
      const other = startWorker(({ data }) => { data[0] = 1; setInterval(() => {}, 1000) }, array)
      await until(() => array[0] === 1)
      other.worker.unref()
      const promise = (${runOf})(it, scope.data.name)()
      promise.then(() => say('settled'))
      api.unref(promise)
      if (scope.data.refed) {
        api.ref(promise)
        setTimeout(() => it.letGo(), 50).unref()
        promise.then(() => process.exit())
      }
      process.on('exit', () => say('end'))
    }`
    for (const refed of [false, true]) {
      const { code, lines, stderr } = await runChild(t, source, { name, refed })
      assert.strictEqual(stderr, '')
      assert.strictEqual(code, 0)
      assert.deepStrictEqual(lines, refed ? ['settled', 'end'] : ['end'])
    }
  })
}

test('an unref\'d promise stays so through its later steps: a Condition\'s promise that wants the lock again', async t => {
  const { code, lines, stderr } = await runChild(t, async ({ api, say, startWorker, until, words }) => {
    const array = words(3)
    const lock = new api.AsyncLock(array.buffer)
    const token = await lock.lockAsync()
    const other = startWorker(({ api, data }) => {
      const lock = new api.AsyncLock(data.buffer)
      // Takes the lock when the condition's promise has unlocked it, notifies, and keeps it.
      lock.lock()
      data[2] = new api.Condition(data.buffer, { byteOffset: 4 }).notify()
      setInterval(() => {}, 1000)
    }, array)
    const promise = new api.Condition(array.buffer, { byteOffset: 4 }).waitAsync(token)
    say(api.unref(promise))
    await until(() => array[2] === 1 && api.waiterCount(array, 0) === 1, 'the promise waits for the lock')
    other.worker.unref()
    process.on('exit', () => say('end'))
  })
  assert.strictEqual(stderr, '')
  assert.strictEqual(code, 0)
  assert.deepStrictEqual(lines, ['true', 'end'])
})

test('an unref\'d promise stays so between two steps: a predicate that is awaited', async t => {
  const { code, lines, stderr } = await runChild(t, async ({ api, say, sleep, startWorker, until, words }) => {
    const array = words(1)
    const other = startWorker(({ data }) => { data[0] = 1; setInterval(() => {}, 1000) }, array)
    await until(() => array[0] === 1)
    const [lock, condition] = [new api.AsyncLock(new SharedArrayBuffer(4)), new api.Condition(new SharedArrayBuffer(4))]
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
    other.worker.unref()
    process.on('exit', () => say('end'))
  })
  assert.strictEqual(stderr, '')
  assert.strictEqual(code, 0)
  assert.deepStrictEqual(lines, ['true', 'end'])
})
