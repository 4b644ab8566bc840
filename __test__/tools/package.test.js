'use strict'
// nodes: >=20 (what makes the package is written for that)

// The published package: the few files that lib/ becomes, what is in each, and when it is loaded; and what decides
// whether binaries and tarballs may be published. That the package works is tested with its tarballs (`npm run
// test:tarballs`), and in bundlers and test frameworks (`npm run test:consumers`).

const assert = require('assert')
const { execFileSync } = require('child_process')
const fs = require('fs')
const path = require('path')
const vm = require('vm')
const { test } = require('../harness')
const { scratchFolder } = require('../fixtures/entries/folders')
const { runForJSON } = require('../fixtures/run-node')
const { NAMES: LATE } = require('../fixtures/every-class')
const { assertNone, found } = require('../fixtures/source-texts')
const { libraryFile, packageName, target } = require('../../lib/agent/target')
const { PARTS, bundle } = require('../../scripts/lib/bundle')
const { inspect } = require('../../scripts/lib/inspect')
const { targets } = require('../../scripts/lib/targets')
const { inOrder } = require('../../scripts/publish')

const root = path.join(__dirname, '..', '..')
const [FIRST, ...NAMES] = PARTS.map(({ name }) => name)
const CLASSES = LATE.concat('UnlockToken')

