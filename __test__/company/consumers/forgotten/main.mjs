// An application whose bundler was not told to leave the package out.

import { AsyncLock } from 'atomics-waitasync'

const lock = new AsyncLock(new SharedArrayBuffer(4))
lock.executeLocked(() => 'passed').then(console.log)
