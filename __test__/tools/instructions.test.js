'use strict'
// nodes: running (what counts the instructions does)

// How counts of instructions are read and judged; the counting itself needs valgrind: `npm run instructions`.

const assert = require('assert')
const { test } = require('../harness')
const { CALL, compare, instructionsIn } = require('../../scripts/instructions')

const problems = (recorded, counted) => compare(recorded, counted).filter(row => row.problem).map(row => `${row.name} ${row.problem}`)

test('an operation that takes more instructions than recorded is found, among others that do not', () => {
  assert.deepStrictEqual(problems({ wait: 300, notify: 44, cancel: 200 }, { wait: 310, notify: 44, cancel: 200 }), ['wait takes more'])
  assert.deepStrictEqual(problems({ notify: 44 }, { notify: 46 }), ['notify takes more'])
})

test('an operation that takes fewer instructions than recorded is found', () => {
  assert.deepStrictEqual(problems({ wait: 300, notify: 44 }, { wait: 290, notify: 44 }), ['wait takes less: the record is out of date'])
})

test('a few instructions of many are no difference, either way', () => {
  assert.deepStrictEqual(problems({ wait: 300, notify: 44 }, { wait: 308, notify: 43 }), [])
})

test('a new operation and a missing one are found', () => {
  assert.deepStrictEqual(problems({ wait: 300, old: 1 }, { wait: 300, fresh: 1 }), ['old is not counted any more', 'fresh is not recorded'])
})

test('both counts of a comparison are said, with their ratio', () => {
  assert.deepStrictEqual(compare({ wait: 200 }, { wait: 300 }), [
    { name: 'wait', recorded: 200, counted: 300, ratio: 1.5, problem: 'takes more' }
  ])
})

test('the instructions of the program alone count, and its calls of other libraries at a flat rate', () => {
  const dump = `# callgrind format
version: 1
cmd:  /folder/program --flag=1
positions: line
events: Ir
summary: 100000

ob=/folder/program
fl=???
fn=program::counted
0 7
cfn=program::operation
calls=1000 0
0 90000
0 3

ob=/lib/libc.so.6
fl=malloc.c
fn=malloc
100 7000
101 500
cob=/folder/program
cfi=???
cfn=program::callback
calls=5 0
0 50

ob=/folder/program
fl=???
fn=program::operation
0 4000
cob=/lib/libc.so.6
cfi=malloc.c
cfn=malloc
calls=20 100
0 7500
0 200
cob=/lib/libc.so.6
cfi=malloc.c
cfn=free
calls=0 100
0 90

totals: 100000
`
  assert.strictEqual(instructionsIn(dump, '/folder/program'), 7 + 3 + 4000 + 200 + 20 * CALL)
})
