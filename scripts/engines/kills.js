'use strict'

// Processes come and go into a room that has one place, and are killed at any moment.

const assert = require('assert')
const fs = require('fs')
const path = require('path')

const MEMBERS = 3
const MOST_WAIT = 30 // milliseconds between two kills, on top of what a start takes

const sleep = milliseconds => new Promise(resolve => setTimeout(resolve, milliseconds))

/** What the processes say when they come in has to fit what was done to them. */
class Log {
  constructor ({ lease }) {
    Object.assign(this, { lease, killed: new Set(), kills: 0, visits: 0, late: 0, deaths: 0, problems: [] })
  }

  toString () {
    const late = this.late > 0 ? `, ${this.late} too late for their lease` : ''
    return `${this.kills} killed, ${this.deaths} of them with the lock, ${this.visits} visits${late}`
  }

  read ({ event, inside, last, token, ownerDied, error }) {
    if (event === 'failed') this.fail(error)
    if (event !== 'entered') return
    this.visits++
    if (inside !== '' && !this.killed.has(Number(inside))) this.problems.push(`process ${inside} was inside, alive`)
    // An empty file: its writer was killed in the middle.
    if ((inside !== '' || Number.isNaN(last)) && !ownerDied)
      this.problems.push(`nothing was said of the death of ${inside}`)
    if (token <= last && inside !== '') this.problems.push(`token ${token} after ${last}`)
    if (ownerDied) this.deaths++
  }

  /** On a busy machine a short lease may end while its process is in line or inside, which is told. */
  fail ({ code, message }) {
    if (this.lease > 0 && (code === 'ERR_LOCK_UNAVAILABLE' || code === 'ERR_LOCK_LOST')) this.late++
    else this.problems.push(message)
  }
}

const comeAndGo = {
  what: 'processes that are killed at any moment, while they wait, hold or come in',
  async check ({ team, name, folder, kills, engine }) {
    const room = path.join(folder, `room-${name.replace(/ /g, '-')}`)
    fs.writeFileSync(room, ' 0')
    const log = new Log(engine)
    const start = async () => {
      const member = await team.process()
      member.listeners.add(message => log.read(message))
      member.isQuiet = true
      member.do('visit', { name, room })
      return member
    }
    const members = await Promise.all(Array.from({ length: MEMBERS }, start))
    for (let n = 0; n < kills && log.problems.length === 0; n++) {
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
    const visits = log.visits
    // Whoever is left gets in: the last lease has to end.
    while (log.visits < visits + 10 && log.problems.length === 0)
      await Promise.race(
        members.map((member) => member.next(({ event }) => event === 'entered', 'entering', member.messages.length))
      )
    assert.deepStrictEqual(log.problems, [])
    assert.ok(log.late < log.visits, String(log))
    return String(log)
  }
}

module.exports = { comeAndGo }
