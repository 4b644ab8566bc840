'use strict'

// The licences of what is linked into a binary: their holders ask for nothing but that these go with it.

const fs = require('fs')
const path = require('path')
const { cargo, environment } = require('./cargo')
const { succeed } = require('./child')

const root = path.join(__dirname, '..', '..')
const MIT = /mit/i
const LICENCE = /^(licen[cs]e|copying|copyright|notice|unlicense)/i

/** The text for a target, given in the compiler's word for it. */
async function thirdPartyLicences (rust) {
  const args = ['metadata', '--format-version=1', '--locked', '--filter-platform', rust]
  const linked = linkedPackages(JSON.parse(await succeed(cargo(), args, { cwd: root, env: environment() }))).sort((a, b) => a.name < b.name ? -1 : 1)
  const sections = linked.map(({ name, version, license, authors, manifest_path: manifest }) => {
    const folder = path.dirname(manifest)
    const files = fs.readdirSync(folder).filter(file => LICENCE.test(file)).sort()
    // Where there is a choice, the shortest will do.
    const chosen = / OR /.test(license) && files.some(file => MIT.test(file)) ? files.filter(file => MIT.test(file)) : files
    const texts = chosen.map(file => fs.readFileSync(path.join(folder, file), 'utf8').trim())
    return [`${name} ${version} (${license})`, authors.join(', '), ...texts].filter(Boolean).join('\n\n')
  })
  const std = 'The standard library of Rust (MIT OR Apache-2.0), https://www.rust-lang.org'
  return [...sections, std].join(`\n\n${'-'.repeat(80)}\n\n`) + '\n'
}

/** The crates whose code is in the library, without those that only build or test it. */
function linkedPackages ({ packages, resolve }) {
  const byId = new Map(packages.map(each => [each.id, each]))
  const nodes = new Map(resolve.nodes.map(each => [each.id, each]))
  const found = new Set()
  const visit = id => {
    for (const { pkg, dep_kinds: kinds } of nodes.get(id).deps) {
      const macro = byId.get(pkg).targets.some(({ kind }) => kind.includes('proc-macro'))
      if (found.has(pkg) || macro || !kinds.some(({ kind }) => kind === null)) continue
      found.add(pkg)
      visit(pkg)
    }
  }
  visit(resolve.root)
  return [...found].map(id => byId.get(id))
}

module.exports = { thirdPartyLicences }
