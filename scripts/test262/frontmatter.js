'use strict'

// The metadata block of a test262 test: `/*---` YAML `---*/`.
// Only the keys that decide how a test is run are read, in the few shapes of YAML that test262 uses for them.

const BLOCK = /\/\*---\r?\n?([\s\S]*?)---\*\//
const LISTS = ['includes', 'flags', 'features']

/**
 * @param {string} source the text of a test
 * @returns {{ includes: string[], flags: string[], features: string[], negative: null | { phase: string, type: string } }}
 */
function parseFrontmatter (source) {
  const meta = { includes: [], flags: [], features: [], negative: null }
  const block = BLOCK.exec(source)
  if (block === null) return meta

  for (const { key, value } of entries(block[1])) {
    if (LISTS.includes(key)) meta[key] = parseList(value)
    else if (key === 'negative') meta.negative = parseMap(value)
  }
  return meta
}

// Top-level keys with the text that belongs to them (the rest of the line and all lines that are indented).
function entries (yaml) {
  const found = []
  for (const line of yaml.split(/\r\n|\n|\r/)) {
    const start = /^([A-Za-z_][\w-]*):(.*)$/.exec(line)
    if (start !== null) found.push({ key: start[1], value: start[2] })
    else if (found.length > 0) found[found.length - 1].value += '\n' + line
  }
  return found
}

function parseList (text) {
  const inline = /^\s*\[([\s\S]*?)\]/.exec(text)
  const items = inline !== null
    ? inline[1].split(',')
    : text.split('\n').filter(line => /^\s*- /.test(line)).map(line => line.replace(/^\s*- /, ''))
  return items.map(scalar).filter(item => item !== '')
}

function parseMap (text) {
  const map = {}
  for (const line of text.replace(/[{}]/g, '').split(/[\n,]/)) {
    const pair = /^\s*([\w-]+):(.*)$/.exec(line)
    if (pair !== null) map[pair[1]] = scalar(pair[2])
  }
  return map
}

function scalar (text) {
  return text.replace(/\s#.*$/, '').trim().replace(/^(['"])(.*)\1$/, '$2')
}

module.exports = { parseFrontmatter }
