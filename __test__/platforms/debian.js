'use strict'

// Debian's packages, unpacked into folders of the user's cache: nothing is installed on the machine. apt-get reads the
// machine's own sources for the address, and takes the newest suite.

const fs = require('fs')
const path = require('path')
const cache = require('../../scripts/lib/cache')
const { run, succeeded } = require('../../scripts/lib/child')

const SUITE = 'sid'
const SOURCES = '/etc/apt/sources.list.d/debian.sources'
// A build of the standard library for another platform, on a busy machine.
const TIMEOUT = 60 * 60 * 1000

/** Runs a program. @throws {Error} with its output, if it fails */
async function must (command, args, options) {
  return succeeded(await run(command, args, { timeout: TIMEOUT, ...options }), [command, ...args]).stdout
}

/** Returns the line of a sources.list, as the machine's own has it. */
function source () {
  if (!fs.existsSync(SOURCES))
    throw new cache.Unavailable(
      "needs Debian or one of its packages' sources: there is no /etc/apt/sources.list.d/debian.sources"
    )
  const field = name => new RegExp(`^${name}: (\\S+)`, 'm').exec(fs.readFileSync(SOURCES, 'utf8'))[1]
  return `deb [signed-by=${field('Signed-By')}] ${field('URIs')} ${SUITE} main\n`
}

/** Makes an apt-get with a state of its own. */
async function createApt (home) {
  for (const folder of ['state/lists/partial', 'cache/archives/partial', 'etc', 'files'])
    fs.mkdirSync(path.join(home, folder), { recursive: true })
  fs.writeFileSync(path.join(home, 'etc', 'sources.list'), source())
  fs.writeFileSync(path.join(home, 'state', 'status'), '')
  const options = {
    'Dir::State': path.join(home, 'state'),
    'Dir::State::status': path.join(home, 'state', 'status'),
    'Dir::Cache': path.join(home, 'cache'),
    'Dir::Etc::SourceList': path.join(home, 'etc', 'sources.list'),
    'Dir::Etc::SourceParts': '/dev/null',
    'APT::Architecture': 'amd64',
    'APT::Architectures': 'amd64,arm64,armhf',
    'APT::Install-Recommends': '0',
    'APT::Sandbox::User': 'root'
  }
  const flags = Object.entries(options).flatMap(([key, value]) => ['-o', `${key}=${value}`])
  const apt = (...args) => must('apt-get', [...flags, ...args], { cwd: path.join(home, 'files') })
  await apt('update')
  return apt
}

/**
 * Returns a folder of the cache with packages, unpacked.
 * @param {(apt: Function) => Promise} fetch downloads them to the folder `archives` of apt-get's home
 * @returns {Promise<string>} its absolute path
 * @throws {cache.Unavailable} this machine has no such packages
 */
const unpacked = (name, archives, fetch) => cache.fill(cache.folder('platforms', name), async scratch => {
  const [home, root] = [path.join(scratch, 'apt'), path.join(scratch, 'root')]
  await fetch(await createApt(home))
  fs.mkdirSync(root)
  const folder = path.join(home, archives)
  for (const file of fs.readdirSync(folder).filter(file => file.endsWith('.deb')))
    await must('dpkg', ['-x', path.join(folder, file), root])
  return root
})

/** Returns these packages and all that they depend on. */
const withDependencies = (name, packages) =>
  unpacked(name, 'cache/archives', apt => apt('install', '--yes', '--download-only', ...packages))

/** Returns these packages alone, of any architecture (`libc6:arm64`). */
const alone = (name, packages) => unpacked(name, 'files', apt => apt('download', ...packages))

module.exports = { alone, must, withDependencies }
