'use strict'

// `npm run mutants`: applies each of a list of mutations to a copy of the tree, and expects the named test or model to
// fail. So the tests are tested: each fence, ordering, re-check, hand-over and rule of the lines is known to be missed
// when it is gone.
//
//   npm run mutants [-- --only TEXT] [--kind model,cargo,test] [--part 2/8]
//
// --only   those whose description or file contains TEXT
// --part   the second of eight parts of the list, for short runs
//
// A mutation (__test__/mutants/): `what` breaks, `file`, the text to `find`, which must be there once, and what is
// `put` in its place; and which check catches it:
//
// - `model`: a model of core/tests/model.rs
// - `cargo`: `[program, filter]`: `addon` (the tests within src/), `lib` (those within core/src/) or a file of
//   core/tests/, and a filter of `cargo test`
// - `test`: a file of __test__/ (`locks/queue`), run on this Node, with the library built anew if the file is one of
//   Rust; `subject` if it is not the first one; `node`, which runs it at full size, if this Node cannot tell
// - `otherSystems`: true where the library is built with the feature `other-systems` (core/Cargo.toml)
// - `orModel`, `orCargo`, `orTest`: another check, if the first one does not
// - `equivalent`: why nothing can catch it. It is not run
//
// The last line is `N passed, N failed[, N skipped]`: a mutation that nothing catches has failed, and so has one whose
// text is not found any more or that does not compile. Node 20.19 or newer.

const fs = require('fs')
const path = require('path')
const { argumentsOf, command, someOf } = require('../../scripts/lib/arguments')
const { cargo, environment } = require('../../scripts/lib/cargo')
const { run } = require('../../scripts/lib/child')
const { Results } = require('../../scripts/lib/results')
const { withCopy } = require('../../scripts/lib/scratch')
const testFile = require('../../scripts/lib/test-file')
const nodes = require('../../scripts/nodes')

const root = path.join(__dirname, '..', '..')
const target = name => path.join(root, 'target', name)
/** Milliseconds. A mutation may make a check hang. */
const TIMEOUT = 90000
/** A model, not optimized. */
const MODEL_TIMEOUT = 300000
const COMPILE_TIMEOUT = 600000
/** Bytes. A mutation may make a check take all that there is. */
const MEMORY = 4 * 2 ** 30
const KINDS = ['model', 'cargo', 'test']

function copyLibraries (copy) {
  for (const name of fs.readdirSync(root).filter(name => name.endsWith('.node')))
    fs.copyFileSync(path.join(root, name), path.join(copy, name))
}

class Mutants {
  constructor (copy) {
    this.copy = copy
    this.healthy = new Map()
  }

  cargo (args, options) {
    // Otherwise an earlier failure of a property test decides what is tried.
    const env = environment({ PROPTEST_DISABLE_FAILURE_PERSISTENCE: '1' })
    return run(cargo(), args, { cwd: this.copy, env, ...options })
  }

  /** Builds the library, of the mutated source. */
  build (otherSystems) {
    const env = environment({ CARGO_TARGET_DIR: target('mutants') })
    const features = otherSystems ? ['--features', 'other-systems'] : []
    return run(process.execPath, [path.join(this.copy, 'scripts', 'build.js'), ...features], {
      cwd: this.copy,
      env,
      timeout: COMPILE_TIMEOUT
    })
  }

  /** Returns the checks of a mutation: each `{ name, compile(), run() }`. */
  checksOf (mutation) {
    const { model, orModel, cargo, orCargo, test, orTest } = mutation
    const models = ['--features', 'model', '--test', 'model', '--target-dir', target('mutants-model')]
    const ofModel = name =>
      this.cargoCheck(`model ${name}`, ['--package', 'waitasync-core', ...models], [name, '--', '--exact'])
    const programs = { addon: ['atomics-waitasync'], lib: ['waitasync-core', '--lib'] }
    const ofCargo = ([program, filter]) => {
      const options = programs[program] || ['waitasync-core', '--test', program]
      const all = ['--package', ...options, '--target-dir', target('mutants')]
      return this.cargoCheck(`${program} ${filter}`.trim(), all, filter === '' ? [] : [filter])
    }
    return [
      ...[model, orModel].filter(Boolean).map(ofModel),
      ...[cargo, orCargo].filter(Boolean).map(ofCargo),
      ...[test, orTest].filter(Boolean).map(name => this.testCheck(name, mutation))
    ]
  }

  cargoCheck (name, options, filter) {
    return {
      name,
      compile: () => this.cargo(['test', '--locked', '--no-run', ...options], { timeout: COMPILE_TIMEOUT }),
      run: async () => {
        const ended = await this.cargo(['test', '--locked', ...options, ...filter], {
          timeout: MODEL_TIMEOUT,
          memory: MEMORY
        })
        const ran = /^test result: .* ([1-9]\d*) passed|^test .* \.\.\. FAILED|panicked|SIG/m.test(ended.output)
        const passes = ended.code === 0 && !ended.timedOut
        return { passes, ran: ran || ended.timedOut || ended.outOfMemory, how: how(ended) }
      }
    }
  }

