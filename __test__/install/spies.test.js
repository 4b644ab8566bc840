'use strict'

// Exports that are frozen, spied upon, subclassed or looked at: before and after their code is loaded they are objects
// like any others.

const assert = require('assert')
const path = require('path')
const { test } = require('../harness')
const { folderWithPackage } = require('../fixtures/entries/folders')
const { NAMES } = require('../fixtures/every-class')
const programsBy = require('../fixtures/printed-value')
const { runForJSON, runNode } = require('../fixtures/run-node')
const size = require('../fixtures/size')

const MAJOR = Number(process.versions.node.split('.')[0])
const ENTRIES = ['index', 'force', 'keep-alive', 'pure', 'web-locks']
const CLASSES = NAMES.concat('UnlockToken', 'Lock', 'LockManager')
const root = path.join(__dirname, '..', '..')
const entryFile = (name) => JSON.stringify(path.join(root, name))

// ——— frozen, sealed, behind a proxy ———

const USE = `
  const use = (api) => {
    const read = []
    for (const name in api) read.push(typeof api[name])
    const lock = new api.AsyncLock(new SharedArrayBuffer(4))
    const token = lock.tryLock()
    const array = new Int32Array(new SharedArrayBuffer(4))
    return [read.length, read.filter((type) => type === 'undefined').length, token.unlock(),
      api.waiterCount(array, 0), api.notify(array, 0), typeof api.snapshot().held,
      api.locks === api.locks, api.AsyncLock === api.AsyncLock, typeof api.engine]
  }
`
const USED = [23, 0, true, 0, 0, 'object', true, true, 'string']

const HOLDS = {
  freeze: 'Object.freeze(api)',
  seal: 'Object.seal(api)',
  preventExtensions: 'Object.preventExtensions(api)',
  'a proxy': 'new Proxy(api, {})',
  'a proxy that lets nothing be defined': 'new Proxy(api, { defineProperty: () => false, set: () => false })',
  'an heir': 'Object.create(api)',
  'the heir of what is frozen': 'Object.create(Object.freeze(api))',
  'a copy': 'Object.assign({}, api)',
  'its descriptors': 'Object.defineProperties({}, Object.getOwnPropertyDescriptors(api))'
}
for (const [place, name] of ENTRIES.entries()) {
  test(`/${name}: its exports work when they are frozen, sealed or copied before they are used`, async t => {
    for (const how of Object.keys(HOLDS).filter((_, n) => size.has(3, n + place))) {
      const seen = await runForJSON(t, [
        '-e',
        `const api = require(${entryFile(name)}); ${USE} console.log(JSON.stringify(use(${HOLDS[how]})))`
      ])
      assert.deepStrictEqual(seen, USED, how)
    }
  })
}

test('an export of frozen exports cannot be replaced, one of others can, before it is used', async t => {
  for (const [place, name] of ENTRIES.entries()) {
    const frozen = `
      'use strict'
      const api = require(${entryFile(name)})
      const names = ['wait', 'install', 'AsyncLock', 'locks', 'snapshot']
      const replace = (object) => names.map((name) => {
        try { object[name] = 1; return object[name] } catch (error) { return error.name }
      })
      const frozen = replace(Object.freeze(api))
      console.log(JSON.stringify([frozen, names.map((name) => api[name] === 1)]))`
    const open = `
      const api = require(${entryFile(name)})
      api.AsyncLock = 1
      api.wait = 2
      console.log(JSON.stringify([api.AsyncLock, api.wait, typeof api.notify]))`
    for (const [n, [source, told]] of [
      [frozen, [new Array(5).fill('TypeError'), new Array(5).fill(false)]], [open, [1, 2, 'function']]
    ].entries()) {
      if (size.has(2, n + place)) assert.deepStrictEqual(await runForJSON(t, ['-e', source]), told, name)
    }
  }
})

// ——— lazy classes: as `import` gives them, before their first use ———

/** Runs a program with lazy classes, all unused; gives its output. */
const late = (t, source) => runForJSON(t, ['-e', `
  const { lazy: late } = require(${entryFile('lib/entry-point')})
  const { AsyncLock, RwLock, UnlockToken, LockManager, Lock } = late
  const sab = () => new SharedArrayBuffer(4)
  const tell = (value) => { console.log(JSON.stringify(value)) }
  const works = () => {
    const lock = new AsyncLock(sab())
    const token = lock.tryLock()
    return [lock.locked, token instanceof UnlockToken, token.unlock(),
      typeof lock.lock, AsyncLock.LOCKED, lock instanceof AsyncLock]
  }
  ${source}`])
