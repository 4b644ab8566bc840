'use strict'
// subjects: none

// Bun and Deno: /web-locks takes the place of the host's locks, and says where it cannot.

const assert = require('assert')
const path = require('path')
const { spawn } = require('child_process')
const { test } = require('../../harness')

const PROGRAM = path.join(__dirname, 'fixtures', 'web-locks.mjs')
const FLAGS = process.versions.deno === undefined ? [] : ['run', '-A']

test('each way to locks is the package\'s, or a warning says that it is not', async t => {
  const child = spawn(process.execPath, [...FLAGS, PROGRAM], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.after(() => { child.kill('SIGKILL') })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', text => { output += text })
  const code = await new Promise((resolve, reject) => child.on('error', reject).on('close', resolve))
  assert.strictEqual(code, 0)
  const { warned, imported, ...ways } = JSON.parse(output)
  assert.deepStrictEqual(ways, { navigator: 'the package', required: 'the package', ofWorker: 'the package' })
  assert.deepStrictEqual(warned, imported === 'the host' ? ['ATOMICS_WAITASYNC_LOCKS'] : [])
})
