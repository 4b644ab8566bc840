'use strict'

// The platforms with a prebuilt binary, by their names of lib/agent/target.js: each is a package of its own,
// `atomics-waitasync-<name>`. `rust` is the compiler's word for it; npm goes by `os`, `cpu` and `libc`; `zig` is set
// for platforms that zig links, and says with which C library; `nodes` is the range of those that there are for it, if
// not all.

const { libraryFile, packageName } = require('../../lib/agent/target')

/** The versions of the oldest system on which a binary for glibc runs. */
const GLIBC = '2.17'

const linux = (rust, cpu, libc, nodes) =>
  ({ rust, os: 'linux', cpu, libc, zig: libc === 'glibc' ? `${rust}.${GLIBC}` : rust, nodes })

const targets = {
  'linux-x64-gnu': linux('x86_64-unknown-linux-gnu', 'x64', 'glibc'),
  'linux-x64-musl': linux('x86_64-unknown-linux-musl', 'x64', 'musl'),
  'linux-arm64-gnu': linux('aarch64-unknown-linux-gnu', 'arm64', 'glibc'),
  'linux-arm64-musl': linux('aarch64-unknown-linux-musl', 'arm64', 'musl'),
  'linux-arm-gnueabihf': linux('armv7-unknown-linux-gnueabihf', 'arm', 'glibc', '<24'),
  'linux-arm-musleabihf': linux('armv7-unknown-linux-musleabihf', 'arm', 'musl', '<24'),
  'darwin-x64': { rust: 'x86_64-apple-darwin', os: 'darwin', cpu: 'x64' },
  'darwin-arm64': { rust: 'aarch64-apple-darwin', os: 'darwin', cpu: 'arm64', nodes: '>=16' },
  'win32-x64-msvc': { rust: 'x86_64-pc-windows-msvc', os: 'win32', cpu: 'x64' },
  'win32-arm64-msvc': { rust: 'aarch64-pc-windows-msvc', os: 'win32', cpu: 'arm64', nodes: '>=20' },
  'win32-ia32-msvc': { rust: 'i686-pc-windows-msvc', os: 'win32', cpu: 'ia32', nodes: '<24' }
}

/** Returns the package.json of a platform's package. `main` is that of the main package. */
function manifestOf (name, main) {
  const { os, cpu, libc } = targets[name]
  const { version, license, engines, repository } = main
  return {
    name: packageName(name),
    version,
    description: `The native library of atomics-waitasync for ${name}`,
    license,
    repository,
    engines,
    os: [os],
    cpu: [cpu],
    // Versions of npm that do not know it install both; lib/agent/load-binding.js finds out.
    ...(libc && { libc: [libc] }),
    main: libraryFile(name),
    files: [libraryFile(name), 'THIRD-PARTY-LICENSES'],
    // A package manager that keeps packages zipped has to unpack libraries that the system loads.
    preferUnplugged: true
  }
}

module.exports = { targets, manifestOf, GLIBC }
