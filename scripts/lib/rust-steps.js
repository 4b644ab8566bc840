'use strict'

// The steps of `npm test` with cargo, in this order. A step: its `name`, its `args`, and `count`, which reads from its
// output how many tests there were (a step without one is one test). `optional`: a toolchain may be without this
// subcommand (reported as skipped); `lint`: it is part of `npm run lint`; `slow`: only `npm run test:all` runs it.

const rustSteps = [
  { name: 'fmt', command: 'fmt --all --check -- --color never', optional: true, lint: true },
  { name: 'clippy', command: 'clippy --locked --workspace --all-targets -- -D warnings', optional: true, lint: true },
  // Finds links to what has another name now.
  { name: 'doc', command: 'doc --locked --workspace --no-deps --document-private-items', lint: true },
  // Not the advisories: they are on the network, and new ones are no fault of a change.
  { name: 'licences', command: 'deny --all-features check licenses bans sources', optional: true, lint: true },
  { name: 'tests', command: 'test --locked --workspace --no-fail-fast', count: countCargoTest },
  // Not of the benchmark, which does not stand on loom's primitives.
  {
    name: 'clippy of the models',
    command: 'clippy --locked --package waitasync-core --features model --lib --tests -- -D warnings',
    optional: true,
    lint: true
  },
  // In a folder of their own: cargo gives the library the same file name with and without the feature.
  {
    name: 'models',
    slow: true,
    command: 'test --locked --package waitasync-core --features model --test model --test mapped_model ' +
      '--target-dir target/model',
    count: countCargoTest
  }
].map(({ command, ...step }) => ({ ...step, args: command.split(' ') }))

/** Whether a step failed because this toolchain is without its subcommand. */
function isMissing (step, { code, output }) {
  return (
    Boolean(step.optional) &&
    code !== 0 &&
    /^error: (no such command|.*is not installed for the toolchain)/m.test(output)
  )
}

// `test result: ok. 5 passed; 0 failed; 1 ignored; ...`, once for each program
function countCargoTest (output) {
  const results = Array.from(output.matchAll(/^test result: .*? (\d+) passed; (\d+) failed; (\d+) ignored/gm))
  const sum = group => results.reduce((total, result) => total + Number(result[group]), 0)
  return results.length > 0 ? { passed: sum(1), failed: sum(2), skipped: sum(3) } : null
}

module.exports = { rustSteps, isMissing, countCargoTest }
