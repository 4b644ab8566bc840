'use strict'

// Compiled by Emscripten: image processing on a pool of threads.

const assert = require('assert')
const Vips = require('wasm-vips')

async function main () {
  const vips = await Vips()
  const image = vips.Image.black(64, 48).add(100).cast('uchar').resize(0.5)
  assert.deepStrictEqual([image.width, image.height, image.avg()], [32, 24, 100])
  assert.ok(image.writeToBuffer('.png').length > 50)
  console.log('passed')
  // As its documentation says.
  vips.shutdown()
}

main()