/**
 * Loaded first, it notes the package's files that are scripts of `vm`, each with whether compiled code was refused.
 */
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
  })
  const scriptOrModule = () => [...scripts.map(([name]) => name), ...Object.keys(require.cache)]
  global.loaded = () => scriptOrModule().map((file) => path.basename(file)).filter((name) => /js$/.test(name)).sort()`

/** Returns a folder with them, entries, the native library, and NOTE. */
function bundled (t) {
  const folder = scratchFolder(t)
  bundle(path.join(folder, 'lib'))
  for (const name of ['index.js', 'force', 'keep-alive', 'processes', 'pure', 'web-locks', libraryFile(target())])
    fs.cpSync(path.join(root, name), path.join(folder, name), { recursive: true })
  fs.writeFileSync(path.join(folder, 'note.js'), NOTE)
  return folder
}

/** Returns the log of a process after NOTE: with the package in `folder`. */
function evaluate (t, folder, code, env = {}) {
  const program = `const folder = ${JSON.stringify(folder)}; ${code}`
  return runForJSON(t, ['-r', path.join(folder, 'note.js'), '-e', program], { env })
}

test('every file that is required is there, once; entries begin without locks, and a lock without names', t => {
  const lib = path.join(bundled(t), 'lib')
  const textOf = name => fs.readFileSync(path.join(lib, name), 'utf8')
  const text = [FIRST, ...NAMES].map(textOf).join('')
  const defined = found(text, /^files\['([^']+)'\] = /gm)
  assert.deepStrictEqual(defined, [...new Set(defined)])
  const missing = found(text, /\brequireFile\("([^"]+)"/g).filter(name => !defined.includes(name))
  assert.deepStrictEqual(missing, [])
  // The rest is required by Node: its own modules, and files. An entry lies beside lib/, which is all that is bundled.
  const required = found(text + textOf('traced.js'), /\brequire\(['"](\.[^'"]+)['"]\)/g)
  const isThere = name => [lib, path.join(root, 'lib')].some(folder => fs.existsSync(path.join(folder, name)))
  assertNone(required, name => !isThere(name))
  const ofLocks = /^\/\/ lib\/((?:holding|locks|named|observe|queue)\/.*)$/gm
  assert.deepStrictEqual(found(textOf('main.js'), ofLocks), ['named/manager.js'])
  const beyond = /^\/\/ lib\/((?:named|observe\/(?:places|profile|snapshot|stalls|taken)).*)$/gm
  assert.deepStrictEqual(found(textOf('hold.js') + textOf('lock.js'), beyond), [])
  // Locks by name and of processes need none of the code of locks in memory.
  assert.deepStrictEqual(found(textOf('hold.js'), /^\/\/ lib\/((?:locks\/|view\.js).*)$/gm), [])
})

const ALWAYS = ['agent.js', 'entry-point.js', 'index.js', 'main.js', 'note.js']
const OF_PROCESSES = ['hold.js', 'names.js', 'processes.js']

test('an entry that changes nothing loads little before its first use; each use loads what it needs', async t => {
  const folder = bundled(t)
  const use = name => `if (require(folder).${name}.name !== '${name}') throw new Error('${name}')`
  for (const [code, ...names] of [
    ['require(folder)', 'index.js', 'note.js'],
    ['require(folder + "/force")', ...ALWAYS, 'install.js'],
    ['require(folder).AsyncLock.create().executeLocked(() => {})', ...ALWAYS, 'hold.js', 'lock.js'],
    ['require(folder).locks.request("name", () => {})', ...ALWAYS, 'hold.js', 'lock-manager.js', 'names.js'],
    [`{ ${CLASSES.map(use).join('; ')} }`, ...ALWAYS, 'hold.js', 'lock.js', 'later.js'],
    ['require(folder).snapshot()', ...ALWAYS, 'hold.js', 'observe.js'],
    ['require(folder + "/processes").processLocks(folder)', ...ALWAYS, ...OF_PROCESSES],
    [
      'require(folder + "/processes").processLocks(folder + "/locks").request("name", () => {})',
      ...ALWAYS, ...OF_PROCESSES
    ],
    [
      'require(folder + "/processes").redis({ duplicate () { return {} } })',
      ...ALWAYS, ...OF_PROCESSES, 'servers.js'
    ]
  ]) {
    const program = `(async () => ${code})().then(() => { console.log(JSON.stringify(loaded())) })`
    assert.deepStrictEqual(await evaluate(t, folder, program), names.sort(), code)
  }
})

test('what an install leaves in a thread reads no file later', async t => {
  const notify = 'Atomics.notify(words, 0) + vm.runInNewContext("Atomics.notify(words, 0)", { words })'
  const query = 'navigator.locks.request("name", () => navigator.locks.query()).then(({ held }) => held.length - 1)'
  for (const [entry, use] of Object.entries({ force: notify, 'keep-alive': notify, 'web-locks': query })) {
    const program = `
      require(folder + '/${entry}')
      require('fs').renameSync(folder + '/lib', folder + '/gone')
      const words = new Int32Array(new SharedArrayBuffer(4))
      Promise.resolve(${use}).then((result) => { console.log(JSON.stringify(result)) })`
    assert.strictEqual(await evaluate(t, bundled(t), program), 0, entry)
  }
})

/** Returns what Workers of a process send, one after the other: `use` is their code, in which `folder` is known. */
function inWorkers (t, folder, count, use, env) {
  const note = path.join(folder, 'note.js')
  const code = `const folder = ${JSON.stringify(folder)}; const { AsyncLock } = require(folder); ${use}`
  const program = `
    const { Worker } = require('worker_threads')
    const messages = []
    const next = () => {
      if (messages.length === ${count}) return console.log(JSON.stringify(messages))
      const worker = new Worker(${JSON.stringify(code)}, { eval: true, execArgv: ['-r', ${JSON.stringify(note)}] })
      worker.on('message', (message) => messages.push(message))
      worker.on('exit', next)
    }
    next()`
  return evaluate(t, folder, program, env)
}

const LOCK = 'AsyncLock.create().tryLock().unlock();'
const REPORT = 'require("worker_threads").parentPort.postMessage(scripts)'
/** The parts of a first lock in a thread. */
const OF_LOCK = ['main.js', 'hold.js', 'agent.js', 'lock.js']
const all = isRefused => OF_LOCK.map(name => [name, isRefused])

test('a first lock in a thread loads these parts, and what an earlier thread has compiled', async t => {
  assert.deepStrictEqual(
    await inWorkers(t, bundled(t), 3, LOCK + REPORT),
    [all(null), all(false), all(false)]
  )
})

test('compiled code has the functions of a first lock: the next thread compiles none of them', async t => {
  const sizes = `
    const { createCachedData } = Script.prototype
    Script.prototype.createCachedData = function () {
      const data = createCachedData.call(this)
      require('worker_threads').parentPort.postMessage(data.length)
      return data
    }`
  const folder = bundled(t)
  fs.appendFileSync(path.join(folder, 'note.js'), sizes)
  const made = await inWorkers(t, folder, 4, LOCK)
  const before = name => new vm.Script(fs.readFileSync(path.join(folder, 'lib', name))).createCachedData().length
  OF_LOCK.forEach((name, n) => {
    assert.ok(made[n] > 1.2 * before(name), `${name}: ${made[n]} bytes, ${before(name)} before it runs`)
  })
})

test('compiled code that V8 refuses is compiled anew, and replaced', async t => {
  const folder = bundled(t)
  // It looks at the length of the source: from the second Worker on, that of one part is another.
  fs.appendFileSync(path.join(folder, 'note.js'), `
    const fs = require('fs')
    const { threadId } = require('worker_threads')
    const { readFileSync } = fs
    fs.readFileSync = (file, encoding) => (
      readFileSync(file, encoding) + (threadId > 1 && path.basename(file) === 'lock.js' ? ' ' : ''))`)
  const refused = OF_LOCK.map(name => [name, name === 'lock.js'])
  assert.deepStrictEqual(await inWorkers(t, folder, 3, LOCK + REPORT), [all(null), refused, all(false)])
})

test('a Worker that an install reaches takes what its parent has compiled, and works with it', async t => {
  const program = `
    const { Worker } = require('worker_threads')
    const { AsyncLock } = require(folder + '/force')
    const lock = AsyncLock.create()
    const token = lock.tryLock()
    const worker = new Worker(\`
      const { parentPort, workerData } = require('worker_threads')
      const { AsyncLock } = require(\${JSON.stringify(folder + '/force')})
      parentPort.postMessage(scripts)
      parentPort.postMessage(new AsyncLock(workerData).lock().locked)
    \`, { eval: true, workerData: lock.sab, execArgv: ['-r', folder + '/note.js'] })
    const messages = []
    worker.on('message', (message) => messages.push(message))
    worker.once('message', () => lock.executeLocked(() => {}) && token.unlock())
    worker.on('exit', () => console.log(JSON.stringify(messages)))`
  const taken = ['main.js', 'agent.js', 'install.js', 'hold.js', 'lock.js'].map(name => [name, false])
  assert.deepStrictEqual(await evaluate(t, bundled(t), program), [taken, true])
})

