// The DOM's library: its AbortSignal and its global object serve.
// needs: lib dom

import { AsyncLock, install, waitAsync } from 'atomics-waitasync'

const lock = new AsyncLock(new SharedArrayBuffer(4))
lock.lockAsync({ signal: new AbortController().signal })
waitAsync(new Int32Array(4), 0, 0, undefined, { signal: new AbortController().signal })
install({ target: window })
// @ts-expect-error the controller is not the signal
lock.lockAsync({ signal: new AbortController() })
