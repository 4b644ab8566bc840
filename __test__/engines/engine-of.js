'use strict'

// The engines of atomics-waitasync/processes, made of arguments that are JSON.

/** Those with clients. Each gets the `require` of a place that has the package and the clients. */
const makers = {
  postgresql: (load, ...args) => load('atomics-waitasync/processes').postgresql(load('pg'), ...args),
  redis: (load, url, { isForgetful, keyPrefix, ...options }) => {
    const client = new (load('ioredis').Redis)(url, { lazyConnect: true, keyPrefix })
    return load('atomics-waitasync/processes').redis(isForgetful ? forgetful(client) : client, options)
  },
  'node-redis': (load, url, { isForgetful, keyPrefix, ...options }) => {
    const client = load('redis').createClient({ url, keyPrefix })
    return load('atomics-waitasync/processes').redis(isForgetful ? forgetful(client) : client, options)
  }
}

/** What a broken engine does wrong with a grant: the checks have to find out. */
const faults = {
  /** It gives the lock to everybody. */
  exclusion: () => {
    const never = new AbortController().signal
    const yes = async () => true
    let token = 0
    return {
      async acquire () {
        token = Math.max(token + 1, Date.now() * 1000)
        return { token, ownerDied: true, lost: never, remaining: () => Infinity, held: yes, release: yes }
      }
    }
  },
  'the news of a death': changing(() => ({ ownerDied: false })),
  'tokens that grow': changing(() => ({ token: Number.MAX_SAFE_INTEGER - Date.now() })),
  'the question at the end': changing(() => ({ held: async () => true, release: died => true }))
}

/** Changes the grants of an engine. A changed `release` gives the lock back besides. */
function changing (createChanges) {
  return engine => ({
    async acquire (...args) {
      const grant = await engine.acquire(...args)
      const changes = createChanges()
      const release = async died => {
        const isOurs = await grant.release(died).catch(() => false)
        return changes.release ? changes.release(died) : isOurs
      }
      return changed(grant, { ...changes, release })
    }
  })
}

/** A server that refuses settings, as one on Windows does. */
function refusing (pg, settings) {
  class Client extends pg.Client {
    query (query, ...rest) {
      if (query && typeof query.text !== 'string') return super.query(query, ...rest)
      const text = settings.reduce((all, name) => all.replaceAll(`'${name}', '`, `'${name}', 'none`), query.text)
      return super.query({ ...query, text }, ...rest)
    }
  }
  return { Client }
}

/** A program that reads all values as text. */
function reading (pg) {
  for (const type of Object.values(pg.types.builtins)) pg.types.setTypeParser(type, text => text)
  return pg
}

/** A client of Redis whose connections let nobody take a lock again that is their own. */
function forgetful (client) {
  const { duplicate } = client
  client.duplicate = (...args) => {
    const copy = duplicate.apply(client, args)
    const [method, send] = copy.call ? ['call', copy.call] : ['sendCommand', copy.sendCommand]
    const forget = part => Array.isArray(part) ? part.map(forget) : String(part).replace('holder == ARGV[1]', 'false')
    copy[method] = async (...parts) => {
      // The script that the server has is that of other clients.
      if (parts.flat()[0] === 'EVALSHA') throw new Error('NOSCRIPT')
      return send.apply(copy, parts.map(forget))
    }
    return copy
  }
  return client
}

/** Returns an engine with other methods. */
function changed (engine, changes) {
  const get = (_, key) => {
    const value = key in changes ? changes[key] : engine[key]
    return typeof value === 'function' ? value.bind(engine) : value
  }
  return new Proxy(engine, { __proto__: null, get })
}

/**
 * @param {Function} load
 * @param {{ module: string, args: any[], lacks?: string, refuses?: string[], readsText?: boolean }} description
 */
exports.engineOf = function engineOf (load, { module, args, lacks, refuses, readsText }) {
  const change = refuses ? pg => refusing(pg, refuses) : readsText ? reading : pg => pg
  const from = name => name === 'pg' ? change(load(name)) : load(name)
  const engine = makers[module] ? makers[module](from, ...args) : load('atomics-waitasync/processes')[module](...args)
  return lacks === undefined ? engine : changed(engine, faults[lacks](engine))
}

exports.changed = changed
