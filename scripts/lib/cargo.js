'use strict'

// Finds cargo: on the PATH, or where rustup puts it, which a shell that is already open does not know.

const fs = require('fs')
const os = require('os')
const path = require('path')

const EXE = process.platform === 'win32' ? '.exe' : ''

const MISSING = `cargo was not found: the native part of this package is written in Rust and built with it.
Install Rust (https://rustup.rs), open a new terminal, and run the same command again.`

/** The absolute path of a program that is installed beside cargo (`cargo` itself, `cargo-nextest`, ...), or null. */
function find (name) {
  const rustup = process.env.CARGO_HOME || path.join(os.homedir(), '.cargo')
  const folders = (process.env.PATH || '').split(path.delimiter).concat(path.join(rustup, 'bin'))
  for (const folder of folders) {
    const file = path.join(folder, name + EXE)
    if (folder !== '' && isExecutable(file)) return file
  }
  return null
}

function isExecutable (file) {
  try {
    fs.accessSync(file, fs.constants.X_OK)
    return fs.statSync(file).isFile()
  } catch {
    return false
  }
}

/** The absolute path of cargo; throws an error that says what to do when there is none. */
function cargo () {
  const file = find('cargo')
  if (file === null) throw new Error(MISSING)
  return file
}

/** The environment for cargo: its own folder is on the PATH (it looks for rustc and its subcommands there), no colours. */
function environment (extra) {
  const key = Object.keys(process.env).find(name => name.toUpperCase() === 'PATH') || 'PATH'
  const folders = [process.env[key], path.dirname(cargo())].filter(Boolean)
  return { ...process.env, [key]: folders.join(path.delimiter), CARGO_TERM_COLOR: 'never', ...extra }
}

module.exports = { cargo, environment, find }
