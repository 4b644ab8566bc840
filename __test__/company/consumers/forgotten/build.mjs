// Bundles the application, and the package with it: node build.mjs BUNDLER FORMAT. Prints the name of the file.

import { promisify } from 'node:util'
import commonjs from '@rollup/plugin-commonjs'
import nodeResolve from '@rollup/plugin-node-resolve'
import { build as esbuild } from 'esbuild'
import { rollup } from 'rollup'
import { build as vite } from 'vite'
import webpack from 'webpack'

const INPUT = 'main.mjs'
const [, , bundler, format] = process.argv
const file = `bundle.${format === 'cjs' ? 'cjs' : 'mjs'}`

const BUNDLERS = {
  esbuild: () => esbuild({ entryPoints: [INPUT], bundle: true, platform: 'node', format, outfile: file }),
  async webpack () {
    const output = { path: process.cwd(), filename: file }
    const stats = await promisify(webpack)({ mode: 'production', target: 'node', entry: `./${INPUT}`, output })
    if (stats.hasErrors()) throw new Error(stats.toString())
  },
  async rollup () {
    const bundle = await rollup({ input: INPUT, plugins: [nodeResolve({ preferBuiltins: true }), commonjs()] })
    await bundle.write({ file, format })
  },
  vite () {
    const output = { format, entryFileNames: file }
    return vite({
      logLevel: 'error',
      ssr: { noExternal: true },
      build: { ssr: INPUT, outDir: '.', emptyOutDir: false, rollupOptions: { output } }
    })
  }
}

await BUNDLERS[bundler]()
console.log(file)
