'use strict'
// timeout: 180

// Places of calls: each has its own stack, and code of the program that makes stacks is as before.

const assert = require('assert')
const fs = require('fs')
const path = require('path')
const { test } = require('../../harness')
const { scratchFolder } = require('../../fixtures/entries/folders')
const { MAJOR } = require('../../fixtures/queue-toolbox')
const { CODE, NEVER, run, toldBy } = require('../../fixtures/programs')
const { runNode } = require('../../fixtures/run-node')

test('a place that was met before is the same, and no other place is taken for it', async t => {
  const found = await toldBy(t, ({ api, require, tell }) => {
    const lock = new api.AsyncLock()
    const placeNow = () => {
      const token = lock.tryLock()
      const [{ taken }] = api.snapshot().held
      token.unlock()
      return taken
    }
    const one = () => placeNow()
    const other = () => placeNow()
    const twice = () => [placeNow(), placeNow()]
    const through = fn => fn()
    const evaluated = name => eval(`(function ${name} (placeNow) { return placeNow() })`) // eslint-disable-line no-eval
    const [first, second] = [evaluated('aa'), evaluated('bb')]
    // Two scripts with one name, and the same positions.
    const script = name => require('vm').runInThisContext(`(function ${name} (placeNow) { return placeNow() })`)
    const builtIn = name => [1][name](() => { found = placeNow() })
    let found
    const ways = {
      one,
      other,
      'twice 1': () => twice()[0],
      'twice 2': () => twice()[1],
      'through 1': () => through(one),
      'through 2': () => through(other),
      aa: () => first(placeNow),
      bb: () => second(placeNow),
      cc: () => script('cc')(placeNow),
      dd: () => script('dd')(placeNow),
      forEach: () => builtIn('forEach') || found,
      map: () => builtIn('map') && found,
      deep: () => { const go = n => n === 0 ? placeNow() : go(n - 1); return go(40) }
    }
    for (let n = 0; n < 3; n++) {
      for (const way of Object.keys(ways)) tell([way, ways[way]()])
      // Each called at one place, and at the same position of a script of the same name.
      const pairs = [['ee', evaluated('ee')], ['ff', evaluated('ff')], ['gg', script('gg')], ['hh', script('hh')]]
      for (const [name, fn] of pairs) tell([name, fn(placeNow)])
    }
  })
  const known = new Map()
  for (const [way, taken] of found) {
    if (known.has(way)) assert.strictEqual(taken, known.get(way), way)
    known.set(way, taken)
    if (/^[a-zA-Z]+$/.test(way) && way !== 'deep') {
      assert.ok(new RegExp(` at (Object\\.|Array\\.)?${way} `).test(taken), taken)
    }
  }
  const texts = [...known.values()]
  assert.strictEqual(new Set(texts).size, texts.length, texts.join('\n'))
})

test('what a program has done to Error is as before, and each stack of it as it would be', async t => {
  const ways = {
    nothing: () => {},
    none: ({ Error }) => { delete Error.prepareStackTrace },
    own: ({ Error }) => { Error.prepareStackTrace = error => 'own ' + error.message },
    noFunction: ({ Error }) => { Error.prepareStackTrace = 7 },
    accessor: ({ Error, define }) => { define({ get: () => undefined, set () {}, configurable: true }) },
    throwing: ({ define }) => {
      const fail = () => { throw new TypeError('accessor') }
      define({ get: () => undefined, set: fail, configurable: true })
    },
    constant: ({ define }) => { define({ value: undefined, writable: false }) },
    frozen: ({ Error }) => { Object.freeze(Error) },
    sealed: ({ Error }) => { delete Error.prepareStackTrace; Object.preventExtensions(Error) },
    sites: () => {
      const { prepareStackTrace } = Error
      Error.prepareStackTrace = (error, sites) => sites
      const prototype = Object.getPrototypeOf(new Error('sites').stack[0])
      Error.prepareStackTrace = prototype === Array.prototype ? undefined : prepareStackTrace
      for (const name of ['getPosition', 'getScriptNameOrSourceURL', 'isEval']) {
        prototype[name] = () => { throw new TypeError(name) }
      }
    }
  }
  for (const name of Object.keys(ways)) {
    const { code, stderr, told } = await run(t, { after: NEVER, data: String(ways[name]) }, ({ api, data, tell }) => {
      const lock = new api.AsyncLock()
      const define = descriptor => Object.defineProperty(Error, 'prepareStackTrace', descriptor)
      eval(`(${data})`)({ Error, define }) // eslint-disable-line no-eval
      const look = () => [
        Object.keys(Object.getOwnPropertyDescriptors(Error)).sort(), new Error('look').stack.replace(/:\d+/g, '')
      ]
      const before = look()
      const after = []
      const takers = [function one () { return lock.tryLock() }, function other () { return lock.tryLock() }]
      for (const taker of takers.concat(takers)) {
        const token = taker()
        const [{ taken }] = api.snapshot().held
        const isRight = String(taken).includes(`at ${taker.name} `) || /^own/.test(new Error('own').stack)
        if (!isRight) throw new Error(String(taken))
        token.unlock()
        after.push(look())
      }
      tell([before, after])
    })
    assert.strictEqual(code, 0, `${name}: ${stderr}`)
    const [[before, after]] = told()
    assert.deepStrictEqual(after, after.map(() => before), name)
  }
})

