'use strict'

// Finds cargo: on the PATH, or where rustup puts it, which a shell that is already open does not know.

const fs = require('fs')
const os = require('os')
const path = require('path')

const EXE = process.platform === 'win32' ? '.exe' : ''

const MISSING = `cargo was not found: the native part of this package is written in Rust and built with it.
Install Rust (https://rustup.rs), open a new terminal, and run the same command again.`

/** Returns the absolute path of a program (`cargo`, `valgrind`, ...), or null. */
function find (name) {
  const rustup = process.env.CARGO_HOME || path.join(os.homedir(), '.cargo')
  const folders = (process.env.PATH || '').split(path.delimiter).filter(Boolean).concat(path.join(rustup, 'bin'))
  return folders.map(folder => path.join(folder, name + EXE)).find(file => fs.existsSync(file)) || null
}

/** Returns the absolute path of cargo; throws an error with the remedy when there is none. */
function cargo () {
  const file = find('cargo')
  if (file === null) throw new Error(MISSING)
  return file
}

/** Returns the environment for cargo: no colours. Rustup's cargo finds the programs beside it. */
const environment = extra => ({ ...process.env, CARGO_TERM_COLOR: 'never', ...extra })

module.exports = { cargo, environment, find }
