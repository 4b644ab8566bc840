'use strict'

const { root } = require('path').parse(__dirname)

module.exports = {
  output: 'standalone',
  // The tools lie outside of the application.
  outputFileTracingRoot: root,
  turbopack: { root },
  serverExternalPackages: process.env.IS_EXTERNAL === 'yes' ? ['atomics-waitasync'] : []
}
