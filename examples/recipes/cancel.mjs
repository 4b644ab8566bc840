import { notify, waitAsync, waiterCount } from 'atomics-waitasync/pure'

const words = new Int32Array(new SharedArrayBuffer(4))

/** Resolves once the word is no longer `value`. Rejects with the signal's reason. */
async function untilChanged (value, signal) {
  while (Atomics.load(words, 0) === value) await waitAsync(words, 0, value, Infinity, { signal }).value
}

const impatient = new AbortController()
const patient = new AbortController()
const waits = [untilChanged(0, impatient.signal), untilChanged(0, patient.signal)]
impatient.abort()
console.log('cancel:', waiterCount(words, 0), await waits[0].catch(error => error.name))

Atomics.store(words, 0, 1)
console.log('cancel:', notify(words, 0, 1))
await waits[1]
