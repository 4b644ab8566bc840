'use strict'

// An instance in memory of its own: `new X()` where no option is needed, and `X.create(options)`.

const assert = require('assert')
const { test } = require('../../harness')
const { api } = require('../../subject')
const { NAMES, bytesOf, optionsOf } = require('../../fixtures/every-class')
const { startWorker } = require('../../fixtures/queue-toolbox')

/** Returns the names of the options that a class needs. */
const needed = (name) => Object.keys(optionsOf(name))
const WITHOUT_OPTIONS = NAMES.filter(name => needed(name).length === 0)

/** Checks that an instance has new, zero-filled memory of the least size. */
function assertOwn (instance, Class, name) {
  assert.ok(instance instanceof Class)
  assert.strictEqual(instance.buffer.byteLength, bytesOf(name))
  assert.strictEqual(instance.byteOffset, 0)
  assert.strictEqual(new Int32Array(instance.buffer)[0], 0)
}

for (const name of WITHOUT_OPTIONS) {
  const Class = api[name]

  test(`${name}: without an argument it has memory of its own, each instance another`, () => {
    const [one, other] = [new Class(), new Class()]
    assertOwn(one, Class, name)
    assert.notStrictEqual(one.buffer, other.buffer)
    assert.notStrictEqual(one.id, other.id)
    assert.strictEqual(one.name, '')
  })

  test(`${name}: an argument that is undefined makes none, so that a misspelt name cannot`, () => {
    const message = new RegExp(`^${name}: buffer must be a SharedArrayBuffer`)
    for (const args of [[undefined], [undefined, { name: 'cache' }], [null]]) {
      assert.throws(() => new Class(...args), { name: 'TypeError', message })
      assert.throws(() => Reflect.construct(Class, args), TypeError)
    }
  })
}

for (const name of NAMES.filter(name => needed(name).length > 0)) {
  test(`${name}: needs its options, so there is none without an argument`, () => {
    assert.throws(() => new api[name](), { name: 'TypeError' })
    assert.throws(() => api[name].create(), { name: 'TypeError', message: new RegExp(needed(name)[0]) })
  })
}

for (const name of NAMES) {
  const Class = api[name]
  const options = optionsOf(name)

  test(`${name}.create makes one with its options and a name`, () => {
    const instance = Class.create(Object.assign({ name: 'of its own' }, options))
    assertOwn(instance, Class, name)
    assert.strictEqual(instance.name, 'of its own')
    for (const key of needed(name)) assert.strictEqual(instance[key], options[key])
  })

  test(`${name}.create refuses what the constructor refuses, and to be called without its class`, () => {
    assert.throws(() => Class.create(Object.assign({ nmae: 'misspelt' }, options)), /^TypeError: .*nmae/)
    assert.throws(() => Class.create(Object.assign({ byteOffset: 4 }, options)), /^RangeError: .*byteOffset/)
    const { create } = Class
    assert.throws(() => create(options), { name: 'TypeError', message: new RegExp(`${name}\\.create`) })
  })

  test(`${name}: a subclass makes instances of its own`, () => {
    class Mine extends Class {}
    assertOwn(Mine.create(options), Mine, name)
    if (needed(name).length === 0) assertOwn(new Mine(), Mine, name)
  })

  test(`${name}: a Worker that gets it has the same memory`, async t => {
    const instance = Class.create(options)
    const thread = startWorker(t, instance, ({ api, data }) => new api[data.kind](data).id)
    assert.strictEqual(await thread.done(), instance.id)
  })
}
