'use strict'

// The servers of the engines: Debian's, started on loopback with their data in a scratch folder, or those that a
// variable names.
//
// Invariant: a server that was started here ends with this process, and before `stop` has settled.

const childProcess = require('child_process')
const fs = require('fs')
const net = require('net')
const path = require('path')
const { promisify } = require('util')
const { find } = require('../lib/cargo')
const { succeed } = require('../lib/child')

const { spawn } = childProcess
const execFile = promisify(childProcess.execFile)
const READY = 30 * 1000 // milliseconds

/**
 * `variable` names one that runs already; `debian` is the package of Debian; `user` is the account that it runs under
 * if root starts it. `isReady` tells whether it serves.
 */
const servers = {
  postgresql: {
    variable: 'POSTGRESQL_URL',
    debian: 'postgresql',
    user: 'postgres',
    stopSignal: 'SIGQUIT', // its children end with it
    find: () => newest('/usr/lib/postgresql', path.join('bin', 'postgres')),
    url: (port) => `postgresql://postgres@127.0.0.1:${port}/postgres`,
    prepare: (program, folder) => [
      path.join(path.dirname(program), 'initdb'),
      ['-A', 'trust', '-U', 'postgres', '-D', folder, '--no-sync', '-E', 'UTF8', '--locale=C']
    ],
    args: (folder, port) => [
      '-D', folder, '-p', port, '-c', 'unix_socket_directories=', '-c', 'listen_addresses=127.0.0.1', '-c',
      'max_connections=200'
    ],
    isReady: (port, program) =>
      execFile(path.join(path.dirname(program), 'pg_isready'), ['-h', '127.0.0.1', '-p', port]).then(() => true)
  },
  redis: {
    variable: 'REDIS_URL',
    debian: 'redis-server',
    user: 'redis',
    stopSignal: 'SIGKILL',
    find: () => find('redis-server'),
    url: (port) => `redis://127.0.0.1:${port}`,
    args: (folder, port) => [
      '--dir', folder, '--port', port, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'
    ],
    isReady: (port) => execFile('redis-cli', ['-p', port, 'ping']).then(({ stdout }) => stdout === 'PONG\n')
  },
  etcd: {
    variable: 'ETCD_URL',
    debian: 'etcd-server',
    user: 'nobody',
    stopSignal: 'SIGKILL',
    find: () => find('etcd'),
    url: (port) => `http://127.0.0.1:${port}`,
    args (folder, port, other) {
      const [client, peer] = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${other}`]
      return [
        '--data-dir', folder, '--listen-client-urls', client, '--advertise-client-urls', client, '--listen-peer-urls',
        peer, '--initial-advertise-peer-urls', peer, '--initial-cluster', `default=${peer}`, '--log-level', 'error'
      ]
    },
    isReady: (port) => fetch(`http://127.0.0.1:${port}/health`).then((response) => response.ok)
  }
}

function newest (folder, file) {
  const versions = fs.existsSync(folder) ? fs.readdirSync(folder).sort((a, b) => b - a) : []
  return versions.map(version => path.join(folder, version, file)).find(each => fs.existsSync(each)) || null
}

/** Installs what is missing and named by no variable, as packages of Debian; needs root. */
async function install () {
  const missing = Object.keys(servers).filter(isMissing).map(name => servers[name].debian)
  if (missing.length === 0) return
  const options = { echo: true, timeout: 10 * 60 * 1000, env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } }
  await succeed('apt-get', ['update'], options)
  await succeed('apt-get', ['install', '--yes', '--no-install-recommends', ...missing], options)
}

const isMissing = name => !process.env[servers[name].variable] && servers[name].find() === null

/** Why there is no such server, or undefined. */
function missing (name) {
  const { variable, debian } = servers[name]
  return isMissing(name) ? `no ${variable}, and ${debian} is not installed (--install does that)` : undefined
}

/** The variables with the servers that are here, all of them started; and what stops those again. */
async function startAll (scratch) {
  const started = []
  const env = {}
  for (const name of Object.keys(servers).filter(name => !isMissing(name))) {
    const server = await start(name, scratch)
    started.push(server)
    env[servers[name].variable] = server.url
  }
  return { env, stop: () => Promise.all(started.map(server => server.stop())) }
}

/** One that serves: `{ url, isOurs }`; if it is ours, with `stop` and `begin`. */
async function start (name, scratch) {
  const url = process.env[servers[name].variable]
  return url ? { url, isOurs: false, stop () {} } : Server.start(name, scratch)
}

/** Resolves once it serves. */
class Server {
  static async start (name, scratch) {
    const server = new Server()
    server.what = servers[name]
    server.program = server.what.find()
    server.folder = path.join(scratch, name)
    server.options = { cwd: '/', ...(process.getuid() === 0 && accountOf(server.what.user)) }
    fs.mkdirSync(server.folder, { mode: 0o700 })
    if (server.options.uid !== undefined) fs.chownSync(server.folder, server.options.uid, server.options.gid)
    if (server.what.prepare) await execFile(...server.what.prepare(server.program, server.folder), server.options)
    server.ports = [String(await freePort()), String(await freePort())]
    await server.begin()
    return server
  }

  get isOurs () { return true }

  get url () { return this.what.url(this.ports[0]) }

  async begin () {
    const late = Date.now() + READY
    while (!await this.what.isReady(this.ports[0], this.program).catch(() => false)) {
      if (Date.now() > late)
        throw new Error(`${this.program} does not serve:\n${fs.readFileSync(`${this.folder}.log`, 'utf8')}`)
      // After a kill, one may refuse to start until its children have ended.
      if (this.child === undefined || !running.has(this.child)) this.spawn()
      await new Promise(resolve => setTimeout(resolve, 50))
    }
  }

  spawn () {
    const log = fs.openSync(`${this.folder}.log`, 'a')
    const child = spawn(this.program, this.what.args(this.folder, ...this.ports), {
      ...this.options,
      stdio: ['ignore', log, log]
    })
    fs.closeSync(log)
    running.add(child)
    this.child = child
    this.ended = new Promise((resolve) => child.on('error', resolve).on('exit', resolve)).then(() => {
      running.delete(child)
    })
  }

  /** Resolves once it has ended. */
  async stop (signal = this.what.stopSignal) {
    this.child.kill(signal)
    await this.ended
  }
}

const running = new Set()
process.once('exit', () => { for (const child of running) child.kill('SIGKILL') })

function accountOf (user) {
  const line = fs.readFileSync('/etc/passwd', 'utf8').split('\n').find(line => line.startsWith(`${user}:`))
  if (line === undefined) throw new Error(`this system has no user ${user}`)
  const [, , uid, gid] = line.split(':').map(Number)
  return { uid, gid }
}

function freePort () {
  return new Promise((resolve, reject) => {
    const server = net.createServer().on('error', reject).listen(0, '127.0.0.1', () => {
      const { port } = server.address()
      server.close(() => resolve(port))
    })
  })
}

module.exports = { install, missing, start, startAll }
