'use strict'

// The common parts of the two suites of other people's tests: their options, and how their results are told.

const { folder, positive } = require('../../scripts/lib/arguments')
const nodes = require('../../scripts/nodes')

const OPTIONS = {
  dir: { type: 'string', default: '', read: folder },
  node: { type: 'string', default: 'current', read: nodes.read },
  only: { type: 'string', default: '' },
  timeout: { type: 'string', read: positive }
}

const STATUSES = ['passed', 'failed', 'skipped']

/**
 * Runs a suite on Nodes, with each of some variants. Prints failures, the table of docs/conformance.md, and skips with
 * their reasons. The exit code is 1 if a test has failed, with another variant than `host`, or if nothing was run.
 * @param {string[]} versions as `--node` has them
 * @param {(node: object, variant: string) => Promise<?{ name: string, status: string, message: string }[]>} run null if
 *   this Node has no such variant
 */
async function conform (versions, variants, run) {
  const rows = []
  const skipped = new Map()
  let isGood = true
  await nodes.each(versions, async node => {
    for (const variant of variants) {
      const results = await run(node, variant)
      if (results === null) continue
      const [passed, failed, others] = STATUSES.map(status => results.filter(result => result.status === status))
      rows.push(`| ${[node.version, variant, passed.length, failed.length, others.length].join(' | ')} |`)
      console.log(rows.at(-1))
      for (const { name, message } of failed)
        console.log(`  FAILED ${name}\n${message.trim().replace(/^/gm, '      ')}`)
      for (const reason of new Set(others.map(({ message }) => message))) {
        const names = others.filter(({ message }) => message === reason).map(({ name }) => `\`${name}\``)
        const text = `${reason}: ${names.join(', ')}`
        skipped.set(text, [...skipped.get(text) || [], node.version])
      }
      if (failed.length > 0 && variant !== 'host') isGood = false
    }
  })
  console.log(['', `| Node | | ${STATUSES.join(' | ')} |`, '|---|---|--:|--:|--:|', ...rows, ''].join('\n'))
  for (const [text, places] of skipped) console.log(`- Node ${[...new Set(places)].join(', ')}: ${text}`)
  if (!isGood || rows.length === 0) process.exitCode = 1
}

module.exports = { OPTIONS, conform }
