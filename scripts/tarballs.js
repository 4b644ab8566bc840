'use strict'

// `npm run test:tarballs`: what is published, installed as a user would: in an empty folder, by the npm that came with
// each Node, where there is no compiler. Then the programs of __test__/company/tarballs use it.
//
//   node scripts/tarballs.js [--from folder] [--node 14[,..]] [--npm 6.14.18[,..]] [--no-build] [--few]
//
// `--from`: tests the two tarballs in that folder instead of making them; `--node`: on these instead of those of the
// list; `--npm`: installed by each of these; `--no-build`: without the build from source; `--few`: that, too, with the
// tree's library, on the oldest and the newest of the list, as `.ci/run` does.

const assert = require('assert')
const fs = require('fs')
const path = require('path')
const { packageName, target } = require('../lib/agent/target')
const { argumentsOf, command, list } = require('./lib/arguments')
const { cargo } = require('./lib/cargo')
const { release } = require('./lib/npm')
const { Machine, hasCompiler, publish, publishMain, tarballsOf } = require('./lib/published')
const { Results } = require('./lib/results')
const { withScratch } = require('./lib/scratch')
const { targets } = require('./lib/targets')
const { admits } = require('./lib/test-file')
const nodes = require('./nodes')

const PROGRAMS = path.join(__dirname, '..', '__test__', 'company', 'tarballs')

/** Each Node with its own npm; the newest with the newest. */
const INSTALLERS = [
  { node: '10', npm: '6.14.12' },
  { node: '12', npm: '6.14.16' },
  { node: '14', npm: '6.14.18' },
  { node: nodes.majors.at(-1), npm: '12.2.0' }
]

const USES = [
  { name: 'require', args: ['require.js'] },
  {
    name: 'import',
    args: ['import.mjs'],
    nodes: { range: '>=12.20' },
    reason: 'this Node has no named imports of CommonJS'
  },
  { name: 'node -r', args: ['-r', 'atomics-waitasync', 'preloaded.js'] },
  { name: 'node -r, /force', args: ['-r', 'atomics-waitasync/force', 'preloaded.js'] },
  { name: '/force', args: ['force.js'] },
  {
    name: 'an entry that changes nothing loads little',
    args: ['light.js'],
    nodes: { range: '>=16' },
    reason: 'no entry changes nothing on this Node'
  },
  { name: 'a lock between main and workers', args: ['lock.js'] },
  { name: 'the command', args: ['command.js'], nodes: { range: '>=18' }, reason: 'the command needs Node 18' },
  {
    name: 'a lock where external buffers are refused, as by Electron',
    args: ['-r', './no-external-buffers.js', 'lock.js'],
    nodes: { range: '>=15' },
    reason: 'nothing asks for such buffers on this Node'
  }
]

/** One Node and one npm on a machine without a compiler. */
class User extends Machine {
  constructor (node, npm, home, registry) {
    super(node, home, registry)
    this.npm = npm
    this.folder = path.join(home, 'app')
  }

  /** Makes the folder anew, and installs there. */
  async install (...args) {
    assert.ok(!this.env.PATH.split(path.delimiter).some(hasCompiler), 'there is a compiler')
    fs.rmSync(this.folder, { recursive: true, force: true })
    fs.cpSync(PROGRAMS, this.folder, { recursive: true })
    await this.runNpm(['install', ...args])
    const main = path.join(this.folder, 'node_modules', 'atomics-waitasync', 'index.js')
    assert.ok(fs.existsSync(main), 'it was installed elsewhere')
  }

  runNpm (args, options) {
    return this.run(this.node.path, [this.npm, ...args], { cwd: this.folder, ...options })
  }

  installed () {
    return fs.readdirSync(path.join(this.folder, 'node_modules')).filter(name => !name.startsWith('.')).sort()
  }
}

async function testInstall (results, user, where) {
  const done = await results.of(`${where}: npm install`, async () => {
    await user.install('atomics-waitasync')
    const [main, ...others] = user.installed()
    assert.ok(main === 'atomics-waitasync' && others.includes(packageName(target())), `only ${others.join(', ')}`)
    assert.deepStrictEqual(others.filter(name => !fits(name)), [], 'of other platforms')
  })
  for (const { name, args, nodes: range = null, reason } of done ? USES : []) {
    const uses = () => user.passes(user.folder, args)
    await results.of(`${where}: ${name}`, uses, !admits(range, user.node.version) && reason)
  }
}

