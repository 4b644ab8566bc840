import { AsyncLock, Condition } from 'atomics-waitasync'

class Event {
  constructor (buffer) {
    this.lock = new AsyncLock(buffer)
    this.changed = new Condition(buffer, { byteOffset: 4 })
    this.flag = new Int32Array(buffer, 8, 1)
  }

  set () {
    return this.lock.executeLocked(() => {
      this.changed.notify() // the waiters go on once the lock is free
      this.flag[0] = 1
    })
  }

  reset () {
    return this.lock.executeLocked(() => { this.flag[0] = 0 })
  }

  /** Waits until it is set. In a worker, `lock()` and `waitFor()` do the same and block. */
  whenSet (options) {
    return this.lock.executeLocked(token => this.changed.waitForAsync(token, () => this.flag[0] === 1, options))
  }
}

const event = new Event(new SharedArrayBuffer(12))
const early = await event.whenSet({ timeout: 20 })
const set = event.whenSet()
await event.set()
console.log('event:', early, await set, await event.whenSet())
await event.reset()
console.log('event:', await event.whenSet({ timeout: 0 }))
