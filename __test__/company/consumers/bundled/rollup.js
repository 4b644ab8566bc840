'use strict'

async function main () {
  const bundle = await require('rollup').rollup({
    input: ['main.mjs', 'worker.mjs'],
    external: [/^atomics-waitasync(\/|$)/, 'assert', 'worker_threads'],
    onwarn (warning) { throw new Error(warning.message) }
  })
  await bundle.write({ dir: 'dist', format: 'cjs', interop: 'auto' })
}

main().catch(error => {
  console.error(error)
  process.exitCode = 1
})
