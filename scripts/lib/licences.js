'use strict'

// The licences of the code in a binary: their holders ask for nothing but that these go with it.

const fs = require('fs')
const path = require('path')
const { cargo, environment } = require('./cargo')
const { succeed } = require('./child')

const root = path.join(__dirname, '..', '..')
const MIT = /mit/i
const LICENCE = /^(licen[cs]e|copying|copyright|notice|unlicense)/i

/** Returns the text for a target, by the compiler's word for that. */
async function thirdPartyLicences (rust) {
  const ask = (...args) => succeed(cargo(), [...args, '--locked'], { cwd: root, env: environment() })
  // The crates whose code is in the library, without those that only build or test it, and without this package's own.
  const edges = ['--edges', 'normal,no-proc-macro', '--prefix', 'depth', '--format', '{p}']
  const tree = await ask('tree', '--target', rust, ...edges)
  const linked = new Set(
    Array.from(tree.matchAll(/^[1-9]\d*(\S+) v(\S+)/gm), ([, name, version]) => `${name} ${version}`)
  )
  const { packages } = JSON.parse(await ask('metadata', '--format-version=1', '--filter-platform', rust))
  const crates = packages
    .filter(({ name, version, source }) => source !== null && linked.has(`${name} ${version}`))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
  const sections = crates.map(({ name, version, license, authors, manifest_path: manifest }) => {
    const folder = path.dirname(manifest)
    const files = fs.readdirSync(folder).filter(file => LICENCE.test(file)).sort()
    // Where there is a choice, the shortest will do.
    const chosen =
      / OR /.test(license) && files.some((file) => MIT.test(file)) ? files.filter((file) => MIT.test(file)) : files
    const texts = chosen.map(file => fs.readFileSync(path.join(folder, file), 'utf8').trim())
    return [`${name} ${version} (${license})`, authors.join(', '), ...texts].filter(Boolean).join('\n\n')
  })
  const std = 'The standard library of Rust (MIT OR Apache-2.0), https://www.rust-lang.org'
  return [...sections, std].join(`\n\n${'-'.repeat(80)}\n\n`) + '\n'
}

module.exports = { thirdPartyLicences }
