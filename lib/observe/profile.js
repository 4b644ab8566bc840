'use strict'

/**
 * The profile of waits: records them, and writes the file of `ATOMICS_WAITASYNC_PROFILE`. That has the stacks of the
 * waiting calls, in the format of V8's `.cpuprofile`. Chrome, VS Code and speedscope open it.
 *
 * Taking a stack takes longer than many a wait. So a thread spends only a small share of its time on that, and each
 * recorded wait stands for `factor` waits. It is recorded when it begins: so one that lasts for ever is, too.
 *
 * src/observe/profile.rs adds up the waits of all threads. The main thread writes them now and then, and when it ends;
 * a Worker does only if the main thread has not loaded the package. The file is written beside its place, and renamed:
 * so it is whole at every moment. What is beside its place is a new file: whatever else is there may be a link.
 */

const { existsSync, renameSync, statSync, unlinkSync, writeFileSync, writeSync } = require('fs')
const { isAbsolute } = require('path')
const { pathToFileURL } = require('url')
const { agent } = require('../agent/find-agent')
const { nounOfHold } = require('../holding/request')
const { Error, assign, createArray, createMap, createWeakMap, now, parse, stringify } = require('../util/intrinsics')
const { setInterval } = require('../util/timers')
const { PROFILE } = require('../util/variables')
const { shared, threadId } = require('../util/worker-threads')
const { NOTIFIED, WAIT_KINDS, nounOf } = require('../waiting/errors')
const observer = require('../waiting/observer')
const { placeOfCall } = require('./call-stacks')

const { floor, random } = Math

// ——— Which waits are recorded ———

/**
 * How many stacks a thread takes between two adaptations. It then compares the share of time that they took with MOST
 * and LEAST, and records fewer, or more.
 */
const ROUND = 32
const MOST = 0.01
const LEAST = 0.0025

/**
 * For how many a recorded wait stands; how many come before the next. Since the last adaptation: how many stacks were
 * taken, from when on, and the milliseconds for them.
 */
const sampling = { factor: 1, skips: 0, count: 0, began: now(), spent: 0 }

/** Decides for how many this wait stands; 0: not recorded. */
function nextFactor () {
  if (sampling.skips-- > 0) return 0
  if (++sampling.count === ROUND) {
    const end = now()
    const share = sampling.spent / (end - sampling.began)
    if (share > MOST) sampling.factor *= 2
    else if (share < LEAST && sampling.factor > 1) sampling.factor /= 2
    assign(sampling, { count: 0, began: end, spent: 0 })
  }
  const { factor } = sampling
  // The mean is factor - 1. The number varies: a program may have a fixed rhythm, too.
  sampling.skips = floor(random() * (2 * factor - 1))
  return factor
}

/** How many frames: the package's own, and as many as errors usually have. */
const FRAMES = 20

/** Takes the stack of the program's call, and returns its number. Native code knows the stack by that. */
function takeStack () {
  const began = now()
  const number = placeOfCall(FRAMES, PROFILE + ': the stack of a wait is missing', PROFILE)
  sampling.spent += now() - began
  // Those without a stack are a stack, too.
  return number === 0 ? agent().native.binding.stackNumber('') : number
}

// ——— Waits: the observer's functions of these names ———

const NOT_RECORDED = { factor: 0, stack: 0 }
/** By the Steps. */
const samplesOfSteps = createWeakMap()

/** Decides whether a wait that is about to begin is recorded. May run a program's code. Never throws. */
function sample () {
  try {
    const factor = nextFactor()
    return factor === 0 ? NOT_RECORDED : { factor, stack: takeStack() }
  } catch (_) {
    // No stack is left. The wait must begin all the same.
    return NOT_RECORDED
  }
}

/** Decides once for all steps of a promise. Called first in the call that makes the promise. */
function sampleOf (steps) {
  if (!samplesOfSteps.has(steps)) samplesOfSteps.set(steps, sample())
  return samplesOfSteps.get(steps)
}

