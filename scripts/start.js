'use strict'

// npm start [-- FOLDER]: the main job. Installs and builds what is needed, then counts the words of real text with many
// threads and one shared table (examples/word-count), on the Node at hand and on one that has no Atomics.waitAsync, and
// checks every word's count against what a single thread finds. The exit code is 0 only if everything was right.

const { spawnSync } = require('child_process')
const fs = require('fs')
const path = require('path')
const { argumentsOf } = require('./lib/arguments')
const { withScratch } = require('./lib/scratch')
const setup = require('./setup')
const nodes = require('./nodes')

const OLD_NODE = '14.21.3'
const EXAMPLE = path.join(__dirname, '..', 'examples', 'word-count')

async function main () {
  const { positionals } = argumentsOf(__filename, {}, { most: 1 })
  // npm runs scripts in the package's folder; a relative path is meant from where the user is.
  const folder = positionals.map(arg => path.resolve(process.env.INIT_CWD || process.cwd(), arg))
  for (const given of folder) fs.statSync(given)

  await setup.run()
  const old = await nodes.get(OLD_NODE)

  console.log()
  const runs = await withScratch(async scratch => [
    run({ path: process.execPath, flags: [] }, folder, scratch),
    ...(old.path ? [run(old, folder, scratch)] : [])
  ])
  report(runs)
  if (!old.path) console.log(`\nNot run on Node ${OLD_NODE}: skipped, ${old.skipped}`)
}

// One run on one Node. A single thread of the same Node counts too, because what is a letter is for its Unicode to say.
function run (node, folder, scratch) {
  const sharedFile = path.join(scratch, 'shared.json')
  const singleFile = path.join(scratch, 'single.json')
  runNode(node, [path.join(EXAMPLE, 'index.mjs'), ...folder, '--result', sharedFile])
  runNode(node, [path.join(EXAMPLE, 'single-threaded.mjs'), sharedFile, singleFile])
  const shared = JSON.parse(fs.readFileSync(sharedFile, 'utf8'))
  const single = JSON.parse(fs.readFileSync(singleFile, 'utf8'))
  const [all, alone] = [shared, single].map(({ counts }) => new Map(counts))
  const differences = [...new Set([...all.keys(), ...alone.keys()])].filter(word => all.get(word) !== alone.get(word))
  const isSame = differences.length === 0
  console.log(`  one thread that shares nothing counts ${number(single.words)} words in ${single.seconds.toFixed(2)} s; ${isSame ? 'every word\'s count is the same' : 'the counts DIFFER'}\n`)
  if (!isSame) process.exitCode = 1
  for (const word of differences.slice(0, 10)) console.error(`  ${JSON.stringify(word)}: ${all.get(word)} by the threads, ${alone.get(word)} by one`)
  return { shared, single, isSame }
}

function runNode (node, args) {
  const { error, signal, status } = spawnSync(node.path, [...node.flags, ...args], { stdio: ['ignore', 'inherit', 'inherit'] })
  if (error) throw error
  if (status !== 0) throw new Error(`${node.path} ${args.join(' ')} has ended with ${signal || `exit code ${status}`}`)
}

/** 1234567 is 1,234,567. Not toLocaleString: some builds of Node have hardly any locale. */
const number = n => String(n).replace(/\B(?=(?:\d{3})+$)/g, ',')

function report (runs) {
  const top = runs[0].shared.counts.sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1)).slice(0, 10)
  console.log(`The most frequent words: ${top.map(([word, count]) => `${word} ${number(count)}`).join(' · ')}\n`)

  const rows = [
    ['', ({ shared }) => `Node ${shared.node}`],
    ['files', ({ shared }) => number(shared.files.length)],
    ['words', ({ shared }) => number(shared.words)],
    ['distinct words', ({ shared }) => number(shared.distinct)],
    ['workers', ({ shared }) => number(shared.workers)],
    ['time', ({ shared }) => `${shared.seconds.toFixed(2)} s`],
    ['time of one thread alone', ({ single }) => `${single.seconds.toFixed(2)} s`],
    ['consistent snapshots by main', ({ shared }) => number(shared.snapshots)],
    ['locks that main had to await', ({ shared }) => number(shared.awaited)],
    ['longest wait for a snapshot', ({ shared }) => `${shared.longestSnapshot.toFixed(1)} ms`],
    ['longest delay of main\'s event loop', ({ shared }) => `${shared.longestDelay.toFixed(1)} ms`],
    ['queue of Atomics.waitAsync', ({ shared }) => shared.engine === 'host' ? 'Node\'s own' : 'this package\'s'],
    ['same as a single-threaded count', ({ isSame }) => isSame ? 'yes' : 'NO']
  ]
  const cells = rows.map(([name, cell]) => [name, ...runs.map(cell)])
  const widths = cells[0].map((_, column) => Math.max(...cells.map(row => row[column].length)))
  for (const [name, ...values] of cells) {
    console.log([name.padEnd(widths[0]), ...values.map((value, i) => value.padStart(widths[i + 1] + 3))].join(''))
  }
  console.log('(A delay includes waiting for a core: the workers keep all of them busy.)')
}

main().catch(error => {
  console.error(`\nnpm start has failed: ${error.message}`)
  process.exitCode = 1
})
