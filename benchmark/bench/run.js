'use strict'

// Runs groups of figures on a Node, and gathers their samples. Each is in processes of its own.

const path = require('path')
const { run: runChild } = require('../../scripts/lib/child')
const { registerByAgents } = require('./agents')
const { librarySize } = require('./machine')

const CHILD = path.join(__dirname, 'child.js')
/** No group takes nearly that long. Milliseconds. */
const TIMEOUT = 20 * 60 * 1000

/** Runs one child from start to end: gives its last line. */
async function child (node, settings) {
  // Options are meant for the Node that runs this.
  const env = { ...process.env, NODE_OPTIONS: undefined }
  const { error, code, signal, stdout, output } = await runChild(
    node.path,
    [...node.flags, '--expose-gc', CHILD, JSON.stringify(settings)],
    { env, timeout: TIMEOUT }
  )
  if (error) throw error
  if (code !== 0) throw new Error(`${settings.group} ended with ${signal || `exit code ${code}`}\n${output}`)
  return JSON.parse(stdout.trimEnd().split('\n').pop())
}

async function take (node, settings) {
  if (settings.group === 'size') return { size: { ours: [librarySize()] } }
  if (settings.group === 'agents') return { 'register-agents': await registerByAgents(settings) }
  return child(node, settings)
}

/**
 * @param {{ version: string, path: string, flags: string[] }} node
 * @param {object[]} figures those of figures.js that are wanted
 * @param {{ rounds: number, quick: boolean, installed: string }} options `installed` is the folder that installed.js
 *   has made
 * @returns {Promise<{ samples: Object<string, Object<string, number[]>>, failures: Object<string, string>, errors:
 *   string[] }>} `failures`: why one of the locks could not be used to the end; `errors`: of groups that have no result
 */
async function run (node, figures, { rounds, quick, installed }) {
  const samples = {}
  const failures = {}
  const errors = []
  const jobs = new Map()
  for (const { id, group, entry } of figures) {
    const key = [group, entry].filter(Boolean).join(' ')
    if (!jobs.has(key)) jobs.set(key, { rounds, quick, installed, group, entry, chosen: [] })
    jobs.get(key).chosen.push(id)
  }
  for (const [key, settings] of jobs) {
    const begin = Date.now()
    try {
      const taken = await take(node, settings)
      Object.assign(failures, taken.failures)
      for (const id of settings.chosen) if (taken[id] !== undefined) samples[id] = taken[id]
    } catch (error) {
      errors.push(error.message)
    }
    console.error(`Node ${node.version}  ${key}  (${Math.round((Date.now() - begin) / 1000)} s)`)
  }
  return { samples, failures, errors }
}

module.exports = { run }
