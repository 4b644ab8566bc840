'use strict'
// nodes: running (what runs the benchmark is written for that)
// timeout: 240

// The benchmark takes figures and judges them, its pages say what was recorded, and counts of instructions are compared
// with the record.

const assert = require('assert')
const fs = require('fs')
const path = require('path')
const { test } = require('../harness')
const size = require('../fixtures/size')
const { run } = require('../../scripts/lib/child')
const { compare } = require('../../scripts/instructions')
const { figures } = require('../../benchmark/bench/figures')
const { bars } = require('../../benchmark/bench/pictures')
const { judge } = require('../../benchmark/bench/verdict')
const recorded = require('../../benchmark/results.json')

const root = path.join(__dirname, '..', '..')

test('a figure of each kind of group is taken', { timeout: 210000 }, async () => {
  const all = 'turn,register-1e3,lock-unlock-force,idle,require-force,require-parts,first-lock,by-worker,by-notify,size'
  const ids = size(all, 'turn,idle,first-lock,size').split(',')
  const args = [path.join(root, 'benchmark', 'bench.js'), '--quick', '--json', '--only', ids.join()]
  const { code, stdout, output } = await run(process.execPath, args, { timeout: 200000 })
  assert.strictEqual(code, 0, output)
  const taken = JSON.parse(stdout.slice(stdout.indexOf('{')))[process.versions.node].figures
  // `idle` is a group of two.
  assert.deepStrictEqual(Object.keys(taken).sort(), [...ids, 'idle-wakes'].sort())
  const four = ['host', 'ours', 'again', 'floor']
  const variants = {
    turn: four,
    'register-1e3': four,
    'lock-unlock-force': four,
    'by-worker': [...four, 'index', 'keep-alive'],
    size: ['ours']
  }
  for (const id of Object.keys(variants).filter(id => ids.includes(id))) {
    for (const variant of variants[id]) assert.ok(taken[id][variant] > 0, `${id}, ${variant}: ${taken[id][variant]}`)
  }
  // The figure of loading is that of the package: it is larger than that of an empty module.
  for (const id of ['require-force', 'first-lock'].filter(id => ids.includes(id)))
    assert.ok(taken[id].ours > taken[id].floor, id)
})

test('a figure is judged by its goal: reached or not, or close, if the noise is larger than the difference', () => {
  const [half, least] = [{ to: 'host', most: 0.5 }, { least: 1.4 }]
  const over = { of: 'ours', over: 'host', most: 4 }
  for (const [goal, values, reached, close] of [
    [half, { ours: 5, host: 10 }, true], [half, { ours: 5.1, host: 10 }, false], [half, { ours: 5 }],
    [least, { ours: 1.3 }, false], [least, { ours: 1.4 }, true],
    [over, { host: 30, ours: 34 }, true], [over, { host: 30, ours: 35 }, false],
    [half, { ours: 55, again: 50, host: 100 }, false, false], [half, { ours: 55, again: 49, host: 100 }, false, true],
    [half, { ours: 45, again: 55, host: 100 }, true, true]
  ]) {
    const [verdict] = judge({ goals: [goal] }, values).goals
    assert.strictEqual(verdict.reached, reached, JSON.stringify([goal, values]))
    if (close !== undefined) assert.strictEqual(verdict.close, close, JSON.stringify(values))
  }
})

test('the picture of users is that of the recorded results', () => {
  assert.strictEqual(fs.readFileSync(path.join(root, 'benchmark', 'beside-others.svg'), 'utf8'), bars(recorded))
})

test('each missed goal is explained', () => {
  const text = fs.readFileSync(path.join(root, 'docs', 'internals', 'benchmark-limits.md'), 'utf8')
  const explained = Array.from(text.matchAll(/^Figures: (.*)$/gm), ([, ids]) => ids.split(', ')).flat()
  assert.deepStrictEqual(explained.filter(id => !figures.some(figure => figure.id === id)), [])
  const isMissed = (figure, values) => judge(figure, values).goals.some(({ reached }) => reached === false)
  const misses = figure =>
    Object.values(recorded).some(run => figure.id in run.figures && isMissed(figure, run.figures[figure.id]))
  const missed = figures.filter(misses).map(({ id }) => id)
  assert.ok(missed.length > 0)
  assert.deepStrictEqual(missed.filter(id => !explained.includes(id)), [])
})

test('an operation that takes more or fewer instructions than recorded, is new or missing, is found', () => {
  const problems = (recorded, counted) =>
    compare(recorded, counted)
      .filter(row => row.problem)
      .map(row => `${row.name} ${row.problem}`)
  const recorded = { wait: 300, notify: 44, old: 1 }
  assert.deepStrictEqual(problems(recorded, { wait: 308, notify: 43, old: 1 }), [])
  assert.deepStrictEqual(problems(recorded, { wait: 310, notify: 42, fresh: 1 }), [
    'wait takes more', 'notify takes less: the record is out of date', 'old is not counted any more',
    'fresh is not recorded'
  ])
})
