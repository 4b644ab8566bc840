'use strict'

require('webpack')({
  mode: 'production',
  target: 'node',
  entry: { main: './main.mjs', worker: './worker.mjs' },
  output: { path: process.cwd() + '/dist' },
  externals: [/^atomics-waitasync(\/|$)/],
  externalsType: 'commonjs'
}, (error, stats) => {
  if (error) throw error
  if (stats.hasErrors() || stats.hasWarnings()) throw new Error(stats.toString())
})
