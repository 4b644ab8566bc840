'use strict'

// Flags and settings of Node that concern the native library or Workers: the package works, or says which of them it
// is.

const assert = require('assert')
const { spawnSync } = require('child_process')
const fs = require('fs')
const path = require('path')
const { test } = require('../harness')
const { folderWithPackage, packageCopy, packageWithoutLibrary, scratchFolder } = require('../fixtures/entries/folders')
const programsBy = require('../fixtures/printed-value')
const { runForJSON, runNode } = require('../fixtures/run-node')

const [MAJOR, MINOR] = process.versions.node.split('.').map(Number)
const root = path.join(__dirname, '..', '..')
const fixture = (name) => path.join(__dirname, '..', 'fixtures', 'environments', name)
const FORCE = JSON.stringify(path.join(root, 'force', 'index.js'))
const PURE = JSON.stringify(path.join(root, 'pure', 'index.js'))
const REPORT_ERROR = `
  try {
    require(${FORCE})
    console.log('"loaded"')
  } catch ({ code, message }) {
    console.log(JSON.stringify([code, message]))
  }`

function folderWith (t, files) {
  const folder = scratchFolder(t)
  for (const name of Object.keys(files)) fs.writeFileSync(path.join(folder, name), files[name])
  return folder
}

const program = programsBy()

const NO_FLAG = !process.allowedNodeEnvironmentFlags.has('--no-addons') && 'this Node has no --no-addons'

test('--no-addons: the error names the flag', { skip: NO_FLAG }, async t => {
  const [code, message] = await runForJSON(t, ['--no-addons', '-e', REPORT_ERROR])
  assert.strictEqual(code, 'ERR_ATOMICS_WAITASYNC_NO_LIBRARY')
  assert.ok(/--no-addons/.test(message) && !/npm run build/.test(message), message)
})

const IS_BEFORE_20_12 = MAJOR < 20 || (MAJOR === 20 && MINOR < 12)

const PERMISSION =
  MAJOR < 20
    ? undefined
    : process.allowedNodeEnvironmentFlags.has('--permission')
      ? '--permission'
      : '--experimental-permission'
const readable = `--allow-fs-read=${path.join(root, '*')}`
const NO_PERMISSIONS = PERMISSION === undefined && 'this Node has no permission model'
const NO_ADDONS = NO_PERMISSIONS || (IS_BEFORE_20_12 && 'this Node has no addons with the permission model')

test(
  'the permission model: the library is loaded if the package may be read and addons are allowed',
  { skip: NO_ADDONS },
  async t => {
    assert.strictEqual(await runForJSON(t, [PERMISSION, readable, '--allow-addons', '-e', REPORT_ERROR]), 'loaded')
  }
)

test('the permission model without addons: the error names the flag', { skip: NO_PERMISSIONS }, async t => {
  const [code, message] = await runForJSON(t, [PERMISSION, readable, '-e', REPORT_ERROR])
  assert.strictEqual(code, 'ERR_ATOMICS_WAITASYNC_NO_LIBRARY')
  assert.ok(message.includes('--allow-addons') && !message.includes('npm run build'), message)
})

test('a library that may not be read: the error names the flag', { skip: NO_ADDONS }, async t => {
  const some = [path.join(root, 'lib', '*'), path.join(root, 'force', 'index.js'), path.join(root, 'package.json')]
  const [code, message] = await runForJSON(t, [
    PERMISSION, ...some.map(file => `--allow-fs-read=${file}`), '--allow-addons', '-e', REPORT_ERROR
  ])
  assert.strictEqual(code, 'ERR_ATOMICS_WAITASYNC_NO_LIBRARY')
  assert.ok(message.includes('--allow-fs-read'), message)
})

test('a Worker that may not load addons starts as without an install, and warns', { skip: NO_FLAG }, async t => {
  const { code, stdout, stderr } = await runNode(t, ['-e', `
    require(${FORCE})
    const { Worker } = require('worker_threads')
    const options = { execArgv: ['--no-addons'], argv: ['here'] }
    new Worker('console.log(process.argv[2])', Object.assign({ eval: true }, options))
    new Worker(${JSON.stringify(fixture('say-argument.js'))}, options)`])
  assert.strictEqual(code, 0, stderr)
  assert.strictEqual(stdout, 'here\nhere\n')
  assert.strictEqual(stderr.match(/ATOMICS_WAITASYNC_WORKER.*--no-addons/g).length, 2, stderr)
})

