'use strict'

/** The names of this platform, its native library, and its package. */

const fs = require('fs')

/** Returns the suffix after the architecture: the C library or the compiler. */
function abiSuffix (musl) {
  if (process.platform === 'win32') return '-msvc'
  if (process.platform !== 'linux') return ''
  return (musl ? '-musl' : '-gnu') + (process.arch === 'arm' ? 'eabihf' : '')
}

function isAlpine () {
  try {
    return fs.existsSync('/etc/alpine-release')
  } catch (_) {
    // Node's permission model.
    return false
  }
}

/**
 * Whether Node was built for musl. The header of Node's report has a version for glibc only; the report is
 * slow, but rarely needed.
 */
function isMusl () {
  if (isAlpine()) return true
  if (!process.report || typeof process.report.getReport !== 'function') return false
  const report = process.report.getReport()
  const header = (typeof report === 'string' ? JSON.parse(report) : report).header
  return !header.glibcVersionRuntime
}

function nameWith (musl) {
  return process.platform + '-' + process.arch + abiSuffix(musl)
}

/** Returns the platform's name: `linux-x64-gnu`, `darwin-arm64`, `win32-ia32-msvc`, … */
exports.target = () => nameWith(process.platform === 'linux' && isMusl())

/**
 * Lists the names to try in turn, as functions. On Linux glibc comes first, unchecked: almost every Linux has it, and
 * the check takes longer than loading the library.
 */
exports.candidates = () => (
  process.platform === 'linux' && !isAlpine() ? [() => nameWith(false), exports.target] : [exports.target])

exports.libraryFile = (target) => 'atomics-waitasync.' + target + '.node'

exports.packageName = (target) => 'atomics-waitasync-' + target
