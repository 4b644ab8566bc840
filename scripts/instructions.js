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

const root = path.join(__dirname, '..')
const RECORD = path.join(root, 'benchmark', 'instructions.json')

async function main () {
  const { update, strict } = argumentsOf('npm run instructions [-- --update] [--strict]', { update: { type: 'boolean' }, strict: { type: 'boolean' } })
  const skip = reason => {
    console.log(`skip - instructions # ${reason}\n0 passed, 0 failed, 1 skipped`)
    if (strict) process.exitCode = 1
  }

  const valgrind = find('valgrind')
  if (valgrind === null) return skip('valgrind is not installed')
  const compiler = await compilerAtHand()
  const record = JSON.parse(fs.readFileSync(RECORD, 'utf8'))
  const counted = await countInstructions(valgrind, await build())
  const rows = compare(record.operations, counted)
  for (const row of rows) console.log(`${[row.recorded, row.counted, row.ratio].map(cell).join('')}  ${row.name}`)
  if (update) {
    fs.writeFileSync(RECORD, `${JSON.stringify({ compiler, operations: counted }, null, 2)}\n`)
    return console.log(`recorded in ${path.relative(root, RECORD)}`)
  }
  const [recorded, present] = [record.compiler, compiler].map(facts => Object.values(facts).join(', '))
  if (recorded !== present) return skip(`counts of another compiler cannot be compared: recorded with rustc ${recorded}; this is ${present}`)
  const failed = rows.filter(({ problem }) => problem)
  for (const { name, problem } of failed) console.log(`not ok - ${name}: ${problem}`)
  if (failed.length > 0) {
    console.log('if that is as it shall be: npm run instructions -- --update')
    process.exitCode = 1
  }
  console.log(`${rows.length - failed.length} passed, ${failed.length} failed`)
}

const cell = (value, column) => (Number.isFinite(value) ? value.toFixed(column < 2 ? 1 : 3) : '-').padStart(column < 2 ? 10 : 8)

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
