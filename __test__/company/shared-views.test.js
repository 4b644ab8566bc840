'use strict'
// nodes: >=20 (older ones lack most of these)

// docs/recipes.md says which of Node's functions take a view of shared memory.

const assert = require('assert')
const { Blob } = require('buffer')
const crypto = require('crypto')
const fs = require('fs')
const path = require('path')
const { test } = require('../harness')
const { scratchFolder } = require('../fixtures/entries/folders')

const MAJOR = Number(process.versions.node.split('.')[0])
/** The first one whose crypto.getRandomValues throws. */
const THROWS_LATE = MAJOR === 26 && Number(process.versions.node.split('.')[1]) < 12 ? 27 : 26
const sharedView = () => {
  const view = new Uint8Array(new SharedArrayBuffer(2))
  view.set([65, 66])
  return view
}

async function compress (view) {
  const { readable, writable } = new CompressionStream('gzip')
  const writer = writable.getWriter()
  const [bytes] = await Promise.all([readableBytes(readable), writer.write(view).then(() => writer.close())])
  return require('zlib').gunzipSync(bytes).toString()
}

async function readableBytes (readable) {
  const parts = []
  for await (const part of readable) parts.push(part)
  return Buffer.concat(parts)
}

/** What each gives: its text, or the name of its error; and since which Node the second one. */
const CALLS = {
  'new Response': [view => new Response(view).text(), 'TypeError', 24, '65,66'],
  'new Request': [view => new Request('http://a', { method: 'POST', body: view }).text(), 'TypeError', 24, '65,66'],
  'crypto.getRandomValues': [
    view => String(crypto.webcrypto.getRandomValues(view).length), '2', THROWS_LATE, 'TypeError'
  ],
  'crypto.subtle.digest': [view => crypto.webcrypto.subtle.digest('SHA-1', view), 'TypeError'],
  CompressionStream: [compress, 'AB', 24, 'TypeError'],
  Blob: [view => new Blob([view]).text(), 'AB'],
  TextDecoder: [view => new TextDecoder().decode(view), 'AB'],
  'Buffer.from': [view => Buffer.from(view).toString(), 'AB'],
  'crypto.randomFillSync': [view => String(crypto.randomFillSync(view).length), '2'],
  'a copy': [view => new Response(view.slice()).text(), 'AB']
}

for (const [name, [call, first, since = Infinity, later]] of Object.entries(CALLS)) {
  test(`${name} of a view of shared memory`, async () => {
    const result = await Promise.resolve().then(() => call(sharedView())).catch(error => error.name)
    assert.strictEqual(result, MAJOR < since ? first : later)
  })
}

test('fs.writeFile and createHash of a view of shared memory', async t => {
  const file = path.join(scratchFolder(t), 'file')
  await fs.promises.writeFile(file, sharedView())
  assert.strictEqual(fs.readFileSync(file, 'utf8'), 'AB')
  const hash = data => crypto.createHash('sha256').update(data).digest('hex')
  assert.strictEqual(hash(sharedView()), hash('AB'))
})
