'use strict'

// The time to load the package, as it is published, in a process that has just started. The floor is an empty package.

const path = require('path')
const { packageName, target } = require('../../../lib/agent/target')
const { flags, inProcesses } = require('../processes')
const { now } = require('../sampling')

const REQUESTS = {
  'require-force': ['atomics-waitasync/force'],
  'require-index': ['atomics-waitasync'],
  'require-parts': ['empty', 'worker_threads', packageName(target())]
}

function sample (figure, variant, { installed }) {
  const load = require(path.join(installed, 'load.js'))
  const requests = variant === 'floor' ? ['empty'] : REQUESTS[figure]
  const begin = now()
  requests.forEach(request => load(request))
  return { [figure]: (now() - begin) / 1e6 }
}

module.exports = {
  run (kit) {
    const variants = ['ours', 'again', 'floor']
    return inProcesses(kit, 21, { 'require-force': variants, 'require-parts': ['ours'], 'require-index': variants }, flags())
  },
  sample
}
