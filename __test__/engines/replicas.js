'use strict'

// Servers beside the first one: a standby of PostgreSQL, a cluster of etcd.

const childProcess = require('child_process')
const fs = require('fs')
const https = require('https')
const path = require('path')
const { promisify } = require('util')
const { Server, freePort, locate, servers } = require('./servers')

const execFile = promisify(childProcess.execFile)

/** Starts a standby of our PostgreSQL server. */
async function startStandby ({ ports: [port] }, folder) {
  const prepare = home => [
    locate('pg_basebackup'),
    ['-h', '127.0.0.1', '-p', port, '-U', 'postgres', '-D', home, '-R', '-X', 'stream', '-c', 'fast']
  ]
  fs.chmodSync(folder, 0o755)
  const standby = new Server({ ...servers.postgresql, prepare }, path.join(folder, 'standby'))
  await standby.prepare()
  return Object.assign(standby, {
    promote: () => execFile(locate('pg_ctl'), ['promote', '-w', '-D', standby.folder], standby.options)
  })
}

/** Starts a cluster of etcd. `tls`: the files of certificates, if it speaks HTTPS. */
async function startCluster (folder, size, tls) {
  fs.chmodSync(folder, 0o755)
  const protocol = tls ? 'https' : 'http'
  const members = []
  for (let n = 0; n < size; n++) members.push({ name: `m${n}`, ports: [await freePort(), await freePort()] })
  const at = (scheme, port) => `${scheme}://127.0.0.1:${port}`
  const all = members.map(({ name, ports: [, peer] }) => `${name}=${at('http', peer)}`).join()
  const own = tls
    ? ['--cert-file', tls.cert, '--key-file', tls.key, '--trusted-ca-file', tls.ca, '--client-cert-auth']
    : []
  return Promise.all(members.map(async ({ name, ports }) => {
    const [client, peer] = [at(protocol, ports[0]), at('http', ports[1])]
    const what = {
      ...servers.etcd,
      url: () => client,
      args: home => [
        '--name', name, '--data-dir', home, '--listen-client-urls', client, '--advertise-client-urls', client,
        '--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer, '--initial-cluster', all, '--log-level',
        'error', ...own
      ],
      isReady: () => isHealthy(`${client}/health`, tls)
    }
    const member = new Server(what, path.join(folder, name))
    await member.prepare(ports)
    return member
  }))
}

function isHealthy (url, tls) {
  if (!tls) return fetch(url).then(response => response.ok)
  const options = { ...contentsOf(tls), timeout: 1000 }
  return new Promise((resolve, reject) => {
    https.get(url, options, response => resolve(response.resume().statusCode === 200)).on('error', reject)
  })
}

/** Lets a cluster ask for passwords, and makes an account that may use the locks. */
async function enableAuth (url, tls, { username, password }) {
  const prefix = Buffer.from('locks/').toString('base64')
  const end = Buffer.from('locks0').toString('base64')
  for (const [call, body] of [
    ['user/add', { name: 'root', password: 'root' }], ['user/grant', { user: 'root', role: 'root' }],
    ['role/add', { name: 'locks' }],
    ['role/grant', { name: 'locks', perm: { permType: 'READWRITE', key: prefix, range_end: end } }],
    ['user/add', { name: username, password }], ['user/grant', { user: username, role: 'locks' }], ['enable', {}]
  ]) await post(`${url}/v3/auth/${call}`, tls, body)
}

function post (url, tls, body) {
  return new Promise((resolve, reject) => {
    const request = https.request(url, { ...tls, method: 'POST' }, response => {
      let text = ''
      response.setEncoding('utf8').on('data', chunk => { text += chunk }).on('end', () => {
        if (response.statusCode === 200 || /already exists/.test(text)) resolve(text)
        else reject(new Error(`${url}: ${text}`))
      })
    })
    request.on('error', reject).end(JSON.stringify(body))
  })
}

/** Returns the texts of certificates, as `tls` of the engine takes them. */
const contentsOf = ({ ca, cert, key }) => {
  const [caText, certText, keyText] = [ca, cert, key].map(file => fs.readFileSync(file, 'utf8'))
  return { ca: caText, cert: certText, key: keyText }
}

/** Makes a certificate of 127.0.0.1, for servers and clients, and the authority that signs it. */
async function createCertificates (folder) {
  const file = name => path.join(folder, name)
  const openssl = (...args) => execFile('openssl', args)
  fs.mkdirSync(folder, { mode: 0o755 })
  const fresh = ['req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  const authority = ['-x509', '-days', '2', '-subj', '/CN=authority']
  await openssl(...fresh, ...authority, '-keyout', file('ca.key'), '-out', file('ca.pem'))
  await openssl(...fresh, '-subj', '/O=etcd', '-keyout', file('key.pem'), '-out', file('request.pem'))
  fs.writeFileSync(file('extensions'), 'subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n')
  await openssl(
    'x509', '-req', '-days', '2', '-in', file('request.pem'), '-CA', file('ca.pem'), '-CAkey', file('ca.key'),
    '-CAcreateserial', '-extfile', file('extensions'), '-out', file('cert.pem')
  )
  for (const name of fs.readdirSync(folder)) fs.chmodSync(file(name), 0o644)
  return { ca: file('ca.pem'), cert: file('cert.pem'), key: file('key.pem') }
}

module.exports = { contentsOf, createCertificates, enableAuth, startCluster, startStandby }
