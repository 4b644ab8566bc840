import { workerData } from 'worker_threads'
import { AsyncLock } from 'atomics-waitasync'
import accounts from './accounts.mjs'

const { sab, amount, crash } = workerData

const lock = new AsyncLock(sab)
const bank = accounts(sab, AsyncLock.byteLength)

const token = lock.lock()
if (token.ownerDied) bank.repair()
bank.begin(amount)
if (crash) throw new Error('out of luck')
bank.finish()
token.unlock()
