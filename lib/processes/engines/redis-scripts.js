'use strict'

/**
 * The scripts of the locks, which Redis runs as one. KEYS[1] is the lock, KEYS[2] what outlives it: the last token,
 * `held`, the mark of the holder, and `died`, what that holder saw. ARGV[1] is the holder.
 */

const { createHash } = require('crypto')

/** Makes a script: its text, and the hash by which servers know it. */
const script = text => ({ text, hash: createHash('sha1').update(text).digest('hex') })

/**
 * Gives { token, died }, or the milliseconds until the next question. A holder that asks again gets its own lock.
 * ARGV[2] is the lease. Tokens grow even if the server forgets them, as long as its clock is right.
 */
const TAKE = script(`
  local holder = redis.call('GET', KEYS[1])
  if holder == ARGV[1] then
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
    return redis.call('HMGET', KEYS[2], 'token', 'died')
  end
  if holder then return redis.call('PTTL', KEYS[1]) end
  local time = redis.call('TIME')
  local state = redis.call('HMGET', KEYS[2], 'token', 'held', 'died')
  local last = tonumber(state[1] or 0)
  if not (last and last < ${Number.MAX_SAFE_INTEGER}) then last = 0 end
  local token = math.max(last + 1, time[1] * 1000000 + time[2])
  local died = state[2] and '1' or '0'
  if state[2] == ARGV[1] then died = state[3] end
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  redis.call('HSET', KEYS[2], 'token', token, 'held', ARGV[1], 'died', died)
  return { token, died }`)

const RENEW = script("return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('PEXPIRE', KEYS[1], ARGV[2]) or 0")

/** Tells who waits. A user may lack the right to do so. */
const TELL = "redis.pcall('PUBLISH', KEYS[1], '')"

/** ARGV[2]: '1' if the mark stays. */
const RELEASE = script(`
  if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
  if ARGV[2] == '0' then redis.call('HDEL', KEYS[2], 'held') end
  redis.call('DEL', KEYS[1])
  ${TELL}
  return 1`)

/** Undoes a TAKE of whose answer nobody has heard: the mark is again as it was before. */
const FORGET = script(`
  if redis.call('GET', KEYS[1]) == ARGV[1] then
    redis.call('DEL', KEYS[1])
    ${TELL}
  end
  if redis.call('HGET', KEYS[2], 'held') ~= ARGV[1] then return 0 end
  if redis.call('HGET', KEYS[2], 'died') == '1' then return redis.call('HSET', KEYS[2], 'held', 'earlier') end
  return redis.call('HDEL', KEYS[2], 'held')`)

module.exports = { FORGET, RELEASE, RENEW, TAKE }