const program = programsBy(late)

const WORKS = [true, true, true, 'function', 1, true]

/** Spies, by how they put a function in the place of a method: each returns what undoes it. */
const SPIES = `
  const spies = {
    'along the chain, as node:test': (object, name, fn) => {
      let host = object
      let descriptor
      while (host !== null && descriptor === undefined) {
        descriptor = Object.getOwnPropertyDescriptor(host, name)
        host = Object.getPrototypeOf(host)
      }
      if (typeof descriptor.value !== 'function') throw new Error('no method')
      const { configurable, enumerable, writable } = descriptor
      Object.defineProperty(object, name, { configurable, enumerable, writable, value: fn })
      return () => { Object.defineProperty(object, name, descriptor) }
    },
    'own or not, as sinon': (object, name, fn) => {
      const own = Object.prototype.hasOwnProperty.call(object, name)
      const ownOf = (host) => Object.getOwnPropertyDescriptor(host, name)
      let host = object
      while (host !== null && ownOf(host) === undefined) host = Object.getPrototypeOf(host)
      const descriptor = ownOf(host)
      Object.defineProperty(object, name, Object.assign({}, descriptor, { value: fn }))
      return () => {
        if (own) Object.defineProperty(object, name, descriptor)
        else delete object[name]
      }
    },
    'by assignment, as Jest': (object, name, fn) => {
      const own = Object.prototype.hasOwnProperty.call(object, name)
      const original = object[name]
      if (typeof original !== 'function') throw new Error('no method')
      object[name] = fn
      return () => {
        if (own) object[name] = original
        else delete object[name]
      }
    },
    'by name, as automatic mocks': (object, name, fn) => {
      const own = Object.getOwnPropertyDescriptor(object, name)
      const names = []
      let each = object
      while (each !== Object.prototype && each !== Function.prototype) {
        names.push(...Object.getOwnPropertyNames(each))
        each = Object.getPrototypeOf(each)
      }
      if (!names.includes(name)) throw new Error('no method')
      object[name] = fn
      return () => { if (own) Object.defineProperty(object, name, own); else delete object[name] }
    },
    'without a look at the method': (object, name, fn) => {
      const own = Object.getOwnPropertyDescriptor(object, name)
      object[name] = fn
      return () => { if (own) Object.defineProperty(object, name, own); else delete object[name] }
    }
  }
`

test('lazy classes: a spy on a method before the first use is called, and restores it', async t => {
  const { names } = await late(t, `${SPIES} tell({ names: Object.keys(spies) })`)
  for (const [place, name] of names.entries()) {
    for (const when of ['before', 'after'].filter((_, n) => size.has(2, n + place))) {
      const seen = await late(t, `${SPIES}
        if (${JSON.stringify(when)} === 'after') works()
        const spy = spies[${JSON.stringify(name)}]
        const calls = []
        const undo = [
          spy(AsyncLock.prototype, 'tryLock', function () { calls.push(this instanceof AsyncLock) }),
          spy(UnlockToken.prototype, 'unlock', () => { calls.push('unlock') }),
          spy(LockManager.prototype, 'query', () => { calls.push('query') }),
          spy(AsyncLock, 'create', () => { calls.push('create') })
        ]
        const lock = new AsyncLock(sab())
        lock.tryLock()
        AsyncLock.create()
        const token = new RwLock(sab()).tryLock()
        token.unlock()
        late.locks.query()
        undo.forEach((step) => step())
        token.unlock()
        tell([calls, works(), AsyncLock.create().locked, typeof late.locks.query])`)
      assert.deepStrictEqual(
        seen,
        [[true, 'create', 'unlock', 'query'], WORKS, false, 'function'],
        `${name}, ${when} the first use`
      )
    }
  }
})

test('lazy classes: frozen before the first use, they work', async t => {
  for (const freeze of ['Object.freeze', 'Object.seal', 'Object.preventExtensions', 'deeply']) {
    const seen = await late(t, `
      const deeply = (object) => {
        if (object === null || object === Object.prototype || object === Function.prototype) return
        Object.freeze(object)
        deeply(Object.getPrototypeOf(object))
      }
      for (const value of Object.values(late)) {
        if (typeof value === 'function' && value.prototype !== undefined) ${freeze}(value)
      }
      if (${freeze !== 'deeply'}) for (const Class of [AsyncLock, UnlockToken, LockManager]) ${freeze}(Class.prototype)
      tell([works(), typeof LockManager.prototype.query])`)
    assert.deepStrictEqual(seen, [WORKS, 'function'], freeze)
  }
})

