'use strict'

// How far a test run is: a line every 30 s.

const LINE_EVERY = 30000

/** The run consists of tasks, `{ where }` or `{ where, file }`: steps, and runs of a test file. */
class Progress {
  constructor ({ write = text => process.stdout.write(text), now = Date.now } = {}) {
    this.write = write
    this.now = now
    this.start = now()
    this.running = new Set()
    this.files = { done: 0, total: 0 }
    this.timer = setInterval(() => this.tick(), LINE_EVERY)
    this.timer.unref()
  }

  /** Announces a task; returns it. */
  plan (task) {
    if (task.file) this.files.total++
    return task
  }

  begin (task) {
    this.running.add(task)
  }

  end (task) {
    this.running.delete(task)
    if (task.file) this.files.done++
  }

  /** A task will not be run. */
  drop (task) {
    if (task.file) this.files.total--
  }

  print (text) {
    this.write(`${text}\n`)
  }

  close () {
    clearInterval(this.timer)
  }

  line () {
    const { done, total } = this.files
    const tasks = [...this.running]
    const names = [...new Set(tasks.map(({ where }) => where)), ...tasks.filter(({ file }) => file).map(({ file }) => file)]
    return [clock((this.now() - this.start) / 1000), ...(total > 0 ? [`${done} of ${total} files`] : []), names.join(' ')].join(', ')
  }

  tick () {
    if (this.running.size > 0) this.print(`... ${this.line()}`)
  }
}

/** 754 seconds are 12:34. */
function clock (seconds) {
  const whole = Math.round(seconds)
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`
}

module.exports = { Progress, clock }
