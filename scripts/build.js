'use strict'

// `npm run build [-- --features NAME]`: compiles the Rust part and puts it where index.js looks for it. Options are
// cargo's.
//
// Also in an installed package, on any Node that the package runs on.
//
// The file in place is replaced by a rename, never written over: a process that has it loaded keeps the one it has.

const fs = require('fs')
const path = require('path')
const { libraryFile, target: hostTarget } = require('../lib/agent/target')
const { cargo, environment } = require('./lib/cargo')
const { run } = require('./lib/child')

const root = path.join(__dirname, '..')

/** Builds the changes since the last time; gives the absolute path of the binary. */
async function build (options = []) {
  const content = fs.readFileSync(await compile(options, environment()))
  const target = path.join(root, libraryFile(hostTarget()))
  if (!fs.existsSync(target) || !content.equals(fs.readFileSync(target))) replace(target, content)
  return target
}

/** The addon, not all members of the workspace. */
const LIBRARY = ['--package', 'atomics-waitasync', '--locked', '--message-format=json-render-diagnostics']

/** Builds the library with cargo, or a program that takes its arguments; gives the absolute path of the library. */
async function compile (options, env, program = cargo()) {
  const profile = options.includes('--profile') ? [] : ['--release']
  const args = ['build', ...LIBRARY, ...profile, ...options]
  const { code, error, stdout } = await run(program, args, { cwd: root, env, echo: true })
  if (error) throw error
  if (code !== 0) throw new Error(`${path.basename(program)} build failed (exit code ${code}); its messages are above`)
  return libraryOf(stdout)
}

// cargo says itself where it put the library, wherever its target directory is.
function libraryOf (messages) {
  for (const line of messages.split('\n')) {
    if (!line.startsWith('{')) continue
    const { reason, target, filenames } = JSON.parse(line)
    if (reason !== 'compiler-artifact' || !target.kind.includes('cdylib') || target.name !== 'atomics_waitasync')
      continue
    const library = filenames.find(name => /\.(so|dylib|dll)$/.test(name))
    if (library) return library
  }
  throw new Error('cargo made no dynamic library named atomics_waitasync')
}

function replace (target, content) {
  const fresh = `${target}.${process.pid}.new`
  fs.writeFileSync(fresh, content, { mode: 0o755 })
  try {
    fs.renameSync(fresh, target)
  } catch (error) {
    if (process.platform !== 'win32') throw error
    // Windows does not replace a library that is loaded, but lets it be renamed.
    fs.renameSync(target, `${target}.${process.pid}.old`)
    fs.renameSync(fresh, target)
  }
  for (const name of fs.readdirSync(root)) {
    // The other half of the above: old ones go as soon as no process has them loaded.
    if (/\.node\.\d+\.old$/.test(name)) fs.unlink(path.join(root, name), () => {})
  }
}

module.exports = { build, compile }

if (require.main === module) {
  build(process.argv.slice(2)).then(
    file => console.log(`built ${path.basename(file)}`),
    error => {
      console.error(error.message)
      process.exitCode = 1
    }
  )
}
