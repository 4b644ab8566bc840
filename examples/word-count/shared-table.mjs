// A hash table from words to counts, in memory that threads share.
//
// It has 64 stripes; the first bits of a word's hash select the stripe. Each stripe has a lock, an open-addressing
// index, and a dense list of entries. The characters of all words lie in one arena.
//
//   stripe    lock · number of entries in use                            (a cache line for each)
//   slots     per stripe: 0, or the number of an entry + 1               (linear probing, never more than 3/4 full)
//   entries   per stripe: hash · start of the word · its length · its count
//   counters  per worker: the number of words that it has added          (a cache line for each)
//   arena     UTF-16 code units; a word is written once and never moves
//
// Invariants, by which no reader ever sees half a word:
//
//   1. Only the holder of a stripe's lock reads and writes its slots and entries. So plain accesses are enough.
//   2. A worker holds at most one lock, and adds to its own counter while it holds it.
//   3. A thread that needs more than one lock takes them in the order of the stripes. With 2: no deadlock.
//   4. A thread that holds every lock sees no half-added word: the counts sum up to exactly the counters.

import { AsyncLock } from 'atomics-waitasync'

const STRIPE_BITS = 6
const STRIPES = 1 << STRIPE_BITS
const LINE = 16 // Int32 cells in 64 bytes: two threads' cells never share a cache line

// the cells before the stripes
const ARENA_USED = 0

// the cells of a stripe
const LOCK = 0
const ENTRIES_USED = 1

// the cells of an entry
const HASH = 0
const OFFSET = 1
const LENGTH = 2
const COUNT = 3
const ENTRY_CELLS = 4

class SharedTable {
  /**
   * Allocates memory for `bytes` of text. The arena holds every word even if none occurs twice (UTF-16 never has more
   * units than UTF-8 has bytes), and the slots are enough for a new word every five bytes or so. No system we know
   * takes memory that is never touched. Only texts of more than 64 MiB rely on repeated words.
   */
  static allocate (bytes, workers) {
    let slots = 1 << 13
    while (slots < bytes / 4 && slots < 1 << 24) slots *= 2
    const shape = {
      slots: slots / STRIPES,
      entries: slots / STRIPES * 3 / 4,
      workers,
      arena: Math.min(bytes, 1 << 27)
    }
    const { arenaStart } = layout(shape)
    return { buffer: new SharedArrayBuffer(arenaStart * 4 + shape.arena * 2), shape }
  }

  /**
   * Makes a view of the memory of `allocate`, in any thread. `worker` is the number of the worker that adds words.
   */
  constructor ({ buffer, shape }, worker = -1) {
    const { slotsStart, entriesStart, countersStart, arenaStart } = layout(shape)
    this.shape = shape
    this.cells = new Int32Array(buffer, 0, arenaStart)
    this.slotsStart = slotsStart
    this.entriesStart = entriesStart
    this.countersStart = countersStart
    this.counter = countersStart + worker * LINE
    this.arena = new Uint16Array(buffer, arenaStart * 4, shape.arena)
    this.stripes = []
    for (let stripe = 0; stripe < STRIPES; stripe++) {
      this.stripes.push(new AsyncLock(buffer, { byteOffset: stripeCell(stripe, LOCK) * 4 }))
    }
  }

  /** Counts the word once more. Blocks while another thread holds the lock of the word's stripe. */
  add (word) {
    const hash = hashOf(word)
    const stripe = hash >>> (32 - STRIPE_BITS)
    const token = this.stripes[stripe].lock()
    try {
      requireWhole(token)
      this.cells[this.entryOf(word, hash, stripe) + COUNT]++
      this.cells[this.counter]++
    } finally {
      token.unlock()
    }
  }

  // The first cell of the word's entry; makes the entry if there is none. The caller holds the stripe's lock.
  entryOf (word, hash, stripe) {
    const { cells, shape } = this
    const slots = this.slotsStart + stripe * shape.slots
    const entries = this.entriesStart + stripe * shape.entries * ENTRY_CELLS
    let slot = hash & (shape.slots - 1)
    while (cells[slots + slot] !== 0) {
      const entry = entries + (cells[slots + slot] - 1) * ENTRY_CELLS
      if (cells[entry + HASH] === hash && this.isAt(word, cells[entry + OFFSET], cells[entry + LENGTH])) return entry
      slot = (slot + 1) & (shape.slots - 1)
    }

    const used = cells[stripeCell(stripe, ENTRIES_USED)]
    if (used === shape.entries) {
      throw new RangeError(`the table is full: stripe ${stripe} of ${STRIPES} has ${used} distinct words, ` +
        `and no room for ${JSON.stringify(word)}`)
    }
    const entry = entries + used * ENTRY_CELLS
    cells[entry + HASH] = hash
    cells[entry + OFFSET] = this.write(word)
    cells[entry + LENGTH] = word.length
    cells[stripeCell(stripe, ENTRIES_USED)] = used + 1
    cells[slots + slot] = used + 1
    return entry
  }