/** Whether a package is for this system and processor; npm before 10.8 does not ask for the C library. */
function fits (name) {
  const [, found] = Object.entries(targets).find(([each]) => packageName(each) === name) || [null, {}]
  return found.os === process.platform && found.cpu === process.arch
}

async function testWithoutLibrary (results, user, where) {
  const installed = await results.of(`${where}: npm install without a package for the platform`, async () => {
    await user.install('atomics-waitasync')
    assert.deepStrictEqual(user.installed(), ['atomics-waitasync'])
  })
  const passes = () => user.passes(user.folder, ['no-library.js', target()])
  if (installed) await results.of(`${where}: the error message without a library`, passes)
  return installed
}

/** Tests the build, with a toolchain now; unoptimized, for it is not the compiler that is tested here. */
async function testBuild (results, user, where) {
  await results.of(`${where}: npm run build in the installed package`, async () => {
    await user.runNpm(['run', 'build'], {
      cwd: path.join(user.folder, 'node_modules', 'atomics-waitasync'),
      env: {
        ...process.env,
        // Only the package is built anew each time, not its dependencies.
        CARGO_TARGET_DIR: path.join(__dirname, '..', 'target', 'installed'),
        CARGO_PROFILE_RELEASE_LTO: 'off',
        CARGO_PROFILE_RELEASE_OPT_LEVEL: '0',
        CARGO_PROFILE_RELEASE_CODEGEN_UNITS: '16',
        npm_config_cache: user.env.npm_config_cache,
        PATH: [path.dirname(user.node.path), path.dirname(cargo()), process.env.PATH].join(path.delimiter)
      }
    })
    for (const { args } of USES.filter(({ name }) => name === 'require' || name === '/force'))
      await user.passes(user.folder, args)
  })
}

const OPTIONS = {
  from: { type: 'string' },
  node: { type: 'string', read: nodes.read },
  npm: { type: 'string', read: list },
  'no-build': { type: 'boolean' },
  few: { type: 'boolean' }
}

function readArguments () {
  const { from, node, npm, few, ...rest } = argumentsOf(__filename, OPTIONS)
  const installers = node ? node.map(installerOf) : few ? [INSTALLERS[0], INSTALLERS.at(-1)] : INSTALLERS
  const each = npm === undefined ? installers : installers.flatMap(({ node }) => npm.map(npm => ({ node, npm })))
  return { from, few, installers: each, build: !few && !rest['no-build'] }
}

/** Returns the row of a Node's version, if it is in the list. */
function installerOf (version) {
  const isMeant = ({ node }) => nodes.resolve(node) === nodes.resolve(version)
  return INSTALLERS.find(isMeant) || { node: version }
}

/** Returns a release of npm from the time of a Node. */
function npmOf (version) {
  const major = Number(version.split('.')[0])
  return major < 16 ? '6.14.18' : major < 20 ? '8.19.4' : '10.9.4'
}

async function main () {
  const { from, few, installers, build } = readArguments()
  const results = new Results()
  await withScratch(async scratch => {
    const tarballs = await tarballsOf(from, path.join(scratch, 'dist'), few)
    for (const fact of tarballs.facts) console.log(`    ${fact}`)
    if (tarballs.unpublishable) results.skip('a binary that can be published', tarballs.unpublishable)
    const [registry, bare] = [await publish(tarballs), await publishMain(tarballs)]
    await results.of('a release is published, the main package last', () => {
      assert.deepStrictEqual(registry.names(), [...Object.keys(targets).map(packageName), 'atomics-waitasync'])
    })
    for (const installer of installers) {
      const node = await nodes.get(installer.node)
      const npm = installer.npm || npmOf(node.version)
      const where = `Node ${node.version}, npm ${npm}`
      if (node.skipped) {
        results.skip(where, node.skipped)
        continue
      }
      const cli = await release('npm', npm, path.join('bin', 'npm-cli.js'))
      const home = path.join(scratch, `${node.version}-${npm}`)
      await testInstall(results, new User(node, cli, home, registry.url), where)
      const user = new User(node, cli, `${home}-bare`, bare.url)
      const installed = await testWithoutLibrary(results, user, where)
      if (build && installed && node.version.startsWith('12.')) await testBuild(results, user, where)
      if (installer !== installers.at(-1)) continue
      await results.of(`${where}: npm install of both files, without a registry`, async () => {
        await user.install(tarballs.main, tarballs.platform)
        const uses = USES.filter(({ nodes: range = null }) => admits(range, node.version))
        for (const { args } of uses) await user.passes(user.folder, args)
      })
    }
  })
  results.close()
}

command(main)
