// The DOM's library: its AbortSignal and its global object serve.
// needs: lib dom

import { AsyncLock, install } from 'atomics-waitasync'

const lock = new AsyncLock(new SharedArrayBuffer(4))
lock.lockAsync({ signal: new AbortController().signal })
install({ target: window })
// @ts-expect-error the controller is not the signal
lock.lockAsync({ signal: new AbortController() })
