'use strict'

// One group of figures, in a process of its own; so its garbage does not disturb the next one:
//
//   node --expose-gc child.js '{"group":"turn","rounds":1,"quick":false, …}'
//
// A group's module has `run(kit)`, which takes its samples. Where each needs a process of its own, `inProcesses` of
// processes.js starts this once more for each: `{"figure":…,"variant":…}` says which, and the module's `sample(figure,
// variant, settings)` takes it.
//
// The last line that it prints is the result. Runs on every Node that the package runs on.

const path = require('path')
// Before anything can have been installed.
require('./queues')

const settings = JSON.parse(process.argv[2])
const group = require(path.join(__dirname, 'groups', settings.group))

// The host's pending waits do not keep a process alive.
const alive = setInterval(() => {}, 1000)

const kit = {
  ...settings,
  /** How many rounds are made, of the usual number. */
  rounds: usual => settings.quick ? 1 : Math.max(1, Math.round(usual * settings.rounds))
}

async function answer () {
  return settings.figure === undefined ? group.run(kit) : group.sample(settings.figure, settings.variant, settings)
}

answer().then((result) => {
  clearInterval(alive)
  console.log(JSON.stringify(result))
  // Remains of the host may hold the process for as long as its timeouts; and the threads of a group.
  process.exit()
}).catch((error) => {
  console.error(error)
  process.exit(1)
})
