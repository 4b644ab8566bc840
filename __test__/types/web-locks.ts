// The DOM's library: its navigator.locks and the package's locks can stand for each other where that makes sense.
// needs: lib dom, typescript >= 4.9

import 'atomics-waitasync/web-locks'
import { Lock as OurLock, locks } from 'atomics-waitasync/web-locks'

const manager: LockManager = locks
const theirs = async (lock: Lock | null) => lock !== null && lock.name.length
locks.request('name', theirs)
locks.request('name', { signal: new AbortController().signal }, theirs)
navigator.locks.request('name', { mode: 'shared' }, theirs)
// @ts-expect-error the DOM's types know no timeout
navigator.locks.request('name', { timeout: 5 }, theirs)
// @ts-expect-error nor ownerDied
navigator.locks.request('name', (lock: OurLock) => lock.ownerDied)
