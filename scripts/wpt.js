'use strict'

// npm run wpt -- --dir CHECKOUT: the tests of web-platform-tests' folder `web-locks` that need no browser, on any Node, over this
// package's `navigator.locks` and over Node's own. Each file runs in a process of its own.

const fs = require('fs')
const path = require('path')
const { argumentsOf, command, folder, positive, someOf } = require('./lib/arguments')
const { run } = require('./lib/child')
const { withScratch } = require('./lib/scratch')
const nodes = require('./nodes')
const setup = require('./setup')

const USAGE = `npm run wpt -- --dir CHECKOUT [options]

  --dir CHECKOUT     a checkout of https://github.com/web-platform-tests/wpt, or a folder that has its folders web-locks and
                     resources (nodejs/node has one: test/fixtures/wpt)
  --node LIST        versions, or paths of binaries, with commas between; 'all': every supported version (default: this Node)
  --api LIST         ours, host (default: both; Node has an API of its own from 24 on)
  --only TEXT        only the files that have TEXT in their name
  --timeout SECONDS  for one file, after which the tests that have not ended have failed (default: 10)
`

const OPTIONS = {
  dir: { type: 'string', default: '', read: folder },
  node: { type: 'string', default: 'current', read: nodes.read },
  api: { type: 'string', default: 'ours,host', read: someOf(['ours', 'host']) },
  only: { type: 'string', default: '' },
  timeout: { type: 'string', default: '10', read: positive }
}

/** The `.any.js` that are not run, and why. Each `.html` is a page, and needs a browser: for frames, navigation, storage partitions. */
const SKIPPED = {
  'idlharness.https.any.js': 'reads the interfaces from files of another folder by HTTP; `__test__/lock-manager.test.js` has these checks',
  'storage-buckets.tentative.https.any.js': 'storage partitions: Node has none',
  'non-secure-context.any.js': 'for pages loaded without encryption: Node loads no pages'
}

async function main () {
  const values = argumentsOf(USAGE, OPTIONS)
  await setup.run()
  await withScratch(scratch => runAll(values, values.dir, harnessOf(values.dir, scratch)))
}

/** The checkout's testharness.js, in the syntax of the oldest Node. */
function harnessOf (root, scratch) {
  const { code } = require('esbuild').transformSync(fs.readFileSync(path.join(root, 'resources', 'testharness.js'), 'utf8'), { target: 'node10' })
  const file = path.join(scratch, 'testharness.js')
  fs.writeFileSync(file, code)
  return file
}

async function runAll (values, root, harness) {
  const names = filesOf(root)
  const files = names.filter(name => name.endsWith('.any.js') && !(name in SKIPPED) && name.includes(values.only))
  if (files.length === 0) throw new Error(`${root}/web-locks has no such tests`)

  const runs = []
  await nodes.each(values.node, async node => {
    for (const api of values.api) {
      if (api === 'host' && Number.parseInt(node.version) < 24) continue
      const tests = []
      for (const file of files) tests.push(...await runFile(node, { api, root, harness, file }, values.timeout * 1000))
      runs.push({ version: node.version, api, tests })
      report(runs[runs.length - 1])
    }
  })
  for (const name of names) if (name in SKIPPED) console.log(`skipped ${name}: ${SKIPPED[name]}`)
  console.log('\n' + markdown(runs))
  if (runs.length === 0 || runs.some(({ api, tests }) => api === 'ours' && tests.some(({ failed }) => failed))) process.exitCode = 1
}

/** The names of the files and folders of the checkout's web-locks. An older copy of a file is left out: the newer has no `tentative`. */
function filesOf (root) {
  const folder = path.join(root, 'web-locks')
  if (!fs.existsSync(folder)) throw new Error(`--dir ${root}: there is no folder web-locks in it`)
  const names = fs.readdirSync(folder).sort()
  return names.filter(name => !(name.includes('.tentative.') && names.includes(name.replace('.tentative.', '.'))))
}

/** Runs a file. A test without a result has failed: the process hung, or ended before it. */
async function runFile (node, job, timeout) {
  const { file } = job
  const ended = await run(node.path, [...node.flags, path.join(__dirname, 'wpt', 'target.js'), JSON.stringify(job)], { timeout, env: { ...process.env, NODE_OPTIONS: '' } })
  const how = ended.timedOut ? 'did not end' : `the process ended before it (${ended.signal || `exit code ${ended.code}`})`
  const tests = new Map()
  for (const [, line] of ended.stdout.matchAll(/^wpt-result (.*)$/gm)) {
    const result = JSON.parse(line)
    if ('failed' in result || !tests.has(result.name)) tests.set(result.name, { file, failed: true, message: how, ...result })
  }
  return tests.size > 0 ? [...tests.values()] : [{ file, name: '(all)', failed: true, message: ended.output.trim() || how }]
}

function report ({ version, api, tests }) {
  const failures = tests.filter(({ failed }) => failed)
  console.log(`Node ${version}, ${api}: ${tests.length - failures.length} passed, ${failures.length} failed`)
  for (const { file, name, message } of failures) console.log(`  FAILED ${file}: ${name}\n      ${String(message).split('\n').slice(0, 6).join('\n      ')}`)
}

/** The table of docs/conformance.md. */
function markdown (runs) {
  return [
    '| Node | | passed | failed |',
    '|---|---|--:|--:|',
    ...runs.map(({ version, api, tests }) => {
      const failures = tests.filter(({ failed }) => failed).length
      return `| ${version} | ${api === 'ours' ? '`atomics-waitasync/web-locks`' : 'Node\'s own'} | ${tests.length - failures} | ${failures} |`
    })
  ].join('\n')
}

command(main)
