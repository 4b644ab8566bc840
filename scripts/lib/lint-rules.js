'use strict'

// ESLint rules for lib/: no state is read after a point at which a program's code may have run. See lib/agent/agent.js.

/** Registers with answers of native code: the next operation overwrites them, and so does a program's code. */
const ANSWERS = ['ADDRESS', 'AMOUNT', 'ANSWER', 'ENTRY']

/** Functions that native code calls, or that are called right after it: the registers have its words then. */
const CALLED_BY_NATIVE = ['adoptAcquired', 'written']

/** What tells a program something, or lets it be told: the names of functions, methods and classes. */
const VISIBLE = [
  'AsyncResource', 'emitWarning', 'nextTick', 'publish', 'queueMicrotask', 'runInAsyncScope', 'setImmediate',
  'setInterval', 'setTimeout'
]

const nameOf = ({ type, name, property }) => type === 'MemberExpression' ? property.name : name

/** Whether a call is one of native code, which runs no code of the program's between its last answer and its return. */
function isOperation ({ callee }) {
  if (callee.type === 'Identifier') return callee.name === 'operation'
  return callee.type === 'MemberExpression' && callee.object.name === 'operations'
}

const answerAtOnce = {
  meta: {
    type: 'problem',
    schema: [],
    messages: { late: 'read the register {{name}} right after the operation that answers, and return its result' }
  },
  create (context) {
    /** For each function that is being read: its node, and its latest call so far, in the order of the text. */
    const functions = []
    const enter = (node) => { functions.push({ node, latest: undefined }) }
    const leave = () => { functions.pop() }
    const called = (node) => { functions[functions.length - 1].latest = node }
    return {
      Program: enter,
      'Program:exit': leave,
      ':function': enter,
      ':function:exit': leave,
      // A call comes after its arguments.
      'CallExpression:exit': called,
      'NewExpression:exit': called,
      MemberExpression (node) {
        const { object, property, parent } = node
        if (!['words', 'floats'].includes(nameOf(object)) || !ANSWERS.includes(property.name)) return
        if (parent.type === 'AssignmentExpression' && parent.left === node) return
        const { node: { id }, latest } = functions[functions.length - 1]
        const isFirst = latest === undefined && id && CALLED_BY_NATIVE.includes(id.name)
        if (isFirst || (latest !== undefined && isOperation(latest))) return
        context.report({ node, messageId: 'late', data: { name: property.name } })
      }
    }
  }
}

const oneDoor = {
  meta: {
    type: 'problem',
    schema: [],
    messages: { open: '{{name}} may run a program\'s code: note it for the door (lib/agent/agent.js)' }
  },
  create (context) {
    const isNoted = (node) => context.sourceCode.getAncestors(node).some(({ type, callee }) => (
      type === 'CallExpression' && nameOf(callee) === 'note'))
    const check = (node) => {
      const name = nameOf(node.callee)
      if (VISIBLE.includes(name) && !isNoted(node)) context.report({ node, messageId: 'open', data: { name } })
    }
    return { CallExpression: check, NewExpression: check }
  }
}

module.exports = { rules: { 'answer-at-once': answerAtOnce, 'one-door': oneDoor } }
