// Measures the engines, and draws figure.svg: exclusive locks a second of two processes with two threads each; how long
// it takes until the next process has the lock of one that is killed (kill -9); and how long a free lock takes. Each
// with the named lock in front, and without it.
//
//   POSTGRESQL_URL=… REDIS_URL=… ETCD_URL=… node examples/processes/figure/measure.mts
//
// What no variable names is left out.

import { fork, type ChildProcess } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { draw, type Figures } from './draw.mts'
import { LEASE, available } from './engines.mts'

const SECONDS = 1.5 // of each measurement of locks a second
const ROUNDS = 3 // of all engines, which take turns
const KILLS = 3 // in each round
const PROCESSES = 2

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'figure-'))
const ways = ['front', 'alone'] as const

const start = (...args: string[]) =>
  fork(path.join(import.meta.dirname, 'contender.mts'), [folder, ...args], { execArgv: ['--no-warnings'] })
const said = (child: ChildProcess, meant: (message: any) => boolean) => new Promise<any>((resolve, reject) => {
  child.on('message', message => { if (meant(message)) resolve(message) })
  child.on('exit', () => reject(new Error('a process has ended')))
})
const median = (numbers: number[]) => numbers.toSorted((a, b) => a - b)[numbers.length >> 1]!

async function kill (child: ChildProcess) {
  child.kill('SIGKILL')
  await new Promise(resolve => child.on('exit', resolve))
}

async function grantsOf (children: ChildProcess[]) {
  const answers = await Promise.all(children.map(child => {
    const answer = said(child, message => message.grants !== undefined)
    child.send('how many?')
    return answer
  }))
  return answers.reduce((sum, { grants }) => sum + grants, 0)
}

async function grantsPerSecond (engine: string, way: string) {
  const children = Array.from({ length: PROCESSES }, () => start(engine, way, 'loop'))
  await Promise.all(children.map(child => said(child, message => message === 'running')))
  const [before, began] = [await grantsOf(children), performance.now()]
  await sleep(SECONDS * 1000)
  const result = (await grantsOf(children) - before) / (performance.now() - began) * 1000
  await Promise.all(children.map(kill))
  return result
}

/** Milliseconds from a kill to the grant of each next process. */
async function untilNext (engine: string, way: string) {
  const results: number[] = []
  let holder = start(engine, way, 'once')
  await said(holder, message => message === 'granted')
  for (let n = 0; n < KILLS; n++) {
    const next = start(engine, way, 'once')
    const granted = said(next, message => message === 'granted')
    await said(next, message => message === 'asking')
    await sleep(200 * (1 + Math.random())) // until it is in line, at any moment of the lease
    const killed = performance.now()
    holder.kill('SIGKILL')
    await granted
    results.push(performance.now() - killed)
    holder = next
  }
  await kill(holder)
  return results
}

/** Milliseconds that a free lock takes: the median of one process. */
async function free (engine: string, way: string) {
  const child = start(engine, way, 'free')
  const { free } = await said(child, message => message.free !== undefined)
  await kill(child)
  return free as number
}

const engines = Object.keys(available(folder))
interface Measured { grants: number[], next: number[], free: number[] }
const nothing = (): Measured => ({ grants: [], next: [], free: [] })
const all: Record<string, Record<typeof ways[number], Measured>> = Object.fromEntries(
  engines.map(engine => [engine, { front: nothing(), alone: nothing() }]))
// A Redis server that has just started gives no lock until a lease is over.
await sleep(LEASE + 1000)
for (let round = 0; round < ROUNDS; round++) {
  for (const engine of engines) {
    for (const way of ways) {
      all[engine]![way].grants.push(await grantsPerSecond(engine, way))
      // Those that were killed have left locks: with a lease, for so long.
      all[engine]![way].next.push(...await untilNext(engine, way))
      all[engine]![way].free.push(await free(engine, way))
    }
  }
}
const figures: Figures = {
  node: process.versions.node,
  system: `${os.type()} ${os.arch()}`,
  cores: os.availableParallelism(),
  lease: LEASE,
  date: new Date().toISOString().slice(0, 10),
  engines: Object.fromEntries(engines.map(engine => [engine, Object.fromEntries(ways.map(way => {
    const { grants, next, free } = all[engine]![way]
    return [way, {
      grants: Math.round(median(grants)),
      next: Number(median(next).toFixed(1)),
      free: Number(median(free).toPrecision(2))
    }]
  })) as Figures['engines'][string]]))
}
fs.rmSync(folder, { recursive: true, force: true })
fs.writeFileSync(path.join(import.meta.dirname, 'figures.json'), JSON.stringify(figures, null, 2) + '\n')
fs.writeFileSync(path.join(import.meta.dirname, 'figure.svg'), draw(figures))
const rows = Object.entries(figures.engines).flatMap(([name, of]) => ways.map(way => [`${name}, ${way}`, of[way]]))
console.table(Object.fromEntries(rows))
