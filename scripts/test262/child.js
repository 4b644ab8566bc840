'use strict'

// Child processes of the Node under test: one per job, and one that says what that Node has.

const path = require('path')
const { run } = require('../lib/child')
const { PREFIX } = require('./target/outcome')

const OUTPUT_KEPT = 4000

/**
 * @param {{ binary: string, flags: string[] }} node
 * @param {string} file the script, in the folder target/
 * @param {object} argument what it gets, as JSON
 * @param {number} timeout milliseconds
 */
function runTarget ({ binary, flags }, file, argument, timeout) {
  const env = { ...process.env }
  delete env.NODE_OPTIONS
  return run(binary, [...flags, path.join(__dirname, 'target', file), JSON.stringify(argument)], { env, timeout })
}

/**
 * Runs one job.
 * @returns {Promise<{ status: 'passed' | 'failed' | 'unparsable' | 'unusable', message: string }>}
 */
async function runJob (node, job, timeout) {
  const end = await runTarget(node, 'main.js', job, timeout)
  const said = end.output.split('\n').filter(line => line.startsWith(PREFIX)).map(line => JSON.parse(line.slice(PREFIX.length)))
  const notes = said.filter(({ note }) => note !== undefined).map(({ note }) => note)
  const verdict = said.find(({ status }) => status !== undefined) || null
  const printed = end.output.split('\n').filter(line => line !== '' && !line.startsWith(PREFIX))
  const context = [...notes, ...printed].join('\n').slice(-OUTPUT_KEPT)
  const problem = problemOf(verdict, end, timeout)
  const status = problem === null ? verdict.status : 'failed'
  const message = problem === null ? verdict.message : problem
  return { status, message: [message, status === 'failed' && context].filter(Boolean).join('\n') }
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
  const { code, signal, error, stdout, output } = await runTarget(node, 'features.js', entry, 60000)
  if (error) throw error
  if (code !== 0) throw new Error(`${node.binary} cannot run worker_threads (${signal || 'exit code ' + code}): ${output}`)
  return JSON.parse(stdout)
}

module.exports = { runJob, probe }
