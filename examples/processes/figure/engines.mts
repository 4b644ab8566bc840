import type { Engine } from '../process-locks.mts'

/** The leases of the measurement, in milliseconds. */
export const LEASE = 2000

/**
 * Returns the engines that are here: those without a server, and those whose server a variable names. `folder`: for the
 * first.
 */
export function available (folder: string): Record<string, () => Promise<Engine>> {
  const { POSTGRESQL_URL, REDIS_URL, ETCD_URL } = process.env
  return {
    SQLite: async () => (await import('../sqlite.mts')).sqlite(`${folder}/sqlite`),
    files: async () => (await import('../files.mts')).files(`${folder}/files`),
    ...(POSTGRESQL_URL && {
      PostgreSQL: async () => (await import('../postgresql.mts')).postgresql({ connectionString: POSTGRESQL_URL })
    }),
    ...(REDIS_URL && { Redis: async () => (await import('../redis.mts')).redis(REDIS_URL, { lease: LEASE }) }),
    ...(ETCD_URL && { etcd: async () => (await import('../etcd.mts')).etcd(ETCD_URL, { lease: LEASE }) })
  }
}
