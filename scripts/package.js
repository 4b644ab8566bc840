'use strict'

// `npm run package`: makes the tarballs that are published. The main one has no binary; each platform's binary is a
// package of its own, an optional dependency of the main one, of which npm installs the one that fits.
//
// The main one has few files instead of lib/'s many (lib/bundle.js).
//
// Invariant: a tarball that is there has been inspected (lib/inspect.js), and the same sources and tools give the same
// bytes.
//
//   npm run package [-- --target linux-x64-gnu[,..]] [--no-main] [--out folder]
//
// Made are the main one and that of this platform, unless others are named (`--target none`: no platform's at all).

const fs = require('fs')
const os = require('os')
const path = require('path')
const { libraryFile, packageName, target: hostTarget } = require('../lib/agent/target')
const { argumentsOf, command, list } = require('./lib/arguments')
const { compile } = require('./build')
const { bundle } = require('./lib/bundle')
const { cargo, environment } = require('./lib/cargo')
const { succeed } = require('./lib/child')
const { inspect } = require('./lib/inspect')
const { thirdPartyLicences } = require('./lib/licences')
const { succeedNpm } = require('./lib/npm')
const { withScratch } = require('./lib/scratch')
const { targets, manifestOf } = require('./lib/targets')
const zig = require('./lib/zig')
const { installDependencies } = require('./setup')

const root = path.join(__dirname, '..')

/**
 * Makes tarballs in a folder.
 * @param {{ out: string, names?: string[], main?: boolean, isPublishable?: boolean, compiled?: Object<string, string>
 *   }} options `names` of targets.js; `compiled`: the libraries of some names, which another compiler has made already;
 *   `isPublishable: false`: they are not to be published, and may need this machine's own C library
 * @returns {Promise<{ file: string, facts: string[] }[]>}
 */
async function makePackages ({ out, names = [hostTarget()], main = true, isPublishable = true, compiled = {} }) {
  const unknown = names.filter(name => targets[name] === undefined)
  if (unknown.length > 0)
    throw new Error(`no target ${unknown.join(', ')}: there are ${Object.keys(targets).join(', ')}`)
  fs.mkdirSync(out, { recursive: true })
  return withScratch(async stage => {
    const made = []
    if (main) made.push(await pack(await stageMain(path.join(stage, 'main')), out, []))
    for (const name of names) {
      const { folder, facts } = await stagePlatform(name, path.join(stage, name), isPublishable, compiled[name])
      made.push(await pack(folder, out, facts))
    }
    return made
  })
}

/** Makes the published manifest from that of the tree. */
function mainManifest () {
  const {
    private: _,
    devDependencies,
    scripts,
    ...rest
  } = JSON.parse(fs.readFileSync(path.join(root, 'package.json'), 'utf8'))
  const platforms = Object.keys(targets).map(name => [packageName(name), rest.version])
  // The registry wants to know whence a release comes that claims to be built there.
  const { GITHUB_REPOSITORY: repository, GITHUB_SERVER_URL: server } = process.env
  return {
    ...rest,
    ...(repository && { repository: { type: 'git', url: `git+${server}/${repository}.git` } }),
    scripts: { build: scripts.build },
    optionalDependencies: Object.fromEntries(platforms)
  }
}

async function stageMain (folder) {
  const manifest = mainManifest()
  // A prebuilt binary beside the code would be found first, on every platform.
  const [left, listed] = [true, false].map(isLeft => manifest.files.filter(name => name.startsWith('!') === isLeft))
  const absent = listed.filter(name => !fs.existsSync(path.join(root, name)))
  if (absent.length > 0) throw new Error(`package.json lists files that are not there: ${absent.join(', ')}`)
  const filter = file => !left.includes(`!${path.relative(root, file).split(path.sep).join('/')}`)
  for (const name of [...listed, 'README.md', 'LICENSE']) {
    if (name !== 'lib') fs.cpSync(path.join(root, name), path.join(folder, name), { recursive: true, filter })
  }
  // The bundler is a dependency for development.
  await installDependencies()
  bundle(path.join(folder, 'lib'))
  writeManifest(folder, manifest)
  return folder
}

