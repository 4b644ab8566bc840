'use strict'

// One group of figures, in a process of its own, so that the garbage of one group does not disturb the next:
//
//   node --expose-gc child.js '{"group":"turn","rounds":1,"quick":false, …}'
//
// A group's module either has `run(kit)`, which takes all its samples here, or `sample(figure, variant, settings)`, which takes one: then a
// process is started for each, and `{"figure":…,"variant":…}` says which; without them, the answer is what there is to ask for. Where
// `figures` has a list instead of a name, one process has a sample of each of these: `sample` is called with the first, and gives a list.
//
// The last line that it prints is what came of it. Runs on every Node that the package runs on.

const path = require('path')
// Before anything can have been installed.
require('./queues')

const settings = JSON.parse(process.argv[2])
const group = require(path.join(__dirname, 'groups', settings.group))

// The host's pending waits do not keep a process alive.
const alive = setInterval(() => {}, 1000)

const kit = Object.assign({}, settings, {
  /** How many rounds are made, of the usual number. */
  rounds: usual => settings.quick ? 1 : Math.max(1, Math.round(usual * settings.rounds))
})

async function answer () {
  if (group.run !== undefined) return { samples: await group.run(kit) }
  if (settings.figure !== undefined) return { sample: [].concat(await group.sample(settings.figure, settings.variant, settings)) }
  return {
    rounds: kit.rounds(group.rounds),
    figures: group.figures.map(figure => [].concat(figure)).map(names => ({ names, variants: group.variants(names[0]) }))
  }
}

answer().then((result) => {
  clearInterval(alive)
  console.log(JSON.stringify(result))
  // What the host has left behind may hold the process for as long as its time-outs.
  process.exit()
}).catch((error) => {
  console.error(error)
  process.exit(1)
})