test('lazy classes: frozen after their first use, they work; an instance has the prototype of its class', async t => {
  const seen = await late(t, `
    const make = {
      AsyncLock: [{ name: 'a' }], Barrier: [{ parties: 2 }], Condition: [], Latch: [{ count: 2 }], RwLock: [],
      Queue: [{ capacity: 2, messageSize: 8 }], Semaphore: [{ permits: 3 }]
    }
    const made = () => Object.keys(make).map((name) => {
      const thing = late[name].create(...make[name])
      return [name, Object.getPrototypeOf(thing) === late[name].prototype, Object.keys(thing)]
    })
    const before = made()
    const request = () => late.locks.request('a', (lock) => (
      [lock.name, Object.getPrototypeOf(lock) === Lock.prototype, Reflect.ownKeys(lock).length]))
    request().then(async (lock) => {
      works()
      for (const Class of Object.values(late)) {
        if (typeof Class === 'function' && Class.prototype !== undefined) Object.freeze(Class.prototype)
      }
      tell([before, made(), lock, await request(), works()])
    })`)
  const [before, after, lock, another, ...rest] = seen
  assert.deepStrictEqual(after, before)
  assert.deepStrictEqual(before.filter(([, isOwn]) => !isOwn), [])
  assert.deepStrictEqual([lock, another, rest], [['a', true, 1], ['a', true, 1], [WORKS]])
})

const noNames = MAJOR < 12 && 'this Node\'s messages have no names of constructors'
test('lazy classes: engines name the instances by their class', { skip: noNames }, async t => {
  const names = await late(t, `
    const { Queue, Semaphore } = late
    const instances = [new AsyncLock(), new Semaphore(), Queue.create({ capacity: 1, messageSize: 1 })]
    late.locks.request('a', (lock) => {
      tell(instances.concat(lock).map((instance) => {
        instance.self = instance
        try { JSON.stringify(instance) } catch ({ message }) { return /constructor '(\\w+)'/.exec(message)[1] }
      }).concat([Semaphore, Lock].map((Class) => {
        try { Class() } catch ({ message }) { return /constructor (\\w+)/.exec(message)[1] }
      })))
    })`)
  assert.deepStrictEqual(names, ['AsyncLock', 'Semaphore', 'Queue', 'Lock', 'Semaphore', 'Lock'])
})

program('lazy classes: subclasses that are declared before the first use')(
  `
  class Mine extends AsyncLock {
    constructor (...args) {
      super(...args)
      this.mine = true
    }

    tryLock () { return super.tryLock() }
    static make () { return super.create() }
  }
  class Token extends UnlockToken {}
  function Old (buffer) { return Reflect.construct(AsyncLock, [buffer], new.target || Old) }
  Old.prototype = Object.create(AsyncLock.prototype)
  Object.setPrototypeOf(Old, AsyncLock)
  const locks = [new Mine(sab()), Mine.make(), new Old(sab()), Old(sab()), Reflect.construct(AsyncLock, [sab()], Mine)]
  tell([
    locks.map((lock) => [
      lock.tryLock().unlock(), lock instanceof AsyncLock, lock instanceof Mine, lock.mine === true,
      Object.keys(lock).length
    ]),
    new Token().unlock(), Mine.LOCKED, Mine.name, Token.length, works()])`
).gives([
  [
    [true, true, true, true, 6], [true, true, true, true, 6], [true, true, false, false, 5],
    [true, true, false, false, 5], [true, true, true, false, 5]
  ],
  false,
  1,
  'Mine',
  0,
  WORKS
])

test('lazy classes: a constructor behind a proxy or a function, as tracers wrap it', async t => {
  for (const wrap of [
    'new Proxy(AsyncLock, { construct: (target, args, newTarget) => Reflect.construct(target, args, newTarget) })',
    'new Proxy(AsyncLock, { construct: (target, args) => new target(...args) })',
    `Object.setPrototypeOf(Object.assign(function (...args) {
      return Reflect.construct(AsyncLock, args, new.target)
    }, { prototype: AsyncLock.prototype }), AsyncLock)`,
    'new Proxy(AsyncLock, { get: Reflect.get, has: Reflect.has, getPrototypeOf: Reflect.getPrototypeOf })'
  ]) {
    assert.deepStrictEqual(
      await late(
        t,
        `
      const Wrapped = ${wrap}
      const lock = new Wrapped(sab())
      tell([lock.tryLock().unlock(), lock instanceof AsyncLock, Wrapped.LOCKED, Wrapped.byteLength, works()])`
      ),
      [true, true, 1, 4, WORKS],
      wrap
    )
  }
})