/** Names what a thread blocks for: a hold, or a notification at a word's address. */
function nounOfBlocked ({ address, request, waitKind, word }) {
  if (waitKind === undefined) return nounOfHold({ word, request })
  const name = agent().native.binding.labelOf(address - 4 * ((waitKind - waitKind % WAIT_KINDS) / WAIT_KINDS))
  const { kind, mode } = NOTIFIED[waitKind % WAIT_KINDS]
  return nounOf({ kind, mode, name: name === null ? undefined : name })
}

/** Records a wait that begins; `noun(what)` says for what. Returns its number, or undefined. Never throws. */
function recordBegins ({ factor, stack }, what, noun = nounOfBlocked) {
  try {
    return factor === 0 ? undefined : agent().native.binding.waitBegins(stack, factor, noun(what))
  } catch (_) {
    // As above.
    return undefined
  }
}

/** Records a promise that is about to be enqueued. A recorded one has an `end` of its own, once. */
function promiseBegins (waiter) {
  // The program's own waits may be pauses.
  if (waiter.waitKind === 0) return
  const { end, steps } = waiter
  const number = recordBegins(steps === undefined ? sample() : sampleOf(steps), waiter, (it) => it.waitsFor)
  if (number === undefined) return
  waiter.end = () => {
    waiter.end = end
    waiter.end()
    recordEnds(number)
  }
}

/** Records the end of a wait. Never throws. */
function recordEnds (number) {
  try {
    agent().native.binding.waitEnds(number)
  } catch (_) {
    // As above.
  }
}

// ——— The text ———

/** Some readers take 0 for none. */
const START = 1000000
/** Native code's number of all stacks without room in its table. */
const OTHER_STACKS = 0xffffffff
/** `function (place)`, `async place`, `place`, or what is no frame. */
const FRAME = /^\s*(?:at )?(?:(.*?) \((.*)\)|(?:(async) )?(.*:\d+:\d+)|(.*))$/
const PLACE = /^(.*):(\d+):(\d+)$/

/** Makes the place of a node, in the format of V8. */
const newFrame = (functionName, url = '', lineNumber = -1, columnNumber = -1) =>
  ({ __proto__: null, functionName, scriptId: '0', url, lineNumber, columnNumber })

/**
 * Reads a frame as V8 writes it into a stack. It has the place of the call and not, as V8 writes profiles, that of the
 * function: lines and columns are those that a profile of locks is read for. Both count from 0.
 */
function frameOf (line) {
  const parts = FRAME.exec(line)
  const place = parts[2] || parts[4] || ''
  const at = PLACE.exec(place) || [place, place, 0, 0]
  const url = isAbsolute(at[1]) ? pathToFileURL(at[1]).href : at[1]
  return newFrame(parts[1] || parts[3] || parts[5] || '', url, at[2] - 1, at[3] - 1)
}

/**
 * Returns the text of a profile. The times lie end to end: one sample for each, the heaviest first, and a closing one
 * of the root. The time of a sample is the delta of the next one. Readers that count hits take all for equally long:
 * each microsecond is a hit.
 * @param {{ lines: Array[], waits: number, recorded: number }} waited by native code
 */