  testCheck (name, { file: mutated, subject, node: version, otherSystems = false }) {
    return {
      name: `${name}.test.js${version ? ` on Node ${version}` : ''}${otherSystems ? ' as on other systems' : ''}`,
      compile: async () => isNative(mutated) ? this.build(otherSystems) : { code: 0 },
      run: async () => {
        // For __test__/fixtures/watched.js; the empty string is no.
        process.env.TEST_OTHER_SYSTEMS = otherSystems ? '1' : ''
        const declared = testFile.read(path.join(this.copy, '__test__', `${name}.test.js`), name)
        const file = { ...declared, timeout: TIMEOUT / 1000 }
        const options = { size: version ? 'full' : 'small', memory: MEMORY }
        const node = await nodes.get(version || 'current')
        const { problem } = await testFile.run(file, node, subject || declared.subjects.at(-1), options)
        return { passes: problem === null, ran: true, how: problem || '' }
      }
    }
  }

  /** Whether a check passes without a mutation; otherwise it would catch everything. */
  async isHealthy (check) {
    if (!this.healthy.has(check.name)) {
      const compiled = await check.compile()
      const { passes, ran } = compiled.code === 0 ? await check.run() : { passes: false }
      this.healthy.set(check.name, passes && ran)
    }
    return this.healthy.get(check.name)
  }

  /** Returns how a mutation is caught; an error says why it is not. */
  async try (mutation) {
    const file = path.join(this.copy, mutation.file)
    const source = fs.readFileSync(file, 'utf8')
    const parts = source.split(mutation.find)
    if (parts.length !== 2) throw new Error(`its text is in ${mutation.file} ${parts.length - 1} times`)
    const checks = this.checksOf(mutation)
    try {
      for (const check of checks) if (!await this.isHealthy(check)) throw new Error(`${check.name} fails without it`)
      fs.writeFileSync(file, parts.join(mutation.put))
      for (const check of checks) {
        const compiled = await check.compile()
        if (compiled.code !== 0) throw new Error(`does not compile:\n${compiled.output.slice(0, 2000)}`)
        const { passes, how } = await check.run()
        if (!passes) return `${check.name}: ${how}`
      }
      throw new Error(`NOT CAUGHT by ${checks.map(({ name }) => name).join(' or ')}`)
    } finally {
      fs.writeFileSync(file, source)
      if (isNative(mutation.file)) copyLibraries(this.copy)
    }
  }
}

const isNative = file => file.endsWith('.rs')

function how ({ timedOut, outOfMemory, output, signal }) {
  if (timedOut) return 'hangs'
  if (outOfMemory) return 'takes too much memory'
  const said = /panicked at [^\n]*\n([^\n]*)/.exec(output)
  return (said && said[1].slice(0, 100)) || signal || 'failed'
}

function chosen () {
  const { only, kind: kinds, part: [part, parts] } = argumentsOf(__filename, {
    only: { type: 'string', default: '' },
    kind: { type: 'string', default: KINDS.join(','), read: someOf(KINDS) },
    part: { type: 'string', default: '1/1', read: text => text.split('/').map(Number) }
  })
  const kindOf = mutation => KINDS.find(kind => kind in mutation)
  return [...require('./rust'), ...require('./javascript')]
    .filter(mutation => mutation.equivalent ? kinds.length === 3 : kinds.includes(kindOf(mutation)))
    .filter(({ what, file }) => `${what} ${file}`.includes(only))
    .filter((_, n) => n % parts === part - 1)
}

/**
 * Takes the one place for a run: cargo takes one copy of the tree for another, and would not build anew. Gives what
 * ends that.
 */
function begin () {
  const file = target('mutants.lock')
  fs.mkdirSync(path.dirname(file), { recursive: true })
  try {
    const pid = Number(fs.readFileSync(file, 'utf8'))
    process.kill(pid, 0)
    throw new Error(`another run is under way (process ${pid})`)
  } catch (error) {
    if (error.code !== 'ENOENT' && error.code !== 'ESRCH') throw error
  }
  fs.writeFileSync(file, String(process.pid))
  return () => fs.unlinkSync(file)
}

async function main () {
  const mutations = chosen()
  const end = begin()
  const results = new Results()
  try {
    await withCopy(async copy => {
      const mutants = new Mutants(copy)
      for (const mutation of mutations) {
        const { what, file, equivalent } = mutation
        if (equivalent) results.skip(`${what} (${file})`, `equivalent: ${equivalent}`)
        else await results.of(`${what} (${file})`, () => mutants.try(mutation))
      }
    })
  } finally {
    end()
  }
  results.close()
}

command(main)
