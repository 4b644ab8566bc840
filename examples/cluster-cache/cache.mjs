import { RwLock } from 'atomics-waitasync'

const WAYS = 8 // entries that a key may be in: the least recently used one of them makes room
const ENTRY_BYTES = 512
const HEADER_BYTES = 16
const BEGIN = 64

/**
 * A cache of JSON values in memory that processes share. Each of them, and each of their threads, makes one over the
 * same buffer.
 *
 * An entry is `checksum | last use | bytes of the key | bytes of the value | key, value`. Readers hold a share of the
 * lock, so no entry changes while they read. A process that is killed while it writes leaves an entry whose checksum
 * is wrong: `repair`, which runs before the next holder's callback, empties it.
 */
export class Cache {
  static bytesFor (entries) {
    return BEGIN + Math.ceil(entries / WAYS) * WAYS * ENTRY_BYTES
  }

  constructor (memory) {
    this.lock = new RwLock(memory, { repair: () => this.#repair() })
    this.clock = new Int32Array(memory, 4, 1)
    this.bytes = new Uint8Array(memory)
    this.words = new Int32Array(memory)
    this.entries = (memory.byteLength - BEGIN) / ENTRY_BYTES
  }

  /** Resolves with the key's value, or undefined. */
  get (key) {
    const bytes = Buffer.from(key)
    return this.lock.executeShared(() => {
      const at = this.#find(bytes)
      if (at < 0) return undefined
      Atomics.store(this.words, at / 4 + 1, Atomics.add(this.clock, 0, 1))
      const value = at + HEADER_BYTES + bytes.length
      return JSON.parse(Buffer.from(this.bytes.slice(value, value + this.words[at / 4 + 3])).toString())
    })
  }

  /** Keeps a value, in place of the least recently used one. */
  set (key, value) {
    const [name, json] = [Buffer.from(key), Buffer.from(JSON.stringify(value))]
    if (HEADER_BYTES + name.length + json.length > ENTRY_BYTES) throw new RangeError(`${key}: too large for the cache`)
    return this.lock.executeLocked(() => {
      const found = this.#find(name)
      const at = found < 0 ? this.#leastRecent(name) : found
      this.words[at / 4] = 0 // no checksum is 0: from here on the entry is invalid
      this.words[at / 4 + 1] = Atomics.add(this.clock, 0, 1)
      this.words[at / 4 + 2] = name.length
      this.words[at / 4 + 3] = json.length
      this.bytes.set(name, at + HEADER_BYTES)
      this.bytes.set(json, at + HEADER_BYTES + name.length)
      this.words[at / 4] = this.#checksum(at)
    })
  }

  /** Counts the entries, and those that are damaged. For a test: the caller has the lock, or is alone. */
  check () {
    const all = Array.from({ length: this.entries }, (_, n) => BEGIN + n * ENTRY_BYTES)
    const used = all.filter(at => this.words[at / 4 + 2] !== 0)
    return { entries: used.length, damaged: used.filter(at => this.words[at / 4] !== this.#checksum(at)).length }
  }

  #repair () {
    for (let at = BEGIN; at < this.bytes.length; at += ENTRY_BYTES) {
      if (this.words[at / 4] !== this.#checksum(at)) this.words.fill(0, at / 4, at / 4 + 4)
    }
  }

  /** The places of a key: WAYS entries, one after another. */
  * #places (name) {
    const first = hash(name) % (this.entries / WAYS) * WAYS
    for (let n = 0; n < WAYS; n++) yield BEGIN + (first + n) * ENTRY_BYTES
  }

  #find (name) {
    for (const at of this.#places(name)) {
      if (this.words[at / 4] !== 0 && this.words[at / 4 + 2] === name.length &&
        name.equals(this.bytes.subarray(at + HEADER_BYTES, at + HEADER_BYTES + name.length))) return at
    }
    return -1
  }

  #leastRecent (name) {
    return [...this.#places(name)].reduce((best, at) => this.words[at / 4 + 1] < this.words[best / 4 + 1] ? at : best)
  }

  #checksum (at) {
    const length = Math.min(this.words[at / 4 + 2] + this.words[at / 4 + 3], ENTRY_BYTES - HEADER_BYTES)
    return length === 0 ? 0 : hash(this.bytes.subarray(at + 8, at + HEADER_BYTES + length)) | 1
  }
}

/** FNV-1a, of 31 bits. */
function hash (bytes) {
  let hash = 0x811c9dc5
  for (const byte of bytes) hash = Math.imul(hash ^ byte, 0x01000193)
  return hash >>> 1
}
