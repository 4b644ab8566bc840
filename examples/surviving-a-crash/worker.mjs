import { workerData } from 'worker_threads'
import { AsyncLock } from 'atomics-waitasync'
import accounts from './accounts.mjs'

const { sab, amount, crash } = workerData

const bank = accounts(sab, AsyncLock.byteLength)
const lock = new AsyncLock(sab, { repair: bank.repair })

lock.executeLockedSync(() => {
  bank.begin(amount)
  if (crash) throw new Error('out of luck')
  bank.finish()
})