test('where a script of vm cannot be made, or another cache is asked for, files are required', async t => {
  const folder = bundled(t)
  const code = 'require(folder + "/force"); console.log(JSON.stringify([scripts, loaded()]))'
  const required = [[], [...ALWAYS, 'install.js'].sort()]
  const none = 'require("vm").Script = undefined'
  assert.deepStrictEqual(await evaluate(t, folder, `${none}; ${code}`), required)
  assert.deepStrictEqual(await evaluate(t, folder, code, { NODE_COMPILE_CACHE: path.join(folder, 'cache') }), required)
})

// ——— The condition of publishing ———

const IS_GLIBC = process.platform === 'linux' && process.report.getReport().header.glibcVersionRuntime

// The Node that runs this asks for more than our binaries may: for C++'s library and for a newer glibc.
test('a binary that needs more than the oldest system has is refused', { skip: !IS_GLIBC && 'no glibc' }, async () => {
  const expected = { glibc: /^asks for symbols of glibc 2\.\d+;/m, musl: /^asks for symbols of glibc$/m }
  for (const [libc, complaint] of Object.entries(expected)) {
    const { complaints } = await inspect(process.execPath, { libc })
    assert.match(complaints.join('\n'), complaint)
    assert.ok(complaints.includes('needs libstdc++.so.6'), complaints.join('\n'))
  }
})

test('nothing is published if a tarball is missing, unknown or of another version', async t => {
  const [first, second, ...missing] = Object.keys(targets).map(packageName)
  const refused = (versions, end) => {
    const folder = scratchFolder(t)
    fs.mkdirSync(path.join(folder, 'package'))
    for (const [name, version] of Object.entries(versions)) {
      fs.writeFileSync(path.join(folder, 'package', 'package.json'), JSON.stringify({ name, version }))
      execFileSync('tar', ['-czf', `${name}.tgz`, 'package'], { cwd: folder })
    }
    return assert.rejects(inOrder(folder), ({ message }) => message.endsWith(end))
  }
  const some = { 'atomics-waitasync': '1.0.0', [first]: '1.0.0', [second]: '1.0.0' }
  const absent = missing.map(name => `no ${name}`).join(', ')
  await refused(some, `: ${absent}`)
  await refused({ ...some, another: '1.0.0' }, `: ${absent}, another`)
  await refused({ ...some, [second]: '1.0.1' }, ': one is allowed')
})
