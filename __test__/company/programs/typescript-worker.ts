import { parentPort, workerData } from 'worker_threads'

const doubled: number = workerData * 2
if (parentPort !== null) parentPort.postMessage(doubled)
