'use strict'

// The time to load the published package and take a first lock: in a process that has just started. The floor is an
// empty package, and for locks their necessities: Node's worker_threads and the native library.

const path = require('path')
const { packageName, target } = require('../../../lib/agent/target')
const { flags, inProcesses } = require('../processes')
const { now } = require('../sampling')

const PARTS = ['empty', 'worker_threads', packageName(target())]
const REQUESTS = {
  'require-force': ['atomics-waitasync/force'],
  'require-index': ['atomics-waitasync'],
  'require-parts': PARTS,
  'first-lock': ['atomics-waitasync'],
  'first-lock-force': ['atomics-waitasync/force']
}

function sample (figure, variant, { installed }) {
  const load = require(path.join(installed, 'load.js'))
  const isLock = figure.startsWith('first-lock')
  const requests = variant !== 'floor' ? REQUESTS[figure] : isLock ? PARTS : ['empty']
  const begin = now()
  const [api] = requests.map(request => load(request))
  if (isLock && variant !== 'floor') new api.AsyncLock(new SharedArrayBuffer(4)).tryLock().unlock()
  return { [figure]: (now() - begin) / 1e6 }
}

module.exports = {
  run (kit) {
    const variants = {}
    for (const figure of Object.keys(REQUESTS))
      variants[figure] = figure === 'require-parts' ? ['ours'] : ['ours', 'again', 'floor']
    return inProcesses(kit, 21, variants, flags())
  },
  sample
}
