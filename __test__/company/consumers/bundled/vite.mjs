import { build } from 'vite'

// Linked packages, and those that noExternal names, are bundled unless they are external.
const ssr = { external: ['atomics-waitasync'], noExternal: true }
const output = { format: 'cjs', entryFileNames: '[name].js' }

for (const name of ['main', 'worker']) {
  await build({ logLevel: 'error', ssr, build: { ssr: `${name}.mjs`, emptyOutDir: false, rollupOptions: { output } } })
}
