// A progress bar: on a terminal one line that is redrawn, elsewhere a line after each quarter.

const WIDTH = 28

class Progress {
  constructor (stream) {
    this.stream = stream
    this.quarter = 0
  }

  update ({ words, distinct, done }) {
    const whole = Math.round(done * WIDTH)
    const bar = '█'.repeat(whole) + '░'.repeat(WIDTH - whole)
    const line = `  ${bar} ${percent(done)}  ${number(words)} words, ${number(distinct)} distinct`
    if (this.stream.isTTY) {
      this.stream.write(`\r${line.slice(0, (this.stream.columns || 80) - 1)}\x1b[K`)
    } else if (Math.floor(done * 4) > this.quarter) {
      this.quarter = Math.floor(done * 4)
      this.stream.write(line + '\n')
    }
  }

  /** Ends the line. */
  end () {
    if (this.stream.isTTY) this.stream.write('\n')
  }
}

function percent (part) {
  return `${Math.floor(part * 100)} %`.padStart(5)
}

// Not toLocaleString: some builds of Node have hardly any locale.
function number (n) {
  return String(n).replace(/\B(?=(?:\d{3})+$)/g, ',')
}

export { Progress, number }
