'use strict'

// The family against plain models of it: random sequences of operations in one thread, see fixtures/family-models.js.
//
//   node __test__/locks/every-class/model.test.js [--seed n] [--seconds n]

const { test } = require('../../harness')
const worlds = require('../../fixtures/family-models')
const { turns } = require('../../fixtures/family-toolbox')
const { now, numberArgument, randomFrom } = require('../../fixtures/queue-toolbox')
const slowness = require('../../fixtures/slowness')

const SEED = numberArgument('--seed', Date.now() % 1e9)
const SECONDS = numberArgument('--seconds', 3)
const STEPS = 60

console.log(`# --seed ${SEED}`)

/** Plays one random sequence of operations. */
async function play (create, seed) {
  const random = randomFrom(seed)
  random() // the first ones of near seeds are near each other
  const world = create(random)
  for (let step = 0; step < STEPS; step++) {
    const where = `--seed ${seed}, step ${step}`
    try {
      world.step(random)
    } catch (error) {
      error.message = `${where}, after:\n  ${world.log.slice(-25).join('\n  ')}\n${error.message}`
      throw error
    }
    const start = now()
    while (!world.agree() && now() - start < slowness * 10000) await turns(1)
    // No further result comes.
    if (random() < 0.2) await turns(2)
    world.compare(where)
  }
}

for (const name of Object.keys(worlds)) {
  test(`${name} does what its model does`, { timeout: 60000 + SECONDS * 1000 }, async () => {
    const end = now() + SECONDS * 1000 / Object.keys(worlds).length
    let seed = SEED
    do await play(worlds[name], seed++)
    while (now() < end)
    console.log(`# ${name}: ${seed - SEED} sequences of ${STEPS}`)
  })
}
