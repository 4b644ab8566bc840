'use strict'

// What actors do: one entry for each operation.
//
// - `name`: for the history and the figures
// - `weight`: how often, relative to the others
// - `of`: the kind of object, of which a random one is chosen (`COUNT` of arena.js)
// - `bursts`: whether it is done many times on end now and then
// - `needs(actor)`: whether the actor may do it
// - `run(actor, index)`: does it, with its checks; gives undefined if it gave up

const locks = require('./operations/locks')
const names = require('./operations/names')
const queues = require('./operations/queues')
const rest = require('./operations/rest')
const values = require('./operations/values')

module.exports = [...values, ...locks, ...names, ...queues, ...rest].map((operation, code) => Object.assign({ code }, operation))