test('the options of a configuration file reach Workers after an install', {
  skip: MAJOR < 24 && 'this Node has no configuration file'
}, async t => {
  const folder = folderWith(t, {
    'node.config.json': '{ "nodeOptions": { "stack-trace-limit": 7, "deprecation": false } }'
  })
  const heard = await runForJSON(
    t,
    [
      '--experimental-default-config-file',
      '-e',
      `
    require(${FORCE})
    const { Worker } = require('worker_threads')
    const source = 'require("worker_threads").parentPort.postMessage([process.noDeprecation, Error.stackTraceLimit])'
    new Worker(source, { eval: true }).on('message', (message) => { console.log(JSON.stringify(message)) })`
    ],
    { cwd: folder }
  )
  assert.deepStrictEqual(heard, [true, 7])
})

program('no hook of require finds an intrinsic missing')(`
  const Module = require('module')
  const { require: before } = Module.prototype
  const missing = []
  let libraries = 0
  const look = (where) => { if (typeof Reflect.getOwnPropertyDescriptor !== 'function') missing.push(where) }
  Module.prototype.require = function (request) {
    try {
      const result = before.apply(this, arguments)
      // Another one may have been tried: on musl that for glibc, if it is there.
      if (/\\.node$/.test(request)) libraries++
      return result
    } finally {
      look(request)
    }
  }
  const extension = Module._extensions['.node']
  Module._extensions['.node'] = function () {
    look('extension')
    try {
      return extension.apply(this, arguments)
    } finally {
      look('extension')
    }
  }
  const { dlopen } = process
  require(${PURE}).waiterCount(new Int32Array(new SharedArrayBuffer(4)), 0)
  if (process.dlopen !== dlopen) missing.push('dlopen')
  console.log(JSON.stringify({ libraries, missing }))`).gives({ libraries: 1, missing: [] })

test(
  '--frozen-intrinsics: locks and waits work, and an install says what is frozen',
  { skip: MAJOR < 12 && 'this Node has no such flag' },
  async t => {
    const heard = await runForJSON(t, [
      '--frozen-intrinsics',
      '-e',
      `
    const { AsyncLock, install, wait, waitAsync } = require(${PURE})
    const token = new AsyncLock(new SharedArrayBuffer(4)).tryLock()
    const says = [token.locked, wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1)]
    try {
      install({ force: true })
      says.push('installed')
    } catch ({ message }) {
      says.push(/frozen/.test(message) ? 'frozen' : message)
    }
    const { value } = waitAsync(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1)
    value.then((result) => { console.log(JSON.stringify([...says, result])) })`
    ])
    // From Node 19 or so on, the flag leaves Atomics alone.
    assert.ok(['frozen', 'installed'].includes(heard[2]), heard[2])
    assert.deepStrictEqual([heard[0], heard[1], heard[3]], [true, 'timed-out', 'timed-out'])
  }
)

test('a process object that is frozen, or whose `on` was replaced: locks and waits work, with a warning', async t => {
  for (const change of [
    'Object.freeze(process)',
    'process.on = undefined',
    'process.on = () => { throw new Error("no listeners") }'
  ]) {
    const { code, stdout, stderr } = await runNode(t, [
      '-e',
      `
      ${change}
      const { AsyncLock, waitAsync } = require(${PURE})
      const lock = new AsyncLock(new SharedArrayBuffer(4))
      const token = lock.tryLock()
      lock.lockAsync().then(({ locked }) => { console.log(locked) })
      token.unlock()
      waitAsync(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1).value.then(console.log)`
    ])
    assert.strictEqual(code, 0, stderr)
    assert.deepStrictEqual(stdout.trim().split('\n').sort(), ['timed-out', 'true'], change)
    assert.ok(/ATOMICS_WAITASYNC_PENDING.*process takes no listener/.test(stderr), stderr)
  }
})

test('--disallow-code-generation-from-strings: main and its Workers have an install', async t => {
  const heard = await runForJSON(t, ['--disallow-code-generation-from-strings', '-e', `
    require(${FORCE})
    const { Worker } = require('worker_threads')
    const source = 'const { engine } = Atomics.wait[Symbol.for("atomics-waitasync")];' +
      'require("worker_threads").parentPort.postMessage(engine)'
    new Worker(source, { eval: true }).on('message', (message) => { console.log(JSON.stringify(message)) })`])
  assert.strictEqual(heard, 'addon')
})

