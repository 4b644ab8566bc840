'use strict'

// What it takes to load the package, in a process that has just started. The floor is a module that is empty.

const { now } = require('../sampling')

const ENTRIES = { force: '../../../force', index: '../../..', floor: '../empty' }

function sample (figure, variant) {
  const request = variant === 'floor' ? ENTRIES.floor : ENTRIES[figure.slice('require-'.length)]
  const begin = now()
  require(request)
  return (now() - begin) / 1e6
}

module.exports = {
  rounds: 21,
  figures: ['require-force', 'require-index'],
  variants: () => ['ours', 'again', 'floor'],
  sample
}
