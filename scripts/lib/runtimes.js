'use strict'

// Other runtimes than Node, as the npm registry has them.

const path = require('path')
const cache = require('./cache')
const npm = require('./npm')

/** `spec`: the package with the binary for a system, which is the file `binary`; `args` come before a program. */
const RUNTIMES = {
  bun: {
    version: '1.4.5',
    spec: (platform, arch) => `@oven/bun-${platform}-${arch === 'arm64' ? 'aarch64' : arch}`,
    binary: path.join('bin', 'bun'),
    args: []
  },
  deno: {
    version: '2.9.6',
    spec: (platform, arch) => `@deno/${platform}-${arch}${platform === 'linux' ? '-glibc' : ''}`,
    binary: 'deno',
    args: ['run', '-A']
  }
}

/** Returns the binary of a runtime, fetched if it is missing. Throws `cache.Unavailable` where there is none. */
async function fetch (name) {
  const { version, spec, binary } = RUNTIMES[name]
  return npm.program({
    spec: `${spec(process.platform, process.arch)}@${version}`,
    target: cache.folder(name, version),
    binary,
    version
  })
}

module.exports = { RUNTIMES, fetch }
