'use strict'

/**
 * Node's class `Module`, which has the functions of the module `module`. In a Worker, `require('module')` takes
 * up to a millisecond, because Node looks at all of its properties for `import`. Test runners and other runtimes
 * have modules of their own.
 */

const { constructor } = module

module.exports = typeof constructor.syncBuiltinESMExports === 'function' ? constructor : require('module')
