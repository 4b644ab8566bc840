'use strict'

// A registry on this machine that stands in for npm's: `npm publish` and an install go the way of a release and of a user's own package
// manager. It takes any token, and forgets everything when it is closed.

const crypto = require('crypto')
const fs = require('fs')
const http = require('http')
const path = require('path')
const { succeedNpm } = require('./npm')
const { withScratch } = require('./scratch')

/**
 * @param {{ stubs?: object[], upstream?: string }} [options] `stubs`: manifests of packages that are there, but whose library is none.
 *   `upstream`: the registry that has everything else; without it, nothing else is there
 * @returns {Promise<{ url: string, close: () => Promise<void> }>}
 */
async function serve ({ stubs = [], upstream } = {}) {
  const packages = new Map()
  await withScratch(async scratch => {
    for (const manifest of stubs) add(packages, manifest, fs.readFileSync(await packStub(manifest, scratch)))
  })

  const server = http.createServer(async (request, response) => {
    if (request.method === 'PUT') {
      take(packages, await bodyOf(request))
      return answer(response, 201, { ok: true })
    }
    const [, name, file] = /^\/(@[^/]+(?:\/|%2f)[^/]+|[^/]+)(\/-\/.*)?$/i.exec(request.url) || []
    const found = packages.get(name)
    if (found && file) return response.end(found.content)
    if (found) return answer(response, 200, describe(found, `http://${request.headers.host}`))
    // The description says itself where its content is.
    if (upstream) return response.writeHead(307, { location: upstream.replace(/\/$/, '') + request.url }).end()
    answer(response, 404, { error: 'Not found' })
  })
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${server.address().port}/`,
    close: () => new Promise(resolve => {
      server.close(resolve)
      // Package managers leave theirs open for the next request.
      if (server.closeAllConnections) server.closeAllConnections()
    })
  }
}

/** What npm publishes: a version with its tarball. */
function take (packages, { versions, _attachments: attachments }) {
  const [manifest] = Object.values(versions)
  const [{ data }] = Object.values(attachments)
  add(packages, manifest, Buffer.from(data, 'base64'))
}

async function bodyOf (request) {
  const chunks = []
  for await (const chunk of request) chunks.push(chunk)
  return JSON.parse(Buffer.concat(chunks).toString())
}

async function packStub (manifest, scratch) {
  const folder = path.join(scratch, manifest.name)
  fs.mkdirSync(folder)
  fs.writeFileSync(path.join(folder, manifest.main), 'not a library')
  fs.writeFileSync(path.join(folder, 'package.json'), JSON.stringify(manifest))
  await succeedNpm(['pack', '--ignore-scripts', '--loglevel=error'], { cwd: folder })
  return path.join(folder, fs.readdirSync(folder).find(name => name.endsWith('.tgz')))
}

function add (packages, manifest, content) {
  packages.set(manifest.name, { manifest, content })
}

function describe ({ manifest, content }, url) {
  const { name, version } = manifest
  const digest = (algorithm, encoding) => crypto.createHash(algorithm).update(content).digest(encoding)
  const dist = {
    tarball: `${url}/${name}/-/${name}-${version}.tgz`,
    shasum: digest('sha1', 'hex'),
    integrity: `sha512-${digest('sha512', 'base64')}`
  }
  return { _id: name, name, 'dist-tags': { latest: version }, versions: { [version]: { _id: `${name}@${version}`, ...manifest, dist } }, time: {} }
}

function answer (response, status, body) {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify(body))
}

module.exports = { serve }
