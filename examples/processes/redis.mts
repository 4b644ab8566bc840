import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import { Lease } from './lease.mts'
import type { Engine, Grant } from './process-locks.mts'
import { keyOf, poll } from './tools.mts'

const POLL = 10 // milliseconds

/**
 * Gives { token, died }, or nothing. A server that has just started may have forgotten locks: it gives none until their
 * leases are over; it tells its age in whole seconds. Tokens grow even if the server forgets them, as long as its clock
 * is right.
 */
const TAKE = `
  local age = tonumber(string.match(redis.call('INFO', 'server'), 'uptime_in_seconds:(%d+)'))
  if (age - 1) * 1000 < tonumber(ARGV[2]) then return nil end
  if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return nil end
  local time = redis.call('TIME')
  local token = math.max(tonumber(redis.call('HGET', KEYS[2], 'token') or 0) + 1, time[1] * 1000000 + time[2])
  local died = redis.call('HEXISTS', KEYS[2], 'held')
  redis.call('HSET', KEYS[2], 'token', string.format('%.0f', token), 'held', 1)
  return { token, died }`
const RENEW = 'return redis.call("GET", KEYS[1]) == ARGV[1] and redis.call("PEXPIRE", KEYS[1], ARGV[2]) or 0'
const HELD = 'return redis.call("GET", KEYS[1]) == ARGV[1] and 1 or 0'
const RELEASE = `
  if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
  if ARGV[2] == '0' then redis.call('HDEL', KEYS[2], 'held') end
  return redis.call('DEL', KEYS[1])`

/**
 * Exclusive locks of the processes of several machines, by a lease (milliseconds) on one Redis server (6.2 or newer).
 */
export function redis (url: string, { lease = 10_000, prefix = 'locks' } = {}): Engine {
  // A command fails if its connection breaks, or if its answer comes too late to be of use.
  const client = new Redis(url, {
    maxRetriesPerRequest: 0, autoResendUnfulfilledCommands: false, commandTimeout: lease
  })
  client.on('error', () => {}) // commands say so, too
  const { host, port, db } = client.options

  async function attempt (keys: string[]): Promise<Grant | undefined> {
    const [owner, sent] = [randomUUID(), performance.now()]
    const ask = (script: string, ...more: (string | number)[]) => client.eval(script, 2, ...keys, owner, ...more)
    const taken = await ask(TAKE, lease) as [number, number] | null
    if (taken === null) return undefined
    const kept = new Lease(lease, sent, async () => await ask(RENEW, lease) === 1)
    return {
      token: taken[0],
      ownerDied: taken[1] === 1,
      lost: kept.lost,
      held: async () => await ask(HELD) === 1,
      async release (died) {
        kept.rest()
        return await ask(RELEASE, Number(died)).finally(() => kept.stop()) === 1
      }
    }
  }

  return {
    id: `redis ${host}:${port}/${db} ${prefix}`,
    modes: ['exclusive'],
    acquire (name, mode, signal) {
      const key = `${prefix}:{${keyOf(name).toString('hex')}}`
      return poll(POLL, signal, () => attempt([`${key}:lock`, `${key}:state`]))
    },
    async close () { client.disconnect() }
  }
}
