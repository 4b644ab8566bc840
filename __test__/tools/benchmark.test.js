'use strict'
// nodes: running (what runs the benchmark is written for that)

// The benchmark judges figures, and its pages have the record. Counts of instructions are compared with theirs. `npm
// run bench -- --quick` shows that each figure can be taken.

const assert = require('assert')
const fs = require('fs')
const path = require('path')
const { test } = require('../harness')
const { compare } = require('../../scripts/instructions')
const { figures } = require('../../benchmark/bench/figures')
const { bars } = require('../../benchmark/bench/pictures')
const { judge } = require('../../benchmark/bench/verdict')
const recorded = require('../../benchmark/results.json')

const root = path.join(__dirname, '..', '..')
const textOf = (...names) => fs.readFileSync(path.join(root, ...names), 'utf8')

test('a figure is judged by its goal: reached or not, or close, if the noise is larger than the difference', () => {
  const [half, least, over] = [{ to: 'host', most: 0.5 }, { least: 1.4 }, { of: 'ours', over: 'host', most: 4 }]
  for (const [goal, values, reached, close] of [
    [half, { ours: 5, host: 10 }, true, false],
    [half, { ours: 5.1, host: 10 }, false, false],
    [half, { ours: 5 }],
    [least, { ours: 1.3 }, false, false],
    [least, { ours: 1.4 }, true, false],
    [over, { host: 30, ours: 34 }, true, false],
    [over, { host: 30, ours: 35 }, false, false],
    [half, { ours: 55, again: 50, host: 100 }, false, false],
    [half, { ours: 55, again: 49, host: 100 }, false, true],
    [half, { ours: 45, again: 55, host: 100 }, true, true]
  ]) {
    const [verdict] = judge({ goals: [goal] }, values).goals
    assert.deepStrictEqual([verdict.reached, verdict.close], [reached, close], JSON.stringify([goal, values]))
  }
})

test('the picture is that of the recorded results, and each missed goal is explained', () => {
  assert.strictEqual(textOf('benchmark', 'beside-others.svg'), bars(recorded))
  const explained = textOf('docs', 'internals', 'benchmark-limits.md').match(/^Figures: .*$/gm).join().split(/: |, ?/)
  const isMissed = (figure, values) => values && judge(figure, values).goals.some(({ reached }) => reached === false)
  const misses = figure => Object.values(recorded).some(run => isMissed(figure, run.figures[figure.id]))
  const missed = figures.filter(misses).map(({ id }) => id)
  assert.ok(missed.length > 0)
  assert.deepStrictEqual(missed.filter(id => !explained.includes(id)), [])
})

test('an operation that takes more or fewer instructions than recorded, is new or missing, is found', () => {
  const record = { wait: 300, notify: 44, old: 1 }
  const problems = counted => compare(record, counted).filter(row => row.problem).map(row => [row.name, row.problem])
  assert.deepStrictEqual(problems({ wait: 308, notify: 43, old: 1 }), [])
  assert.deepStrictEqual(problems({ wait: 310, notify: 42, fresh: 1 }), [
    ['wait', 'takes more'],
    ['notify', 'takes less: the record is out of date'],
    ['old', 'is not counted any more'],
    ['fresh', 'is not recorded']
  ])
})
