'use strict'
// nodes: >=20 (what makes the package is written for that)

// The few files that lib/ becomes in the published package. Their behaviour is tested with the tarballs.

const assert = require('assert')
const fs = require('fs')
const os = require('os')
const path = require('path')
const vm = require('vm')
const { test } = require('../harness')
const { runForJSON } = require('../fixtures/run-node')
const { libraryFile, packageName, target } = require('../../lib/agent/target')
const { PARTS, bundle } = require('../../scripts/lib/bundle')
const { targets } = require('../../scripts/lib/targets')

const root = path.join(__dirname, '..', '..')
const NAMES = PARTS.map(({ name }) => name)
const CLASSES = ['AsyncLock', 'Barrier', 'Condition', 'Latch', 'Queue', 'RwLock', 'Semaphore', 'UnlockToken']
const ENTRIES = ['index.js', 'force', 'keep-alive', 'pure', 'web-locks']

/** What the first group of a pattern finds in a text. */
const found = (text, pattern) => Array.from(text.matchAll(pattern), ([, group]) => group)

/** A folder with them, entries and the native library. */
function bundled (t) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'atomics-waitasync-bundle-'))
  t.after(() => { fs.rmSync(folder, { recursive: true, force: true }) })
  bundle(path.join(folder, 'lib'))
  for (const name of [...ENTRIES, libraryFile(target())]) {
    fs.cpSync(path.join(root, name), path.join(folder, name), { recursive: true })
  }
  return folder
}

