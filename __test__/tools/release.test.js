'use strict'
// nodes: running (what makes a release is written for that)

// What decides whether a binary and a set of tarballs may be published, and the workflow of a release. What is
// published is tested by `npm run test:tarballs`.

const assert = require('assert')
const { execFileSync } = require('child_process')
const fs = require('fs')
const os = require('os')
const path = require('path')
const { test } = require('../harness')
const { packageName } = require('../../lib/agent/target')
const { inspect } = require('../../scripts/lib/inspect')
const { targets } = require('../../scripts/lib/targets')
const { inOrder } = require('../../scripts/publish')

const glibc = process.platform === 'linux' && process.report.getReport().header.glibcVersionRuntime

// The Node that runs this asks for more than our binaries may: for C++'s library and for a newer glibc.
test(
  'a binary that needs more than the oldest system has is refused',
  { skip: !glibc && 'this is no Linux with glibc' },
  async () => {
    const { complaints } = await inspect(process.execPath, { libc: 'glibc' })
    assert.ok(complaints.includes('needs libstdc++.so.6'), complaints.join('; '))
    assert.ok(
      complaints.some(complaint => /^asks for symbols of glibc 2\.\d+;/.test(complaint)),
      complaints.join('; ')
    )
    const musl = await inspect(process.execPath, { libc: 'musl' })
    assert.ok(musl.complaints.includes('asks for symbols of glibc'), musl.complaints.join('; '))
  }
)

test('the release workflow builds every platform and tests it', () => {
  const jobs = fs
    .readFileSync(path.join(__dirname, '..', '..', '.github', 'workflows', 'release.yml'), 'utf8')
    .split(/^ {2}(?=[\w-]+:$)/m)
  const job = name => jobs.find(text => text.startsWith(`${name}:`))
  const inJob = name =>
    Array.from(job(name).matchAll(/\btarget: ([\w-]+)(?:, rust: ([\w-]+))?/g), ([, name, rust]) => [name, rust])
  const known = Object.entries(targets).map(([name, { rust }]) => [name, rust]).sort()
  assert.deepStrictEqual(inJob('build').sort(), known)
  assert.deepStrictEqual(
    [...inJob('test'), ...inJob('test-in-container')].map(([name]) => name).sort(),
    known.map(([name]) => name)
  )
})

/** A folder with tarballs that have nothing but a manifest. */
function folderOf (t, names, versionOf = () => '1.0.0') {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'atomics-waitasync-release-'))
  t.after(() => { fs.rmSync(folder, { recursive: true }) })
  fs.mkdirSync(path.join(folder, 'package'))
  for (const name of names) {
    fs.writeFileSync(path.join(folder, 'package', 'package.json'), JSON.stringify({ name, version: versionOf(name) }))
    execFileSync('tar', ['-czf', `${name}.tgz`, 'package'], { cwd: folder })
  }
  return folder
}

test('a release ends with the main package; there is none if one is missing, unknown or different', async t => {
  const platforms = Object.keys(targets).map(packageName)
  const all = ['atomics-waitasync', ...platforms]
  const files = await inOrder(folderOf(t, all))
  assert.deepStrictEqual(
    files.map(file => path.basename(file, '.tgz')),
    [...platforms, 'atomics-waitasync']
  )
  const missing = platforms
    .slice(2)
    .map(name => `no ${name}`)
    .join(', ')
  await assert.rejects(inOrder(folderOf(t, all.slice(0, 3))), ({ message }) => message.endsWith(`: ${missing}`))
  await assert.rejects(inOrder(folderOf(t, [...all, 'another'])), /: another$/)
  await assert.rejects(
    inOrder(folderOf(t, all, name => (name === platforms[0] ? '1.0.1' : '1.0.0'))),
    /has the versions /
  )
})
