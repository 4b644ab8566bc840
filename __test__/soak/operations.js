'use strict'

// The operations of actors: one entry for each.
//
// - `name`: for reports
// - `weight`: how often, relative to the others
// - `of`: the kind of object, of which a random one is chosen (`COUNT` of arena.js)
// - `bursts`: whether it is done many times on end now and then
// - `needs(actor)`: whether the actor may do it
// - `run(actor, index)`: does it, with its checks

const groups = {
  values: require('./operations/values'),
  locks: require('./operations/locks'),
  names: require('./operations/names'),
  files: require('./operations/files').operations,
  queues: require('./operations/queues'),
  messages: require('./operations/messages').operations,
  rest: require('./operations/rest')
}
const GROUPS = Object.keys(groups)

const all = [].concat(...GROUPS.map(group => groups[group].map(operation => Object.assign({ group }, operation))))
  .map((operation, code) => Object.assign({ code }, operation))

/** Returns those of some groups, and the rest. */
const operationsOf = (only) => all.filter(({ group }) => group === 'rest' || only.includes(group))

module.exports = { GROUPS, all, operationsOf }
