'use strict'

// Compiling source text as a script of this thread's own realm, with "this engine cannot parse it" told apart from
// everything that happens when it runs.

const vm = require('vm')

/**
 * @returns {{ script: vm.Script, syntaxError: null } | { script: null, syntaxError: Error }}
 */
function compile (source, filename) {
  try {
    return { script: new vm.Script(source, { filename, displayErrors: false }), syntaxError: null }
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    return { script: null, syntaxError: error }
  }
}

function run (script) {
  return script.runInThisContext({ displayErrors: false })
}

module.exports = { compile, run }