function textOf ({ lines, waits, recorded }, stackText) {
  const nodes = createArray(0)
  const add = (callFrame, parent, hitCount = 0) => {
    const id = nodes.length + 1
    nodes[id - 1] = { __proto__: null, id, callFrame, hitCount, children: createArray(0) }
    if (parent !== undefined) parent.children[parent.children.length] = id
    return nodes[id - 1]
  }
  // By the number of the parent, and the line.
  const found = createMap()
  const root = add(newFrame('(root)'))
  const samples = createArray(0)
  const timeDeltas = createArray(0)
  timeDeltas[0] = 0
  let endTime = START
  for (let n = 0; n < lines.length; n++) {
    const stack = lines[n][0] === OTHER_STACKS ? '(other stacks)' : stackText(lines[n][0]) || '(no stack)'
    const frames = stack.split('\n')
    let node = root
    for (let k = frames.length - 1; k >= 0; k--) {
      const key = node.id + ' ' + frames[k]
      if (!found.has(key)) found.set(key, add(frameOf(frames[k]), node))
      node = found.get(key)
    }
    const microseconds = lines[n][1]
    endTime += microseconds
    samples[n] = add(newFrame(lines[n][2]), node, microseconds).id
    timeDeltas[n + 1] = microseconds
  }
  samples[lines.length] = root.id
  const factor = recorded === 0 ? 1 : waits / recorded
  const atomicsWaitasync = { __proto__: null, waits, recorded, factor }
  return stringify({ __proto__: null, nodes, startTime: START, endTime, samples, timeDeltas, atomicsWaitasync })
}

// ——— The file ———

/** Milliseconds between two writes. */
const PERIOD = 10000
/** How often a file is renamed before that counts as failed. */
const MOST_TRIES = 20
const NEW_FILE = { __proto__: null, encoding: 'utf8', flag: 'wx', mode: 0o666 }

/** Refuses a file that a rename must not replace. */
function refuseSpecial (file) {
  if (!existsSync(file)) return
  const there = statSync(file)
  if (!there.isFile()) throw new Error('there is something that is no file')
  if ((there.mode & 0o222) === 0) throw new Error('there is a file that is read-only')
}

function replace (file, text) {
  const beside = file + '.' + process.pid + '.' + threadId + '.tmp'
  const removeBeside = () => {
    try {
      unlinkSync(beside)
    } catch (_) {
      // It is not there.
    }
  }
  removeBeside()
  try {
    writeFileSync(beside, text, NEW_FILE)
    for (let tries = 1; ; tries++) {
      try {
        return renameSync(beside, file)
      } catch (error) {
        // On Windows it fails while another thread does the same.
        if (tries === MOST_TRIES) throw error
      }
    }
  } catch (error) {
    removeBeside()
    throw error
  }
}

/** Writes a warning. By `process.emitWarning`, one at the end of the process would come too late. */
function tell (text) {
  try {
    writeSync(2, '(node:' + process.pid + ') [' + PROFILE + '] Warning: ' + text + '\n')
  } catch (_) {
    // Nobody reads the standard error.
  }
}

/** Begins to write a file. Returns whether it can be written, and warns if not. */
function start ({ binding, inRootContext }, file) {
  const write = (warn) => {
    try {
      const waited = binding.profileText()
      if (typeof waited === 'string') {
        const text = textOf(parse(waited), binding.stackText)
        refuseSpecial(file)
        replace(file, text)
      }
      return true
    } catch (error) {
      if (binding.isFirst('file')) warn(PROFILE + ': cannot write ' + file + ': ' + error.message)
      return false
    }
  }
  // eslint-disable-next-line own/one-door -- at load
  if (!write((text) => { process.emitWarning(text, { code: PROFILE }) })) return false
  try {
    // eslint-disable-next-line own/one-door -- at load
    inRootContext(() => { setInterval(() => write(tell), PERIOD).unref() })
  } catch (_) {
    // A program has replaced functions that timers need. The file is written at the end.
  }
  try {
    process.on('exit', () => write(tell))
  } catch (_) {
    // A program has frozen `process`.
  }
  return true
}

/** Records waits if the file can be written. That is found once in a thread: another copy may have done so. */
function record (native, file) {
  const thread = shared('profile', () => ({ records: undefined }))
  if (thread.records === undefined) {
    // A hook of async_hooks may come here again.
    thread.records = false
    thread.records = start(native, file)
  }
  if (thread.records) assign(observer, { promiseBegins, recordBegins, recordEnds, sample, sampleOf })
}

module.exports = { record }
