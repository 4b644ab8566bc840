'use strict'

/** The message for a bundled package: how each bundler leaves it out. */
module.exports = 'atomics-waitasync is in a bundle, but it has a native part and files that Workers load: it must ' +
  'stay external, and be installed beside the bundle. esbuild: external: [\'atomics-waitasync\']; webpack: ' +
  'externals: [/^atomics-waitasync/], externalsType: \'commonjs\'; Rollup: external: [/^atomics-waitasync/]; Vite: ' +
  'ssr: { external: [\'atomics-waitasync\'] }; Next.js: serverExternalPackages: [\'atomics-waitasync\']'
