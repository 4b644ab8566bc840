'use strict'

// Runs all tests on one Node with one entry point, and decides which of them do not apply.

const { runJob, probe } = require('./child')

/**
 * @param {{ version: string, path: string, flags: string[] }} node
 * @param {null | { name: string, file: string }} entry null: the host as it is
 * @param {object[]} tests as `collectTests` gives them
 * @param {{ jobs: number, timeout: number, repeat: number, flags: string[], onProgress: (done: number, all: number, failed: number) => void }} options
 * @returns {Promise<object>} the results, which report.js can print
 * @throws {Error} if this Node cannot run anything, or the entry point does not do there what it stands for
 */
async function runTests (node, entry, tests, options) {
  const began = performance.now()
  const target = { binary: node.path, flags: [...node.flags, ...options.flags] }
  const facts = await probe(target, entry)
  if (facts.error !== null) throw new Error(`Node ${node.version}: the entry point ${entry.name} is of no use: ${facts.error}`)

  const results = tests.map(test => ({ name: test.name, status: null, reason: reasonToSkip(test, facts, entry), failures: [], runs: 0 }))
  const queue = []
  tests.forEach((test, i) => {
    if (results[i].reason !== null) return
    for (let round = 0; round < options.repeat; round++) {
      for (const job of test.jobs) queue.push({ result: results[i], job: { ...job, entry } })
    }
  })

  const all = queue.length
  let done = 0
  const worker = async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      record(next.result, next.job, await runJob(target, next.job, options.timeout))
      options.onProgress(++done, all, results.filter(result => result.failures.length > 0).length)
    }
  }
  await Promise.all(Array.from({ length: options.jobs }, worker))

  for (const result of results) result.status = statusOf(result)
  return {
    node: facts.version.slice(1),
    entry: entry === null ? 'host' : entry.name,
    engine: facts.engine,
    seconds: (performance.now() - began) / 1000,
    runs: all,
    tests: results
  }
}

function reasonToSkip ({ meta }, facts, entry) {
  const missing = meta.features.filter(feature => facts.features[feature] === false)
    // What the package is there to provide is under test, and no reason to skip.
    .filter(feature => feature !== 'Atomics.waitAsync' || entry === null)
  if (missing.length > 0) return `the engine has no ${missing.join(', ')}`
  if (meta.flags.includes('CanBlockIsFalse') && facts.canBlock) return 'for main threads that may not block: on Node every thread may'
  if (meta.flags.includes('CanBlockIsTrue') && !facts.canBlock) return 'for main threads that may block'
  if (meta.flags.includes('module')) return 'module code: this runner has scripts only'
  return null
}

function record (result, job, { status, message }) {
  result.runs++
  if (status === 'unparsable') result.reason = `the engine cannot parse ${message}`
  else if (status !== 'passed') result.failures.push({ mode: job.mode, message })
}

function statusOf ({ reason, failures }) {
  if (failures.length > 0) return 'failed'
  return reason !== null ? 'skipped' : 'passed'
}

module.exports = { runTests }
