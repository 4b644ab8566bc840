'use strict'

// An event loop that runs dry with a promise pending: nothing can settle it any more, and a warning says so.

const assert = require('assert')
const { test } = require('../../harness')
const { needsContexts } = require('../../fixtures/contexts')
const { run } = require('../../fixtures/programs')
const { runNode } = require('../../fixtures/run-node')

/** Runs `fn` in a process that writes its warnings, too; gives the lines. */
async function linesOf (t, fn) {
  const { code, signal, lines, stderr } = await run(t, `async scope => {
    process.on('warning', ({ name, code, message }) => { if (code) scope.say(name + ' ' + code + ': ' + message) })
    await (${fn})(scope)
  }`)
  assert.deepStrictEqual([code, signal], [0, null], stderr)
  return lines
}

const PENDING = 'Warning ATOMICS_WAITASYNC_PENDING: A promise that waits for '
const DRY = ' is pending, and the event loop of this thread has nothing left to do that could settle it.'
const ITSELF = ' This thread holds it itself.'

test('executeLocked within its own callback is warned of, before the program ends', async t => {
  const lines = await linesOf(t, ({ newLock, say }) => {
    const lock = newLock()
    process.on('exit', () => say('end'))
    lock.executeLocked(() => lock.executeLocked(() => say('never')))
  })
  assert.deepStrictEqual(lines, [PENDING + 'an AsyncLock' + DRY + ITSELF, 'end'])
})

test('a lock that is awaited with a signal that holds no loop is warned of', async t => {
  const lines = await linesOf(t, ({ heldLock, say }) => {
    const signal = { aborted: false, addEventListener: (_, listener) => setTimeout(listener, 20000).unref() }
    heldLock().lockAsync({ signal }).then(say, say)
  })
  assert.deepStrictEqual(lines, [PENDING + 'an AsyncLock' + DRY + ITSELF])
})

test('the warning names each promise by its kind, and says whether this thread holds the lock itself', async t => {
  const lines = await linesOf(t, ({ api, newLock }) => {
    const taken = (lock, method) => {
      lock[method]()
      return lock
    }
    // By hand, as code on the bare word does it.
    const foreign = newLock()
    foreign.i32a[0] = 1
    foreign.lockAsync()
    taken(new api.RwLock(), 'tryLockShared').executeLocked(() => {})
    taken(new api.RwLock(), 'tryLock').lockSharedAsync()
    new api.Semaphore().acquireAsync()
    const semaphore = new api.Semaphore()
    semaphore.release()
    semaphore.use(1, () => semaphore.use(1, () => {}))
    new api.Condition().waitAsync(newLock().tryLock())
    api.Barrier.create({ parties: 2 }).waitAsync()
    api.Latch.create({ count: 1 }).waitAsync()
    const queues = [1, 2].map(() => api.Queue.create({ capacity: 1, messageSize: 8 }))
    queues[0].takeAsync()
    queues[1].tryPut(1)
    queues[1].putAsync(2)
  })
  const nouns = `an AsyncLock
an RwLock (exclusive), itself
an RwLock (shared), itself
permits of a Semaphore
permits of a Semaphore, itself
a Condition
the other parties of a Barrier
a Latch
a message of a Queue
room in a Queue`.split('\n')
  const warningOf = ([noun, itself]) => PENDING + noun + DRY + (itself ? ITSELF : '')
  assert.deepStrictEqual(lines, nouns.map(noun => warningOf(noun.split(', '))))
})

const NESTED = `({ nested, newLock }) => {
  const [a, b] = ['a', 'b'].map(newLock)
  nested(a, b)
  nested(b, a)
}`

