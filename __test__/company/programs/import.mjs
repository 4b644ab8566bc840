import { Worker, isMainThread, workerData } from 'node:worker_threads'

console.log(isMainThread, workerData, globalThis.preloaded)
if (isMainThread) new Worker(new URL(import.meta.url), { workerData: 1 }).on('error', error => { throw error })
