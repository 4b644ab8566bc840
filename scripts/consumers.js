'use strict'

// `npm run test:consumers`: what is published, used through bundlers, test frameworks and other package managers than
// npm.
//
//   node scripts/consumers.js [--from folder] [--only pattern] [--node 20] [--few]
//
// The tools are those of the lock files in __test__/company/consumers/, and kept in the user's cache folder. They run
// on one new Node, since it is them and not Node that is tested here; test frameworks on older ones, too, where an
// install in a sandbox takes other ways. `--from`: tests the two tarballs in that folder instead of making them;
// `--only`: the tools whose name matches; `--node`: for those that name no Node; `--few`: one tool of each kind, with
// the tree's library, as `.ci/run` does.

const assert = require('assert')
const fs = require('fs')
const path = require('path')
const slowness = require('../__test__/fixtures/slowness')
const { argumentsOf, command } = require('./lib/arguments')
const { libraryFile, packageName, target } = require('../lib/agent/target')
const { run } = require('./lib/child')
const { installed, release, succeedNpm } = require('./lib/npm')
const { Machine, publish, tarballsOf, upstreamRegistry } = require('./lib/published')
const { Results } = require('./lib/results')
const { withScratch } = require('./lib/scratch')
const { targets } = require('./lib/targets')
const { makePlatform } = require('./package')
const nodes = require('./nodes')

const CONSUMERS = path.join(__dirname, '..', '__test__', 'company', 'consumers')
const PROGRAMS = path.join(__dirname, '..', '__test__', 'company', 'tarballs')
const NEXT = path.join(CONSUMERS, 'next')
const NODE = '24'
/** The programs that say whether the package works. */
const USED = ['require.js', 'import.mjs', 'force.js', 'lock.js']
const WINDOWS = process.platform === 'win32'

/** A machine with the tools, and a folder for a project. */
class Workshop extends Machine {
  constructor (scratch, modules, node, registry) {
    super(node, path.join(scratch, 'home'), registry, { CI: 'true', FORCE_COLOR: '0' })
    Object.assign(this, { scratch, modules, registry, folder: path.join(scratch, 'project') })
    // Found from the project, behind its own packages.
    fs.symlinkSync(modules, path.join(scratch, 'node_modules'), 'junction')
  }

  /** Makes a project of a copy of some files, with a manifest. Gives its folder. */
  project (files) {
    fs.cpSync(files, this.folder, { recursive: true })
    const manifest = { name: 'project', version: '1.0.0', private: true, dependencies: { 'atomics-waitasync': '*' } }
    fs.writeFileSync(path.join(this.folder, 'package.json'), JSON.stringify(manifest))
    return this.folder
  }

  async installed (files) {
    await succeedNpm(['install', '--loglevel=error'], { cwd: this.project(files), env: this.env })
    return this.folder
  }

  /** Makes a project with this tree in place of the published package, as `npm install CHECKOUT` does. */
  async linked (files) {
    const target = path.join(this.project(files), 'node_modules', 'atomics-waitasync')
    fs.mkdirSync(path.dirname(target))
    fs.symlinkSync(path.join(__dirname, '..'), target, 'junction')
    return this.folder
  }

  /** Runs a program that must fail, with such an error. */
  async fails (cwd, args, pattern, what) {
    const { code, output } = await run(this.node.path, args, { cwd, env: this.env, timeout: slowness * 60 * 1000 })
    assert.ok(code !== 0, `${what}: it passed\n${output}`)
    assert.match(output, pattern, what)
  }

  tool (...names) {
    return path.join(this.modules, ...names)
  }

  /** Runs the programs; `words` come before each. */
  async usesPrograms (folder, words = []) {
    for (const program of USED) await this.passes(folder, [...words, program])
    await this.passes(folder, [...words, '-r', 'atomics-waitasync/force', 'preloaded.js'])
  }
}

/** Checks an application of a bundler, which leaves the package out. `file`: the program that builds it. */
const bundled = (file, form = 'installed') => async workshop => {
  const folder = await workshop[form](path.join(CONSUMERS, 'bundled'))
  await workshop.runs(folder, [file])
  const [main, worker] = ['main.js', 'worker.js'].map(name => path.join('dist', name))
  // The application's own code is in the bundle, the package is not.
  assert.ok(fs.statSync(path.join(folder, main)).size < 10000, `${main} has more in it than the application`)
  fs.rmSync(path.join(folder, 'main.mjs'))
  await workshop.passes(folder, [main, path.join(folder, worker)])
}