test(
  'mock.method of node:test, before the first use of what is imported',
  { skip: MAJOR < 20 && 'this Node has no mocks' },
  async t => {
    const folder = folderWithPackage(t)
    const { stdout, stderr, code } = await runNode(
      t,
      [
        '--input-type=module',
        '-e',
        `
    import { mock } from 'node:test'
    import { AsyncLock, locks } from 'atomics-waitasync/pure'
    const spies = [
      mock.method(AsyncLock.prototype, 'tryLock'), mock.method(AsyncLock, 'create'), mock.method(locks, 'query'),
      mock.getter(AsyncLock.prototype, 'locked', () => 'mocked')
    ]
    const calls = () => spies.map((spy) => spy.mock.callCount())
    const lock = AsyncLock.create()
    const seen = [lock.tryLock().locked, lock.locked, typeof await locks.query(), calls()]
    mock.restoreAll()
    console.log(JSON.stringify([...seen, lock.locked, lock.tryLock(), AsyncLock.create().locked, calls()]))`
      ],
      { cwd: folder }
    )
    assert.strictEqual(code, 0, stderr)
    assert.deepStrictEqual(JSON.parse(stdout), [
      true, 'mocked', 'object', [1, 1, 1, 1], true, null, false, [1, 1, 1, 1]
    ])
  }
)

// ——— looked at ———

test('util.inspect shows whatever has to do with a class, and never throws', async t => {
  for (const entry of ['pure', 'lib/entry-point']) {
    const seen = await runForJSON(t, ['-e', `
      const util = require('util')
      const loaded = require(${entryFile(entry)})
      const api = loaded.lazy || loaded
      const names = ${JSON.stringify(CLASSES)}
      const thrown = []
      const all = [
        undefined, { depth: 0 }, { depth: -1 }, { showHidden: true }, { showProxy: true }, { getters: true },
        { customInspect: false }
      ]
      const look = (what, value) => {
        for (const options of all) {
          try {
            if (util.inspect(value, options) === '') thrown.push(what)
          } catch (error) {
            thrown.push(what + ': ' + error.message)
          }
        }
      }
      const around = (what, value) => {
        look(what, value)
        look('the heir of ' + what, Object.create(value))
        look('a proxy of ' + what, new Proxy(value, {}))
        look('a copy of ' + what, Object.create(Object.getPrototypeOf(value), Object.getOwnPropertyDescriptors(value)))
        const bare = Object.assign(Object.create(value), { constructor: undefined })
        look('without a constructor, ' + what, bare)
        bare.self = bare
        look('with itself, ' + what, bare)
        const throwing = { get () { throw new Error('mine') } }
        look('a getter that throws in ' + what, Object.defineProperty(Object.create(value), 'locked', throwing))
      }
      for (const name of names) {
        look(name, api[name])
        around(name + '.prototype', api[name].prototype)
        around('a subclass of ' + name, (class extends api[name] {}).prototype)
        for (const other of [null, undefined, 1, 'x', {}, [], () => {}, Object.create(null)]) {
          const custom = api[name].prototype[util.inspect.custom]
          if (other === null || other === undefined || custom === undefined) continue
          const odd = Object(other)
          try { odd[util.inspect.custom] = custom } catch (_) {}
          look(name + ' on ' + typeof other, odd)
        }
      }
      around('locks', api.locks)
      const lock = new api.AsyncLock(new SharedArrayBuffer(4), { name: 'named' })
      const token = lock.tryLock()
      const writer = new api.RwLock(new SharedArrayBuffer(4)).tryLock()
      around('a lock', lock)
      around('a token', token)
      around('a writer', writer)
      around('a reader', writer.downgrade())
      api.locks.request('x', (granted) => {
        around('a Lock', granted)
        const shown = [lock, token, granted, Object.create(api.Latch.prototype), api.AsyncLock]
          .map((value) => util.inspect(value))
        const ofClass = shown.pop()
        console.log(JSON.stringify([thrown, ...shown, ofClass.slice(0, 17), /extends/.test(ofClass)]))
      })`])
    assert.deepStrictEqual(seen[0], [], entry)
    assert.deepStrictEqual(seen.slice(1, 5), [
      "AsyncLock { name: 'named', locked: true, holder: 'thread 0', waiters: 0 }",
      'UnlockToken { locked: true, ownerDied: false }',
      "Lock { name: 'x', mode: 'exclusive', ownerDied: false }",
      'Latch {}'
    ])
    if (MAJOR >= 12) assert.deepStrictEqual(seen.slice(5), ['[class AsyncLock]', false])
  }
})
