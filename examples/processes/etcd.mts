import { Lease } from './lease.mts'
import type { Engine, Grant } from './process-locks.mts'
import { keyOf } from './tools.mts'

const base64 = (text: string) => Buffer.from(text).toString('base64')

/**
 * Exclusive locks of the processes of several machines, by a lease (milliseconds; etcd has whole seconds, 2 at least)
 * in an etcd cluster.
 */
export function etcd (url: string, { lease = 10_000, prefix = 'locks' } = {}): Engine {
  async function call (path: string, body: object, signal = AbortSignal.timeout(lease)) {
    const response = await fetch(new URL(path, url), { method: 'POST', body: JSON.stringify(body), signal })
    const answer = await response.json() as any
    if (!response.ok) throw new Error(`etcd, ${path}: ${answer.message ?? answer.error ?? response.status}`)
    return answer
  }

  /** Waits in the line of a name. */
  async function wait (name: string, id: string, signal: AbortSignal): Promise<string> {
    for (;;) {
      try {
        return (await call('/v3/lock/lock', { name, lease: id }, signal)).key
      } catch (error) {
        // `fetch` waits for five minutes at most. Then it is the end of the line again.
        if (((error as Error).cause as { code?: string } | undefined)?.code !== 'UND_ERR_HEADERS_TIMEOUT') throw error
      }
    }
  }

  async function acquire (name: string, signal: AbortSignal): Promise<Grant> {
    const path = `${prefix}/${keyOf(name).toString('hex')}`
    const state = base64(`${path}.held`)
    const sent = performance.now()
    const { ID, TTL } = await call('/v3/lease/grant', { TTL: Math.ceil(lease / 1000) })
    const renew = async () => Number((await call('/v3/lease/keepalive', { ID })).result.TTL ?? 0) > 0
    const kept = new Lease(Number(TTL) * 1000, sent, renew)
    const end = () => {
      kept.stop()
      return call('/v3/lease/revoke', { ID }).catch(() => {}) // or it ends by itself
    }
    try {
      signal.throwIfAborted()
      const key = await wait(base64(path), ID, AbortSignal.any([signal, kept.lost]))
      /** Does something if the lock is there: it is also given for a lease that has ended meanwhile. */
      const ifOurs = (success: object[]) =>
        call('/v3/kv/txn', { compare: [{ key, target: 'CREATE', result: 'GREATER', create_revision: '0' }], success })
      const { succeeded, header, responses } = await ifOurs([{ request_put: { key: state, prev_kv: true } }])
      if (!succeeded) throw new Error('The lease ended before the lock was given')
      return {
        token: Number(header.revision),
        ownerDied: responses[0].response_put.prev_kv !== undefined,
        lost: kept.lost,
        held: async () => (await ifOurs([])).succeeded === true,
        async release (died) {
          kept.rest()
          const keys = died ? [key] : [state, key]
          const { succeeded } = await ifOurs(keys.map(key => ({ request_delete_range: { key } }))).finally(end)
          return succeeded === true
        }
      }
    } catch (error) {
      await end()
      throw error
    }
  }

  return {
    id: `etcd ${new URL(url).host} ${prefix}`,
    modes: ['exclusive'],
    acquire: (name, mode, signal) => acquire(name, signal),
    async close () {}
  }
}