  isAt (word, offset, length) {
    if (word.length !== length) return false
    for (let i = 0; i < length; i++) {
      if (this.arena[offset + i] !== word.charCodeAt(i)) return false
    }
    return true
  }

  // All stripes write to one arena: an atomic add reserves room for each word.
  write (word) {
    const offset = Atomics.add(this.cells, ARENA_USED, word.length)
    if (offset + word.length > this.arena.length) {
      throw new RangeError(`the table is full: its words have more than ${this.arena.length} characters in all`)
    }
    for (let i = 0; i < word.length; i++) this.arena[offset + i] = word.charCodeAt(i)
    return offset
  }

  /**
   * Counts the words, and the distinct ones, at one instant: when this thread holds the lock of every stripe. A locked
   * stripe cannot change, so its sum is taken before the next lock is awaited. `awaited` is the number of locks that
   * were not free.
   */
  async snapshot () {
    let words = 0
    let distinct = 0
    let counted = 0
    let awaited = 0
    const tokens = []
    try {
      for (let stripe = 0; stripe < STRIPES; stripe++) {
        const lock = this.stripes[stripe]
        let token = lock.tryLock()
        if (token === null) {
          token = await lock.lockAsync()
          awaited++
        }
        tokens.push(token)
        requireWhole(token)
        distinct += this.cells[stripeCell(stripe, ENTRIES_USED)]
        this.forEachEntry(stripe, entry => { words += this.cells[entry + COUNT] })
      }
      for (let worker = 0; worker < this.shape.workers; worker++) {
        counted += this.cells[this.countersStart + worker * LINE]
      }
    } finally {
      for (const token of tokens) token.unlock()
    }
    if (words !== counted) {
      throw new Error(`a snapshot is not consistent: the table has ${words} words, the workers have added ${counted}`)
    }
    return { words, distinct, awaited }
  }

  /** Returns every word with its count. To be called when no worker adds words any more. */
  toMap () {
    const map = new Map()
    for (let stripe = 0; stripe < STRIPES; stripe++) {
      this.forEachEntry(stripe, entry => {
        const offset = this.cells[entry + OFFSET]
        let word = ''
        for (let i = 0; i < this.cells[entry + LENGTH]; i++) word += String.fromCharCode(this.arena[offset + i])
        if (map.has(word)) throw new Error(`the table has the word ${JSON.stringify(word)} twice`)
        map.set(word, this.cells[entry + COUNT])
      })
    }
    return map
  }

  forEachEntry (stripe, callback) {
    const first = this.entriesStart + stripe * this.shape.entries * ENTRY_CELLS
    const end = first + this.cells[stripeCell(stripe, ENTRIES_USED)] * ENTRY_CELLS
    for (let entry = first; entry < end; entry += ENTRY_CELLS) callback(entry)
  }

  /** Returns a number that changes whenever a word is added: a sign of life that needs no lock. */
  pulse () {
    let counted = 0
    for (let worker = 0; worker < this.shape.workers; worker++) {
      counted += Atomics.load(this.cells, this.countersStart + worker * LINE)
    }
    return counted
  }
}

/** Throws if the last holder of the lock has died: it may have added half a word. */
function requireWhole (token) {
  if (token.ownerDied) throw new Error('a worker has died while it was adding a word')
}

function stripeCell (stripe, cell) {
  return (1 + stripe) * LINE + cell
}

function layout ({ slots, entries, workers }) {
  const slotsStart = stripeCell(STRIPES, 0)
  const entriesStart = slotsStart + STRIPES * slots
  const countersStart = entriesStart + STRIPES * entries * ENTRY_CELLS
  const arenaStart = countersStart + workers * LINE
  return { slotsStart, entriesStart, countersStart, arenaStart }
}

// FNV-1a over UTF-16 code units, mixed at the end: the first six bits select the stripe, the last ones the slot.
function hashOf (word) {
  let hash = 0x811c9dc5 | 0
  for (let i = 0; i < word.length; i++) hash = Math.imul(hash ^ word.charCodeAt(i), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x45d9f3b)
  return hash ^ (hash >>> 15)
}

export default SharedTable