/** Makes the package of a platform in a folder, with a library; gives the path of that. `main`: the main package's. */
function makePlatform (folder, name, library, main = mainManifest()) {
  const binary = path.join(folder, libraryFile(name))
  fs.mkdirSync(folder, { recursive: true })
  fs.copyFileSync(library, binary)
  fs.chmodSync(binary, 0o755)
  writeManifest(folder, manifestOf(name, main))
  return binary
}

async function stagePlatform (name, folder, isPublishable, compiled) {
  const binary = makePlatform(folder, name, compiled || await compileFor(name))
  const { complaints, facts } = isPublishable ? await inspect(binary, targets[name]) : { complaints: [], facts: [] }
  if (complaints.length > 0)
    throw new Error(`the binary for ${name} cannot be published: it ${complaints.join('; it ')}`)
  fs.writeFileSync(path.join(folder, 'THIRD-PARTY-LICENSES'), await thirdPartyLicences(targets[name].rust))
  fs.copyFileSync(path.join(root, 'LICENSE'), path.join(folder, 'LICENSE'))
  fs.writeFileSync(path.join(folder, 'README.md'),
    `# ${packageName(name)}\n\nThe native library of the package atomics-waitasync for ${name}. Install that one.\n`)
  return { folder, facts: [`${fs.statSync(binary).size} bytes of binary`, ...facts] }
}

function writeManifest (folder, manifest) {
  fs.writeFileSync(path.join(folder, 'package.json'), JSON.stringify(manifest, null, 2) + '\n')
}

/** Gives the absolute path of the library. */
async function compileFor (name) {
  const { rust, zig: linker } = targets[name]
  // The folder of the registry's sources is known once they are there.
  await succeed(cargo(), ['fetch', '--locked'], { cwd: root, env: environment() })
  const flags = { [`CARGO_TARGET_${rust.toUpperCase().replace(/-/g, '_')}_RUSTFLAGS`]: remapping() }
  if (!linker) return compile(['--target', rust], environment(flags))
  const { cargoZigbuild, folders } = await zig.toolchain()
  const env = environment(flags)
  return compile(['--target', linker], { ...env, PATH: [...folders, env.PATH].join(path.delimiter) }, cargoZigbuild)
}

/** Hides where the source was, which the compiler writes into messages: under names that are the same everywhere. */
function remapping () {
  const registry = path.join(process.env.CARGO_HOME || path.join(os.homedir(), '.cargo'), 'registry', 'src')
  const folders = fs.existsSync(registry) ? fs.readdirSync(registry).map(name => path.join(registry, name)) : []
  return [...folders, root]
    .map((folder) => `--remap-path-prefix=${folder}=${folder === root ? '/atomics-waitasync' : ''}`)
    .join(' ')
}

async function pack (folder, out, facts) {
  const packed = await succeedNpm(
    ['pack', folder, '--pack-destination', out, '--ignore-scripts', '--json', '--loglevel=error'],
    { cwd: root }
  )
  const [{ filename, size, unpackedSize }] = Object.values(JSON.parse(packed))
  return { file: path.join(out, filename), facts: [`${size} bytes, unpacked ${unpackedSize}`, ...facts] }
}

module.exports = { makePackages, makePlatform, stageMain }

async function main () {
  const { target, out, ...rest } = argumentsOf(__filename, {
    target: { type: 'string', read: text => list(text).filter(name => name !== 'none') },
    'no-main': { type: 'boolean' },
    out: { type: 'string', default: path.join(root, 'dist'), read: path.resolve }
  })
  for (const { file, facts } of await makePackages({ out, names: target, main: !rest['no-main'] }))
    console.log(`${path.relative('', file)}  ${facts.join(', ')}`)
}

if (require.main === module) command(main)
