'use strict'

// Compiled by Emscripten: a solver whose threads report to main by their mailboxes.

const assert = require('assert')
const { init } = require('z3-solver')

async function main () {
  const { Context, em } = await init()
  const { Solver, Int } = new Context('main')
  const [x, y] = [Int.const('x'), Int.const('y')]
  const solver = new Solver()
  solver.add(x.add(y).eq(10), x.sub(y).eq(4))
  assert.strictEqual(await solver.check(), 'sat')
  const model = solver.model()
  assert.deepStrictEqual([String(model.eval(x)), String(model.eval(y))], ['7', '3'])
  console.log('passed')
  // As its documentation says. With or without this package, a thread may live on: on a busy machine, in one of 70
  // runs.
  em.PThread.terminateAllThreads()
  process.exit()
}

main()
