'use strict'

// The results of `runTests` in words: for the terminal, and as the table of docs/conformance.md.

const count = (run, status) => run.tests.filter(test => test.status === status).length

function summaryLine (run) {
  return `Node ${run.node}, ${run.entry} (queue: ${run.engine}): ${count(run, 'passed')} passed, ${count(run, 'failed')} failed, ` +
    `${count(run, 'skipped')} skipped; ${run.runs} runs in ${run.seconds.toFixed(0)} s`
}

/** Failing tests with their messages, skipped ones by reason. */
function details (run) {
  const lines = []
  for (const test of run.tests.filter(test => test.status === 'failed')) {
    lines.push(`  FAILED ${test.name} (${test.failures.length} of ${test.runs} runs)`)
    const messages = new Set(test.failures.map(failure => `${failure.mode}: ${failure.message}`))
    for (const message of messages) lines.push(...message.split('\n').map(line => `      ${line}`))
  }
  for (const [reason, names] of skippedByReason(run)) {
    lines.push(`  skipped: ${reason}`)
    lines.push(...names.map(name => `      ${name}`))
  }
  return lines.join('\n')
}

function skippedByReason (run) {
  const reasons = new Map()
  for (const test of run.tests.filter(test => test.status === 'skipped')) {
    if (!reasons.has(test.reason)) reasons.set(test.reason, [])
    reasons.get(test.reason).push(test.name)
  }
  return reasons
}

/** One row per Node, and under it what was skipped, why and where. */
function markdown (runs) {
  const table = [
    '| Node | entry point | queue | passed | failed | skipped |',
    '|---|---|---|--:|--:|--:|',
    ...runs.map(run => `| ${run.node} | \`${run.entry}\` | ${run.engine} | ${count(run, 'passed')} | ${count(run, 'failed')} | ${count(run, 'skipped')} |`)
  ]
  const skipped = new Map()
  for (const run of runs) {
    for (const [reason, names] of skippedByReason(run)) {
      const key = JSON.stringify([reason, names])
      if (!skipped.has(key)) skipped.set(key, { reason, names, nodes: [] })
      skipped.get(key).nodes.push(run.node)
    }
  }
  const list = [...skipped.values()].map(({ reason, names, nodes }) =>
    `- ${reason} (Node ${[...new Set(nodes)].join(', ')}): ${names.map(name => `\`${name}\``).join(', ')}`)
  return [...table, ...(list.length > 0 ? ['', 'Skipped:', '', ...list] : [])].join('\n')
}

module.exports = { summaryLine, details, markdown, count }
