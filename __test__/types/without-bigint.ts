// Libraries without BigInt64Array: importing the package does not bring it in, and nothing passes for one.
// needs: lib < es2020

import { wait, waitAsync, notify } from 'atomics-waitasync'

// @ts-expect-error not in this library
type Missing = BigInt64Array
// @ts-expect-error an object is no typed array
wait({}, 0, 0)
// @ts-expect-error an object is no typed array
notify({}, 0)
// @ts-expect-error an object is no typed array
waitAsync({}, 0, 0)
