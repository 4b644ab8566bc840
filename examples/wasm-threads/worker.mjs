import { workerData } from 'node:worker_threads'

const { module, memory, from, to } = workerData
/** @type {any} the functions of sum.wat */
const { exports } = new WebAssembly.Instance(module, { env: { memory } })
exports.awaitStart() // blocks by an instruction
exports.add(from, to) // and notifies by one
