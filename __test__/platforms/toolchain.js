'use strict'

// A compiler that knows all targets: Debian's cargo, rustc and the sources of the standard library, of one version,
// which is compiled for each target. It runs in a chroot, with the tree, cargo's home and the project's zig bound into
// it. So it needs no toolchain from elsewhere, and nothing is installed on the machine.

const fs = require('fs')
const os = require('os')
const path = require('path')
const { targets } = require('../../scripts/lib/targets')
const zig = require('../../scripts/lib/zig')
const { must, withDependencies } = require('./debian')

const root = path.join(__dirname, '..', '..')
const PACKAGES = [
  'cargo', 'rustc', 'rust-src', 'bash', 'coreutils', 'libc6-dev', 'python3-minimal', 'musl', 'qemu-user'
]
/** Where the chroot has what is bound into it. */
const BOUND = { '/src': root, '/cargo': process.env.CARGO_HOME || path.join(os.homedir(), '.cargo') }

/** Returns the folder of the compiler's system; it also has the emulators. */
async function system () {
  const folder = await withDependencies('toolchain', PACKAGES)
  const link = (name, target) => {
    const file = path.join(folder, 'usr', 'bin', name)
    if (!fs.existsSync(file)) {
      fs.rmSync(file, { force: true })
      fs.symlinkSync(target, file)
    }
  }
  // The work of Debian's scripts of installation.
  link('sh', 'bash')
  link('cc', 'gcc')
  for (const name of ['bin', 'sbin', 'lib', 'lib64']) {
    const file = path.join(folder, name)
    if (fs.existsSync(file) && fs.lstatSync(file).isSymbolicLink()) continue
    fs.cpSync(file, path.join(folder, 'usr', name), { recursive: true, force: false, verbatimSymlinks: true })
    fs.rmSync(file, { recursive: true })
    fs.symlinkSync(path.join('usr', name), file)
  }
  return folder
}

/** Returns a word of a shell's command. */
const quoted = text => `'${text.replace(/'/g, '\'\\\'\'')}'`

/** Runs a command of the system, in the tree. */
async function inSystem (command) {
  const folder = await system()
  const { folders: [programs, linker] } = await zig.toolchain()
  const bound = { ...BOUND, '/zig/bin': programs, '/zig/ziglang': linker }
  for (const name of [...Object.keys(bound), '/proc', '/dev', '/tmp', '/etc/ssl/certs'])
    fs.mkdirSync(path.join(folder, name), { recursive: true })
  // For cargo, which fetches what the standard library depends on.
  fs.copyFileSync(
    process.env.SSL_CERT_FILE || '/etc/ssl/certs/ca-certificates.crt',
    path.join(folder, 'etc', 'ssl', 'certs', 'ca-certificates.crt')
  )
  fs.copyFileSync('/etc/resolv.conf', path.join(folder, 'etc', 'resolv.conf'))
  const env = {
    PATH: '/zig/bin:/zig/ziglang:/usr/bin',
    HOME: '/tmp',
    CARGO_HOME: '/cargo',
    RUSTC_BOOTSTRAP: '1',
    CARGO_TARGET_DIR: '/src/target/platforms'
  }
  const script = [
    'set -eu',
    ...Object.entries(bound).map(([name, from]) => `mount --bind ${quoted(from)} ${quoted(path.join(folder, name))}`),
    ...['/proc', '/dev', '/tmp'].map(name => `mount --rbind ${name} ${quoted(path.join(folder, name))}`),
    `exec chroot ${quoted(folder)} /usr/bin/env -i ${Object.entries(env)
      .map(([key, value]) => quoted(`${key}=${value}`))
      .join(' ')} bash -c ${quoted(`cd /src && ${command}`)}`
  ].join('\n')
  return must('unshare', ['--user', '--map-root-user', '--mount', 'bash', '-c', script])
}

const FLAGS = '--package atomics-waitasync --release --locked -Z build-std=std,panic_unwind'

/** Returns the variable that keeps this machine's folders out of messages: see scripts/package.js. */
function remapping (rust) {
  const registry = path.join(BOUND['/cargo'], 'registry', 'src')
  const folders = fs.existsSync(registry) ? fs.readdirSync(registry).map(each => `/cargo/registry/src/${each}`) : []
  const flags = [...folders.map(folder => `${folder}=`), '/src=/atomics-waitasync']
    .map(each => `--remap-path-prefix=${each}`)
    .join(' ')
  return `CARGO_TARGET_${rust.toUpperCase().replace(/-/g, '_')}_RUSTFLAGS=${quoted(flags)}`
}

/** Builds the library for a platform of lib/targets.js that zig links; the absolute path of the library. */
async function build (name) {
  const { rust, zig: linker } = targets[name]
  await inSystem(`${remapping(rust)} cargo-zigbuild build ${FLAGS} --target ${linker}`)
  return path.join(root, 'target', 'platforms', rust, 'release', 'libatomics_waitasync.so')
}

/** Returns a folder with a `cc` for a platform: some tests compile C. */
async function compiler (name) {
  const { folders: [, home] } = await zig.toolchain()
  const folder = path.join(root, 'target', 'platforms', `cc-${name}`)
  const target = targets[name].zig.replace('-unknown', '').replace(/^armv7/, 'arm')
  fs.mkdirSync(folder, { recursive: true })
  fs.writeFileSync(
    path.join(folder, 'cc'),
    `#!/bin/sh\nexec ${quoted(path.join(home, 'zig'))} cc -target ${target} "$@"\n`,
    { mode: 0o755 }
  )
  return folder
}

/**
 * Builds the library for Windows, with mingw's C runtime; gives its absolute path.
 */
async function buildForWindows () {
  // napi-build asks for a libnode.dll, and Rust for what gcc has; with napi/dyn-symbols and zig nothing comes from
  // them.
  const folder = path.join('target', 'platforms', 'libnode')
  fs.mkdirSync(path.join(root, folder), { recursive: true })
  for (const name of ['libnode.dll', 'libnode.a', 'libssp.a', 'libssp_nonshared.a', 'libpthread.a'])
    fs.writeFileSync(path.join(root, folder, name), name.endsWith('.a') ? '!<arch>\n' : '')
  const rust = 'x86_64-pc-windows-gnu'
  const environment = `${remapping(rust)} LIBNODE_PATH=/src/${folder}`
  await inSystem(`${environment} cargo-zigbuild build ${FLAGS} --features napi/dyn-symbols --target ${rust}`)
  return path.join(root, 'target', 'platforms', rust, 'release', 'atomics_waitasync.dll')
}

/** Checks that the source compiles for a target, without a warning. */
const check = rust => inSystem(`cargo check ${FLAGS} -Z warnings --config 'build.warnings="deny"' --target ${rust}`)

module.exports = { build, buildForWindows, check, compiler, quoted, system }
