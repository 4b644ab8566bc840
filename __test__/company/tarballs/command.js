'use strict'

// `npx --no-install atomics-waitasync dump` asks this process.

const assert = require('assert')
const { execFile } = require('child_process')
const path = require('path')
const { AsyncLock } = require('atomics-waitasync')

process.debugPort = 9300 + process.pid % 1000
const token = AsyncLock.create({ name: 'accounts' }).tryLock()
const command = path.join(__dirname, 'node_modules', '.bin', 'atomics-waitasync')
const args = ['dump', process.pid, '--port', process.debugPort].map(String)
execFile(command, args, { shell: process.platform === 'win32' }, (error, stdout) => {
  assert.ok(/AsyncLock "accounts"[^]*Now:\n {2}the main thread\n/.test(stdout), error || stdout)
  token.unlock()
  console.log('passed')
})
