'use strict'
// nodes: >=16 (older ones lack what the engines need)

// The names of files: one for each file, whichever way it is spelt, and whether it exists yet or not.

const assert = require('assert')
const fs = require('fs')
const path = require('path')
const { pathToFileURL } = require('url')
const vm = require('vm')
const { test } = require('../harness')
const { scratchFolder, startMembers } = require('../fixtures/lock-processes')
const { pathName } = require('../../processes')

const LINKS = process.platform === 'win32' && 'Windows allows links to few users'

/** Makes folders `real/deep`, and links `near` and `far` to these. Gives their folder. */
function tree (t) {
  const folder = scratchFolder(t)
  fs.mkdirSync(path.join(folder, 'real', 'deep'), { recursive: true })
  if (LINKS) return folder
  fs.symlinkSync('real', path.join(folder, 'near'))
  fs.symlinkSync(path.join(folder, 'real', 'deep'), path.join(folder, 'far'))
  return folder
}

/** The spellings of `real/name` in a tree. */
const spellings = folder => [
  ['real', 'name'], ['real', '.', 'name'], ['real', 'deep', '..', 'name'], ['real', '', 'name'],
  // The parent of a link's target, not that of the link.
  ...LINKS ? [] : [['near', 'name'], ['near', '..', 'near', 'name'], ['far', '..', 'name']]
].map(parts => [folder, ...parts].join(path.sep))

test('each spelling of a file has one name, before the file exists and after', t => {
  const folder = tree(t)
  const name = path.join(folder, 'real', 'name')
  const before = process.cwd()
  t.after(() => process.chdir(before))
  for (const make of [() => {}, () => fs.writeFileSync(name, ''), () => fs.unlinkSync(name)]) {
    make()
    for (const file of spellings(folder)) {
      assert.strictEqual(pathName(file), name, file)
      assert.strictEqual(pathName(pathToFileURL(name)), name)
      process.chdir(folder)
      assert.strictEqual(pathName(path.relative(folder, name)), name)
      process.chdir(path.join(folder, 'real'))
      assert.strictEqual(pathName('name'), name)
    }
  }
})

test('a folder has a name, too, with a slash at its end, before it exists and after', t => {
  const folder = tree(t)
  assert.strictEqual(pathName(path.join(folder, 'real', path.sep)), path.join(folder, 'real'))
  assert.strictEqual(pathName(path.join(folder, 'new', path.sep)), path.join(folder, 'new'))
  assert.strictEqual(pathName(path.parse(folder).root), path.parse(folder).root)
})

test('a link to nothing names the file that is made by writing to it', { skip: LINKS }, t => {
  const folder = tree(t)
  const links = {
    relative: '../real/deep/target',
    // Behind the link `far`, `..` is `real`.
    climbing: '../far/../deep/target',
    absolute: path.join(folder, 'near', 'deep', 'target'),
    chain: 'relative'
  }
  fs.mkdirSync(path.join(folder, 'links'))
  for (const [name, target] of Object.entries(links)) {
    const link = path.join(folder, 'links', name)
    fs.symlinkSync(target, link)
    const before = pathName(link)
    assert.strictEqual(before, path.join(folder, 'real', 'deep', 'target'), name)
    fs.writeFileSync(link, '')
    assert.strictEqual(pathName(link), before, name)
    fs.unlinkSync(before)
  }
})

test('what cannot be opened has no name: errors have the code of the system', t => {
  const folder = tree(t)
  const codeOf = (...parts) => {
    try {
      return pathName([folder, ...parts].join(path.sep))
    } catch (error) {
      return error.code
    }
  }
  fs.writeFileSync(path.join(folder, 'file'), '')
  assert.strictEqual(codeOf('no', 'name'), 'ENOENT')
  if (LINKS) return
  assert.strictEqual(codeOf('no', '..', 'name'), 'ENOENT')
  assert.strictEqual(codeOf('file', 'name'), 'ENOTDIR')
  fs.symlinkSync('loop', path.join(folder, 'loop'))
  assert.strictEqual(codeOf('loop'), 'ELOOP')
  fs.symlinkSync(path.join('no', 'target'), path.join(folder, 'astray'))
  assert.strictEqual(codeOf('astray'), 'ENOENT')
})

test('arguments: a path, or a URL of any realm; all else is an error with a code', t => {
  const folder = scratchFolder(t)
  const { href } = pathToFileURL(path.join(folder, 'a b'))
  assert.strictEqual(pathName(vm.runInNewContext('({ href })', { href })), path.join(folder, 'a b'))
  for (const file of [undefined, null, '', 1, {}, [], Buffer.from(folder), Symbol('a'), () => {}]) {
    const message = /^pathName: file must be a path or a URL of a file, not /
    assert.throws(() => pathName(file), { name: 'TypeError', code: 'ERR_INVALID_ARG_TYPE', message })
  }
  assert.throws(() => pathName('a\0b'), { name: 'TypeError', code: 'ERR_INVALID_ARG_VALUE' })
  assert.throws(() => pathName(new URL('https://example.org/a')), { code: 'ERR_INVALID_URL_SCHEME' })
})

test('processes that spell a file differently count one at a time', async t => {
  const folder = tree(t)
  const ways = spellings(folder)
  fs.writeFileSync(path.join(folder, 'real', 'name'), '0')
  const members = await startMembers(t, path.join(folder, 'locks'), 2)
  await Promise.all(members.map((member, n) => member.run(async ({ api, fs, locks }, files, first) => {
    for (let round = 0; round < 30; round++) {
      const file = files[(first + round) % files.length]
      await locks.request(api.pathName(file), async () => {
        const number = Number(fs.readFileSync(file, 'utf8'))
        await new Promise(resolve => setImmediate(resolve))
        fs.writeFileSync(file, String(number + 1))
      })
    }
  }, ways, n)))
  assert.strictEqual(fs.readFileSync(path.join(folder, 'real', 'name'), 'utf8'), '60')
})
