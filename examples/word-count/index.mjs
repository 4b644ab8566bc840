// Counts the words of real text with one worker per core.
//
//   node examples/word-count/index.mjs [FOLDER] [--result FILE]
//
// FOLDER: every text file in it is counted. The default is the documentation under node_modules: Markdown, plain text,
// licences, and the doc comments of *.d.ts. FILE gets the result as JSON.

import fs from 'fs'
import os from 'os'
import path from 'path'
import { fileURLToPath } from 'url'

// Loaded before any worker is started, so that the workers have it too.
import { engine } from 'atomics-waitasync'

import countWords from './count.mjs'
import { documentation, everything } from './text.mjs'
import { Progress, number } from './progress.mjs'

async function main () {
  const { folder, resultFile } = parse(process.argv.slice(2))
  const root = folder || modules()
  const files = folder ? everything(root) : documentation(root)
  if (files.length === 0) return fail(`there is no text in ${root}`)
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0)
  const cores = os.availableParallelism ? os.availableParallelism() : os.cpus().length
  const workers = Math.max(2, cores)

  const whose = engine === 'host' ? 'Node\'s own' : 'this package\'s'
  console.log(`Node ${process.versions.node}: ${workers} workers, one table; Atomics.waitAsync is ${whose}`)
  const progress = new Progress(process.stdout)
  let result
  try {
    result = await countWords(files, workers, snapshot => progress.update(snapshot))
  } finally {
    progress.end()
  }
  const { words, distinct, seconds, snapshots, awaited, longestDelay, counts } = result
  console.log(`  ${number(words)} words (${number(distinct)} distinct) of ${number(files.length)} files, ` +
    `${(bytes / 1e6).toFixed(1)} MB, in ${seconds.toFixed(2)} s`)
  console.log(`  main: ${number(snapshots)} consistent snapshots, locks awaited for them: ${number(awaited)}, ` +
    `longest delay of its event loop: ${longestDelay.toFixed(1)} ms`)

  if (resultFile) {
    const { node } = process.versions
    const all = Object.assign({ node, engine, workers, files, bytes }, result, { counts: Array.from(counts) })
    fs.writeFileSync(resultFile, JSON.stringify(all))
  }
}

/** Returns the node_modules that this package is installed in; in a checkout its own. */
function modules () {
  const root = fileURLToPath(new URL('../..', import.meta.url)).replace(/[\\/]$/, '')
  const parent = path.dirname(root)
  return path.basename(parent) === 'node_modules' ? parent : path.join(root, 'node_modules')
}

function parse (args) {
  const usage = 'examples/word-count/index.mjs [FOLDER] [--result FILE]'
  let folder = null
  let resultFile = null
  while (args.length > 0) {
    const arg = args.shift()
    if (arg === '--result' && args.length > 0) resultFile = args.shift()
    else if (arg[0] !== '-' && folder === null) folder = arg
    else throw new TypeError(`unexpected argument ${arg}; usage: node ${usage}`)
  }
  return { folder, resultFile }
}

function fail (what) {
  console.error(what)
  process.exitCode = 1
  // Ends the process even if something keeps it alive.
  setTimeout(() => process.exit(1), 2000).unref()
}

main().catch(fail)
