'use strict'

// `npm run wpt -- --dir CHECKOUT`: the tests of web-platform-tests' folder `web-locks` that need no browser, on any
// Node, over this package's `navigator.locks` and over Node's own. Each file runs in a process of its own.
//
// --dir      a checkout of https://github.com/web-platform-tests/wpt, or a folder that has its folders web-locks and
//            resources (nodejs/node has one: test/fixtures/wpt)
// --node     versions, or paths of binaries, with commas between; `all`: every supported version (this Node unless
//            given)
// --api      ours, host (both unless given; Node has an API of its own from 24 on, whose failures do not count)
// --only     the files that have this text in their name
// --timeout  seconds for one file, after which the tests that have not ended have failed (10 unless given)

const fs = require('fs')
const path = require('path')
const { argumentsOf, command, someOf } = require('../../scripts/lib/arguments')
const { run } = require('../../scripts/lib/child')
const { OPTIONS: COMMON, conform } = require('./report')
const { withScratch } = require('../../scripts/lib/scratch')
const setup = require('../../scripts/setup')

const OPTIONS = { ...COMMON, api: { type: 'string', default: 'ours,host', read: someOf(['ours', 'host']) } }

/**
 * The `.any.js` that are not run, and why. Each `.html` is a page, and needs a browser: for frames, navigation, storage
 * partitions.
 */
const SKIPPED = {
  'idlharness.https.any.js':
    'reads the interfaces from files of another folder by HTTP; `__test__/named/lock-manager.test.js` has these checks',
  'storage-buckets.tentative.https.any.js': 'storage partitions: Node has none',
  'non-secure-context.any.js': 'for pages loaded without encryption: Node loads no pages'
}

async function main () {
  const { dir, node: versions, only, api: apis, timeout = 10 } = argumentsOf(__filename, OPTIONS)
  const files = filesOf(dir).filter(name => name.endsWith('.any.js') && name.includes(only))
  if (files.length === 0) throw new Error(`${dir}/web-locks has no such tests`)
  await setup.run()
  await withScratch(scratch => {
    const harness = harnessOf(dir, scratch)
    return conform(versions, apis, async (node, api) => {
      if (api === 'host' && Number.parseInt(node.version) < 24) return null
      const results = []
      for (const file of files) {
        if (file in SKIPPED) results.push({ name: file, status: 'skipped', message: SKIPPED[file] })
        else results.push(...await runFile(node, { api, root: dir, harness, file }, timeout * 1000))
      }
      return results
    })
  })
}

/** Returns the checkout's testharness.js, in the syntax of the oldest Node. */
function harnessOf (root, scratch) {
  const { code } = require('esbuild').transformSync(
    fs.readFileSync(path.join(root, 'resources', 'testharness.js'), 'utf8'),
    { target: 'node10' }
  )
  const file = path.join(scratch, 'testharness.js')
  fs.writeFileSync(file, code)
  return file
}

/**
 * Returns the names of the files and folders of the checkout's web-locks. An older copy of a file is left out: the
 * newer has no `tentative`.
 */
function filesOf (root) {
  const folder = path.join(root, 'web-locks')
  if (!fs.existsSync(folder)) throw new Error(`--dir ${root}: there is no folder web-locks in it`)
  const names = fs.readdirSync(folder).sort()
  return names.filter(name => !(name.includes('.tentative.') && names.includes(name.replace('.tentative.', '.'))))
}

/** Runs a file. A test without a result has failed: the process hung, or ended before it. */
async function runFile (node, job, timeout) {
  const { file } = job
  const ended = await run(node.path, [...node.flags, path.join(__dirname, 'wpt', 'target.js'), JSON.stringify(job)], {
    timeout,
    env: { ...process.env, NODE_OPTIONS: '' }
  })
  const how = ended.timedOut
    ? 'did not end'
    : `the process ended before it (${ended.signal || `exit code ${ended.code}`})`
  const tests = new Map()
  for (const [, line] of ended.stdout.matchAll(/^wpt-result (.*)$/gm)) {
    const { name, failed, message = how } = JSON.parse(line)
    const status = failed === false ? 'passed' : 'failed'
    if (failed !== undefined || !tests.has(name))
      tests.set(name, { name: `${file}: ${name}`, status, message: String(message) })
  }
  return tests.size > 0 ? [...tests.values()] : [{ name: file, status: 'failed', message: ended.output.trim() || how }]
}

command(main)
