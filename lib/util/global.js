'use strict'

/** The global object of this module's realm. Node 10 has no `globalThis`, contexts of `vm` have no `global`. */
module.exports = typeof globalThis === 'object' ? globalThis
  // eslint-disable-next-line no-new-func -- it gives the global object wherever code from strings may run
  : typeof global === 'object' ? global : Function('return this')()