test('every file that is required is there, once', t => {
  const lib = path.join(bundled(t), 'lib')
  const text = ['entry.js', ...NAMES].map(name => fs.readFileSync(path.join(lib, name), 'utf8')).join('')
  const all = pattern => found(text, pattern).sort()
  const defined = all(/^files\['([^']+)'\] = /gm)
  assert.deepStrictEqual(defined, [...new Set(defined)])
  assert.deepStrictEqual(all(/\brequireFile\("([^"]+)"/g).filter(name => !defined.includes(name)), ['util/compiled.js'])
  // The rest is required by Node: its own modules, and the parts.
  assert.deepStrictEqual([...new Set(all(/\brequire\(['"](\.[^'"]+)['"]\)/g))], NAMES.map(name => `./${name}`).sort())
})

test('the file for tracers names each platform, and files that are there', t => {
  const lib = path.join(bundled(t), 'lib')
  const named = found(fs.readFileSync(path.join(lib, 'traced.js'), 'utf8'), /require\('([^']+)'\)/g)
  assert.deepStrictEqual(named.filter(name => !name.startsWith('.')), Object.keys(targets).map(packageName))
  // An entry lies beside lib/, which is all that is bundled.
  for (const name of named.filter(name => name.startsWith('.'))) {
    assert.ok(fs.existsSync(path.join(name.startsWith('./') ? lib : path.join(root, 'lib'), name)), name)
  }
})

test('as a part of an ES module, it says how to leave it out before anything else', t => {
  const source = fs.readFileSync(path.join(bundled(t), 'lib', 'entry.js'), 'utf8')
  assert.throws(() => new vm.Script(`(function (require) {${source}\n})`).runInNewContext()(), ({ code, message }) => {
    assert.strictEqual(code, 'ERR_ATOMICS_WAITASYNC_NO_LIBRARY')
    const names = ['atomics-waitasync', 'esbuild', 'webpack', 'Rollup', 'ssr: { external', 'serverExternalPackages']
    for (const name of names) assert.ok(message.includes(name), message)
    return true
  })
})

test('without the package\'s files around it, the error of a missing library says that it is in a bundle', async t => {
  const folder = bundled(t)
  fs.unlinkSync(path.join(folder, libraryFile(target())))
  const attempt = 'try { require(folder + "/force") } catch ({ message }) { console.log(JSON.stringify(message)) }'
  const message = () => evaluate(t, folder, attempt)
  assert.match(await message(), /^atomics-waitasync has no native library/)
  fs.rmSync(path.join(folder, 'lib', 'install'), { recursive: true })
  assert.match(await message(), /^atomics-waitasync is in a bundle, .* must stay external.* Looked for /)
})

test('functions and classes keep their names', t => {
  const folder = bundled(t)
  const textsIn = folder => fs.readdirSync(folder, { recursive: true }).filter(name => name.endsWith('.js'))
    .map(name => fs.readFileSync(path.join(folder, name), 'utf8'))
  const names = folder => textsIn(folder).flatMap(text => found(text, /^[^/*\n]*\b(?:function|class) (\w+)/gm))
  const sorted = folder => [...new Set(names(folder))].filter(name => !['requireFile', 'traced'].includes(name)).sort()
  assert.deepStrictEqual(sorted(path.join(folder, 'lib')), sorted(path.join(root, 'lib')))
})

/** Loaded first, it notes the package's files that are scripts of `vm`, and whether they were compiled already. */
const NOTE = `
  const vm = require('vm')
  const path = require('path')
  const { Script } = vm
  global.scripts = []
  vm.Script = new Proxy(Script, {
    construct (_, [text, options]) {
      const script = new Script(text, options)
      const name = path.basename(String(options && options.filename))
      if (${JSON.stringify(NAMES)}.includes(name)) scripts.push([name, script.cachedDataRejected])
      return script
    }
  })`

/** Evaluates code after NOTE, in a process with the package in `folder`. */
const evaluate = (t, folder, code, env) => {
  const note = path.join(folder, 'note.js')
  fs.writeFileSync(note, NOTE)
  return runForJSON(t, ['-r', note, '-e', `const folder = ${JSON.stringify(folder)}; ${code}`], {
    env: { ...process.env, ...env }
  })
}

test('an entry that changes nothing loads none of them before its first use, and the classes with theirs', async t => {
  const seen = await evaluate(t, bundled(t), `
    const files = () => Object.keys(require.cache).concat(scripts.map(([name]) => name))
    const loaded = () => files().map((file) => path.basename(file)).sort()
    const api = require(folder)
    const before = loaded()
    const names = ${JSON.stringify(CLASSES)}.map((name) => api[name].name)
    console.log(JSON.stringify({ before, names, after: loaded() }))`)
  const used = ['agent.js', 'entry.js', 'index.js', 'later.js', 'lock.js', 'main.js', 'note.js']
  assert.deepStrictEqual(seen, { before: ['index.js', 'note.js'], names: CLASSES, after: used })
})

for (const [use, code, ...parts] of [
  ['an install of our own queue', 'require(folder + "/force")', 'main.js', 'agent.js', 'install.js'],
  ['a lock', 'require(folder).AsyncLock.create().executeLocked(() => {})', 'main.js', 'lock.js', 'agent.js'],
  ['a named lock', 'require(folder).locks.request("name", () => {})', 'main.js', 'names.js', 'agent.js', 'lock.js']
]) {
  test(`${use} loads what it needs`, async t => {
    const program = `Promise.resolve(${code}).then(() => { console.log(JSON.stringify(scripts)) })`
    assert.deepStrictEqual(await evaluate(t, bundled(t), program), parts.map(name => [name, null]))
  })
}

test('every entry loads the same part first, without the code of a lock; a lock no names, snapshots and reports', t => {
  const lib = path.join(bundled(t), 'lib')
  const [main, lock] = ['main.js', 'lock.js'].map(name => fs.readFileSync(path.join(lib, name), 'utf8'))
  assert.deepStrictEqual(
    found(lock, /^\/\/ lib\/locks\/((?:named|observe\/(?:snapshot|cycles|stall-report)).*)$/gm),
    []
  )
  assert.deepStrictEqual(found(main, /^\/\/ lib\/locks\/(.*)$/gm), ['index.js', 'named/manager.js'])
})

test('what an install leaves in a thread reads no file later', async t => {
  const notify = 'Atomics.notify(words, 0) + vm.runInNewContext("Atomics.notify(words, 0)", { words })'
  const query = 'navigator.locks.request("name", () => navigator.locks.query()).then(({ held }) => held.length - 1)'
  const lasting = { force: notify, 'keep-alive': notify, 'web-locks': query }
  for (const [entry, use] of Object.entries(lasting)) {
    const folder = bundled(t)
    const seen = await evaluate(t, folder, `
      require(folder + '/${entry}')
      require('fs').renameSync(folder + '/lib', folder + '/gone')
      const words = new Int32Array(new SharedArrayBuffer(4))
      Promise.resolve(${use}).then((result) => { console.log(JSON.stringify(result)) })`)
    assert.strictEqual(seen, 0, entry)
  }
})

test('a Worker takes what its parent has compiled, and works with it', async t => {
  const seen = await evaluate(t, bundled(t), `
    const { Worker } = require('worker_threads')
    const api = require(folder + '/force')
    const locks = [new api.AsyncLock(new SharedArrayBuffer(4)), new api.AsyncLock(new SharedArrayBuffer(4))]
    const token = locks[1].tryLock()
    const worker = new Worker(\`
      const { parentPort, workerData } = require('worker_threads')
      const { AsyncLock } = require(\${JSON.stringify(folder + '/force')})
      parentPort.postMessage(scripts)
      const token = new AsyncLock(workerData).lock()
      parentPort.postMessage(token.locked)
    \`, { eval: true, workerData: locks[1].sab, execArgv: ['-r', folder + '/note.js'] })
    const messages = []
    worker.on('message', (message) => messages.push(message))
    worker.once('message', () => locks[1].executeLocked(() => {}).then(() => {}) && token.unlock())
    worker.on('exit', () => console.log(JSON.stringify(messages)))`)
  assert.deepStrictEqual(seen, [['main.js', 'agent.js', 'install.js', 'lock.js'].map(name => [name, false]), true])
})

test('where a script of vm cannot be made, or another cache is asked for, they are required', async t => {
  const folder = bundled(t)
  const code = `
    require(folder + '/force')
    const names = Object.keys(require.cache).map((file) => require('path').basename(file))
    console.log(JSON.stringify([scripts, names.filter((name) => name.endsWith('.js')).sort()]))`
  const required = [[], ['agent.js', 'entry.js', 'index.js', 'install.js', 'main.js', 'note.js']]
  const unreadable = `
    const fs = require('fs')
    const { readFileSync } = fs
    const refused = []
    fs.readFileSync = (file, ...rest) => {
      if (!/(main|agent|install)\\.js$/.test(file) || refused.includes(file)) return readFileSync(file, ...rest)
      refused.push(file)
      throw new Error('refused')
    }`
  assert.deepStrictEqual(await evaluate(t, folder, unreadable + code), required)
  const cache = path.join(folder, 'cache')
  assert.deepStrictEqual(await evaluate(t, folder, code, { NODE_COMPILE_CACHE: cache }), required)
  // As in a test runner, whose realm is another than that of Node's modules.
  const otherRealm = `
    const vm = require('vm')
    const context = vm.createContext({ process, console })
    const evaluateFile = (file) => {
      const module = { exports: {} }
      const path = require('path')
      const load = (request) => request.startsWith('.') || path.isAbsolute(request) && request.endsWith('.js')
        ? evaluateFile(require.resolve(path.resolve(path.dirname(file), request)))
        : require(request)
      const source = require('fs').readFileSync(file, 'utf8')
      const text = '(function (module, exports, require, __dirname) {' + source + '\\n})'
      vm.runInContext(text, context)(module, module.exports, load, path.dirname(file))
      return module.exports
    }
    const api = evaluateFile(folder + '/force/index.js')
    console.log(JSON.stringify([scripts, api.wait === vm.runInContext('Atomics.wait', context)]))`
  assert.deepStrictEqual(await evaluate(t, folder, otherRealm), [[], true])
})
