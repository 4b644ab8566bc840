'use strict'

// How far a test run is and how long the rest will take: one line that is rewritten on a terminal, elsewhere a line every 30 s.

const REDRAW = 1000
const LINE_EVERY = 30000
/** Seconds of a test file before any has been run. */
const FIRST_GUESS = 3

/**
 * The run consists of tasks. A step has its expected `seconds`, on a quiet machine with nothing built; a file has a `file` name, and
 * is expected to take what it took the last time in this run. Files run in `jobs` lanes, most steps one after the other.
 */
class Progress {
  constructor ({ stream = process.stdout, now = Date.now, jobs = 1 } = {}) {
    this.stream = stream
    this.now = now
    this.jobs = jobs
    this.start = now()
    this.waiting = new Set()
    this.running = new Map() // task -> when it began
    this.files = { done: 0, total: 0 }
    this.seconds = new Map() // file name -> what it took the last time
    this.drawn = false
    this.timer = setInterval(() => this.tick(), stream.isTTY ? REDRAW : LINE_EVERY)
    this.timer.unref()
  }

  /** Announces a task, `{ where, seconds }` or `{ where, file }`; gives it back. */
  plan (task) {
    this.waiting.add(task)
    if (task.file) this.files.total++
    return task
  }

  begin (task) {
    this.waiting.delete(task)
    this.running.set(task, this.now())
    if (this.stream.isTTY) this.tick()
  }

  end (task) {
    const begin = this.running.get(task)
    this.running.delete(task)
    if (!task.file) return
    this.files.done++
    this.seconds.set(task.file, (this.now() - begin) / 1000)
  }

  /** A task will not be run. */
  drop (task) {
    if (this.waiting.delete(task) && task.file) this.files.total--
  }

  /** Prints lines above the rewritten one. */
  print (text) {
    this.erase()
    this.stream.write(`${text}\n`)
    if (this.stream.isTTY && this.running.size > 0) this.draw()
  }

  close () {
    clearInterval(this.timer)
    this.erase()
  }

  /** Seconds that the rest is expected to take. */
  rest () {
    const moment = this.now()
    let steps = 0
    let files = 0
    const add = (task, elapsed) => {
      const left = Math.max(0, this.expected(task) - elapsed)
      if (task.file) files += left
      else steps += left
    }
    for (const task of this.waiting) add(task, 0)
    for (const [task, begin] of this.running) add(task, (moment - begin) / 1000)
    return steps + files / this.jobs
  }

  expected ({ file, seconds }) {
    if (!file) return seconds
    if (this.seconds.has(file)) return this.seconds.get(file)
    const known = [...this.seconds.values()]
    return known.length > 0 ? known.reduce((sum, each) => sum + each, 0) / known.length : FIRST_GUESS
  }

  line () {
    const wheres = [...new Set([...this.running.keys()].map(({ where }) => where))]
    const { done, total } = this.files
    const names = [...this.running.keys()].filter(({ file }) => file).map(({ file }) => file)
    return [
      clock((this.now() - this.start) / 1000),
      `about ${clock(this.rest())} left`,
      ...(total > 0 ? [`${done} of ${total} files`] : []),
      [...wheres, ...names].join(' ')
    ].join(', ')
  }

  tick () {
    if (this.running.size === 0) return
    if (this.stream.isTTY) this.draw()
    else this.stream.write(`... ${this.line()}\n`)
  }

  draw () {
    this.erase()
    const width = (this.stream.columns || 80) - 1
    this.stream.write(this.line().slice(0, width))
    this.drawn = true
  }

  erase () {
    if (this.drawn) this.stream.write('\r\u001b[K')
    this.drawn = false
  }
}

/** 754 seconds are 12:34. */
function clock (seconds) {
  const whole = Math.round(seconds)
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`
}

module.exports = { Progress, clock }
