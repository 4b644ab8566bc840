'use strict'

/** Called before the first use of the agent by this copy. Apart from agent.js: entries set it at load. */

module.exports = { __proto__: null, call: (agent) => {} }
