'use strict'

// Compiled by Emscripten: a neural network on two threads.

const assert = require('assert')
const ort = require('onnxruntime-web')

const SIZE = 256

// A model of one matrix multiplication, as the protocol buffer that a file of ONNX is.
const varint = (number) => number > 127 ? [number & 127 | 128, ...varint(number >>> 7)] : [number]
const int = (field, number) => [field << 3, ...varint(number)]
const bytes = (field, ...parts) => [field << 3 | 2, ...varint(parts.flat().length), ...parts.flat()]
const string = (field, text) => bytes(field, [...Buffer.from(text)])
const FLOAT = 1
const matrix = name =>
  [string(1, name), bytes(2, bytes(1, int(1, FLOAT), bytes(2, bytes(1, int(1, SIZE)), bytes(1, int(1, SIZE)))))].flat()
const graph = [
  bytes(1, string(1, 'a'), string(1, 'b'), string(2, 'c'), string(4, 'MatMul')),
  string(2, 'graph'), bytes(11, matrix('a')), bytes(11, matrix('b')), bytes(12, matrix('c'))
]
const model = Uint8Array.from([int(1, 8), bytes(7, ...graph), bytes(8, int(2, 13))].flat())

async function main () {
  ort.env.wasm.numThreads = 2
  const session = await ort.InferenceSession.create(model, { executionProviders: ['wasm'] })
  const filled = (value) => new ort.Tensor('float32', new Float32Array(SIZE * SIZE).fill(value), [SIZE, SIZE])
  const { c } = await session.run({ a: filled(1), b: filled(2) })
  assert.strictEqual(c.data.length, SIZE * SIZE)
  assert.ok(c.data.every(value => value === 2 * SIZE))
  assert.strictEqual(ort.env.wasm.numThreads, 2)
  console.log('passed')
  await session.release()
}

main()
