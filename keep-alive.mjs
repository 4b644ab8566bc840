import api from './keep-alive.js'

export default api
export const { wait, notify, waitAsync, install, uninstall, engine, ref, unref, waiterCount } = api
export * from './locks.mjs'
