'use strict'

// Runs one test in one mode in this process: `node main.js JOB`, JOB being a JSON object
//   { file, scripts, strict, async, negative, entry: null | { name, file } }.
// Says how it ended through outcome.js. Everything in this folder runs in the Node under test, 10.16 or newer.

const fs = require('fs')
require('./pristine')
const { conclude, note, describe, nameOf } = require('./outcome')
const { loadEntry, isForced, holdsEventLoop } = require('./entry')
const { createAgents } = require('./agents')
const { defineHost, define } = require('./realm')
const { compile, run } = require('./script')

const COMPLETE = 'Test262:AsyncTestComplete'
const FAILURE = 'Test262:AsyncTestFailure:'

const job = JSON.parse(process.argv[2])
let concluded = false

function end (status, message) {
  if (concluded) return
  concluded = true
  conclude(status, message)
  process.exit(0)
}

function main () {
  let api
  try {
    api = loadEntry(job.entry)
  } catch (error) {
    return end('unusable', describe(error))
  }
  const hold = !holdsEventLoop(job.entry, api)
  const sources = job.scripts.map(read).concat(job.strict ? '"use strict";\n' + read(job.file) : read(job.file))

  // Harness files that are newer than Node 10 name it. Defined only for them, so that nothing else comes to rely on it.
  if (!('globalThis' in global) && sources.some(source => source.includes('globalThis'))) define(global, 'globalThis', global)

  defineHost(global, {
    agent: createAgents(job.entry, hold),
    print,
    onRealm (target) {
      if (api !== null) api.install({ target, force: isForced(job.entry) })
    }
  })
  listen(hold)
  evaluate(sources)
}

function read (file) {
  return fs.readFileSync(file, 'utf8')
}

function print (message) {
  const text = String(message)
  if (!job.async) note(text)
  else if (text === COMPLETE) end('passed')
  else if (text.startsWith(FAILURE)) end('failed', failureIn(text))
  else note(text)
}

// The harness puts the constructor's name in front of what Test262Error's own toString says.
function failureIn (text) {
  return text.slice(FAILURE.length).trim().replace(/^(Test262Error: )+/, '$1')
}

function listen (hold) {
  // A rejection that nobody handles is no failure in test262's terms, but explains a test that then never ends.
  process.on('unhandledRejection', error => { note(`unhandled rejection of ${describe(error)}`) })
  process.on('uncaughtException', error => { end('failed', describe(error)) })
  process.on('exit', code => {
    if (!concluded && code === 0) conclude('failed', 'the event loop ran dry before $DONE was called')
  })
  if (hold) setInterval(() => {}, 1 << 30)
}

function evaluate (sources) {
  const files = job.scripts.concat(job.file)
  const compiled = []
  for (let i = 0; i < sources.length; i++) {
    const { script, syntaxError } = compile(sources[i], files[i])
    if (script === null) return unparsable(files[i], syntaxError)
    compiled.push(script)
  }
  const test = compiled.pop()
  compiled.forEach(run)

  try {
    run(test)
  } catch (error) {
    return expected('runtime', error) ? end('passed') : end('failed', describe(error))
  }
  if (job.negative) return end('failed', `no ${job.negative.type} was thrown (phase: ${job.negative.phase})`)
  if (!job.async) end('passed')
}

function unparsable (file, error) {
  if (file === job.file && expected('parse', error)) return end('passed')
  end('unparsable', `${file}: ${describe(error)}`)
}

function expected (phase, error) {
  return job.negative !== null && job.negative.phase === phase && job.negative.type === nameOf(error)
}

main()
