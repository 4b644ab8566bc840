import entry from '../es-modules.js'

const api = entry('processes')
export default api
export const { etcd, files, memory, postgresql, processLocks, redis, sharedMemory } = api