/** Checks an application of Next.js, with one of its two bundlers. It is built, traced, and deployed elsewhere. */
const next = (bundler, isExternal) => async workshop => {
  const folder = await workshop.installed(path.join(CONSUMERS, 'next-app'))
  const env = { ...workshop.env, NEXT_TELEMETRY_DISABLED: '1', IS_EXTERNAL: isExternal ? 'yes' : 'no' }
  await workshop.runs(folder, [workshop.tool('next', 'dist', 'bin', 'next'), 'build', `--${bundler}`], { env })
  const standalone = path.join(folder, '.next', 'standalone')
  const deployed = `${folder}-deployed`
  fs.renameSync(path.join(standalone, path.relative(path.parse(folder).root, folder)), deployed)
  await workshop.passes(folder, ['serve.mjs', path.join(deployed, 'server.js')])
}

/** The packages with libraries that a program may find beside the package: those of these platforms. */
const PRESENT = {
  'for this platform': [target()],
  'for the others': Object.keys(targets).filter(name => name !== target()),
  'for none': []
}

/**
 * A bundler that was not told to leave the package out. It must build whatever libraries there are. The program then
 * runs if it `runs` as a bundle, or says the error.
 */
const forgotten = (bundler, format, runs) => async workshop => {
  const folder = await workshop.installed(path.join(CONSUMERS, 'forgotten'))
  const folderOf = name => path.join(folder, 'node_modules', packageName(name))
  const library = path.join(folder, 'library')
  fs.copyFileSync(path.join(folderOf(target()), libraryFile(target())), library)
  for (const [which, names] of Object.entries(PRESENT)) {
    for (const name of Object.keys(targets)) fs.rmSync(folderOf(name), { recursive: true, force: true })
    for (const name of names) makePlatform(folderOf(name), name, library)
    const file = (await workshop.runs(folder, ['build.mjs', bundler, format])).trim().split('\n').pop()
    if (runs && names.includes(target())) await workshop.passes(folder, [file])
    else await workshop.fails(folder, [file], /Error: atomics-waitasync is in a bundle, .*must stay external/, which)
  }
}

async function fileTracing (workshop) {
  const folder = await workshop.installed(PROGRAMS)
  fs.copyFileSync(path.join(CONSUMERS, 'traced', 'trace.js'), path.join(folder, 'trace.js'))
  const deployed = path.join(workshop.scratch, 'deployed')
  await workshop.runs(folder, ['trace.js', deployed, ...USED, 'preloaded.js'])
  await workshop.usesPrograms(deployed)
}

/** In which order the test files run. */
const ORDERS = ['forward', 'reverse']

/**
 * Checks a test framework in several ways, in both orders of files: so many tests pass, and there are no more.
 */
const framework = ({ project, program, hows, flags, tests, form = 'installed' }) => async workshop => {
  const folder = await workshop[form](path.join(CONSUMERS, project))
  const report = path.join(folder, 'report.json')
  for (const how of hows) {
    for (const ORDER of ORDERS) {
      fs.rmSync(report, { force: true })
      const env = { ...workshop.env, ORDER }
      await workshop.runs(folder, [workshop.tool(...program), ...how, ...flags, report], { env })
      const { numPassedTests, numTotalTests } = JSON.parse(fs.readFileSync(report, 'utf8'))
      assert.deepStrictEqual([numPassedTests, numTotalTests], [tests, tests], [...how, ORDER].join(' '))
    }
  }
}

const jest = (hows, form) => framework({
  project: 'jest',
  program: ['jest', 'bin', 'jest.js'],
  hows,
  flags: ['--detectOpenHandles=false', '--json', '--outputFile'],
  tests: 11,
  form
})

const vitest = (form) => framework({
  project: 'vitest',
  program: ['vitest', 'vitest.mjs'],
  hows: ['threads', 'forks', 'vmThreads', 'vmForks'].map(pool => ['run', '--pool', pool]),
  flags: ['--reporter', 'json', '--outputFile'],
  tests: 6,
  form
})

/**
 * Checks another package manager than npm. `files`: its settings; `words`: those before a program; `modules`: those
 * that it puts into node_modules.
 */
const managed = ({ files = () => ({}), install, words, modules }) => async workshop => {
  const folder = workshop.project(PROGRAMS)
  for (const [file, text] of Object.entries(files(workshop))) fs.writeFileSync(path.join(folder, file), text)
  await install(workshop, folder)
  const home = path.join(folder, 'node_modules')
  const found = fs.existsSync(home) ? fs.readdirSync(home).filter(name => !name.startsWith('.')) : []
  if (modules) assert.deepStrictEqual(found, modules)
  await workshop.usesPrograms(folder, words && words(workshop))
}

/** Checks pnpm, which keeps packages apart: the platform's package is not the project's own. */
const pnpm = run => managed({
  modules: ['atomics-waitasync'],
  install: (workshop, folder) => run(workshop, folder, [
    'install', '--no-frozen-lockfile', '--store-dir', path.join(workshop.scratch, 'pnpm-store'), '--registry',
    workshop.registry
  ])
})

