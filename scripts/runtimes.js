'use strict'

// The package in other runtimes than Node: Bun and Deno, as the npm registry has them.
//
//   node scripts/runtimes.js [--only text] [--runtime bun|deno] [--size small|full]
//
// The published form of this tree runs there: tests of Node that say something about the runtime, and those of
// __test__/company/runtimes/; the latter also on the tree as it is, for those who install a checkout. The differences
// of a runtime are listed in __test__/company/runtimes/differences.cjs, with its reason, and counted as skipped.
// `--only`: part of a file's name; `--size`: the TEST_SIZE of the files (see __test__/fixtures/size.js), full unless
// given.

const fs = require('fs')
const path = require('path')
const differences = require('../__test__/company/runtimes/differences.cjs')
const { libraryFile, target } = require('../lib/agent/target')
const { argumentsOf, command, oneOf, someOf } = require('./lib/arguments')
const cache = require('./lib/cache')
const { Results } = require('./lib/results')
const { RUNTIMES, fetch } = require('./lib/runtimes')
const { withScratch } = require('./lib/scratch')
const testFile = require('./lib/test-file')
const { stageMain } = require('./package')

const ROOT = path.join(__dirname, '..')
/** The tests beside the tree as it is. */
const CHECKOUT = path.join(ROOT, '__test__')

/**
 * The tests of Node that are run here, with their subjects: of features that a runtime has by itself, and of those on
 * top.
 */
const SHARED = {
  'atomics/wait': ['export', 'force'],
  'atomics/notify': ['export', 'force'],
  'atomics/wait-async': ['export', 'force'],
  'locks/every-class/ref': ['export'],
  'locks/every-class/options': ['export'],
  'locks/barrier': ['export'],
  'locks/latch': ['export'],
  'locks/condition': ['export'],
  'locks/semaphore': ['export'],
  'locks/rw-lock': ['export'],
  'locks/async-lock': ['export'],
  'locks/reentry': ['export'],
  'named/holds': ['export'],
  'ends/termination': ['export'],
  'ends/owner-death': ['export'],
  'soak/short': ['export']
}

/** Makes a project with the published package, and its tests beside it. Returns the tests' folder. */
async function makeProject (folder) {
  const home = path.join(folder, 'node_modules', 'atomics-waitasync')
  await stageMain(home)
  fs.copyFileSync(path.join(ROOT, libraryFile(target())), path.join(home, libraryFile(target())))
  const manifest = { name: 'project', private: true, dependencies: { 'atomics-waitasync': '*' } }
  fs.writeFileSync(path.join(folder, 'package.json'), JSON.stringify(manifest))
  fs.cpSync(path.join(ROOT, '__test__'), path.join(home, '__test__'), { recursive: true })
  return path.join(home, '__test__')
}

/** Plans the runs: form, file, subject, and the name that differences.cjs has for the file. */
function planned (published) {
  const own = fs.readdirSync(path.join(published, 'company', 'runtimes')).filter(name => name.endsWith('.test.js'))
  const shared = Object.keys(SHARED).map(name => ({ tests: published, name: `${name}.test.js` }))
  const both = own.map(name => `company/runtimes/${name}`)
    .flatMap(name => [{ tests: published, name }, { tests: CHECKOUT, name, form: ' in a checkout' }])
  return [...shared, ...both]
    .map(each => ({ ...each, declared: testFile.read(path.join(each.tests, each.name)) }))
    .flatMap(each =>
      (SHARED[each.name.replace('.test.js', '')] || each.declared.subjects).map(subject => ({ ...each, subject })))
}

async function runOne (results, runtime, binary, { tests, declared, name, form = '', subject }, size) {
  const where = `${runtime} ${name} ${subject}${form}`
  const listed = differences[runtime][name] || {}
  if (typeof listed === 'string') return results.skip(where, listed)
  const flags = [...RUNTIMES[runtime].args, path.join(tests, 'company', 'runtimes', 'run.cjs')]
  const node = { path: binary, flags }
  const ended = await testFile.run({ ...declared, flags: [] }, node, subject, { size })
  const { passed, failed, skips, problem, output, seconds } = ended
  for (const { name: what, reason } of skips) results.skip(`${where}: ${what}`, reason)
  const gone = Object.keys(listed).filter(title => !skips.some(skip => skip.name === title))
  const wrong = problem || (gone.length > 0 && `differences.cjs lists what is not in the file: ${gone.join(', ')}`)
  results.passed += passed
  results.failed += wrong ? Math.max(failed, 1) : 0
  console.log(`${wrong ? 'not ok' : 'ok'} - ${where}: ${passed} passed (${seconds.toFixed(1)} s)`)
  if (wrong) console.log(`    ${wrong}\n${output.replace(/^/gm, '    ')}`)
}

async function main () {
  const { only, runtime: chosen, size } = argumentsOf(__filename, {
    only: { type: 'string', default: '' },
    runtime: { type: 'string', default: Object.keys(RUNTIMES).join(','), read: someOf(Object.keys(RUNTIMES)) },
    size: { type: 'string', default: 'full', read: oneOf(['small', 'full']) }
  })
  const results = new Results()
  await withScratch(async scratch => {
    const tests = await makeProject(fs.realpathSync(scratch))
    for (const runtime of chosen) {
      const binary = await fetch(runtime).catch(error => {
        if (!(error instanceof cache.Unavailable)) throw error
        results.skip(`all of ${runtime}`, error.message)
      })
      for (const each of binary ? planned(tests) : []) {
        if (each.name.includes(only)) await runOne(results, runtime, binary, each, size)
      }
    }
  })
  results.close()
}

command(main)
