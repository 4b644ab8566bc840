import { register } from 'node:module'
import { Worker } from 'node:worker_threads'

register('./hooks.mjs', import.meta.url)
console.log((await import('./hooked.mjs')).default)
new Worker(new URL('import.mjs', import.meta.url)).on('error', error => { throw error })
