'use strict'

// Compiled for WASI threads, on @napi-rs/wasm-runtime: each hash is computed by a thread.

const assert = require('assert')
const { hash, verify } = require('@node-rs/argon2-wasm32-wasi')

async function main () {
  const hashed = await hash('secret', { memoryCost: 64, timeCost: 1 })
  assert.deepStrictEqual(await Promise.all([verify(hashed, 'secret'), verify(hashed, 'other')]), [true, false])
  console.log('passed')
}

main()
