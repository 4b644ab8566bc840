'use strict'

// The subject of a test file: the same tests run over every way to get the three functions. The environment variable
// SUBJECT says which; main and every worker of it require this file and so test the same one.
//
//   export      the functions that `atomics-waitasync/pure` exports; no global is touched
//   installed   the functions that an install put in place: the global Atomics where `waitAsync` is missing, otherwise
//               a plain object that received them
//   force       the global Atomics after `atomics-waitasync/force`
//
// Gives `name`; `Atomics`: the subject's `wait`, `notify`, `waitAsync`, with everything else of the global Atomics
// beside them; `api`: what the entry point exports; `entry`: its absolute path.

const { isMainThread } = require('worker_threads')

// By the version and not by looking: in a worker of an install, `waitAsync` is already there.
const HOST_HAS_WAIT_ASYNC = Number(process.versions.node.split('.')[0]) >= 16

const subjects = {
  export () {
    const entry = require.resolve('../pure')
    const api = require(entry)
    const { wait, notify, waitAsync } = api
    return { entry, api, Atomics: Object.assign(copyOfAtomics(), { wait, notify, waitAsync }) }
  },

  installed () {
    const entry = require.resolve('..')
    const api = require(entry)
    if (!HOST_HAS_WAIT_ASYNC) return { entry, api, Atomics: global.Atomics }
    const target = copyOfAtomics()
    if (!api.install({ target, force: true })) throw new Error('install({ target, force: true }) changed nothing')
    return { entry, api, Atomics: target }
  },

  force () {
    const entry = require.resolve('../force')
    return { entry, api: require(entry), Atomics: global.Atomics }
  }
}

// A plain object with the functions of the global Atomics, without those that the subject must bring itself.
function copyOfAtomics () {
  const copy = {}
  for (const key of Object.getOwnPropertyNames(global.Atomics)) copy[key] = global.Atomics[key]
  delete copy.wait
  delete copy.notify
  delete copy.waitAsync
  delete copy.wake
  return copy
}

function chosen () {
  if (process.env.SUBJECT === undefined && isMainThread) process.env.SUBJECT = 'export'
  const name = process.env.SUBJECT
  if (!Object.prototype.hasOwnProperty.call(subjects, String(name))) {
    throw new Error(`SUBJECT is ${name}; it must be one of ${Object.keys(subjects).join(', ')}`)
  }
  return name
}

const name = chosen()
module.exports = Object.assign({ name }, subjects[name]())
