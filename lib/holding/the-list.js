'use strict'

/** This thread's robust list, which its first use of a lock makes. */

const { agent } = require('../agent/find-agent')
const { assertStackToLoad } = require('../util/stack')
const observer = require('../waiting/observer')

let list

/** Returns this thread's robust list, which all copies of the package share. */
function theList () {
  if (list === undefined) list = sharedList()
  return list
}

// Apart: V8 inlines only so much, and `theList` is to be part of a lock.
function sharedList () {
  const owner = agent()
  assertStackToLoad()
  observer.locksBegin()
  if (owner.robustList === undefined) {
    // Not before: it captures the registers.
    owner.robustList = require('./robust-list')()
  }
  return owner.robustList
}

module.exports = theList
