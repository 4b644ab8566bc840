'use strict'

// The steps of `npm test` with cargo, in this order. A step: its `name`, its `args`, and `count`, which reads from its output how many
// tests there were (a step without one is one test). `optional`: a toolchain may be without this subcommand (reported as skipped);
// `lint`: it is part of `npm run lint`; `slow`: only `npm run test:all` runs it.

const { find } = require('./cargo')

const rustSteps = [
  { name: 'fmt', args: ['fmt', '--check', '--', '--color', 'never'], optional: true, lint: true },
  { name: 'clippy', args: ['clippy', '--locked', '--all-targets', '--', '-D', 'warnings'], optional: true, lint: true },
  // Not the advisories: they are on the network, and new ones are no fault of a change.
  { name: 'licences', args: ['deny', '--all-features', 'check', 'licenses', 'bans', 'sources'], optional: true, lint: true },
  find('cargo-nextest')
    ? { name: 'tests', args: ['nextest', 'run', '--locked', '--no-fail-fast', '--color=never'], count: countNextest }
    : { name: 'tests', args: ['test', '--locked', '--no-fail-fast'], count: countCargoTest },
  // Not of the benchmark, which does not stand on loom's primitives.
  {
    name: 'clippy of the models',
    args: ['clippy', '--locked', '--features', 'model', '--lib', '--tests', '--', '-D', 'warnings'],
    optional: true,
    lint: true
  },
  // In a folder of their own: cargo gives the library the same file name with and without the feature.
  {
    name: 'models',
    slow: true,
    args: ['test', '--locked', '--features', 'model', '--test', 'model', '--target-dir', 'target/model'],
    count: countCargoTest
  }
]

/** Whether a step failed because this toolchain is without its subcommand. */
function isMissing (step, { code, output }) {
  return Boolean(step.optional) && code !== 0 && /^error: (no such command|.*is not installed for the toolchain)/m.test(output)
}

// `Summary [ 0.1s] 12 tests run: 10 passed (1 slow), 1 failed, 1 timed out, 2 skipped`
function countNextest (output) {
  const summary = /^\s*Summary \[.*?\]\s+[\d/]+ tests? run: (.*)$/m.exec(output)
  return summary && {
    passed: sum(summary[1], /(\d+) passed/g),
    failed: sum(summary[1], /(\d+) (?:failed|exec failed|timed out)/g),
    skipped: sum(summary[1], /(\d+) skipped/g)
  }
}

// `test result: ok. 5 passed; 0 failed; 1 ignored; ...`, once for each program
function countCargoTest (output) {
  const results = output.match(/^test result: .*$/gm)
  return results && {
    passed: sum(results.join('\n'), /(\d+) passed/g),
    failed: sum(results.join('\n'), /(\d+) failed/g),
    skipped: sum(results.join('\n'), /(\d+) ignored/g)
  }
}

function sum (text, pattern) {
  let total = 0
  for (const match of text.matchAll(pattern)) total += Number(match[1])
  return total
}

module.exports = { rustSteps, isMissing, countNextest, countCargoTest }
