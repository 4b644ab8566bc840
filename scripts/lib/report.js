'use strict'

// The results of a test run: the lines that are printed on the way, and the summary at the end.

const SLOWEST = 15
/** Milliseconds between lines that name the running parts. */
const LINE_EVERY = 30000

class Report {
  /** `print` takes the text of one or more lines. */
  constructor (print = text => console.log(text)) {
    this.print = print
    this.begun = Date.now()
    this.rows = []
    this.failures = []
    this.skips = new Map() // reason -> what -> how often and where
    this.unstable = [] // the names of tests that passed only when they were run again
    this.files = [] // { name, seconds } of each run of a test file
    this.parts = [] // { name, seconds } of each part of the run
    this.running = new Set() // names of both
    this.timer = setInterval(() => { if (this.running.size > 0) this.print(this.progress()) }, LINE_EVERY)
    this.timer.unref()
  }

  progress () {
    const time = clock((Date.now() - this.begun) / 1000)
    return `... ${time}, files run: ${this.files.length}, ${[...this.running].join(', ')}`
  }

  row (where, what) {
    const row = { where, what, passed: 0, failed: 0, skipped: 0, seconds: 0 }
    this.rows.push(row)
    return row
  }

  /** Runs a part of the whole; the summary says how long it took. */
  async part (name, run, list = this.parts) {
    const begin = Date.now()
    this.running.add(name)
    try {
      return await run()
    } finally {
      this.running.delete(name)
      list.push({ name, seconds: (Date.now() - begin) / 1000 })
    }
  }

  fail (row, count, summary, output, again) {
    row.failed += count
    this.failures.push(summary)
    this.print(`\nFAILED ${summary}${again ? `\n       again: ${again}` : ''}\n${indent(output)}\n`)
  }

  /** Notes that `what` was not run `where` (a Node version, or nothing). */
  skip (row, count, reason, what, where) {
    row.skipped += count
    if (!this.skips.has(reason)) this.skips.set(reason, new Map())
    const entries = this.skips.get(reason)
    if (!entries.has(what)) entries.set(what, { count: 0, places: new Set() })
    const entry = entries.get(what)
    entry.count += count
    if (where) entry.places.add(where)
  }

  done (row) {
    const skipped = row.skipped > 0 ? `, ${row.skipped} skipped` : ''
    this.print(`${label(row)}  ${row.passed} passed, ${row.failed} failed${skipped}  ${row.seconds.toFixed(1)} s`)
  }

  /** Prints the summary; true if something ran and nothing failed. */
  close () {
    clearInterval(this.timer)
    const total = { passed: 0, failed: 0, skipped: 0 }
    this.print(`\n${label({ where: '', what: '' })}${['passed', 'failed', 'skipped', 'seconds'].map(cell).join('')}`)
    for (const row of this.rows) {
      this.print(`${label(row)}${[row.passed, row.failed, row.skipped, row.seconds.toFixed(1)].map(cell).join('')}`)
      for (const key of Object.keys(total)) total[key] += row[key]
    }
    this.list(
      'time (minutes:seconds)',
      [...this.parts, { name: 'in all', seconds: (Date.now() - this.begun) / 1000 }].map(timed)
    )
    this.list(
      'the slowest files',
      [...this.files]
        .sort((one, other) => other.seconds - one.seconds)
        .slice(0, SLOWEST)
        .map(timed)
    )
    this.list('skipped', [...this.skips].flatMap(([reason, entries]) => [reason, ...[...entries].map(skipped)]))
    this.list('failed', this.failures)
    this.list('passed only when they were run again, alone', this.unstable)
    const ran = total.passed + total.failed > 0
    if (!ran) this.print('\nno test ran')
    this.print(
      `\n${total.passed} passed, ${total.failed} failed${total.skipped > 0 ? `, ${total.skipped} skipped` : ''}`
    )
    return ran && total.failed === 0
  }

  list (title, lines) {
    if (lines.length > 0) this.print(`\n${title}:\n${lines.map(line => `  ${line}`).join('\n')}`)
  }
}

function skipped ([what, { count, places }]) {
  return `  ${count} × ${what}${places.size > 0 ? ` on ${[...places].join(', ')}` : ''}`
}

/** Writes 754 seconds as 12:34. */
function clock (seconds) {
  const whole = Math.round(seconds)
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`
}

const label = ({ where, what }) => `${where.padEnd(14)}${what.padEnd(10)}`
const cell = value => String(value).padStart(9)
const timed = ({ name, seconds }) => `${clock(seconds).padStart(6)}  ${name}`
const indent = text => text.trimEnd().replace(/^/gm, '  | ')

module.exports = { Report, clock, indent }
