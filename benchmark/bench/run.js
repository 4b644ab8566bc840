'use strict'

// Runs groups of figures on a Node, each in processes of its own, and gathers their samples.

const path = require('path')
const { run: runChild } = require('../../scripts/lib/child')
const { registerByAgents } = require('./agents')
const { librarySize } = require('./machine')

const CHILD = path.join(__dirname, 'child.js')
/** No group takes nearly that long. Milliseconds. */
const TIMEOUT = 20 * 60 * 1000

/**
 * One child, from start to end.
 * @returns {Promise<object>} what it prints as its result
 */
async function child (node, settings, progress) {
  const env = { ...process.env }
  // Meant for the Node that runs this.
  delete env.NODE_OPTIONS
  delete env.ATOMICS_WAITASYNC_PORTABLE
  if (settings.portable) env.ATOMICS_WAITASYNC_PORTABLE = '1'
  // With a flag for V8, Node's own modules are compiled anew, which would be measured as the start.
  const flags = settings.group === 'start' ? node.flags : [...node.flags, '--expose-gc']
  let result
  const { error, code, signal, output } = await runChild(node.path, [...flags, CHILD, JSON.stringify(settings)], {
    env,
    timeout: TIMEOUT,
    onLine (line) {
      const [, kind, text] = /^(\w+) (.*)$/.exec(line) || []
      if (kind === 'progress') progress(Number(text))
      else if (kind === 'result') result = JSON.parse(text)
    }
  })
  if (error) throw error
  if (code !== 0 || result === undefined) throw new Error(`${settings.group} ended with ${signal || `exit code ${code}`}\n${output}`)
  return result
}

/** The samples of a group that takes one in each process. */
async function sampleByProcess (node, settings, chosen, progress) {
  const { rounds, figures } = await child(node, settings, () => {})
  const plan = figures.filter(({ names }) => names.some(name => chosen.includes(name)))
  const samples = {}
  for (const [index, { names, variants }] of plan.entries()) {
    for (const name of names) samples[name] = Object.fromEntries(variants.map(variant => [variant, []]))
    for (let round = 0; round < rounds; round++) {
      for (let n = 0; n < variants.length; n++) {
        // Each round begins with another.
        const variant = variants[(round + n) % variants.length]
        const { sample } = await child(node, { ...settings, figure: names[0], variant }, () => {})
        names.forEach((name, n) => samples[name][variant].push(sample[n]))
      }
      progress((index + (round + 1) / rounds) / plan.length)
    }
  }
  return samples
}

async function take (node, settings, chosen, report) {
  if (settings.group === 'size') return { size: librarySize() === undefined ? {} : { ours: [librarySize()] } }
  if (settings.group === 'agents') return { 'register-agents': await registerByAgents(settings) }
  if (BY_PROCESS.includes(settings.group)) return sampleByProcess(node, settings, chosen, report)
  return (await child(node, settings, report)).samples
}

const BY_PROCESS = ['gaps', 'memory', 'named-memory', 'idle', 'start']

/**
 * @param {{ version: string, path: string, flags: string[] }} node
 * @param {object[]} figures those of figures.js that are wanted
 * @param {{ rounds: number, quick: boolean, installed: string, portable: boolean }} options `installed` is the folder that installed.js
 *   has made; `portable`: with the code for processors whose atomic operations are no full fences
 * @param {(text: string, share: number) => void} progress
 * @returns {Promise<{ samples: Object<string, Object<string, number[]>>, failures: Object<string, string>, errors: string[] }>}
 *   `failures`: why one of the locks could not be used to the end; `errors`: of groups that have no result
 */
async function run (node, figures, { rounds, quick, installed, portable }, progress) {
  const samples = {}
  const failures = {}
  const errors = []
  const jobs = new Map()
  for (const { id, group, entry } of figures) {
    const key = [group, entry, portable ? 'portable' : undefined].filter(Boolean).join(' ')
    if (!jobs.has(key)) jobs.set(key, { settings: { rounds, quick, installed, portable, group, entry }, chosen: [] })
    jobs.get(key).chosen.push(id)
  }
  for (const [key, { settings, chosen }] of jobs) {
    // It is over once its result is here.
    const report = share => progress(key, Math.min(share, 0.99))
    report(0)
    let taken = {}
    try {
      taken = await take(node, settings, chosen, report)
    } catch (error) {
      errors.push(error.message)
    }
    Object.assign(failures, taken.failures)
    for (const id of chosen) if (taken[id] !== undefined) samples[id] = taken[id]
    progress(key, 1)
  }
  return { samples, failures, errors }
}

module.exports = { run }
