// Libraries whose Atomics has no waitAsync: this entry point does not pretend that there is one.
// needs: alone, lib < es2022

import { engine, install, notify, uninstall, waitAsync } from 'atomics-waitasync/pure'

const ia = new Int32Array(new SharedArrayBuffer(8))

// @ts-expect-error `pure` touches no global
Atomics.waitAsync(ia, 0, 0)

waitAsync(ia, 0, 0, 10)
notify(ia, 0)
const changed: boolean = install() && uninstall()
const queue: 'host' | 'addon' = engine
