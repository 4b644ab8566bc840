'use strict'

// The exports as ES modules have them: the same, but their code is loaded at their first use, since `import` reads all
// names.

const assert = require('assert')
const fs = require('fs')
const path = require('path')
const { test } = require('../harness')
const { folderWithPackage, packageWithoutLibrary } = require('../fixtures/entries/folders')
const { runForJSON } = require('../fixtures/run-node')

const MAJOR = Number(process.versions.node.split('.')[0])
const NO_MODULES = MAJOR < 12 && 'this Node has no ES modules'
const ENTRIES = ['', '/force', '/keep-alive', '/pure', '/web-locks']
const root = path.join(__dirname, '..', '..')

/** Runs a module's source in a folder, by a file of it; gives its output. */
async function runModule (t, folder, source) {
  const file = path.join(folder, 'program.mjs')
  fs.writeFileSync(file, source)
  try {
    return await runForJSON(t, ['--no-warnings', file])
  } finally {
    fs.unlinkSync(file)
  }
}

test('the names can be imported from each entry, by the name of the package', { skip: NO_MODULES }, async t => {
  const folder = folderWithPackage(t)
  const imports = fs.readFileSync(path.join(__dirname, '..', 'fixtures', 'entries', 'imports.mjs'), 'utf8')
  const { differences, functions, engine } = await runModule(t, folder, imports)
  assert.deepStrictEqual(differences, [])
  assert.deepStrictEqual(functions, [])
  assert.strictEqual(engine, 'addon')
})

for (const name of ENTRIES) {
  test(
    `atomics-waitasync${name}: an import loads what require does, and of the locks nothing`,
    { skip: NO_MODULES },
    async t => {
      const folder = folderWithPackage(t)
      const loaded = `JSON.stringify({
        files: Object.keys(require.cache).filter((file) => !file.endsWith('.mjs'))
          .map((file) => path.relative(${JSON.stringify(root)}, file)).sort(),
        threads: process.moduleLoadList.includes('NativeModule worker_threads')
      })`
      const ofModule = await runModule(
        t,
        folder,
        `
      import 'atomics-waitasync${name}'
      import { createRequire } from 'module'
      import path from 'path'
      const require = createRequire(import.meta.url)
      console.log(${loaded})`
      )
      // Where the plain entry changes nothing, its `require` leaves the rest for the functions' first use.
      const ofScript = await runForJSON(
        t,
        ['-e', `const path = require('path'); void require('atomics-waitasync${name}').wait; console.log(${loaded})`],
        { cwd: folder }
      )
      assert.deepStrictEqual(
        ofModule.files.filter(file => file !== 'es-modules.js'),
        ofScript.files
      )
      assert.strictEqual(ofModule.threads, ofScript.threads)
      const plain = name === '' && MAJOR >= 16
      assert.strictEqual(
        ofModule.files.some(file => file.endsWith('.node')),
        !plain && (name !== '/keep-alive' || MAJOR < 16)
      )
      if (plain) assert.strictEqual(ofModule.threads, false)
    }
  )
}

test(
  'without a native library, every name is there, and says so when it is used',
  { skip: MAJOR < 16 && 'there it is needed at once' },
  async t => {
    const folder = packageWithoutLibrary(t)
    for (const name of ['index.mjs', 'keep-alive/index.mjs']) {
      const seen = await runModule(
        t,
        folder,
        `
      import * as api from './${name}'
      import util from 'util'
      const sab = new SharedArrayBuffer(4)
      const uses = ['AsyncLock', 'Condition', 'RwLock', 'Semaphore'].map((name) => () => new api[name](sab)).concat(
        () => new api.Barrier(sab, { parties: 1 }),
        () => new api.Latch(sab, { count: 1 }),
        () => new api.Queue(new SharedArrayBuffer(1024), { capacity: 1, messageSize: 8 }),
        () => { class Mine extends api.AsyncLock {} return new Mine(sab) },
        () => api.locks.request('name', () => {}),
        () => api.snapshot(),
        () => api.waiterCount(new Int32Array(sab), 0))
      // To look at them is no use.
      util.inspect(api)
      for (const name of Object.keys(api)) JSON.stringify([await api[name]])
      const codes = []
      for (const use of uses) {
        try { codes.push(typeof await use()) } catch (error) { codes.push(error.code) }
      }
      console.log(JSON.stringify({ missing: Object.keys(api).filter((name) => api[name] === undefined), codes }))`
      )
      assert.deepStrictEqual(seen.missing, [])
      assert.deepStrictEqual(
        seen.codes,
        seen.codes.map(() => 'ERR_ATOMICS_WAITASYNC_NO_LIBRARY')
      )
    }
  }
)

test('/processes: what is imported is what require gives', { skip: MAJOR < 16 && 'it needs Node 16' }, async t => {
  assert.deepStrictEqual(await runModule(t, folderWithPackage(t), `
    import * as module from 'atomics-waitasync/processes'
    import { createRequire } from 'module'
    const required = createRequire(import.meta.url)('atomics-waitasync/processes')
    const isSame = name => module[name] === required[name]
    console.log(JSON.stringify([Object.keys(module).sort(), Object.keys(required).every(isSame)]))
  `), [[
    'default', 'etcd', 'files', 'isTimeoutError', 'memory', 'pathName', 'postgresql', 'processLocks', 'redis',
    'sharedMemory'
  ], true])
})

test('what is imported is a class like any other, before and after its first use', { skip: NO_MODULES }, async t => {
  const folder = folderWithPackage(t)
  const seen = await runModule(t, folder, `
    import {
      AsyncLock, Lock, LockManager, RwLock, Semaphore, UnlockToken, locks, snapshot
    } from 'atomics-waitasync/pure'
    import { createRequire } from 'module'
    const before = [AsyncLock.name, typeof AsyncLock, Object(AsyncLock) instanceof Function, {} instanceof AsyncLock]
    class Mine extends AsyncLock {
      constructor (buffer) {
        super(buffer)
        this.mine = true
      }

      tryLock () { return super.tryLock() }
    }
    AsyncLock.prototype.added = 1
    const sab = () => new SharedArrayBuffer(4)
    const lock = new Mine(sab())
    const token = lock.tryLock()
    const shared = new RwLock(sab()).tryLockShared()
    const { unlock } = UnlockToken.prototype
    let calls = 0
    UnlockToken.prototype.unlock = function () { calls++; return unlock.call(this) }
    token.unlock()
    shared.unlock()
    const required = createRequire(import.meta.url)('atomics-waitasync/pure')
    locks.request('name', (granted) => {
      console.log(JSON.stringify({
        before,
        all: [
          lock instanceof Mine, lock instanceof AsyncLock, lock.constructor === Mine, lock.mine, lock.added === 1,
          Mine.LOCKED === 1, token instanceof UnlockToken, token.constructor === UnlockToken,
          shared instanceof UnlockToken, calls === 2, token.locked === false,
          granted instanceof Lock, granted.name === 'name',
          locks instanceof LockManager, locks === required.locks, snapshot().held.length === 1,
          AsyncLock === required.AsyncLock, AsyncLock.length === 2, Semaphore.byteLength === 4,
          new AsyncLock(sab()).constructor === AsyncLock, AsyncLock instanceof Function,
          Object.getPrototypeOf(AsyncLock.prototype) === Object.prototype,
          Object.getPrototypeOf(new AsyncLock(sab())) === AsyncLock.prototype
        ]
      }))
    })`)
  assert.deepStrictEqual(seen.before, ['AsyncLock', 'function', true, false])
  assert.deepStrictEqual(seen.all, seen.all.map(() => true))
})
