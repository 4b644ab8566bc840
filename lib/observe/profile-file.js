'use strict'

/**
 * Writes the profile in the format of V8's `.cpuprofile`. Chrome, VS Code and speedscope open it.
 *
 * src/observe/profile.rs adds up the waits of all threads. The main thread writes them now and then, and when it ends;
 * a Worker does only if the main thread has not loaded the package. The file is written beside its place, and renamed:
 * so it is whole at every moment. What is beside its place is a new file: whatever else is there may be a link.
 *
 * The times lie end to end: one sample for each, the heaviest first, and a closing one of the root. The time of a
 * sample is the delta of the next one. Readers that count hits take all for equally long: each microsecond is a hit.
 *
 * A frame has the place of the call and not, as V8 writes it, that of the function: lines and columns are those that a
 * profile of locks is read for. Both count from 0.
 */

const { renameSync, statSync, unlinkSync, writeFileSync, writeSync } = require('fs')
const { isAbsolute } = require('path')
const { setTimeout } = require('timers')
const { pathToFileURL } = require('url')
const { Error, createArray, createMap, max, now, parse, stringify } = require('../util/intrinsics')
const { PROFILE } = require('../util/variables')
const { threadId } = require('../util/worker-threads')

/** Milliseconds between two writes; or so many times as long as the last one took, if that is more. */
const PERIOD = 10000
const PAUSE = 100
/** How often a file is renamed before that counts as failed. */
const MOST_TRIES = 20
const NEW_FILE = { __proto__: null, encoding: 'utf8', flag: 'wx', mode: 0o666 }

/** Some readers take 0 for none. */
const START = 1000000
/** Native code's number of all stacks without room in its table. */
const OTHER_STACKS = 0xffffffff

// ——— The text ———

/** `function (place)`, `async place`, `place`, or what is no frame. */
const FRAME = /^\s*(?:at )?(?:(.*?) \((.*)\)|(?:(async) )?(.*:\d+:\d+)|(.*))$/
const PLACE = /^(.*):(\d+):(\d+)$/

/** Makes the place of a node, in the format of V8. */
const newFrame = (functionName, url = '', lineNumber = -1, columnNumber = -1) =>
  ({ __proto__: null, functionName, scriptId: '0', url, lineNumber, columnNumber })

/** Reads a frame as V8 writes it into a stack. */
function frameOf (line) {
  const parts = FRAME.exec(line)
  const place = parts[2] || parts[4] || ''
  const at = PLACE.exec(place) || [place, place, 0, 0]
  const url = isAbsolute(at[1]) ? pathToFileURL(at[1]).href : at[1]
  return newFrame(parts[1] || parts[3] || parts[5] || '', url, at[2] - 1, at[3] - 1)
}

/** The tree of the stacks. */
class Tree {
  constructor () {
    this.nodes = createArray(0)
    // By the number of the parent, and the line.
    this.found = createMap()
    this.root = this.add(newFrame('(root)'))
  }

  add (callFrame, parent) {
    const node = { __proto__: null, id: this.nodes.length + 1, callFrame, hitCount: 0, children: undefined }
    this.nodes[this.nodes.length] = node
    if (parent !== undefined) {
      if (parent.children === undefined) parent.children = createArray(0)
      parent.children[parent.children.length] = node.id
    }
    return node
  }

  /** Returns the node of a stack: of its innermost frame. */
  stack (text) {
    const lines = text.split('\n')
    let node = this.root
    for (let n = lines.length - 1; n >= 0; n--) {
      const key = node.id + ' ' + lines[n]
      if (!this.found.has(key)) this.found.set(key, this.add(frameOf(lines[n]), node))
      node = this.found.get(key)
    }
    return node
  }
}

/**
 * Returns the text of a profile.
 * @param {{ lines: number[][], waits: number, recorded: number }} news of native code
 */
function textOf ({ lines, waits, recorded }, stackText) {
  const tree = new Tree()
  const stacks = createMap()
  const samples = createArray(lines.length + 1)
  const timeDeltas = createArray(lines.length + 1)
  timeDeltas[0] = 0
  let endTime = START
  for (let n = 0; n < lines.length; n++) {
    const number = lines[n][0]
    const microseconds = lines[n][1]
    if (!stacks.has(number)) {
      stacks.set(number, tree.stack(number === OTHER_STACKS ? '(other stacks)' : stackText(number) || '(no stack)'))
    }
    const leaf = tree.add(newFrame(lines[n][2]), stacks.get(number))
    leaf.hitCount = microseconds
    endTime += microseconds
    samples[n] = leaf.id
    timeDeltas[n + 1] = microseconds
  }
  samples[lines.length] = tree.root.id
  const factor = recorded === 0 ? 1 : waits / recorded
  const atomicsWaitasync = { __proto__: null, waits, recorded, factor }
  const { nodes } = tree
  return stringify({ __proto__: null, nodes, startTime: START, endTime, samples, timeDeltas, atomicsWaitasync })
}

// ——— The file ———

/** Refuses a file that a rename must not replace. */
function refuseSpecial (file) {
  let there
  try {
    there = statSync(file)
  } catch (_) {
    // There is none.
    return
  }
  if (!there.isFile()) throw new Error('there is something that is no file')
  if ((there.mode & 0o222) === 0) throw new Error('there is a file that is read-only')
}

/** Renames a file. On Windows that fails while another thread does the same. */
function rename (from, to) {
  for (let tries = 1; ; tries++) {
    try {
      return renameSync(from, to)
    } catch (error) {
      if (tries === MOST_TRIES) throw error
    }
  }
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
    rename(beside, file)
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
module.exports = function start ({ binding, inRootContext }, file) {
  const failureOf = (error) => PROFILE + ': cannot write ' + file + ': ' + error.message
  const write = () => {
    const news = binding.profileNews()
    if (typeof news !== 'string') return
    const text = textOf(parse(news), binding.stackText)
    refuseSpecial(file)
    replace(file, text)
  }
  const writeAgain = () => {
    try {
      write()
    } catch (error) {
      if (binding.profileFails(false)) tell(failureOf(error))
    }
  }
  const wait = (milliseconds) => {
    try {
      // eslint-disable-next-line own/one-door -- at load, and in a turn of its own
      inRootContext(() => { setTimeout(next, milliseconds).unref() })
    } catch (_) {
      // A program has replaced functions that timers need. The file is written at the end.
    }
  }
  const next = () => {
    const began = now()
    writeAgain()
    wait(max(PERIOD, PAUSE * (now() - began)))
  }
  try {
    write()
  } catch (error) {
    // eslint-disable-next-line own/one-door -- at load
    if (binding.profileFails(true)) process.emitWarning(failureOf(error), { code: PROFILE })
    return false
  }
  wait(PERIOD)
  try {
    process.on('exit', writeAgain)
  } catch (_) {
    // A program has frozen `process`.
  }
  return true
}
