// Libraries without Symbol.dispose: importing the package does not bring it in.
// needs: lib < esnext

import { UnlockToken } from 'atomics-waitasync'

// @ts-expect-error not in this library
Symbol.dispose
// @ts-expect-error not in this library
type Missing = Disposable
const names: keyof UnlockToken = 'unlock' as 'locked' | 'ownerDied' | 'unlock'
