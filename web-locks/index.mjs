import entry from '../es-modules.js'

const api = entry('web-locks')
export default api
export const { wait, notify, waitAsync, install, uninstall, engine, ref, unref, waiterCount } = api
export * from '../lib/lazy-exports.mjs'
