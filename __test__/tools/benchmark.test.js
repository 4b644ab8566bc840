'use strict'
// nodes: running (what runs the benchmark is written for that)
// timeout: 240

const assert = require('assert')
const fs = require('fs')
const path = require('path')
const { test } = require('../harness')
const size = require('../fixtures/size')
const { run } = require('../../scripts/lib/child')
const { figures, select } = require('../../benchmark/bench/figures')
const { bars } = require('../../benchmark/bench/pictures')
const { page } = require('../../benchmark/bench/report')
const { judge, summarise } = require('../../benchmark/bench/verdict')

const BENCH = path.join(__dirname, '..', '..', 'benchmark', 'bench.js')

const bench = (...args) => run(process.execPath, [BENCH, ...args], { timeout: 200000 })

test('a figure of each kind of group is taken', { timeout: 210000 }, async () => {
  const only = size('turn,register-1e3,lock-unlock-force,idle,require-force,require-parts,first-lock,by-worker,by-notify,size', 'turn,idle,first-lock,size')
  const { code, stdout, output } = await bench('--quick', '--json', '--only', only)
  assert.strictEqual(code, 0, output)
  const { figures } = JSON.parse(stdout.slice(stdout.indexOf('{')))[process.versions.node]
  // `idle` is a group of two.
  assert.deepStrictEqual(Object.keys(figures).sort(), only.split(',').concat('idle-wakes').sort())
  for (const id of ['turn', 'register-1e3', 'lock-unlock-force'].filter(id => only.includes(id))) {
    for (const variant of ['host', 'ours', 'again', 'floor']) assert.ok(figures[id][variant] > 0, `${id}, ${variant}: ${figures[id][variant]}`)
  }
  // The figure of loading is that of the package: it is larger than that of an empty module.
  for (const id of ['require-force', 'first-lock'].filter(id => only.includes(id))) {
    assert.ok(figures[id].ours > figures[id].floor, `${id}: ${JSON.stringify(figures[id])}`)
  }
  if (only.includes('by-worker')) {
    assert.ok(figures['require-parts'].ours > 0)
    for (const variant of ['host', 'floor', 'index', 'keep-alive', 'ours', 'again']) assert.ok(figures['by-worker'][variant] > 0, variant)
  }
  assert.ok(figures.size.ours > 50, `${figures.size.ours} kB`)
})

test('an unknown figure or Node is refused with a list of the known ones', async () => {
  const { code, output } = await bench('--only', 'nothing')
  assert.strictEqual(code, 1)
  assert.ok(output.includes('nothing is called nothing: there are register,'), output)
})

test('--only finds groups, figures and parts of their names', () => {
  assert.deepStrictEqual(select('turn').map(({ id }) => id), ['turn'])
  assert.ok(select('lock').some(({ id }) => id === 'lock-workers'))
  assert.ok(!select('lock').some(({ id }) => id === 'round-trip-one-core'))
  assert.strictEqual(select(undefined), figures)
})

test('a figure is the median of its samples, a sum where it counts, the least where it is disturbed', () => {
  assert.deepStrictEqual(summarise({}, { ours: [5, 1, 100], host: [1, 2, 3, 10] }), { ours: 5, host: 2.5 })
  assert.deepStrictEqual(summarise({ minimum: true }, { ours: [5, 1, 100] }), { ours: 1 })
  assert.deepStrictEqual(summarise({ sum: true }, { ours: [1, 2, 4] }), { ours: 7 })
})

test('a figure is judged by its goal, and not where no other figure is beside it', () => {
  const atMost = { goals: [{ to: 'host', most: 0.5 }] }
  assert.strictEqual(judge(atMost, { ours: 5, host: 10 }).goals[0].reached, true)
  assert.strictEqual(judge(atMost, { ours: 5.1, host: 10 }).goals[0].reached, false)
  assert.strictEqual('reached' in judge(atMost, { ours: 5 }).goals[0], false)
  const atLeast = { goals: [{ least: 1.4 }] }
  assert.strictEqual(judge(atLeast, { ours: 1.3 }).goals[0].reached, false)
  assert.strictEqual(judge(atLeast, { ours: 1.4 }).goals[0].reached, true)
})

