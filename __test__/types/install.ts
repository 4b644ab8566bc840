// Every library: install, uninstall and engine.

import * as api from 'atomics-waitasync'
import { InstallOptions, engine, install, uninstall } from 'atomics-waitasync'

const plain = {}
const first: boolean = install()
const options: InstallOptions = { target: plain, force: true, workers: false, contexts: false }
const second: boolean = install(options)
install({ target: Atomics })
install({ target: globalThis, workers: undefined })
// @ts-expect-error a boolean
install({ force: 'yes' })
// @ts-expect-error a boolean
install({ contexts: 'no' })
// @ts-expect-error an object
install({ target: 'globalThis' })
// @ts-expect-error no such option
install({ global: true })

const third: boolean = uninstall() || uninstall(plain)
// @ts-expect-error the target itself, not options
uninstall('globalThis')

const queue: 'host' | 'addon' = engine
if (api.engine === 'host') {
  // @ts-expect-error there is no third one
  api.engine === 'native'
}
// @ts-expect-error only install and uninstall change it
api.engine = 'addon'
