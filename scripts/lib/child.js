'use strict'

// Runs one program to its end, whatever it does: crash, hang, print without end, or leave processes behind.
//
// Invariant: when the promise of `run` is settled, the program and everything it started (in its process group) is
// gone; and none of it outlives this process when that is interrupted. Node 12 or newer.

const { spawn, spawnSync } = require('child_process')
const fs = require('fs')
const path = require('path')

const WINDOWS = process.platform === 'win32'
// Of the output, the last bytes are kept.
const KEPT = 1024 * 1024
// A program is over, but something that it started still holds its output open: how long that may last.
const GRACE = 2000
// How often the memory of a program is looked at that has a limit. Milliseconds.
const LOOK_EVERY = 200
const PAGE = 4096

const alive = new Set()

/**
 * @param {string} command
 * @param {string[]} args
 * @param {{ cwd?: string, env?: object, timeout?: number, memory?: number, shell?: boolean, echo?: boolean | 'all',
 *   onStart?: (pid: number) => void }} options `timeout` in milliseconds; `memory`: bytes that the program and its
 *   processes may have (on Linux); `echo` passes its stderr on to ours as it comes, `'all'` its stdout, too
 * @returns {Promise<{ code: ?number, signal: ?string, error: ?Error, timedOut: boolean, outOfMemory: boolean,
 *   leftBehind: boolean, stdout: string, output: string, seconds: number }>} `output` is stdout and stderr in the order
 *   they came; `error` says that the program could not be started.
 */
function run (command, args, options = {}) {
  const { cwd, env = process.env, timeout = 0, memory = Infinity, shell = false, echo = false, onStart } = options
  return new Promise(resolve => {
    const begin = Date.now()
    const stdout = new Transcript()
    const output = new Transcript()
    // A group of its own, so that processes of the program can be ended with it.
    const stdio = ['ignore', 'pipe', 'pipe']
    const child = spawn(command, args, { cwd, env, shell, detached: !WINDOWS, windowsHide: true, stdio })
    let timedOut = false
    let outOfMemory = false
    let leftBehind = false
    let timer = null
    let grace = null
    const looks = memory < Infinity && setInterval(() => {
      if (memoryOf(child.pid) <= memory) return
      outOfMemory = true
      killTree(child)
    }, LOOK_EVERY)

    alive.add(child)
    if (child.pid !== undefined && onStart) onStart(child.pid)
    if (timeout > 0) {
      timer = setTimeout(() => {
        timedOut = true
        killTree(child)
      }, timeout)
    }
    child.stdout.on('data', chunk => {
      stdout.add(chunk)
      output.add(chunk)
      if (echo === 'all') process.stdout.write(chunk)
    })
    child.stderr.on('data', chunk => {
      output.add(chunk)
      if (echo) process.stderr.write(chunk)
    })
    child.on('exit', () => {
      clearTimeout(timer)
      grace = setTimeout(() => {
        leftBehind = true
        killTree(child)
      }, GRACE)
    })
    child.on('error', error => { if (child.pid === undefined) end(null, null, error) })
    child.on('close', (code, signal) => end(code, signal, null))

    function end (code, signal, error) {
      clearTimeout(timer)
      clearTimeout(grace)
      clearInterval(looks)
      killTree(child)
      alive.delete(child)
      const seconds = (Date.now() - begin) / 1000
      const texts = { stdout: stdout.text(), output: output.text() }
      resolve({ code, signal, error, timedOut, outOfMemory, leftBehind, ...texts, seconds })
    }
  })
}

function killTree (child) {
  if (child.pid === undefined) return
  if (WINDOWS) {
    if (child.exitCode === null) spawnSync('taskkill', ['/pid', String(child.pid), '/t', '/f'], { stdio: 'ignore' })
    return
  }
  try {
    process.kill(-child.pid, 'SIGKILL')
  } catch (error) {
    // ESRCH: no process is left, as it should be. EPERM: macOS says so of a group in which only zombies are left.
    if (error.code !== 'ESRCH' && error.code !== 'EPERM') throw error
  }
}

/** Returns the bytes of memory that the processes of a group have; 0 where the system does not say. */
function memoryOf (group) {
  let pages = 0
  for (const name of fs.existsSync('/proc/self/stat') ? fs.readdirSync('/proc') : []) {
    try {
      // The part behind the name of the program, which may have spaces: field 3 and the later ones.
      if (!/^\d+$/.test(name)) continue
      const fields = fs.readFileSync(`/proc/${name}/stat`, 'latin1').replace(/^.*\) /s, '').split(' ')
      if (Number(fields[2]) === group) pages += Number(fields[21])
    } catch (_) {
      // It has ended.
    }
  }
  return pages * PAGE
}

/** The end of a text that may be endless. */
class Transcript {
  constructor () {
    this.chunks = []
    this.size = 0
  }

  add (chunk) {
    this.chunks.push(chunk)
    this.size += chunk.length
    while (this.size - this.chunks[0].length >= KEPT) this.size -= this.chunks.shift().length
  }

  text () { return Buffer.concat(this.chunks).toString() }
}

function interrupted (signal) {
  for (const child of alive) killTree(child)
  process.exit(signal === 'SIGINT' ? 130 : 143)
}

process.once('SIGINT', interrupted)
process.once('SIGTERM', interrupted)
if (!WINDOWS) process.once('SIGHUP', interrupted)
process.once('exit', () => { for (const child of alive) killTree(child) })

/** Returns the error in a program's end, whatever its exit code; or null. */
function howItEnded ({ error, timedOut, outOfMemory, leftBehind, signal, seconds }) {
  if (error) return `could not be started: ${error.message}`
  if (timedOut) return `was killed: not over after ${Math.round(seconds)} s`
  if (outOfMemory) return 'was killed: it took too much memory'
  if (leftBehind) return 'left a process behind that held its output open'
  if (signal) return `crashed with ${signal}`
  return null
}

/**
 * Returns the result of `run`, if the program succeeded.
 * @param {string[]} words the command, for the message
 * @throws {Error} with the output
 */
function succeeded (ended, words) {
  const { code, output } = ended
  if (code === 0 && howItEnded(ended) === null) return ended
  throw new Error(`${words.join(' ')} failed: it ${howItEnded(ended) || `ended with exit code ${code}`}\n${output}`)
}

/** Runs a program that has to succeed; gives its stdout. */
async function succeed (command, args, options) {
  return succeeded(await run(command, args, options), [path.basename(command), ...args]).stdout
}

module.exports = { howItEnded, run, succeed, succeeded }