test('a startup snapshot: to load the package while it is built is a clear error; its main function can load it', {
  skip: IS_BEFORE_20_12 && 'this Node builds no snapshots of more than one file'
}, async t => {
  const folder = folderWith(t, {
    'early.js': `require('module').createRequire(__filename)(${PURE})`,
    'lazy.js': `
      const { createRequire } = require('module')
      require('v8').startupSnapshot.setDeserializeMainFunction(() => {
        const { AsyncLock } = createRequire(${PURE})(${PURE})
        new AsyncLock(new SharedArrayBuffer(4)).executeLocked(() => { console.log(JSON.stringify('locked')) })
      })`
  })
  const blob = path.join(folder, 'snapshot.blob')
  const build = (name) => runNode(t, ['--snapshot-blob', blob, '--build-snapshot', path.join(folder, name)])
  const early = await build('early.js')
  assert.notStrictEqual(early.code, 0)
  assert.match(
    early.stderr,
    /Error: atomics-waitasync needs SharedArrayBuffer and Atomics, .* load the package in the snapshot's main function/
  )
  const late = await build('lazy.js')
  assert.strictEqual(late.code, 0, late.stderr)
  assert.strictEqual(await runForJSON(t, ['--snapshot-blob', blob]), 'locked')
})

test('a preload that is not there: Node names it', async t => {
  const { code, stderr } = await runNode(t, ['-r', path.join(root, 'no-such-entry'), '-e', '0'])
  assert.notStrictEqual(code, 0)
  assert.ok(/Cannot find module '.*no-such-entry'/.test(stderr), stderr)
})

test('a copy that lacks the file which Workers load first: they start, with a warning', async t => {
  const folder = packageCopy(t, file => file !== path.join('lib', 'install', 'workers', 'by-message', 'start.js'))
  const { code, stdout, stderr } = await runNode(t, ['-e', `
    require(${JSON.stringify(path.join(folder, 'force'))})
    const { Worker } = require('worker_threads')
    new Worker('console.log("runs")', { eval: true })`])
  assert.strictEqual(code, 0, stderr)
  assert.strictEqual(stdout, 'runs\n')
  assert.ok(/ATOMICS_WAITASYNC_WORKER.*Bundlers must leave atomics-waitasync external/.test(stderr), stderr)
})

test('the lines for Dockerfiles fail where the library is missing, and only there', async t => {
  const page = fs.readFileSync(path.join(root, 'docs', 'platforms.md'), 'utf8')
  const lines = page.match(/(?<=`RUN )\[.*\](?=`)/g).map((line) => JSON.parse(line))
  assert.deepStrictEqual(lines.map(([node]) => path.posix.basename(node)), ['node', 'node'])
  const checks = lines
    .map(([, ...args]) => args)
    .concat([/(?<=--entrypoint node IMAGE ).*(?=`)/.exec(page)[0].split(' ')])
  const [without, complete] = [packageWithoutLibrary(t), root].map((target) => folderWithPackage(t, target))
  for (const args of checks) {
    assert.strictEqual((await runNode(t, args, { cwd: complete })).code, 0)
    const { code, stderr } = await runNode(t, args, { cwd: without })
    assert.strictEqual(code, 1)
    assert.ok(/atomics-waitasync has no native library for this platform/.test(stderr), stderr)
  }
})

test('a single executable application: locks, an install and its Workers', {
  skip: (MAJOR < 26 || process.platform !== 'linux') && 'this Node cannot make one by itself',
  timeout: 120000
}, async t => {
  const say = 'require("worker_threads").parentPort.postMessage(Atomics.wait[Symbol.for("atomics-waitasync")].engine)'
  const folder = folderWith(t, {
    'worker.js': say,
    'main.js': `
      const { createRequire } = require('module')
      const path = require('path')
      const { Worker } = require('worker_threads')
      const { AsyncLock } = createRequire(process.execPath)(${FORCE})
      const heard = [new AsyncLock(new SharedArrayBuffer(4)).tryLock().locked]
      const hear = (message) => { if (heard.push(message) === 3) console.log(JSON.stringify(heard)) }
      new Worker(${JSON.stringify(say)}, { eval: true }).on('message', hear)
      new Worker(path.join(path.dirname(process.execPath), 'worker.js')).on('message', hear)`,
    'sea.json': '{ "main": "main.js", "output": "application" }',
    application: ''
  })
  const built = await runNode(t, ['--build-sea', 'sea.json'], { cwd: folder })
  assert.strictEqual(built.code, 0, built.stderr)
  const { stdout, status, stderr } = spawnSync(path.join(folder, 'application'), { encoding: 'utf8' })
  assert.strictEqual(status, 0, stderr)
  assert.deepStrictEqual(JSON.parse(stdout), [true, 'addon', 'addon'])
})
