'use strict'

require('esbuild').buildSync({
  entryPoints: ['main.mjs', 'worker.mjs'],
  bundle: true,
  platform: 'node',
  external: ['atomics-waitasync'],
  outdir: 'dist'
})
