import { etcd, files, postgresql, redis, type Engine } from 'atomics-waitasync/processes'
import { Redis } from 'ioredis'
import pg from 'pg'

/** The leases of the measurement, in milliseconds. */
export const LEASE = 2000

/** Returns the engines that are here: files of a folder, and those whose server a variable names. */
export function available (folder: string): Record<string, () => Engine> {
  const { POSTGRESQL_URL, REDIS_URL, ETCD_URL } = process.env
  return {
    files: () => files(`${folder}/files`),
    'files, durable': () => files(`${folder}/durable`, { durable: true }),
    ...(POSTGRESQL_URL && { PostgreSQL: () => postgresql(pg, POSTGRESQL_URL) }),
    ...(REDIS_URL && { Redis: () => redis(new Redis(REDIS_URL, { lazyConnect: true }), { lease: LEASE }) }),
    ...(ETCD_URL && { etcd: () => etcd(ETCD_URL, { lease: LEASE }) })
  }
}