/** Gives the warnings of a program whose event loop runs dry, as Node writes them, without times and positions. */
async function warningsOf (t, after, fn) {
  const { code, stderr } = await run(t, { after }, fn)
  assert.strictEqual(code, 0, stderr)
  const plain = stderr.replace(/\d+(\.\d+)? (ms|s)\b/g, 'T').replace(/\(?[^ (]*\.js:\d+:\d+\)?/g, 'P')
  return plain.split(/^\(node:\d+\) /m).slice(1).map(text => text.replace(/\n\(Use `node.*`*/, '').trim())
}

const warned = (name, more = '') =>
  `[ATOMICS_WAITASYNC_PENDING] Warning: A promise that waits for AsyncLock "${name}"${DRY}${ITSELF}${more}`

test('with reports of stalls the warning has the lines and the cycle at once', needsContexts, async t => {
  const [first, second, ...others] = await warningsOf(t, 1e6, NESTED)
  const places = first.split('\n').slice(2)
  assert.ok(first.startsWith(warned('b', '\nThese tasks of one thread probably wait for one another:\n')), first)
  assert.deepStrictEqual(places.length, 2, first)
  const link = /^ {2}the main thread has awaited AsyncLock "[ab]" for T at P, held for T by the main thread, taken at /
  for (const line of places) assert.ok(link.test(line), line)
  assert.deepStrictEqual([second, others], [warned('a'), []])
})

test('with reports of stalls, the warning of a wait on no cycle has its holder and both lines', async t => {
  const [warning, ...others] = await warningsOf(t, 1e6, ({ newLock }) => {
    const lock = newLock('a')
    ;(function takes () { lock.tryLock() })()
    ;(function waits () { lock.lockAsync() })()
  })
  const expected = ['A promise of the main thread has been pending for T waiting for AsyncLock "a":',
    '  held for T by the main thread, taken at takes P; it is the same thread', '    at waits P']
  assert.deepStrictEqual(warning.split('\n').slice(0, 4), [warned('a'), ...expected])
  assert.deepStrictEqual(others, [])
})

test('without reports of stalls, the first warning says how to get the lines', async t => {
  const hint = '\nATOMICS_WAITASYNC_STALL=<milliseconds> in the environment adds the lines that wait and that hold.'
  assert.deepStrictEqual(await warningsOf(t, undefined, NESTED), [warned('b', hint), warned('a')])
})

test('the warning has the names', async t => {
  const lines = await linesOf(t, ({ api: { Condition, Latch }, heldLock, newLock }) => {
    heldLock('the lock').lockAsync()
    Latch.create({ count: 1, name: 'the latch' }).waitAsync()
    Condition.create({ name: 'the condition' }).waitAsync(newLock().tryLock())
  })
  const named = ['AsyncLock "the lock"', 'Latch "the latch"', 'Condition "the condition"'].map(
    noun => PENDING + noun + DRY
  )
  assert.deepStrictEqual(lines.map(line => line.replace(ITSELF, '')), named)
})

test('each lock is warned of once, for many promises and when the loop runs dry again', async t => {
  const lines = await linesOf(t, ({ heldLock, say }) => {
    const lock = heldLock()
    for (let n = 0; n < 5; n++) lock.lockAsync()
    let rest = 3
    const goOn = () => { if (rest-- > 0) setImmediate(() => say('again')) }
    process.on('warning', () => {
      goOn()
      process.on('beforeExit', goOn)
    })
  })
  assert.deepStrictEqual(lines, [PENDING + 'an AsyncLock' + DRY + ITSELF, 'again', 'again', 'again'])
})

test('what a later listener of beforeExit settles is not warned of', async t => {
  const lines = await linesOf(t, ({ newLock, say }) => {
    const lock = newLock()
    const token = lock.tryLock()
    lock.lockAsync().then(() => say('locked'))
    process.once('beforeExit', () => token.unlock())
  })
  assert.deepStrictEqual(lines, ['locked'])
})

for (const [when, register] of [
  ['an earlier listener', (lock, listener) => {
    process.once('beforeExit', listener)
    return lock.tryLock()
  }],
  ['a later listener', (lock, listener) => {
    const token = lock.tryLock()
    process.once('beforeExit', listener)
    return token
  }],
  ['a later one that awaits', (lock, listener) => {
    const token = lock.tryLock()
    process.once('beforeExit', async () => {
      for (let n = 0; n < 20; n++) await n
      listener()
    })
    return token
  }]
]) {
  test(`${when} of beforeExit begins what will settle it: no warning, unless it does not`, async t => {
    const lines = await linesOf(t, `async ({ newLock, say }) => {
      const [lock, other] = [newLock(), newLock()]
      const token = (${register})(lock, () => {
        say('begins')
        setTimeout(() => token.unlock(), 20)
      })
      other.tryLock()
      other.lockAsync()
      lock.lockAsync().then(() => say('locked'))
    }`)
    // The other one is warned of when the event loop has run dry again.
    assert.deepStrictEqual(lines, ['begins', 'locked', PENDING + 'an AsyncLock' + DRY + ITSELF])
  })
}

test('of many locks ten are warned of one by one, and the others are counted', async t => {
  const lines = await linesOf(t, ({ api }) => {
    for (let n = 0; n < 500; n++) {
      api.locks.request('name ' + n, () => new Promise(() => {}))
      api.locks.request('name ' + n, () => {})
    }
  })
  assert.strictEqual(lines.length, 11)
  assert.strictEqual(lines[0], PENDING + 'the lock named "name 0"' + DRY + ITSELF)
  assert.strictEqual(lines[10], 'Warning ATOMICS_WAITASYNC_PENDING: 490 more promises that wait for other locks are ' +
  'pending, and the event loop of this thread has nothing left to do that could settle them.')
})

test('promises that are unref\'d, have a timeout or are settled in time are not listed', async t => {
  const lines = await linesOf(t, ({ api, newLock, say }) => {
    const lock = newLock()
    const token = lock.tryLock()
    const newLatch = () => api.Latch.create({ count: 1 })
    say(api.unref(newLatch().waitAsync()))
    newLatch().waitAsync({ timeout: 50 }).catch(error => say(error.name))
    lock.lockAsync().then(() => say('locked'))
    setTimeout(() => token.unlock(), 20)
  })
  // In which order is a matter of how busy the machine is.
  assert.deepStrictEqual(lines.sort(), ['TimeoutError', 'locked', 'true'])
})

test('a forgotten wait of Atomics.waitAsync is not warned of', async t => {
  const lines = await linesOf(t, ({ Atomics, words, say }) => { Atomics.waitAsync(words(1), 0, 0).value.then(say) })
  assert.deepStrictEqual(lines, [])
})

test('a worker whose loop runs dry warns, too', async t => {
  const pure = JSON.stringify(require.resolve('../../../pure'))
  const source = `
    const { AsyncLock } = require(${pure})
    const lock = new AsyncLock(new SharedArrayBuffer(4))
    lock.tryLock()
    lock.lockAsync()
    process.on('warning', ({ code }) => console.log(code))`
  const program = `new (require('worker_threads').Worker)(${JSON.stringify(source)}, { eval: true })`
  const { code, stdout } = await runNode(t, ['-e', program])
  assert.strictEqual(code, 0)
  assert.ok(stdout.split('\n').includes('ATOMICS_WAITASYNC_PENDING'), stdout)
})
