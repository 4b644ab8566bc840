'use strict'

/** The global object of the realm that this module is evaluated in. Node 10 has no `globalThis`. */
module.exports = typeof globalThis === 'object' ? globalThis : global
