'use strict'

// `npm run instructions`: counts the instructions of the hot paths (benchmark/instructions.rs) and compares them with those in
// benchmark/instructions.json. It fails if a count differs from the recorded one: a lower one must be recorded, too.
//
//   npm run instructions [-- --update] [--strict]
//
//   --update  records what was counted
//   --strict  fails, too, where nothing can be compared: without valgrind, or with another compiler than that of the record
//
// The last line is `N passed, N failed[, N skipped]`, as `npm test` wants it.

const fs = require('fs')
const path = require('path')
const { argumentsOf, command } = require('./lib/arguments')
const { compare, countInstructions } = require('./lib/callgrind')
const { cargo, environment, find } = require('./lib/cargo')
const { succeed } = require('./lib/child')
const { Results } = require('./lib/results')

const root = path.join(__dirname, '..')
const RECORD = path.join(root, 'benchmark', 'instructions.json')

async function main () {
  const { update, strict } = argumentsOf('npm run instructions [-- --update] [--strict]', { update: { type: 'boolean' }, strict: { type: 'boolean' } })
  const results = new Results()
  const valgrind = find('valgrind')
  if (valgrind === null) results.skip('instructions', 'valgrind is not installed')
  else await count(valgrind, update, results)
  results.close()
  if (strict && results.skipped > 0) process.exitCode = 1
}

async function count (valgrind, update, results) {
  const compiler = await compilerAtHand()
  const record = JSON.parse(fs.readFileSync(RECORD, 'utf8'))
  const counted = await countInstructions(valgrind, await build())
  if (update) fs.writeFileSync(RECORD, `${JSON.stringify({ compiler, operations: counted }, null, 2)}\n`)
  const [recorded, present] = [record.compiler, compiler].map(facts => Object.values(facts).join(', '))
  const otherwise = update ? 'recorded now' : recorded === present ? undefined : `recorded with rustc ${recorded}; this is ${present}, whose counts differ`
  for (const { name, recorded, counted: now, ratio, problem } of compare(record.operations, counted)) {
    const numbers = `${recorded} recorded, ${now} counted, ${ratio.toFixed(3)} ×`
    if (otherwise) results.skip(`${name}: ${numbers}`, otherwise)
    else await results.of(`${name}: ${numbers}`, () => { if (problem) throw new Error(`${problem}; if that is as it shall be: npm run instructions -- --update`) })
  }
}

/** The facts beside the sources on which the counts depend. */
async function compilerAtHand () {
  const version = await succeed(find('rustc'), ['--version', '--verbose'], options())
  const facts = ['release', 'commit-hash', 'host', 'LLVM version']
  return Object.fromEntries(facts.map(fact => [fact, new RegExp(`^${fact}: (.*)$`, 'm').exec(version)[1]]))
}

/** The program whose operations are counted. In a folder of its own: the library is built with it, otherwise than for users. */
async function build () {
  const messages = await succeed(cargo(), [
    'build', '--profile', 'bench', '--bench', 'instructions', '--locked', '--message-format=json-render-diagnostics',
    '--target-dir', path.join('target', 'instructions')
  ], options())
  const programs = messages.split('\n').filter(line => line.startsWith('{')).map(line => JSON.parse(line).executable)
  return programs.find(Boolean)
}

/** Without the user's own flags for the compiler. */
const options = () => ({ cwd: root, env: environment({ CARGO_ENCODED_RUSTFLAGS: '' }), echo: true })

command(main)
