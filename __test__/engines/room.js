'use strict'

// A room that has one place: processes come and go, as many at once as there can be, or are killed at any moment.

const assert = require('assert')
const fs = require('fs')
const path = require('path')
const { setTimeout: sleep } = require('timers/promises')

const ROUNDS = 100 // of each thread
const MEMBERS = 3
const MOST_KILLS = 200 // in vain
const MOST_WAIT = 30 // milliseconds between two kills, on top of the time of a start

/** The words of processes that come in have to fit their past. */
class Log {
  constructor ({ folder, engine }) {
    this.file = path.join(folder, 'room')
    fs.writeFileSync(this.file, ' 0 0')
    Object.assign(this, { engine, killed: new Set(), kills: 0, visits: 0, late: 0, deaths: 0, problems: [] })
  }

  toString () {
    const late = this.late > 0 ? `, ${this.late} too late for their lease` : ''
    return `${this.kills} killed, ${this.deaths} of them with the lock, ${this.visits} visits${late}`
  }

  follow (member) { member.listeners.add(message => this.read(message)) }

  read ({ event, inside, last, token, ownerDied, error }) {
    if (event === 'failed') this.fail(error)
    if (event !== 'entered') return
    this.visits++
    if (inside !== '' && !this.killed.has(parseInt(inside))) this.problems.push(`${inside} was inside, alive`)
    // An empty file: its writer was killed in the middle.
    if ((inside !== '' || last === undefined) && !ownerDied)
      this.problems.push(`nothing was said of the death of ${inside}`)
    if (token < Number(last) + (inside === '' ? 0 : 1)) this.problems.push(`token ${token} after ${last}`)
    if (ownerDied) this.deaths++
  }

  /** Counts a failure: on a busy machine a short lease may end in line or inside, and the process says so. */
  fail ({ code, message, cause }) {
    if (this.engine.lease > 0 && (code === 'ERR_LOCK_UNAVAILABLE' || code === 'ERR_LOCK_LOST')) this.late++
    else this.problems.push(`${message}: ${cause}`)
  }
}

const checks = {
  async 'one at a time: four processes of two threads increment a counter that nothing else protects' (place) {
    const { team, name, patient } = place
    const log = new Log(place)
    const members = await team.processes(4, patient)
    for (const member of members) {
      log.follow(member)
      await member.worker()
    }
    const visits = thread => member => member.result('visits', { name, file: log.file, rounds: ROUNDS, thread })
    await Promise.all([undefined, 0].flatMap(thread => members.map(visits(thread))))
    assert.deepStrictEqual(log.problems, [])
    assert.strictEqual(String(log), `0 killed, 0 of them with the lock, ${8 * ROUNDS} visits`)
    assert.strictEqual(fs.readFileSync(log.file, 'utf8').split(' ')[2], String(8 * ROUNDS))
  },
  async 'processes that are killed at any moment, while they wait, hold or come in' (place) {
    const log = new Log(place)
    await killAtRandom(place, log)
    assert.deepStrictEqual(log.problems, [])
    assert.ok(log.late < log.visits, String(log))
    return String(log)
  }
}

/** Lets processes come and go by kills, until there are enough, or a problem. `more`: of engine-of.js. */
async function killAtRandom ({ team, name, kills, engine }, log, more) {
  const start = async () => {
    const member = await team.process(undefined, more)
    log.follow(member)
    member.isQuiet = true
    member.do('visits', { name, file: log.file })
    return member
  }
  const members = await Promise.all(Array.from({ length: MEMBERS }, start))
  while (log.kills < kills && log.problems.length === 0) {
    const successor = start()
    await sleep(Math.random() * MOST_WAIT)
    const [victim] = members.splice(Math.floor(Math.random() * members.length), 1)
    log.killed.add(victim.child.pid) // which a later process may have again
    log.kills++
    victim.kill('SIGKILL')
    await victim.ended
    team.members.delete(victim)
    members.push(await successor)
    if (log.kills % 100 === 0) console.error(`${engine.module}: ${log}`)
  }
  // Whoever is left gets in: the last lease has to end.
  for (const visits = log.visits; log.visits < visits + 10 && log.problems.length === 0;)
    await Promise.race(members.map(member => member.next({ event: 'entered' })))
}

/** What the room finds out when an engine lacks something: the problem that it names. */
const FOUND = {
  exclusion: /was inside, alive|failed|came in/,
  'the news of a death': /nothing was said of the death/,
  'tokens that grow': /^token \d+ after/
}

/** The checks can fail. */
const controls = Object.fromEntries(Object.entries(FOUND).map(([lacks, problem]) => [
  `control: an engine that lacks ${lacks} is found out`,
  async place => {
    const log = new Log(place)
    await killAtRandom({ ...place, kills: MOST_KILLS }, log, { lacks })
    assert.ok(log.problems.some(each => problem.test(each)), `${log}: ${log.problems}`)
    return String(log)
  }
]))

module.exports = { checks, controls }
