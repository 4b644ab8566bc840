'use strict'

// The conditions for a binary to be published: it asks the system for nothing that the oldest one lacks, and
// nothing in it tells of the machine that it was built on. Each check gives its complaints.

const fs = require('fs')
const os = require('os')
const path = require('path')
const { succeed } = require('./child')
const { GLIBC } = require('./targets')
const { compareVersions } = require('./versions')

/** The libraries of the C library itself; anything else a system may be without. */
const SYSTEM = /^(libc|libm|libdl|libpthread|librt|libgcc_s|ld-linux(-[\w-]+)?|ld-musl-\w+|libc\.musl-\w+)\.so(\.\d+)?$/

/**
 * @param {string} file the binary
 * @param {{ libc?: string }} target its entry in targets.js
 * @returns {Promise<{ complaints: string[], facts: string[] }>}
 */
async function inspect (file, { libc }) {
  const linked = libc ? await elf(file, libc) : { complaints: [], facts: [] }
  return { complaints: [...linked.complaints, ...traces(file)], facts: linked.facts }
}

async function elf (file, libc) {
  const needed = Array.from((await readelf('--dynamic', file)).matchAll(/\(NEEDED\).*\[(.*)\]/g), match => match[1])
  if (needed.length === 0) throw new Error(`readelf found no libraries that ${path.basename(file)} needs`)
  const complaints = needed.filter(name => !SYSTEM.test(name)).map(name => `needs ${name}`)
  // Versions are asked for per library: `Name: GLIBC_2.17  Flags: none  Version: 3`, behind `File: libc.so.6`.
  const versions = Array.from(
    (await readelf('--version-info', file)).matchAll(/Name: (GLIBC_([\d.]+|PRIVATE))/g),
    (match) => match[2]
  )
  if (libc === 'musl') {
    return { complaints: complaints.concat(versions.length > 0 ? ['asks for symbols of glibc'] : []), facts: [] }
  }
  if (versions.length === 0) throw new Error(`readelf found no version of glibc that ${path.basename(file)} asks for`)
  // PRIVATE is behind all numbers: no program may use it.
  const newest = versions.sort(compareVersions).pop()
  if (compareVersions(newest, GLIBC) > 0)
    complaints.push(`asks for symbols of glibc ${newest}; ${GLIBC} is the oldest that it shall run on`)
  return { complaints, facts: [`glibc ${newest}`] }
}

/** Runs readelf, of the GNU binutils. */
const readelf = (option, file) =>
  succeed('readelf', ['--wide', option, file], { env: { ...process.env, LC_ALL: 'C' }, timeout: 60000 })

function traces (file) {
  const content = fs.readFileSync(file)
  const places = [
    path.join(__dirname, '..', '..'), os.homedir(), process.env.CARGO_HOME, path.join('registry', 'src') + path.sep
  ]
  return [...new Set(places)]
    .filter(Boolean)
    .filter((place) => content.includes(place))
    .map((place) => `names a folder of the machine that built it: ${place}`)
}

module.exports = { inspect }
