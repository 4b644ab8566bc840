'use strict'

/**
 * Reaches workers in Bun and Deno, which start them differently. `Worker` of `worker_threads`, and the global
 * one, are replaced by proxies that let a worker load an entry before its own code.
 *
 * In Bun that is an option of Worker, `preload`. In Deno a worker's file is imported by a module of ours, in a `data:`
 * URL, after the entry; source text gets a call in front. In neither can `import { Worker } from 'worker_threads'` be
 * changed: `syncBuiltinESMExports` has no effect there. Workers of that class are noticed, since it looks up its parent
 * when it is called, and a warning says that they are not reached.
 */

const fs = require('fs')
const path = require('path')
const { fileURLToPath, pathToFileURL } = require('url')
const startingWorkers = require('../../agent/starting-workers')
const { globalObject } = require('../../util/quirks')
const { threads } = require('../../util/worker-threads')
const { hostWorker, interpose, unwrap, wrap } = require('./host-worker')

const { assign } = Object
const { construct } = Reflect
const { stringify } = JSON

const BUN = process.versions.bun !== undefined

/** Whether the worker under construction is reached, and any warning given. */
const state = { reaches: false, hasWarned: false }

/**
 * @param {() => (string[] | undefined)} currentEntries gives the absolute paths of the entries that workers load
 * @returns {() => void} undoes it, unless other code has replaced the same things since
 */
module.exports = function reach (currentEntries) {
  const undo = [replaceWorker(threads, BUN ? inBun : fileInDeno, currentEntries), noticeOthers(hostWorker())]
  if (typeof globalObject.Worker === 'function') {
    undo.push(replaceWorker(globalObject, BUN ? inBun : urlInDeno, currentEntries))
  }
  return () => undo.forEach((step) => step())
}

/**
 * Replaces a holder's class. `change` turns the constructor's arguments into others that reach the
 * worker, or returns undefined.
 */
function replaceWorker (holder, change, currentEntries) {
  const Before = holder.Worker
  const Replacement = wrap(unwrap(Before), constructor(change, currentEntries))
  if (!Reflect.set(holder, 'Worker', Replacement)) return () => {}
  return () => {
    if (holder.Worker === Replacement) holder.Worker = Before
  }
}

function constructor (change, currentEntries) {
  return (target, args, newTarget) => {
    const entries = currentEntries()
    const changed = entries === undefined ? undefined : change(entries, ...args)
    if (changed === undefined) return construct(target, args, newTarget)
    const before = state.reaches
    state.reaches = true
    try {
      const worker = construct(target, changed, newTarget)
      // The global's have no event for their end, and hold the loop themselves.
      if (typeof worker.once === 'function') startingWorkers.add(worker)
      return worker
    } finally {
      state.reaches = before
    }
  }
}

function inBun (entries, script, options, ...rest) {
  // Arguments that Bun rejects are passed on: Bun throws.
  if (options !== undefined && (typeof options !== 'object' || options === null)) return undefined
  const { preload } = options || {}
  return [script, assign({}, options, { preload: entries.concat(preload === undefined ? [] : preload) }), ...rest]
}

function fileInDeno (entries, script, options, ...rest) {
  if (options && options.eval) {
    if (typeof script !== 'string') return undefined
    // It is a sloppy script behind lines of Deno's own: `this` is the global object, whatever the script declares.
    const load = (entry) => (
      `this.process.getBuiltinModule("module").createRequire(${stringify(entry)})(${stringify(entry)});`)
    return [entries.map(load).join('') + script, options, ...rest]
  }
  const isPath = typeof script === 'string' && (path.isAbsolute(script) || /^\.\.?[\\/]/.test(script))
  if (!isPath && !(script instanceof URL)) return undefined
  const file = isPath ? path.resolve(script) : script.href
  const url = isPath ? pathToFileURL(file).href : file
  if (!/^(?:file|data):/.test(url)) return undefined
  // The error of a missing file must name that file.
  if (url.startsWith('file:') && !fs.existsSync(new URL(url))) return [script, options, ...rest]
  const then = `process.argv[1]=${stringify(isPath ? file : argumentOf(script))}`
  return [new URL(importing(entries, url, then)), options, ...rest]
}

/** Returns Deno's entry of `process.argv` for a worker's URL. */
const argumentOf = (url) => url.protocol === 'file:' ? fileURLToPath(url) : url.href

function urlInDeno (entries, specifier, options, ...rest) {
  // A worker with permissions of its own may not be able to load the entry. Deno itself throws
  // for other types of workers.
  if (!options || options.type !== 'module' || options.deno) return undefined
  try {
    return [importing(entries, new URL(specifier, globalObject.location).href, ''), options, ...rest]
  } catch (_) {
    return undefined
  }
}

/**
 * Makes a module that loads the entries, then the module at `url`. Both imports are static: so no
 * message comes too early for it.
 */
function importing (entries, url, then) {
  const load = (entry) => `createRequire(${stringify(entry)})(${stringify(entry)});`
  const imports = 'import{createRequire}from"node:module";import process from"node:process";'
  const first = dataURL(imports + entries.map(load).join('') + then)
  return dataURL(`import ${stringify(first)};import ${stringify(url)}`)
}

const dataURL = (source) => 'data:text/javascript,' + encodeURIComponent(source)

/** Warns of workers that an older reference to Node's class starts. It is older than the install. */
function noticeOthers (HostWorker) {
  const leave = HostWorker && interpose(HostWorker, (target, args, newTarget) => {
    if (!state.reaches) warn()
    return construct(target, args, newTarget)
  })
  return leave || (() => {})
}

function warn () {
  if (state.hasWarned) return
  state.hasWarned = true
  const runtime = BUN ? 'Bun' : 'Deno'
  startingWorkers.warn('atomics-waitasync: this Worker uses another queue than this thread. In ' + runtime +
    ' an install does not reach the `Worker` of `import { Worker } from "worker_threads"`. Use `import threads from ' +
    '"worker_threads"` and `new threads.Worker(...)`; or require the package in the Worker, and call install with ' +
    '{ workers: false }.')
}
