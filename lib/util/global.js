'use strict'

/** The global object of the realm that this module is evaluated in. Node 10 has no `globalThis`. */
/* eslint-disable-next-line no-new-func -- the one expression that gives the global object on every Node */
module.exports = typeof globalThis === 'object' ? globalThis : Function('return this')()
