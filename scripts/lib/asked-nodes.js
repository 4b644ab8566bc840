'use strict'

// The versions of Node that a program's `--node` names.

const fs = require('fs')
const path = require('path')
const nodes = require('../nodes')

/** The items of a list with commas between them. */
const list = text => text.split(',').map(item => item.trim()).filter(item => item !== '')

/**
 * @param {string} text versions (see scripts/nodes.js) or paths of binaries, with commas between; 'all': every supported version
 * @returns {Promise<{ nodes: { version: string, path: string, flags: string[] }[], missing: { version: string, reason: string }[] }>}
 *   `missing`: the platform cannot have it
 */
async function askedNodes (text) {
  const found = []
  const missing = []
  for (const version of text === 'all' ? nodes.versions : list(text)) {
    if (fs.existsSync(version)) {
      found.push({ version, path: path.resolve(version), flags: [] })
      continue
    }
    const node = await nodes.get(version)
    if (node.skipped) missing.push({ version, reason: node.skipped })
    else found.push({ flags: [], ...node })
  }
  return { nodes: found, missing }
}

module.exports = { askedNodes, list }