const dies = { skip: MAJOR === 10 && 'Node 10 dies of a time limit that comes while it makes a stack' }

test('after time limits of vm that came in between, a place is known', dies, async t => {
  const [taken] = await toldBy(t, ({ api, busy, require, tell }) => {
    const vm = require('vm')
    // All is loaded.
    new api.AsyncLock().tryLock().unlock()
    for (let n = 0; n < 400; n++) {
      // Of a new view each first call is looked at.
      const source = 'for (;;) { new NewLock().tryLock().unlock() }'
      global.NewLock = api.AsyncLock
      try {
        vm.runInThisContext(source, { timeout: 1 })
      } catch (error) {
        if (!/timed out/.test(error.message)) throw error
      }
    }
    busy(150)
    const lock = new api.AsyncLock()
    lock.tryLock()
    tell(api.snapshot().held.find(({ id }) => id === lock.id).taken)
  })
  assert.ok(/function-of-the-test/.test(taken), taken)
})

test('of a thread that takes more than it can look at, a place is right or said to be probable', async t => {
  const found = await toldBy(t, ({ api, tell }) => {
    const [lock, rw] = [new api.AsyncLock(), new api.RwLock()]
    const waysOf = take => {
      const rare = () => take()
      const usual = () => take()
      return [rare, usual]
    }
    const all = [() => lock.tryLock(), () => rw.tryLockShared(), () => api.locks.tryHold('name')].map(waysOf)
    for (const [rare, usual] of all) {
      const counts = { right: 0, wrong: 0, probablyRight: 0, probablyWrong: 0 }
      const look = (token, name) => {
        const [{ taken }] = api.snapshot().held
        token.unlock()
        const isRight = taken.includes(`at ${name} `)
        const isProbable = taken.startsWith('    probably at ')
        counts[isProbable ? (isRight ? 'probablyRight' : 'probablyWrong') : isRight ? 'right' : 'wrong']++
      }
      for (let round = 0; round < 20; round++) {
        for (let n = 0; n < 5000; n++) usual().unlock()
        look(usual(), 'usual')
        look(rare(), 'rare')
      }
      tell(counts)
    }
  })
  assert.strictEqual(found.length, 3)
  for (const { right, wrong, probablyRight, probablyWrong } of found) {
    assert.deepStrictEqual([wrong, right + probablyRight + probablyWrong], [0, 40])
    assert.ok(probablyRight > 0 && probablyWrong > 0, JSON.stringify(found))
  }
})

test('a thread that takes 4000 locks a second has each looked at', async t => {
  const [found] = await toldBy(t, async ({ api, sleep, tell }) => {
    const lock = new api.AsyncLock()
    let probable = 0
    for (let round = 0; round < 5; round++) {
      for (let n = 0; n < 400; n++) {
        const token = lock.tryLock()
        if (n === 399 && api.snapshot().held[0].taken.includes('probably')) probable++
        token.unlock()
      }
      await sleep(110)
    }
    tell(probable)
  })
  assert.strictEqual(found, 0)
})

const needsMaps = { skip: MAJOR < 16 && 'this Node maps stacks otherwise, or not' }

test('with --enable-source-maps a place is that of the source, also when it is met again', needsMaps, async t => {
  const folder = scratchFolder(t)
  const entry = JSON.stringify(path.join(__dirname, '..', '..', '..', 'pure'))
  const source = `const { AsyncLock, snapshot } = require(${entry})
const lock = AsyncLock.create()
const take = () => lock.tryLock()
for (let n = 0; n < 3; n++) {
  const token = take()
  console.log(snapshot().held[0].taken.split('\\n').slice(0, 2).join())
  token.unlock()
}
`
  // Each line has come from the one that is ten lines further down.
  const mappings = 'AAUA' + ';AACA'.repeat(source.split('\n').length)
  const map = { version: 3, file: 'app.js', sources: ['app.ts'], names: [], mappings }
  fs.writeFileSync(path.join(folder, 'app.js'), source + '//# sourceMappingURL=app.js.map\n')
  fs.writeFileSync(path.join(folder, 'app.js.map'), JSON.stringify(map))
  const env = { [CODE]: String(NEVER) }
  for (const [flags, expected] of [[[], /^ {4}at take \(.*app\.js:3:\d+\),.*app\.js:5:/],
    [['--enable-source-maps'], /^ {4}at take \(.*app\.ts:13:\d+\),.*app\.ts:15:/]]) {
    const { code, stdout, stderr } = await runNode(t, [...flags, path.join(folder, 'app.js')], { env })
    assert.deepStrictEqual([code, stderr], [0, ''])
    const lines = stdout.trimEnd().split('\n')
    assert.ok(lines.length === 3 && lines.every(line => expected.test(line)), stdout)
  }
})
