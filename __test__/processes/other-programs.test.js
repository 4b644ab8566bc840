'use strict'
// nodes: >=16 (older ones lack what the engines need)

// Programs of other kinds that lock the file of a lock: docs/processes.md says who waits for whom.

const assert = require('assert')
const { execFileSync, spawn, spawnSync } = require('child_process')
const fs = require('fs')
const path = require('path')
const { test } = require('../harness')
const { target } = require('../../lib/agent/target')
const { scratchFolder } = require('../fixtures/entries/folders')
const { processLocks } = require('../../processes')
const { Unavailable } = require('../../scripts/lib/cache')
const { UNREACHABLE } = require('../../scripts/lib/npm')
const runtimes = require('../../scripts/lib/runtimes')

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
const rust = `
use std::{env, fs::File, io, io::Read, process::exit};
fn main() {
    let arguments: Vec<String> = env::args().collect();
    let file = File::options().read(true).write(true).open(&arguments[2]).unwrap();
    if file.try_lock().is_err() { exit(1) }
    if arguments[1] == "hold" {
        println!("held");
        io::stdin().read_to_string(&mut String::new()).unwrap();
    }
}`
const deno = `
const file = Deno.openSync(Deno.args[1], { read: true, write: true })
if (!file.tryLockSync(true)) Deno.exit(1)
if (Deno.args[0] === 'hold') {
  console.log('held')
  await Deno.stdin.read(new Uint8Array(1))
}`

/** Returns the output of a command, or undefined if there is no such program, or it fails. */
function outputOf (command, ...args) {
  const { status, stdout } = spawnSync(command, args, { encoding: 'utf8' })
  return status === 0 ? stdout : undefined
}
const isThere = (...command) => outputOf(...command) !== undefined

/** `make` gives a command line, which takes `try` or `hold` and a file, or why there is none. */
const programs = {
  'flock(1)': {
    isOurKind: true,
    make: () => isThere('flock', '--version') ? ['sh', '-c', shell, 'sh'] : 'flock(1) is missing'
  },
  'Python\'s flock': {
    isOurKind: true,
    make: () => isThere('python3', '-V') ? ['python3', '-c', python('flock')] : 'Python is missing'
  },
  'Python\'s lockf': {
    isOurKind: false,
    make: () => isThere('python3', '-V') ? ['python3', '-c', python('lockf')] : 'Python is missing'
  },
  'Rust\'s File::lock': {
    isOurKind: true,
    make (folder) {
      const [, minor] = /^rustc 1\.(\d+)/.exec(outputOf('rustc', '--version')) || []
      if (!(minor >= 89)) return 'it needs Rust 1.89'
      if (target().includes('musl')) return 'Rust is that of another C library'
      fs.writeFileSync(path.join(folder, 'lock.rs'), rust)
      execFileSync('rustc', ['lock.rs'], { cwd: folder })
      return [path.join(folder, 'lock')]
    }
  },
  'Deno\'s FsFile.lock': {
    isOurKind: true,
    async make (folder) {
      const file = path.join(folder, 'lock.ts')
      fs.writeFileSync(file, deno)
      try {
        return [await runtimes.fetch('deno'), 'run', '-A', file]
      } catch (error) {
        if (error instanceof Unavailable || UNREACHABLE.test(error.message)) return error.message
        throw error
      }
    }
  }
}

const skip = process.platform !== 'linux' && 'this is for Linux'
for (const [name, { isOurKind, make }] of Object.entries(programs)) {
  test(`${name} and a lock of files`, { skip, timeout: 120000 }, async t => {
    const command = await make(scratchFolder(t))
    if (typeof command === 'string') t.skip(command)
    const [program, ...args] = command
    const folder = scratchFolder(t)
    const locks = processLocks(folder)
    const lock = await locks.hold('a')
    const file = path.join(folder, fs.readdirSync(folder).find(each => each.endsWith('.lock')))
    const attempt = () => spawnSync(program, [...args, 'try', file]).status
    // An exclusive holder keeps out those of the other kind, too, because it marks the file.
    assert.strictEqual(attempt(), 1)
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
