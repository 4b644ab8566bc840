// An ES module: named imports, from every entry point.
// needs: modules

import { waitAsync, WaitAsyncResult } from 'atomics-waitasync'
import { install } from 'atomics-waitasync/force'
import * as keepAlive from 'atomics-waitasync/keep-alive'
import pure from 'atomics-waitasync/pure'

const result: WaitAsyncResult = waitAsync(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
const changed: boolean = install() && keepAlive.uninstall()
const queue: 'host' | 'addon' = pure.engine
// @ts-expect-error not exported
import { load } from 'atomics-waitasync/lib/binding'
