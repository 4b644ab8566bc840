import entry from '../es-modules.js'

const api = entry('processes')
export default api
export const { etcd, files, isTimeoutError, memory, pathName, postgresql, processLocks, redis, sharedMemory } = api
