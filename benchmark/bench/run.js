'use strict'

// Runs groups of figures on a Node, each in processes of its own, and gathers their samples.

const path = require('path')
const { run: runChild } = require('../../scripts/lib/child')
const { registerByAgents } = require('./agents')
const { librarySize } = require('./machine')

const CHILD = path.join(__dirname, 'child.js')
/** No group takes nearly that long. Milliseconds. */
const TIMEOUT = 20 * 60 * 1000

/** One child, from start to end: its last line. */
async function child (node, settings) {
  const env = { ...process.env }
  // Meant for the Node that runs this.
  delete env.NODE_OPTIONS
  // With a flag for V8, Node's own modules are compiled anew, which would be measured as the start.
  const flags = settings.group === 'start' ? node.flags : [...node.flags, '--expose-gc']
  const { error, code, signal, stdout, output } = await runChild(node.path, [...flags, CHILD, JSON.stringify(settings)], { env, timeout: TIMEOUT })
  if (error) throw error
  if (code !== 0) throw new Error(`${settings.group} ended with ${signal || `exit code ${code}`}\n${output}`)
  return JSON.parse(stdout.trimEnd().split('\n').pop())
}

/** The samples of a group that takes one in each process. */
async function sampleByProcess (node, settings, chosen) {
  const { rounds, figures } = await child(node, settings)
  const samples = {}
  for (const { names, variants } of figures.filter(({ names }) => names.some(name => chosen.includes(name)))) {
    for (const name of names) samples[name] = Object.fromEntries(variants.map(variant => [variant, []]))
    for (let round = 0; round < rounds; round++) {
      for (let n = 0; n < variants.length; n++) {
        // Each round begins with another.
        const variant = variants[(round + n) % variants.length]
        const { sample } = await child(node, { ...settings, figure: names[0], variant })
        names.forEach((name, n) => samples[name][variant].push(sample[n]))
      }
    }
  }
  return samples
}

async function take (node, settings, chosen) {
  if (settings.group === 'size') return { size: librarySize() === undefined ? {} : { ours: [librarySize()] } }
  if (settings.group === 'agents') return { 'register-agents': await registerByAgents(settings) }
  if (BY_PROCESS.includes(settings.group)) return sampleByProcess(node, settings, chosen)
  return (await child(node, settings)).samples
}

const BY_PROCESS = ['gaps', 'memory', 'named-memory', 'idle', 'start']

/**
 * @param {{ version: string, path: string, flags: string[] }} node
 * @param {object[]} figures those of figures.js that are wanted
 * @param {{ rounds: number, quick: boolean, installed: string }} options `installed` is the folder that installed.js has made
 * @returns {Promise<{ samples: Object<string, Object<string, number[]>>, failures: Object<string, string>, errors: string[] }>}
 *   `failures`: why one of the locks could not be used to the end; `errors`: of groups that have no result
 */
async function run (node, figures, { rounds, quick, installed }) {
  const samples = {}
  const failures = {}
  const errors = []
  const jobs = new Map()
  for (const { id, group, entry } of figures) {
    const key = [group, entry].filter(Boolean).join(' ')
    if (!jobs.has(key)) jobs.set(key, { settings: { rounds, quick, installed, group, entry }, chosen: [] })
    jobs.get(key).chosen.push(id)
  }
  for (const [key, { settings, chosen }] of jobs) {
    const begin = Date.now()
    try {
      const taken = await take(node, settings, chosen)
      Object.assign(failures, taken.failures)
      for (const id of chosen) if (taken[id] !== undefined) samples[id] = taken[id]
    } catch (error) {
      errors.push(error.message)
    }
    console.error(`Node ${node.version}  ${key}  (${Math.round((Date.now() - begin) / 1000)} s)`)
  }
  return { samples, failures, errors }
}

module.exports = { run }
