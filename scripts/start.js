'use strict'

// npm start [-- FOLDER]: the main job. Installs and builds all it needs, then counts the words of real text with many
// threads and one shared table (examples/word-count), on the Node at hand and on one that has no Atomics.waitAsync, and
// checks every word's count against that of a single thread. The exit code is 0 only if everything was right.

const { execFileSync } = require('child_process')
const fs = require('fs')
const path = require('path')
const { argumentsOf, command } = require('./lib/arguments')
const { withScratch } = require('./lib/scratch')
const setup = require('./setup')
const nodes = require('./nodes')

const OLD_NODE = '14'
const EXAMPLE = path.join(__dirname, '..', 'examples', 'word-count')

async function main () {
  const { positionals } = argumentsOf(__filename, {}, { most: 1 })
  // npm runs scripts in the package's folder; a relative path is meant from where the user is.
  const folder = positionals.map(arg => path.resolve(process.env.INIT_CWD || process.cwd(), arg))
  for (const given of folder) fs.statSync(given)

  await setup.run()
  await nodes.each(['current', OLD_NODE], node => withScratch(async scratch => run(node, folder, scratch)))
  console.log('\n(A delay includes waiting for a core: the workers keep all of them busy.)')
}

// One run on one Node. A single thread of the same Node counts too, because its Unicode defines letters.
function run (node, folder, scratch) {
  console.log()
  const files = ['shared.json', 'single.json'].map(name => path.join(scratch, name))
  // Their output goes to the terminal, if there is one, on which progress is drawn.
  const stdio = ['ignore', 'inherit', 'inherit']
  const runs = (name, ...args) =>
    execFileSync(node.path, [...node.flags, path.join(EXAMPLE, name), ...args], { stdio })
  runs('index.mjs', ...folder, '--result', files[0])
  runs('single-threaded.mjs', ...files)
  const [shared, single] = files.map(file => JSON.parse(fs.readFileSync(file, 'utf8')))
  const [all, alone] = [shared, single].map(({ counts }) => new Map(counts))
  const differences = [...new Set([...all.keys(), ...alone.keys()])].filter(word => all.get(word) !== alone.get(word))
  const verdict = differences.length === 0 ? 'every word\'s count is the same' : 'the counts DIFFER'
  const [words, seconds] = [number(single.words), single.seconds.toFixed(2)]
  console.log(`  one thread that shares nothing counts ${words} words in ${seconds} s; ${verdict}`)
  if (differences.length > 0) process.exitCode = 1
  for (const word of differences.slice(0, 10))
    console.error(`  ${JSON.stringify(word)}: ${all.get(word)} by the threads, ${alone.get(word)} by one`)
  const top = shared.counts.sort(([, m], [, n]) => n - m).slice(0, 10)
  console.log(`  the most frequent: ${top.map(([word, count]) => `${word} ${number(count)}`).join(' · ')}`)
}

/** Writes 1234567 as 1,234,567. Not toLocaleString: some builds of Node have hardly any locale. */
const number = n => String(n).replace(/\B(?=(?:\d{3})+$)/g, ',')

command(main)
