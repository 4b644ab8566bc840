'use strict'
// nodes: >=24 (older ones have no Web Locks)

// docs/coming-from-web-locks.md, with Node's own Web Locks beside this package's.

const assert = require('assert')
const fs = require('fs')
const path = require('path')
const { codeOf, movingFrom } = require('../fixtures/moving')
const { runNode } = require('../fixtures/run-node')
const { locks } = require('../../pure')

const moving = movingFrom('web-locks', [])
const { test } = moving
const sides = [['theirs', { navigator }], ['ours', { locks }]]
const requestOf = options => `await navigator.locks.request('a', ${options}callback)`

test('request: the result of the callback; shared ones are held together', async () => {
  for (const [side, names] of sides) {
    const run = (options, callback) => moving[side](requestOf(options), { ...names, callback })
    assert.strictEqual(await run('', ({ name, mode }) => name + mode), 'aexclusive')
    const shared = '{ mode: \'shared\' }, '
    assert.strictEqual(await run(shared, () => run(shared, ({ mode }) => mode)), 'shared')
  }
})

test('a taken name: null, late, listed, stolen', async t => {
  const alive = setInterval(() => {}, 1000) // Node's own requests keep no process alive
  t.after(() => { clearInterval(alive) })
  for (const [side, names] of sides) {
    const run = (options, callback) => moving[side](requestOf(options), { ...names, callback })
    let end
    const held = new Promise(resolve => { end = resolve })
    const holder = codeOf(run('', () => held))
    assert.strictEqual(await run('{ ifAvailable: true }, ', lock => lock), null)
    const late = await run('{ signal: AbortSignal.timeout(50) }, ', () => {}).catch(error => error)
    assert.strictEqual(late.name, 'TimeoutError')
    if (side === 'ours') assert.deepStrictEqual([late.code, late.holder], ['ERR_TIMEOUT', 0])
    const query = await moving[side]('await navigator.locks.query()', names)
    assert.deepStrictEqual(query.held.map(({ name }) => name), ['a'])
    const tookOver = await run('{ steal: true }, ', lock => lock.tookOver)
    assert.strictEqual(tookOver, side === 'ours' ? true : undefined)
    assert.notStrictEqual(await holder, 'none')
    end()
  }
  const token = await locks.holdAsync('a')
  assert.deepStrictEqual([token.unlock(), token.unlock()], [true, false])
})

test('the program before the change counts right once `add` is changed, and with the entry', async t => {
  const project = await moving.project(t)
  const [before, add] = ['before.js', 'add.js'].map(name => fs.readFileSync(path.join(project, name), 'utf8'))
  const [require, request] = [add.split('\n')[0], /^.*request.*$/m.exec(add)[0]]
  fs.writeFileSync(path.join(project, 'after.js'), `${require}\n${before.replace(/^.*navigator\.locks.*$/m, request)}`)
  const total = path.join(project, 'total')
  for (const args of [['after.js', total], ['-r', 'atomics-waitasync/web-locks', 'before.js', total]]) {
    const { stdout, stderr } = await runNode(t, args, { cwd: project })
    assert.deepStrictEqual([stdout, stderr], ['20\n', ''])
  }
})

moving.finish()
