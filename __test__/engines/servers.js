'use strict'

// The servers of the engines: Debian's, started on loopback with their data in a scratch folder, or those that a
// variable names (POSTGRESQL_URL, ...).
//
// Invariant: a server that was started here ends with this process, and before `stop` has settled.

const childProcess = require('child_process')
const { once } = require('events')
const fs = require('fs')
const net = require('net')
const path = require('path')
const { setTimeout: sleep } = require('timers/promises')
const { promisify } = require('util')
const { find } = require('../../scripts/lib/cargo')
const { succeed } = require('../../scripts/lib/child')

const execFile = promisify(childProcess.execFile)
const READY = 30 * 1000 // milliseconds
// Debian's `nobody`: PostgreSQL refuses to run under root's account.
const NOBODY = { uid: 65534, gid: 65534 }

/** `debian` is the package of Debian that has the program. `isReady` tells whether it serves. */
const servers = {
  postgresql: {
    debian: 'postgresql',
    program: 'postgres',
    url: port => `postgresql://postgres@127.0.0.1:${port}/postgres`,
    prepare: folder => [
      locate('initdb'), ['-A', 'trust', '-U', 'postgres', '-D', folder, '--no-sync', '-E', 'UTF8', '--locale=C']
    ],
    args: (folder, port) => [
      '-D', folder, '-p', port, '-c', 'unix_socket_directories=', '-c', 'listen_addresses=127.0.0.1', '-c',
      'max_connections=200', '-c', 'wal_writer_delay=10s'
    ],
    isReady: port => execFile(locate('pg_isready'), ['-h', '127.0.0.1', '-p', port]).then(() => true)
  },
  redis: {
    debian: 'redis-server',
    program: 'redis-server',
    url: port => `redis://127.0.0.1:${port}`,
    args: (folder, port) => [
      '--dir', folder, '--port', port, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'
    ],
    isReady: port => execFile('redis-cli', ['-p', port, 'ping']).then(({ stdout }) => stdout === 'PONG\n')
  },
  etcd: {
    debian: 'etcd-server',
    program: 'etcd',
    url: port => `http://127.0.0.1:${port}`,
    args (folder, port, other) {
      const [client, peer] = [port, other].map(servers.etcd.url)
      return [
        '--data-dir', folder, '--listen-client-urls', client, '--advertise-client-urls', client, '--listen-peer-urls',
        peer, '--initial-advertise-peer-urls', peer, '--initial-cluster', `default=${peer}`, '--log-level', 'error'
      ]
    },
    isReady: port => fetch(`${servers.etcd.url(port)}/health`).then(response => response.ok)
  }
}

const variable = name => `${name.toUpperCase()}_URL`
const isMissing = name => !process.env[variable(name)] && locate(servers[name].program) === null

/** Returns the path of a program, or null. Debian keeps those of PostgreSQL off the PATH, by version. */
function locate (program) {
  const folder = '/usr/lib/postgresql'
  const versions = fs.existsSync(folder) ? fs.readdirSync(folder).sort((a, b) => b - a) : []
  return versions.map(version => path.join(folder, version, 'bin', program)).find(fs.existsSync) || find(program)
}

/** Installs missing servers that no variable names, as packages of Debian; needs root. */
async function install () {
  const missing = Object.keys(servers).filter(isMissing).map(name => servers[name].debian)
  if (missing.length === 0) return
  const options = { echo: true, timeout: 10 * 60 * 1000, env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } }
  await succeed('apt-get', ['update'], options)
  await succeed('apt-get', ['install', '--yes', '--no-install-recommends', ...missing], options)
}

/** Returns why there is no such server, or undefined, also if none is needed. */
function missing (name) {
  if (name === undefined || !isMissing(name)) return undefined
  return `no ${variable(name)}, and ${servers[name].debian} is not installed (--install does that)`
}

/**
 * Starts one, unless it serves: `{ url, isOurs }`; if it is ours, with `begin`, which resolves once it serves, and
 * `stop`.
 */
async function start (name, scratch) {
  const { [variable(name)]: url } = process.env
  const server = url ? { url, isOurs: false, stop () {} } : new Server(servers[name], path.join(scratch, name))
  if (server.isOurs) await server.prepare()
  return server
}

class Server {
  constructor (what, folder) {
    Object.assign(this, { what, folder, isOurs: true, isRunning: false })
  }

  async prepare (ports) {
    const account = process.getuid() === 0 ? NOBODY : { uid: process.getuid(), gid: process.getgid() }
    this.options = { cwd: '/', ...account }
    fs.mkdirSync(this.folder, { mode: 0o700 })
    fs.chownSync(this.folder, account.uid, account.gid)
    if (this.what.prepare) await execFile(...this.what.prepare(this.folder), this.options)
    this.ports = ports || [await freePort(), await freePort()]
    this.url = this.what.url(this.ports[0])
    await this.begin()
  }

  async begin () {
    for (const late = Date.now() + READY; !await this.what.isReady(this.ports[0]).catch(() => false); await sleep(50)) {
      if (Date.now() > late) throw new Error(`it does not serve:\n${fs.readFileSync(`${this.folder}.log`, 'utf8')}`)
      // After a kill, one may refuse to start until its children have ended.
      if (!this.isRunning) this.spawn()
    }
  }

  spawn () {
    const log = fs.openSync(`${this.folder}.log`, 'a')
    const options = { ...this.options, stdio: ['ignore', log, log] }
    this.child = childProcess.spawn(locate(this.what.program), this.what.args(this.folder, ...this.ports), options)
    fs.closeSync(log)
    this.isRunning = true
    const kill = () => this.child.kill('SIGKILL')
    process.once('exit', kill)
    this.ended = once(this.child, 'exit').catch(() => {}).then(() => {
      this.isRunning = false
      process.removeListener('exit', kill)
    })
  }

  /** Resolves once it has ended; by SIGINT, with its children. */
  async stop (signal = 'SIGINT') {
    this.child.kill(signal)
    await this.ended
  }
}

async function freePort () {
  const server = net.createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  server.close()
  return String(port)
}

module.exports = { Server, freePort, install, locate, missing, servers, start }
