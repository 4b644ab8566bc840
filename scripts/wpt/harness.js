'use strict'

// The functions of web-platform-tests' testharness.js that the tests of web-locks use, with the same checks. Runs on every Node.

const assert = require('assert')
const { PREFIX } = require('./result')

/** The values of `code` of a DOMException, by name. */
const CODES = { AbortError: 20, NotSupportedError: 9 }

const queue = []

function say (result) {
  process.stdout.write(PREFIX + JSON.stringify(result) + '\n')
}

const hasOwn = (object, name) => Object.prototype.hasOwnProperty.call(object, name)

/** The error of a promise that has to reject, in an object: it may be a thenable itself. */
async function rejection (promise, description) {
  let value
  try {
    value = await promise
  } catch (error) {
    return { error }
  }
  assert.fail(`${description}: should have rejected, but gave ${value}`)
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
  test (callback, name) { queue.push({ callback, name }) },
  promise_test (callback, name) { queue.push({ callback, name }) },
  // Without the description: the message has the values, and the stack the line of the test.
  assert_true: (value) => assert.strictEqual(value, true),
  assert_false: (value) => assert.strictEqual(value, false),
  assert_equals: (actual, expected) => assert.strictEqual(actual, expected),
  assert_not_equals: (actual, expected) => assert.notStrictEqual(actual, expected),
  assert_array_equals: (actual, expected) => assert.deepStrictEqual(Array.from(actual), Array.from(expected)),
  assert_own_property: (object, name) => assert.ok(hasOwn(object, name), `has no property ${String(name)} of its own`),
  assert_idl_attribute: (object, name) => assert.ok(name in object && !hasOwn(object, name), `${name} is missing, or not inherited`),
  assert_unreached: (description) => assert.fail(`reached: ${description}`),

  async promise_rejects_js (test, constructor, promise, description) {
    const { error } = await rejection(promise, description)
    assert.deepStrictEqual([error.constructor, error.name], [constructor, constructor.name])
  },

  async promise_rejects_dom (test, name, promise, description) {
    const { error } = await rejection(promise, description)
    assert.strictEqual(error.name, name)
    // Where there is no DOMException, an Error of that name has to do.
    if (typeof DOMException === 'function') assert.deepStrictEqual([error.constructor, error.code], [DOMException, CODES[name]])
  },

  async promise_rejects_exactly (test, expected, promise, description) {
    const { error } = await rejection(promise, description)
    assert.strictEqual(error, expected)
  }
}

async function runOne ({ callback, name }) {
  const test = new Test(name)
  let message
  try {
    await callback(test)
    if (test.failure !== undefined) throw test.failure
  } catch (error) {
    message = error && error.stack ? error.stack : String(error)
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
