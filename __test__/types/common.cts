// A CommonJS module: require, of every entry point.
// needs: modules

import atomics = require('atomics-waitasync')
import force = require('atomics-waitasync/force')
import keepAlive = require('atomics-waitasync/keep-alive')
import { notify } from 'atomics-waitasync/pure'

const result: atomics.WaitAsyncResult = atomics.waitAsync(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
const lock: force.AsyncLock = new keepAlive.AsyncLock(new SharedArrayBuffer(4))
notify(lock.i32a, 0)
