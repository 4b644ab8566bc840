'use strict'
// subjects: none
// nodes: >=20 (what makes the package is written for that)

// The few files that lib/ becomes in the published package. Their behaviour is tested with the tarballs.

const assert = require('assert')
const fs = require('fs')
const os = require('os')
const path = require('path')
const { test } = require('./harness')
const { runForJSON } = require('./fixtures/run-node')
const { libraryFile, target } = require('../lib/agent/target')
const { bundle } = require('../scripts/lib/bundle')

const root = path.join(__dirname, '..')
const CLASSES = ['AsyncLock', 'Barrier', 'Condition', 'Latch', 'RwLock', 'Semaphore', 'UnlockToken']

/** A folder with them, two entries and the native library. */
function bundled (t) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'atomics-waitasync-bundle-'))
  t.after(() => { fs.rmSync(folder, { recursive: true, force: true }) })
  bundle(path.join(folder, 'lib'))
  for (const name of ['index.js', 'force.js', libraryFile(target())]) fs.copyFileSync(path.join(root, name), path.join(folder, name))
  return folder
}

test('every file that is required is there, once', t => {
  const lib = path.join(bundled(t), 'lib')
  const text = ['entry.js', 'queue.js', 'later.js'].map(name => fs.readFileSync(path.join(lib, name), 'utf8')).join('')
  const all = (pattern) => Array.from(text.matchAll(pattern), ([, name]) => name).sort()
  const defined = all(/^files\['([^']+)'\] = /gm)
  assert.deepStrictEqual(defined, [...new Set(defined)])
  assert.deepStrictEqual(all(/\brequireFile\("([^"]+)"\)/g).filter(name => !defined.includes(name)), [])
  // The rest is required by Node: its own modules, and the other two of these.
  assert.deepStrictEqual([...new Set(all(/\brequire\(['"](\.[^'"]+)['"]\)/g))], ['./later.js', './queue.js'])
})

test('functions and classes keep their names', t => {
  const folder = bundled(t)
  const names = (folder) => {
    const texts = fs.readdirSync(folder, { withFileTypes: true }).map(entry => entry.isDirectory()
      ? names(path.join(folder, entry.name))
      : Array.from(fs.readFileSync(path.join(folder, entry.name), 'utf8').matchAll(/^[^/*\n]*\b(?:function|class) (\w+)/gm), ([, name]) => name))
    return texts.flat()
  }
  const sorted = (folder) => [...new Set(names(folder))].filter(name => name !== 'requireFile').sort()
  assert.deepStrictEqual(sorted(path.join(folder, 'lib')), sorted(path.join(root, 'lib')))
})

test('an entry that changes nothing loads none of them before it is used, and the classes when they are asked for', async t => {
  const folder = bundled(t)
  const seen = await runForJSON(t, ['-e', `
    const path = require('path')
    const loaded = () => Object.keys(require.cache).map((file) => path.basename(file)).sort()
    const api = require(${JSON.stringify(folder)})
    const before = loaded()
    const names = ${JSON.stringify(CLASSES)}.map((name) => api[name].name)
    console.log(JSON.stringify({ before, names, after: loaded() }))`])
  assert.deepStrictEqual(seen, { before: ['index.js'], names: CLASSES, after: ['entry.js', 'index.js', 'later.js', 'queue.js'] })
})

test('an install of our own queue loads two of them', async t => {
  const folder = bundled(t)
  const loaded = await runForJSON(t, ['-e', `
    require(${JSON.stringify(path.join(folder, 'force.js'))})
    console.log(JSON.stringify(Object.keys(require.cache).map((file) => path.basename(file))))`])
  assert.deepStrictEqual(loaded.filter(name => name.endsWith('.js')).sort(), ['entry.js', 'force.js', 'queue.js'])
})
