'use strict'

// Child processes of the Node under test: one per job, and one that says what that Node has.

const { spawn } = require('child_process')
const path = require('path')
const readline = require('readline')
const { PREFIX } = require('./target/outcome')

const TARGET = path.join(__dirname, 'target')
const OUTPUT_KEPT = 4000

const running = new Set()

// No process is left behind, however this one ends.
process.on('exit', () => { for (const child of running) child.kill('SIGKILL') })
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => process.exit(1))

/**
 * @param {{ binary: string, flags: string[] }} node
 * @param {string} file the script, in the folder target/
 * @param {object} argument what it gets, as JSON
 * @param {number} timeout milliseconds
 * @param {(child, line: string) => void} onLine for each line on standard output
 * @returns {Promise<{ code, signal, timedOut, stderr, ended }>} `ended`: time stamp (performance.now())
 */
function runTarget (node, file, argument, timeout, onLine) {
  return new Promise((resolve, reject) => {
    const env = { ...process.env }
    delete env.NODE_OPTIONS
    const child = spawn(node.binary, [...node.flags, path.join(TARGET, file), JSON.stringify(argument)], { env, stdio: ['ignore', 'pipe', 'pipe'] })
    running.add(child)

    let stderr = ''
    child.stderr.setEncoding('utf8').on('data', text => { stderr = (stderr + text).slice(-OUTPUT_KEPT) })
    readline.createInterface({ input: child.stdout }).on('line', line => onLine(child, line))

    let timedOut = false
    const timer = setTimeout(() => {
      timedOut = true
      child.kill('SIGKILL')
    }, timeout)

    let ended
    child.on('exit', () => { ended = performance.now() })
    child.on('error', error => {
      clearTimeout(timer)
      running.delete(child)
      reject(error)
    })
    child.on('close', (code, signal) => {
      clearTimeout(timer)
      running.delete(child)
      resolve({ code, signal, timedOut, stderr: stderr.trim(), ended })
    })
  })
}

/**
 * Runs one job.
 * @returns {Promise<{ status: 'passed' | 'failed' | 'unparsable' | 'unusable', message: string, seconds: number, exitSeconds: number }>}
 *   `exitSeconds`: from the test's end to the end of its process
 */
async function runJob (node, job, timeout) {
  const notes = []
  let verdict = null
  let concluded = 0
  const began = performance.now()

  const end = await runTarget(node, 'main.js', job, timeout, (child, line) => {
    const message = parse(line)
    if (message === null) {
      if (line !== '') notes.push(line)
    } else if (message.note !== undefined) {
      notes.push(message.note)
    } else if (verdict === null) {
      verdict = message
      concluded = performance.now()
      if (message.abort) child.kill('SIGKILL')
    }
  })

  const seconds = (end.ended - began) / 1000
  const problem = problemOf(verdict, end, timeout)
  const context = [...notes, end.stderr].filter(text => text !== '').join('\n')
  if (problem !== null) return { status: 'failed', message: [problem, context].filter(Boolean).join('\n'), seconds, exitSeconds: 0 }
  const explained = verdict.status === 'failed' ? [verdict.message, context].filter(Boolean).join('\n') : verdict.message
  return { status: verdict.status, message: explained || '', seconds, exitSeconds: (end.ended - concluded) / 1000 }
}

function parse (line) {
  return line.startsWith(PREFIX) ? JSON.parse(line.slice(PREFIX.length)) : null
}

// What is wrong with the process itself, whatever the test may have said before.
function problemOf (verdict, { code, signal, timedOut }, timeout) {
  if (timedOut) {
    return verdict === null
      ? `has not ended after ${timeout / 1000} s`
      : `${verdict.status}, but its process has not ended after ${timeout / 1000} s`
  }
  if (verdict === null) return `the process ended without a result (${signal || 'exit code ' + code})`
  if (!verdict.abort && (signal !== null || code !== 0)) return `${verdict.status}, but the process then ended with ${signal || 'exit code ' + code}`
  return null
}

/**
 * Asks the Node under test what it has.
 * @returns {Promise<object>} the answer of target/features.js
 */
async function probe (node, entry) {
  const lines = []
  const end = await runTarget(node, 'features.js', entry, 60000, (child, line) => { lines.push(line) })
  if (end.code !== 0) throw new Error(`${node.binary} cannot run worker_threads (${end.signal || 'exit code ' + end.code}): ${end.stderr}`)
  return JSON.parse(lines.join('\n'))
}

/** The flags without which this Node has no worker_threads, if there are any. */
async function flagsFor (binary, entry, given) {
  const tries = [[], ['--experimental-worker']].map(flags => [...flags, ...given])
  for (const flags of tries.slice(0, -1)) {
    try {
      await probe({ binary, flags }, entry)
      return flags
    } catch (error) {
      if (!/worker_threads/.test(error.message)) throw error
    }
  }
  return tries[tries.length - 1]
}

module.exports = { runJob, probe, flagsFor }
