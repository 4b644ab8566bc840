'use strict'

// `npm run instructions`: counts the instructions of the hot paths (benchmark/instructions.rs) by valgrind's callgrind,
// which gives the same numbers on every machine, however busy it is, and compares them with those in
// benchmark/instructions.json. It fails if a count differs from the recorded one: a lower one must be recorded, too.
//
//   npm run instructions [-- --update] [--strict]
//
//   --update  records what was counted
//   --strict  fails, too, where nothing can be compared: without valgrind, or with another compiler than that of the
//             record

const fs = require('fs')
const path = require('path')
const { argumentsOf, command } = require('./lib/arguments')
const { cargo, environment, find } = require('./lib/cargo')
const { succeed } = require('./lib/child')
const { Results } = require('./lib/results')
const { withScratch } = require('./lib/scratch')

const root = path.join(__dirname, '..')
const RECORD = path.join(root, 'benchmark', 'instructions.json')

/**
 * The count of one call of another library, whose real number of instructions depends on its version and on the
 * processor.
 */
const CALL = 60

/**
 * How far a count may be from the recorded one. They are exact, so this is not for noise: whatever is changed, the
 * compiler inlines and orders other things a little differently as well. Of the usual few hundred instructions it is an
 * atomic operation and its consequences; of the shortest path it is one instruction.
 */
const TOLERANCE = 0.03

async function main () {
  const { update, strict } = argumentsOf(__filename, { update: { type: 'boolean' }, strict: { type: 'boolean' } })
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
  const differs = recorded !== present && `recorded with rustc ${recorded}; this is ${present}, whose counts differ`
  const otherwise = update ? 'recorded now' : differs
  for (const { name, recorded, counted: now, ratio, problem } of compare(record.operations, counted)) {
    await results.of(`${name}: ${recorded} recorded, ${now} counted, ${ratio.toFixed(3)} ×`, () => {
      if (problem) throw new Error(`${problem}; if that is as it shall be: npm run instructions -- --update`)
    }, otherwise)
  }
}

/** Returns the facts beside the sources on which the counts depend. */
async function compilerAtHand () {
  const version = await succeed(find('rustc'), ['--version', '--verbose'], options())
  const facts = ['release', 'commit-hash', 'host', 'LLVM version']
  return Object.fromEntries(facts.map(fact => [fact, new RegExp(`^${fact}: (.*)$`, 'm').exec(version)[1]]))
}

/**
 * Builds the program whose operations are counted. In a folder of its own: the library is built with it, otherwise than
 * for users.
 */
async function build () {
  const bench = 'build --package waitasync-core --profile bench --bench instructions --locked'.split(' ')
  const places = ['--message-format=json-render-diagnostics', '--target-dir', path.join('target', 'instructions')]
  const messages = await succeed(cargo(), [...bench, ...places], options())
  const programs = messages.split('\n').filter(line => line.startsWith('{')).map(line => JSON.parse(line).executable)
  return programs.find(Boolean)
}

/** Returns options without the user's own flags for the compiler. */
const options = () => ({ cwd: root, env: environment({ CARGO_ENCODED_RUSTFLAGS: '' }), echo: true })

/**
 * Runs `program`, which prints a line `times name` for each operation. It has done that within a call of its function
 * `counted`.
 * @returns {Promise<Object<string, number>>} the instructions of each operation
 */
function countInstructions (valgrind, program) {
  return withScratch(async folder => {
    const out = path.join(folder, 'out')
    const counted = `${path.basename(program).replace(/-[0-9a-f]+$/, '')}::counted`
    const stdout = await succeed(valgrind, [
      // Without the user's own options of valgrind.
      '--command-line-only=yes',
      '--tool=callgrind',
      `--callgrind-out-file=${out}`,
      '--compress-strings=no',
      '--compress-pos=no',
      `--zero-before=${counted}`,
      `--dump-after=${counted}`,
      program
    ])
    const operations = Array.from(stdout.matchAll(/^(\d+) (.*)$/gm))
    const dumps = fs.readdirSync(folder).length - 1 // The last is of what comes after all operations.
    if (dumps !== operations.length)
      throw new Error(`${operations.length} operations, but ${counted} was left ${dumps} times`)
    return Object.fromEntries(operations.map(([, times, name], place) => {
      const dump = fs.readFileSync(`${out}.${place + 1}`, 'utf8')
      return [name, Number((instructionsIn(dump, fs.realpathSync(program)) / times).toFixed(1))]
    }))
  })
}

/** Reads a dump of callgrind's: the instructions of `program` itself, and its calls of other libraries. */
function instructionsIn (dump, program) {
  let object = null
  let called = null
  let isCall = false
  let count = 0
  for (const line of dump.split('\n')) {
    const [, key, value] = /^(\w+)=(.*)/.exec(line) || []
    if (key === 'ob') object = value
    else if (key === 'cob') called = value
    else if (key === 'calls') {
      if (object === program && called !== null && called !== program) count += CALL * parseInt(value, 10)
      called = null
      isCall = true
    } else if (/^\d/.test(line)) {
      // After `calls` comes the cost of the called one and those below it, which is said where they are, too.
      if (object === program && !isCall) count += Number(line.split(' ')[1])
      isCall = false
    }
  }
  return count
}

/**
 * Compares each operation that is recorded or was counted: both numbers, their ratio, and its error, or null.
 */
function compare (recorded, counted) {
  const names = new Set([...Object.keys(recorded), ...Object.keys(counted)])
  return Array.from(names, name => {
    const [before, now] = [recorded[name], counted[name]]
    const ratio = now / before
    return { name, recorded: before, counted: now, ratio, problem: problemOf(before, now, ratio) }
  })
}

function problemOf (before, now, ratio) {
  if (now === undefined) return 'is not counted any more'
  if (before === undefined) return 'is not recorded'
  if (ratio > 1 + TOLERANCE) return 'takes more'
  return ratio < 1 - TOLERANCE ? 'takes less: the record is out of date' : null
}

module.exports = { compare }

if (require.main === module) command(main)