const settingsOfPnp = registry => `nodeLinker: pnp
npmRegistryServer: "${registry}"
unsafeHttpWhitelist: ["127.0.0.1"]
enableTelemetry: false
enableGlobalCache: false
pnpEnableEsmLoader: true
enableImmutableInstalls: false
npmMinimalAgeGate: 0
`
const yarnPnp = workshop => workshop.tool('@yarnpkg', 'cli-dist', 'bin', 'yarn.js')

/** Each: its name; the Node, and the lock file of its tools, if they are its own; and whether `--few` has it. */
const checks = [
  { name: 'esbuild', few: true, check: bundled('esbuild.js') },
  { name: 'esbuild on a checkout', few: true, check: bundled('esbuild.js', 'linked') },
  { name: 'webpack', check: bundled('webpack.js') },
  { name: 'rollup', check: bundled('rollup.js') },
  { name: 'vite', check: bundled('vite.mjs') },
  { name: 'esbuild, cjs, without external', few: true, check: forgotten('esbuild', 'cjs', true) },
  { name: 'esbuild, esm, without external', few: true, check: forgotten('esbuild', 'esm') },
  { name: 'webpack, cjs, without external', check: forgotten('webpack', 'cjs') },
  { name: 'rollup, cjs, without external', check: forgotten('rollup', 'cjs') },
  { name: 'rollup, esm, without external', check: forgotten('rollup', 'esm') },
  { name: 'vite, esm, without external', check: forgotten('vite', 'esm') },
  { name: 'file tracing', few: true, check: fileTracing },
  { name: 'Next.js, turbopack', source: NEXT, check: next('turbopack', true) },
  { name: 'Next.js, turbopack, without serverExternalPackages', source: NEXT, check: next('turbopack', false) },
  { name: 'Next.js, webpack', source: NEXT, check: next('webpack', true) },
  { name: 'Jest', few: true, check: jest([['--runInBand']]) },
  {
    name: 'Jest with processes and with threads',
    check: jest([['--maxWorkers=2'], ['--maxWorkers=2', '--workerThreads']])
  },
  { name: 'Jest on Node 20', version: '20', check: jest([['--runInBand'], ['--maxWorkers=2']]) },
  { name: 'Jest on Node 18', version: '18', check: jest([['--runInBand'], ['--maxWorkers=2']]) },
  { name: 'Jest on a checkout', few: true, check: jest([['--runInBand']], 'linked') },
  { name: 'Vitest', check: vitest() },
  { name: 'Vitest on a checkout', check: vitest('linked') },
  { name: 'Vitest on Node 20', version: '20', check: vitest() },
  { name: 'Vitest 3 on Node 18', version: '18', source: path.join(CONSUMERS, 'node-18'), check: vitest() },
  {
    name: 'pnpm',
    few: true,
    check: pnpm((workshop, cwd, args) =>
      workshop.run(workshop.tool('.bin', WINDOWS ? 'pnpm.cmd' : 'pnpm'), args, { cwd, shell: WINDOWS }))
  },
  // The last that is JavaScript, and so asks the Node that it runs on for the platform.
  {
    name: 'pnpm 10',
    check: pnpm(async (workshop, folder, args) =>
      workshop.runs(folder, [await release('pnpm', '10.34.8', path.join('bin', 'pnpm.cjs')), ...args]))
  },
  {
    name: 'Yarn classic',
    check: managed({
      files: ({ registry }) => ({ '.yarnrc': `registry "${registry}"\n` }),
      install: (workshop, folder) => workshop.runs(folder, [
        workshop.tool('yarn', 'bin', 'yarn.js'), 'install', '--non-interactive', '--cache-folder',
        path.join(workshop.scratch, 'yarn-cache')
      ])
    })
  },
  {
    name: "Yarn with Plug'n'Play",
    check: managed({
      files: ({ registry }) => ({ 'yarn.lock': '', '.yarnrc.yml': settingsOfPnp(registry) }),
      modules: [],
      install: (workshop, folder) => workshop.runs(folder, [yarnPnp(workshop), 'install']),
      words: workshop => [yarnPnp(workshop), 'node']
    })
  }
]

async function main () {
  const { from, only, node: usual, few: isShort } = argumentsOf(__filename, {
    from: { type: 'string' },
    only: { type: 'string', default: '', read: (text) => new RegExp(text) },
    node: { type: 'string', default: NODE },
    few: { type: 'boolean' }
  })
  const results = new Results()
  await withScratch(async scratch => {
    const { url } = await publish(await tarballsOf(from, path.join(scratch, 'dist'), isShort), await upstreamRegistry())
    for (const { name, few, version = usual, source = CONSUMERS, check } of checks) {
      if (!only.test(name) || (isShort && !few)) continue
      const node = await nodes.get(version)
      await results.of(name, async () => {
        const home = path.join(fs.realpathSync(scratch), name.toLowerCase().replace(/\W+/g, '-'))
        const modules = path.join(await installed('consumers', source), 'node_modules')
        await check(new Workshop(home, modules, node, url))
      }, node.skipped)
    }
  })
  results.close()
}

command(main)
