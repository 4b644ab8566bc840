'use strict'

// A registry on this machine that stands in for npm's: `npm publish` and an install go the way of a release and of a
// user's own package manager. It takes any token.

const http = require('http')

/**
 * @param {{ upstream?: string }} [options] `upstream`: the registry that has everything else; without it, nothing else
 *   is there
 * @returns {Promise<{ url: string, names: () => string[] }>} `names`: what is there, in the order in which it came
 */
async function serve ({ upstream } = {}) {
  const packages = new Map()
  const server = http.createServer(async (request, response) => {
    if (request.method === 'PUT') {
      take(packages, await bodyOf(request))
      return answer(response, 201, { ok: true })
    }
    const [, name, file] = /^\/(@[^/]+(?:\/|%2f)[^/]+|[^/]+)(\/-\/.*)?$/i.exec(request.url) || []
    const found = packages.get(name)
    if (found && file) return response.end(found.content)
    if (found) return answer(response, 200, found.description)
    // The description says itself where its content is.
    if (upstream) return response.writeHead(307, { location: upstream.replace(/\/$/, '') + request.url }).end()
    answer(response, 404, { error: 'Not found' })
  })
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve))
  // It lasts as long as the process; package managers leave connections open for the next request.
  server.unref()
  server.on('connection', socket => socket.unref())
  return { url: `http://127.0.0.1:${server.address().port}/`, names: () => [...packages.keys()] }
}

/** Takes a publication: npm asks for the same, but for the tarball. */
function take (packages, { _attachments: attachments, ...description }) {
  const [{ data }] = Object.values(attachments)
  packages.set(description.name, { description: { ...description, time: {} }, content: Buffer.from(data, 'base64') })
}

async function bodyOf (request) {
  const chunks = []
  for await (const chunk of request) chunks.push(chunk)
  return JSON.parse(Buffer.concat(chunks).toString())
}

function answer (response, status, body) {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify(body))
}

module.exports = { serve }
