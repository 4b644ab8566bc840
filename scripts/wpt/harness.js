'use strict'

// The functions of web-platform-tests' testharness.js that the tests of web-locks use, with the same checks. Runs on every Node.

const { PREFIX } = require('./result')

/** The values of `code` of a DOMException, by name. */
const CODES = { AbortError: 20, NotSupportedError: 9 }

const queue = []

function say (result) {
  process.stdout.write(PREFIX + JSON.stringify(result) + '\n')
}

function check (condition, text, description) {
  if (!condition) throw new Error((description ? description + ': ' : '') + text)
}

function text (value) {
  try {
    return typeof value === 'string' ? JSON.stringify(value) : String(value)
  } catch (_) {
    return typeof value
  }
}

const same = (a, b) => Object.is(a, b)

/** The error of a promise that has to reject, in an object: it may be a thenable itself. */
async function rejection (promise, description) {
  let value
  try {
    value = await promise
  } catch (error) {
    return { error }
  }
  throw new Error((description ? description + ': ' : '') + 'should have rejected, but gave ' + text(value))
}

class Test {
  constructor (name) {
    this.name = name
    this.cleanups = []
    this.failure = undefined
  }

  add_cleanup (callback) {
    this.cleanups.push(callback)
  }

  step_timeout (callback, milliseconds, ...args) {
    setTimeout(callback, milliseconds, ...args)
  }

  unreached_func (description) {
    return () => {
      this.failure = new Error('must not be called: ' + description)
      throw this.failure
    }
  }
}

const functions = {
  setup () {},

  test (callback, name) {
    queue.push({ callback, name })
  },

  promise_test (callback, name) {
    queue.push({ callback, name })
  },

  assert_true (value, description) {
    check(value === true, 'expected true, got ' + text(value), description)
  },

  assert_false (value, description) {
    check(value === false, 'expected false, got ' + text(value), description)
  },

  assert_equals (actual, expected, description) {
    check(same(actual, expected), 'expected ' + text(expected) + ', got ' + text(actual), description)
  },

  assert_not_equals (actual, expected, description) {
    check(!same(actual, expected), 'got ' + text(actual), description)
  },

  assert_array_equals (actual, expected, description) {
    check(typeof actual === 'object' && actual !== null && actual.length === expected.length &&
      expected.every((value, n) => same(actual[n], value)), 'expected [' + text(expected) + '], got [' + text(actual) + ']', description)
  },

  assert_own_property (object, name, description) {
    check(Object.prototype.hasOwnProperty.call(object, name), 'has no property ' + name + ' of its own', description)
  },

  assert_idl_attribute (object, name, description) {
    check(name in object && !Object.prototype.hasOwnProperty.call(object, name), name + ' is missing, or not inherited', description)
  },

  assert_unreached (description) {
    check(false, 'reached', description)
  },

  async promise_rejects_js (test, constructor, promise, description) {
    const { error } = await rejection(promise, description)
    check(typeof error === 'object' && error !== null && error.constructor === constructor && error.name === constructor.name,
      'expected a ' + constructor.name + ', got ' + text(error), description)
  },

  async promise_rejects_dom (test, name, promise, description) {
    const { error } = await rejection(promise, description)
    check(typeof error === 'object' && error !== null && error.name === name, 'expected a ' + name + ', got ' + text(error), description)
    // Where there is no DOMException, an Error of that name has to do.
    if (typeof DOMException !== 'function') return
    check(error.constructor === DOMException && error.code === CODES[name], 'no DOMException: ' + text(error), description)
  },

  async promise_rejects_exactly (test, expected, promise, description) {
    const { error } = await rejection(promise, description)
    check(same(error, expected), 'expected ' + text(expected) + ', got ' + text(error), description)
  }
}

async function runOne ({ callback, name }) {
  const test = new Test(name)
  let message
  try {
    await callback(test)
    if (test.failure !== undefined) throw test.failure
  } catch (error) {
    message = error && error.stack ? error.stack : text(error)
  }
  for (const cleanup of test.cleanups) await cleanup()
  say({ name, message })
}

/** Runs the tests that have been declared, one after another. */
async function runAll () {
  say({ tests: queue.map(({ name }) => name) })
  for (const each of queue) await runOne(each)
}

module.exports = { functions, runAll }
