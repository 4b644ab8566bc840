import { BaseSequencer } from 'vitest/node'

// The files in the order of their names, or in the opposite one: state that one file leaves in its thread meets the
// next. There are two workers, and two files that install, so in vmThreads and vmForks each other file comes after one
// of them.
class Sequencer extends BaseSequencer {
  async sort (files) {
    const sorted = Array.from(files).sort((a, b) => a.moduleId < b.moduleId ? -1 : 1)
    return process.env.ORDER === 'reverse' ? sorted.reverse() : sorted
  }
}

export default {
  test: { globals: false, watch: false, minWorkers: 2, maxWorkers: 2, sequence: { sequencer: Sequencer } }
}
