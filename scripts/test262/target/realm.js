'use strict'

// The host-defined functions of test262 for one realm: `print` and `$262` on its global object.
// https://github.com/tc39/test262/blob/main/INTERPRETING.md

const v8 = require('v8')
const vm = require('vm')
const { MessageChannel } = require('./pristine')

let collect

function gc () {
  if (collect === undefined) {
    v8.setFlagsFromString('--expose-gc')
    collect = vm.runInNewContext('gc')
  }
  collect()
}

function detachArrayBuffer (buffer) {
  const channel = new MessageChannel()
  channel.port1.postMessage(null, [buffer])
  channel.port1.close()
  if (buffer.byteLength !== 0) throw new Error('this Node did not detach the ArrayBuffer')
}

/**
 * @param {object} global the global object of the realm
 * @param {object} services the same for every realm of a thread: `agent`, `print`, and `onRealm(global)`, which is called
 *   for each new realm before it is given away
 * @param {vm.Context} [context] the realm's context; without it, the realm is this thread's own
 */
function defineHost (global, services, context) {
  const $262 = {
    agent: services.agent,
    createRealm () {
      const realm = vm.createContext({})
      const realmGlobal = vm.runInContext('this', realm)
      services.onRealm(realmGlobal)
      return defineHost(realmGlobal, services, realm)
    },
    detachArrayBuffer,
    evalScript (source) {
      return context === undefined ? vm.runInThisContext(source) : vm.runInContext(source, context)
    },
    gc,
    global
  }
  const moduleSource = typeof global.WebAssembly === 'object' && Object.getPrototypeOf(global.WebAssembly.Module)
  if (moduleSource && moduleSource.name === 'AbstractModuleSource') $262.AbstractModuleSource = moduleSource

  define(global, 'print', services.print)
  define(global, '$262', $262)
  return $262
}

function define (object, name, value) {
  Object.defineProperty(object, name, { value, writable: true, enumerable: false, configurable: true })
}

/** @returns {number} milliseconds of a clock that all threads share */
function monotonicNow () {
  const time = process.hrtime()
  return time[0] * 1e3 + time[1] / 1e6
}

module.exports = { defineHost, define, monotonicNow }
