'use strict'
// nodes: >=16 (older ones lack what the engines need)

// Programs of other kinds that lock the file of a lock: docs/processes.md says who waits for whom.

const assert = require('assert')
const { spawn, spawnSync } = require('child_process')
const fs = require('fs')
const path = require('path')
const { test } = require('../harness')
const { scratchFolder } = require('../fixtures/entries/folders')
const { processLocks } = require('../../processes')

const python = call => `
import fcntl, sys
file = open(sys.argv[2], 'r+')
try:
  fcntl.${call}(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
  sys.exit(1)
if sys.argv[1] == 'hold':
  print('held', flush=True)
  sys.stdin.read()`
const shell = 'flock -n "$2" sh -c \'[ "$0" = try ] || { echo held; cat; }\' "$1"'
const programs = {
  'flock(1)': { isOurKind: true, command: ['sh', '-c', shell, 'sh'], version: ['flock', '--version'] },
  'Python\'s flock': { isOurKind: true, command: ['python3', '-c', python('flock')], version: ['python3', '-V'] },
  'Python\'s lockf': { isOurKind: false, command: ['python3', '-c', python('lockf')], version: ['python3', '-V'] }
}

for (const [name, { isOurKind, command: [program, ...args], version: [tool, flag] }] of Object.entries(programs)) {
  const isThere = process.platform === 'linux' && spawnSync(tool, [flag]).status === 0
  test(`${name} and a lock of files`, { skip: !isThere && `this is for Linux with ${tool}` }, async t => {
    const folder = scratchFolder(t)
    const locks = processLocks(folder)
    const lock = await locks.hold('a')
    const file = path.join(folder, fs.readdirSync(folder).find(each => each.endsWith('.lock')))
    const attempt = () => spawnSync(program, [...args, 'try', file]).status
    if (isOurKind) assert.strictEqual(attempt(), 1)
    await lock.unlock()
    assert.strictEqual(attempt(), 0)
    const holder = spawn(program, [...args, 'hold', file], { stdio: ['pipe', 'pipe', 'inherit'] })
    t.after(() => { holder.kill('SIGKILL') })
    await new Promise(resolve => holder.stdout.once('data', resolve))
    const other = await locks.hold('a', { ifAvailable: true })
    assert.strictEqual(other === null, isOurKind)
    holder.stdin.end()
    await new Promise(resolve => holder.on('exit', resolve))
    await (isOurKind ? await locks.hold('a', { timeout: 0 }) : other).unlock()
  })
}
