'use strict'

// subjects: none

// The programs in README.md run, its links lead somewhere, and it stays short.

const assert = require('assert')
const fs = require('fs')
const path = require('path')
const { test } = require('../harness')
const { testPrograms } = require('../fixtures/markdown-programs')

const root = path.join(__dirname, '..', '..')
const text = fs.readFileSync(path.join(root, 'README.md'), 'utf8')

testPrograms(test, 'README.md', 4)

test('README.md links to files that are there', () => {
  const targets = text.match(/\]\([^)\s]+\)/g).map(link => link.slice(2, -1)).filter(target => !/^(https?:|#)/.test(target))
  assert.ok(targets.length > 10, `only ${targets.length}`)
  for (const target of targets) assert.ok(fs.existsSync(path.join(root, target)), target)
})

test('README.md links to headings that it has', () => {
  const headings = text.match(/^#+ .*$/gm).map(line => line.replace(/^#+ /, '').toLowerCase().replace(/[^\w -]/g, '').replace(/ /g, '-'))
  const anchors = text.match(/\]\(#[^)\s]+\)/g).map(link => link.slice(3, -1))
  assert.deepStrictEqual(anchors.filter(anchor => !headings.includes(anchor)), [])
})

test('README.md has at most 180 lines', () => {
  assert.ok(text.split('\n').length <= 181)
})
