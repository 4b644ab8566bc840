'use strict'

// The programs in README.md run, its links lead somewhere, and it stays short.

const assert = require('assert')
const fs = require('fs')
const path = require('path')
const { test } = require('../harness')
const { testPrograms } = require('../fixtures/markdown-programs')

const root = path.join(__dirname, '..', '..')
const text = fs.readFileSync(path.join(root, 'README.md'), 'utf8')
const libraryFile = fs.readdirSync(root).filter(name => name.endsWith('.node')).map(name => path.join(root, name))[0]

/** As GitHub names headings. */
const anchorsOf = (text) => text.match(/^#+ .*$/gm).map(line => line.replace(/^#+ /, '').toLowerCase().replace(/[^\w -]/g, '').replace(/ /g, '-'))

testPrograms(test, 'README.md', 4)

test('README.md links to files that are there', () => {
  const targets = text.match(/\]\([^)\s]+\)/g).map(link => link.slice(2, -1)).filter(target => !/^(https?:|#)/.test(target))
  assert.ok(targets.length > 10, `only ${targets.length}`)
  for (const target of targets) {
    const [file, anchor] = target.split('#')
    assert.ok(fs.existsSync(path.join(root, file)), target)
    if (anchor !== undefined) assert.ok(anchorsOf(fs.readFileSync(path.join(root, file), 'utf8')).includes(anchor), target)
  }
})

test('README.md links to headings that it has', () => {
  const headings = anchorsOf(text)
  const anchors = text.match(/\]\(#[^)\s]+\)/g).map(link => link.slice(3, -1))
  assert.deepStrictEqual(anchors.filter(anchor => !headings.includes(anchor)), [])
})

test('README.md has at most 180 lines', () => {
  assert.ok(text.split('\n').length <= 181)
})

test('README.md names the commands of a checkout on its first screen', () => {
  const screen = text.split('\n').slice(0, 40).join('\n')
  for (const command of ['`npm start`', '`npm test`']) assert.ok(screen.includes(command), command)
})

/** The bytes of a file, or of all files below a folder. */
function bytesOf (name) {
  const stat = fs.statSync(name)
  return stat.isDirectory() ? fs.readdirSync(name).reduce((sum, each) => sum + bytesOf(path.join(name, each)), 0) : stat.size
}

test('README.md has the size of an installation', { skip: libraryFile === undefined && 'no library was built' }, () => {
  const { files } = require('../../package.json')
  const left = files.filter(name => name.startsWith('!')).reduce((sum, name) => sum + bytesOf(path.join(root, name.slice(1))), 0)
  const size = files.filter(name => !name.startsWith('!')).reduce((sum, name) => sum + bytesOf(path.join(root, name)), -left) + bytesOf(libraryFile)
  const [, said] = /about ([\d.]+) MB/.exec(text)
  assert.ok(Math.abs(size / 1e6 - said) < 0.5, `${size} bytes`)
})
