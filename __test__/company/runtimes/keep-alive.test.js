'use strict'
// subjects: none

// Bun and Deno: /keep-alive, which leaves waits in the host's queue.

const assert = require('assert')
const path = require('path')
const { spawn } = require('child_process')
const { test } = require('../../harness')

const PROGRAM = path.join(__dirname, 'fixtures', 'keep-alive.cjs')
/** How this runtime runs a program that is not a test. */
const FLAGS = process.versions.deno === undefined ? [] : ['run', '-A']

const runProgram = (t, role) => new Promise((resolve, reject) => {
  const child = spawn(process.execPath, [...FLAGS, PROGRAM, role], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.after(() => { child.kill('SIGKILL') })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text) => { output += text })
  child.on('error', reject)
  child.on('close', (code, signal) => resolve({ code, signal, output }))
})

for (const [role, output] of Object.entries({
  'a pending wait holds': 'begun\nhost timed-out\nexit\n',
  'a wait that is unref\'d does not hold': 'begun\nexit\n',
  'a wait that a worker settles holds': 'begun\nhost ok\nexit\n'
})) {
  test(`${role} the process`, async t => {
    assert.deepStrictEqual(await runProgram(t, role), { code: 0, signal: null, output })
  })
}
