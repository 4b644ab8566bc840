'use strict'
// nodes: >=16 (older ones lack what the engines need)
// subjects: force

// `sharedMemory(file, byteLength)`: the files, and the buffers. What works on them has tests of its own.

const assert = require('assert')
const fs = require('fs')
const path = require('path')
const { Worker } = require('worker_threads')
const { test } = require('../harness')
const { runForJSON } = require('../fixtures/run-node')
const { memoryFolder, unavailable } = require('../fixtures/shared-memory')
const { sharedMemory } = require('../../processes')

const ENTRY = JSON.stringify(path.join(__dirname, '..', '..', 'processes'))

/** Runs `body` in another process, with `sharedMemory` and `file`; gives what it returns. */
const elsewhere = (t, file, body) => runForJSON(t, ['-e', `
  const { sharedMemory } = require(${ENTRY})
  const file = ${JSON.stringify(file)}
  console.log(JSON.stringify((() => { ${body} })()))`])

test('where it is not to be had, an error says from where on it is, and makes no file', async t => {
  if (!unavailable) return t.skip('it is to be had here')
  const file = path.join(memoryFolder(t), 'memory')
  assert.throws(() => sharedMemory(file, 8), error => {
    return error.code === 'ERR_SHARED_MEMORY_UNAVAILABLE' &&
      /needs (Linux|Node\.js 22\.23, 24\.16, 26\.1)/.test(error.message)
  })
  assert.strictEqual(fs.existsSync(file), false)
})

test('arguments are checked before anything happens', async t => {
  const file = path.join(memoryFolder(t), 'memory')
  for (const [arguments_, type, message] of [
    [[], TypeError, /file must be a path, not undefined/],
    [['', 8], TypeError, /file must be a path, not the string ""/],
    [[file], TypeError, /byteLength must be a number, not undefined/], [[file, '8'], TypeError, /must be a number/],
    [[{ toString: () => file }, 8], TypeError, /path/], [[file, 0], RangeError, /from 1 to 2\^53 - 1/],
    [[file, 1.5], RangeError, /integer/], [[file, NaN], RangeError, /integer/], [[file, -8], RangeError, /integer/],
    [[file, 2 ** 53], RangeError, /integer/]
  ]) {
    assert.throws(() => sharedMemory(...arguments_), error => error.constructor === type && message.test(error.message))
  }
  assert.strictEqual(fs.existsSync(file), false)
})

test('it is full of zeros, for its owner alone, and the same in another process and in a Worker', async t => {
  if (unavailable) return t.skip(unavailable)
  const file = path.join(memoryFolder(t), 'memory')
  const memory = sharedMemory(file, 1000)
  assert.ok(memory instanceof SharedArrayBuffer)
  assert.strictEqual(memory.byteLength, 1000)
  assert.strictEqual(memory.growable, false)
  const bytes = new Uint8Array(memory)
  assert.ok(bytes.every(byte => byte === 0))
  const { mode, size, blocks } = fs.statSync(file)
  assert.strictEqual(mode & 0o777, 0o600)
  assert.ok(blocks * 512 >= size, 'its space is allocated')
  bytes[999] = 7
  assert.strictEqual(await elsewhere(t, file, `
    const bytes = new Uint8Array(sharedMemory(file, 1000))
    bytes[0] = 5
    return bytes[999]`), 7)
  assert.strictEqual(bytes[0], 5)
  const worker = new Worker(`
    const { workerData } = require('worker_threads')
    const bytes = new Uint8Array(workerData)
    bytes[1] = bytes[0] + 1`, { eval: true, workerData: memory })
  await new Promise(resolve => worker.on('exit', resolve))
  assert.strictEqual(bytes[1], 6)
})

test('one file is one mapping in a process, whatever it is called, and stays when it is removed', async t => {
  if (unavailable) return t.skip(unavailable)
  const folder = memoryFolder(t)
  const file = path.join(folder, 'memory')
  const words = new Int32Array(sharedMemory(file, 8))
  fs.linkSync(file, path.join(folder, 'other-name'))
  const same = new Int32Array(sharedMemory(path.join(folder, '.', 'other-name'), 8))
  words[0] = 3
  assert.strictEqual(same[0], 3)
  const mappings = fs.readFileSync('/proc/self/maps', 'utf8').split('\n').filter(line => line.includes(folder))
  assert.strictEqual(mappings.length, 1)
  fs.unlinkSync(path.join(folder, 'other-name'))
  fs.unlinkSync(file)
  const other = new Int32Array(sharedMemory(file, 8))
  assert.strictEqual(other[0], 0, 'a new file at the path is other memory')
  words[0] = 4
  assert.strictEqual(same[0], 4)
})

test('another length, a link, a foreign or damaged file: an error with a code, and nothing changes', async t => {
  if (unavailable) return t.skip(unavailable)
  const folder = memoryFolder(t)
  const at = name => path.join(folder, name)
  assert.strictEqual(await elsewhere(t, at('memory'), 'return sharedMemory(file, 64).byteLength'), 64)
  fs.writeFileSync(at('foreign'), 'not ours'.repeat(1000))
  fs.writeFileSync(at('empty'), '')
  fs.symlinkSync(at('memory'), at('link'))
  fs.mkdirSync(at('folder'))
  fs.copyFileSync(at('memory'), at('truncated'))
  fs.chmodSync(at('truncated'), 0o600)
  fs.truncateSync(at('truncated'), 5000)
  fs.copyFileSync(at('memory'), at('open'))
  fs.chmodSync(at('open'), 0o622)
  const files = ['empty', 'foreign', 'memory', 'open', 'truncated']
  const contents = () => files.map(name => fs.readFileSync(at(name), 'latin1'))
  const before = contents()
  assert.throws(() => sharedMemory(at('memory'), 65), error => error instanceof RangeError &&
    error.code === 'ERR_SHARED_MEMORY_LENGTH' && /64 bytes .*not 65/.test(error.message))
  for (const [name, why] of [
    ['foreign', /was not made by/], ['empty', /was not made by/], ['link', /symbolic link/], ['folder', /is a folder/],
    ['truncated', /truncated/], ['open', /others than its owner/]
  ]) {
    assert.throws(() => sharedMemory(at(name), 64), error => {
      return error.code === 'ERR_SHARED_MEMORY_INVALID' && why.test(error.message)
    }, name)
  }
  assert.throws(() => sharedMemory(at('nowhere/memory'), 64), { code: 'ENOENT' })
  assert.throws(() => sharedMemory('/proc/memory', 64), error => /^E/.test(error.code))
  assert.deepStrictEqual(contents(), before)
  assert.deepStrictEqual(fs.readdirSync(folder).sort(), [...files, 'folder', 'link'].sort())
})

test('it ends with no process: short-lived ones, one after another, find what the last one wrote', async t => {
  if (unavailable) return t.skip(unavailable)
  const file = path.join(memoryFolder(t), 'memory')
  for (let n = 0; n < 5; n++) {
    assert.strictEqual(await elsewhere(t, file, 'return new Int32Array(sharedMemory(file, 4))[0]++'), n)
  }
})

test('a program that only has such memory ends by itself, and its threads do', async t => {
  if (unavailable) return t.skip(unavailable)
  const file = path.join(memoryFolder(t), 'memory')
  await elsewhere(t, file, `
    const { Worker } = require('worker_threads')
    new Worker('require(' + ${JSON.stringify(ENTRY)} + ').sharedMemory(require("worker_threads").workerData, 4)',
      { eval: true, workerData: file })
    return sharedMemory(file, 4).byteLength`)
})
