'use strict'
// subjects: none
// nodes: >=20 (what makes a release is written for that)

// What decides whether a binary may be published, and the workflow of a release. What is published is tested by `npm run test:tarballs`.

const assert = require('assert')
const fs = require('fs')
const path = require('path')
const { test } = require('./harness')
const { inspect } = require('../scripts/lib/inspect')
const { targets } = require('../scripts/lib/targets')

const glibc = process.platform === 'linux' && process.report.getReport().header.glibcVersionRuntime

// The Node that runs this asks for more than our binaries may: for C++'s library and for a newer glibc.
test('a binary that needs more than the oldest system has is refused', { skip: !glibc && 'this is no Linux with glibc' }, async () => {
  const { complaints } = await inspect(process.execPath, { libc: 'glibc' })
  assert.ok(complaints.includes('needs libstdc++.so.6'), complaints.join('; '))
  assert.ok(complaints.some(complaint => /^asks for symbols of glibc 2\.\d+;/.test(complaint)), complaints.join('; '))
  const musl = await inspect(process.execPath, { libc: 'musl' })
  assert.ok(musl.complaints.includes('asks for symbols of glibc'), musl.complaints.join('; '))
})

test('the release workflow builds every platform and tests it', () => {
  const jobs = fs.readFileSync(path.join(__dirname, '..', '.github', 'workflows', 'release.yml'), 'utf8').split(/^ {2}(?=[\w-]+:$)/m)
  const job = name => jobs.find(text => text.startsWith(`${name}:`))
  const inJob = name => Array.from(job(name).matchAll(/\btarget: ([\w-]+)(?:, rust: ([\w-]+))?/g), ([, name, rust]) => [name, rust])
  const known = Object.entries(targets).map(([name, { rust }]) => [name, rust]).sort()
  assert.deepStrictEqual(inJob('build').sort(), known)
  assert.deepStrictEqual([...inJob('test'), ...inJob('test-in-container')].map(([name]) => name).sort(), known.map(([name]) => name))
})