test('a figure may be judged by how much more it is with an entry than without', () => {
  const figure = { goals: [{ of: 'ours', over: 'host', most: 4 }, { of: 'index', over: 'host', most: 1 }] }
  const goals = values => judge(figure, values).goals.map(({ text, value, reached }) => `${text}: ${value}, ${reached}`)
  assert.deepStrictEqual(goals({ host: 30, index: 31, ours: 35 }), ['≤ +4 (`/force`): 5, false', '≤ +1 (the plain entry): 1, true'])
})

test('the noise is how far two runs of the same differ, either way', () => {
  assert.strictEqual(judge({ goals: [] }, { ours: 10, again: 8 }).noise, 0.25)
  assert.strictEqual(judge({ goals: [] }, { ours: 8, again: 10 }).noise, 0.25)
})

test('a verdict says so if the noise is larger than the difference', () => {
  const figure = { goals: [{ to: 'host', most: 0.5 }] }
  const verdict = (ours, again) => { const [{ reached, close }] = judge(figure, { ours, again, host: 100 }).goals; return { reached, close } }
  assert.deepStrictEqual(verdict(55, 50), { reached: false, close: false })
  assert.deepStrictEqual(verdict(55, 49), { reached: false, close: true })
  assert.deepStrictEqual(verdict(45, 55), { reached: true, close: true })
  assert.deepStrictEqual(verdict(45, 45), { reached: true, close: false })
})

/** Of a run. */
const machine = { package: '1', commit: 'abc', peers: { other: '2' }, v8: '3', system: 'S', processor: 'P', cores: 2, load: 0, date: 'D', rounds: 1 }

test('the page says yes, no, or nothing', () => {
  const turn = { host: 1000, ours: 500, again: 500, floor: 400 }
  const runs = { '24.0.0': { machine, failures: {}, figures: { turn, late: { ours: 21 }, 'notify-none': { ours: 3 } } } }
  const lines = page(runs).split('\n')
  const line = text => lines.find(each => each.includes(text))
  assert.ok(line('wait → notify → await').endsWith('| 1 000 ns | 500 ns | 400 ns | 0.50 × | ≤ 0.6 × | yes | ± 0 % |'))
  assert.ok(line('the last is late by').endsWith('| – | 21.0 ms | – | – | ≤ 20 | **no** | – |'))
  assert.ok(line('`notify` with no waiters').endsWith('| – | 3.00 ns | – | – | ≤ 1 × | – | – |'))
})

test('the picture of users has a bar in absolute units for each that was measured on the latest Node', () => {
  const figures = { 'lock-workers': { ours: 800, again: 801, host: 600, 'web-locks': 30.4 }, 'lock-main-p99': { ours: 0.6 }, late: { ours: 0.2, host: 4481.8 } }
  const older = { 'lock-workers': { ours: 777 } }
  const picture = bars({ '26.1.0': { machine, failures: {}, figures }, '8.0.0': { machine, failures: {}, figures: older } })
  assert.deepStrictEqual(picture.match(/(?<=x="[\d.]+" y="\d+" fill="#1a202c">)[^<]+/g), ['800', '600', '30', '0.60', '0.20', '4 482'])
  const recorded = require('../../benchmark/results.json')
  assert.strictEqual(fs.readFileSync(path.join(__dirname, '..', '..', 'benchmark', 'beside-others.svg'), 'utf8'), bars(recorded))
})

test('each missed goal is explained', () => {
  const text = fs.readFileSync(path.join(__dirname, '..', '..', 'docs', 'internals', 'benchmark-limits.md'), 'utf8')
  const explained = Array.from(text.matchAll(/^Figures: (.*)$/gm), ([, ids]) => ids.split(', ')).flat()
  assert.deepStrictEqual(explained.filter(id => !figures.some(figure => figure.id === id)), [])
  const runs = Object.values(require('../../benchmark/results.json'))
  const misses = figure => runs.some(run => figure.id in run.figures && judge(figure, run.figures[figure.id]).goals.some(({ reached }) => reached === false))
  const missed = figures.filter(misses).map(({ id }) => id)
  assert.ok(missed.length > 0)
  assert.deepStrictEqual(missed.filter(id => !explained.includes(id)), [])
})
