'use strict'
// timeout: 300

// The programs of README.md and docs/ print what they say, in a folder beside a node_modules with this package in it.
//
// - A ```js block is a program. Its comments `// → text` are all that it prints, in any order. A ```ts block with such
//   comments is one, too, a module that Node 24 and later run.
// - A block whose first line is a comment that holds nothing but a file name (`// pool.js`) is that file, beside all
//   programs of its page.
// - A ```console block has commands, `$ NAME=value node program.js`, that are run with the page's files, and what they
//   print. A last command `$ kill -QUIT 4711` sends the one before it that signal, and `$ npx --no-install
//   atomics-waitasync dump 4711` asks it: the output is what follows. What does not end is killed.

const assert = require('assert')
const { AsyncLocalStorage } = require('async_hooks')
const { spawn } = require('child_process')
const fs = require('fs')
const path = require('path')
const querystring = require('querystring')
const { isDeepStrictEqual } = require('util')
const { test } = require('../harness')
const freePort = require('../fixtures/free-port')
const { folderWithPackage } = require('../fixtures/entries/folders')
const { runNode } = require('../fixtures/run-node')
const { memoryFolder, unavailable } = require('../fixtures/shared-memory')

const root = path.join(__dirname, '..', '..')
const MAJOR = Number(process.versions.node.split('.')[0])
/** By the language of a program: the name of its file, and the first Node that runs it. */
const KINDS = { js: { file: 'program.js', first: 0 }, ts: { file: 'program.mts', first: 24 } }

/** Returns the blocks of a page: `{ language, code, name }`, of a file with its name. */
function blocksOf (page) {
  const text = fs.readFileSync(path.join(root, page), 'utf8')
  return (text.match(/^```\w+\n[^]*?\n```$/gm) || []).map(block => {
    const [, language, code] = /^```(\w+)\n([^]*\n)```$/.exec(block)
    const [, name] = /^\/\/ (\w[\w.-]*\.\w+)\n/.exec(code) || []
    return { language, code, name }
  })
}

const says = text => text.includes('// → ')
const isFile = ({ name }) => name !== undefined
const isProgram = block => !isFile(block) && (block.language === 'js' || (block.language === 'ts' && says(block.code)))

/** Makes a folder with files, in which this package can be required. */
function projectOf (t, files) {
  const folder = folderWithPackage(t)
  for (const { name, code } of files) fs.writeFileSync(path.join(folder, name), code)
  return folder
}

test('the page of each class has a program', () => {
  const classes = fs.readdirSync(path.join(root, 'lib', 'locks')).filter(name => /^(?!index|view).*\.js$/.test(name))
  assert.ok(classes.length > 0)
  for (const name of classes) assert.ok(blocksOf(`docs/${path.basename(name, '.js')}.md`).some(isProgram), name)
})

test('the programs of README.md run on every Node, as they stand', () => {
  const blocks = blocksOf('README.md').filter(({ code }) => /\b(?:import|require)\b/.test(code))
  assert.ok(blocks.length > 1)
  assert.deepStrictEqual(blocks.filter(block => !isProgram(block) || block.language !== 'js'), [])
})

const pages = fs.readdirSync(path.join(root, 'docs')).filter(name => name.endsWith('.md'))
for (const page of ['README.md', ...pages.map(name => `docs/${name}`)]) {
  const blocks = blocksOf(page)
  blocks.filter(isProgram).forEach(({ language, code }, number) => {
    const { file, first: firstOfKind } = KINDS[language]
    const first = code.includes('atomics-waitasync/processes') ? Math.max(16, firstOfKind) : firstOfKind
    const lacks = code.includes('sharedMemory(') ? unavailable
      : AsyncLocalStorage === undefined && code.includes('detectReentry') && 'needs AsyncLocalStorage'
    const options = { skip: lacks || (MAJOR < first && `needs Node ${first}`), timeout: 60000 }
    test(`${page}: program ${number + 1} prints what it says`, options, async t => {
      const ownCode = code.replace('/dev/shm/my-app', () => path.join(memoryFolder(t), 'my-app'))
      const folder = projectOf(t, [...blocks.filter(isFile), { name: file, code: ownCode }])
      const { code: exitCode, signal, stdout, stderr } = await runNode(t, [path.join(folder, file)])
      // Node warns of experimental features.
      const complaints = stderr.replace(/^.*(?:ExperimentalWarning|--trace-warnings).*\n/gm, '')
      const said = code.match(/\/\/ → .*$/gm).map(line => line.slice(5).trim())
      const printed = stdout.trim().split('\n').sort()
      assert.deepStrictEqual([exitCode, signal, complaints, printed], [0, null, '', said.sort()])
    })
  })
}

// ——— Commands ———

const COMMAND = path.join(root, 'bin', 'atomics-waitasync.js')

/** Runs a command in a folder until it ends or prints all. `asks`: a command that is run then, again and again. */
async function runCommand (t, folder, command, asks, isComplete) {
  const [variables, args] = command.split(/(?:^| )node /)
  const env = Object.assign({}, process.env, querystring.parse(variables, ' '))
  const options = { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] }
  // Other programs run at the same time, in which each has the same port.
  const flags = [...process.execArgv, `--inspect-port=${await freePort()}`]
  const child = spawn(process.execPath, [...flags, ...args.split(' ')], options)
  let isOver = false
  const ask = async () => {
    // The program has its locks by then, or is asked again.
    await new Promise(resolve => setTimeout(resolve, 1000))
    if (isOver) return
    const [, signal] = /^kill -(\w+)/.exec(asks) || []
    if (signal !== undefined) child.kill(`SIG${signal}`)
    else child.stdout.emit('data', (await runNode(t, [COMMAND, 'dump', String(child.pid)])).stdout)
    await ask()
  }
  if (asks !== undefined) ask()
  t.after(() => {
    isOver = true
    child.kill('SIGKILL')
  })
  return new Promise((resolve, reject) => {
    let printed = ''
    const hear = text => {
      printed += text
      if (isComplete(printed)) child.kill('SIGKILL')
    }
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', hear)
    child.on('error', reject).on('close', () => resolve(printed))
  })
}

/** Parts that differ by run and by Node: times, numbers, columns, threads' names, spaces; and the lines of Node. */
const BY_CHANCE = /\d+(?:\.\d+)? m?s\b|id \d+|node:\d+|(?<=:\d+):\d+| "(?:billing|builder)"|(?<=at )async |(?<= ) +/g
const OF_NODE = /^ *at .*(?:node:|internal\/|module\.js|<anonymous>)|--trace-warnings|ExperimentalWarning|^$/

/** Returns the lines that each run on each Node prints. */
function comparable (text, folder) {
  const lines = text.split(folder).join('/app').split('\n').filter(line => !OF_NODE.test(line))
  return lines.map(line => line.replace(BY_CHANCE, ''))
}

const SKIP = process.platform === 'win32' ? 'it has no such signals' : MAJOR < 14 && 'stacks of promises are others'
const PAGE = 'docs/debugging.md'
for (const { code } of blocksOf(PAGE).filter(({ language }) => language === 'console')) {
  const commands = code.match(/^\$ .*$/gm).map(line => line.slice(2))
  const skip = SKIP || (MAJOR < 18 && code.includes('$ npx ') && 'the command needs Node 18')
  test(`${PAGE}: ${commands.join('; ')} prints what it says`, { skip, timeout: 60000 }, async t => {
    const folder = projectOf(t, blocksOf(PAGE).filter(isFile))
    const asks = /^(?:kill|npx) /.test(commands[commands.length - 1]) ? commands.pop() : undefined
    const wanted = comparable(code.replace(/^\$ .*\n/gm, ''), folder)
    // In any order: of two locks that were awaited at the same time either may come first.
    const found = text => {
      const lines = comparable(text, folder)
      const start = lines.lastIndexOf(wanted[0])
      return start < 0 ? [] : lines.slice(start, start + wanted.length).sort()
    }
    // Until the whole of it is there: a ring takes a moment to close.
    const isComplete = text => isDeepStrictEqual(found(text), wanted.slice().sort())
    let printed = ''
    for (const command of commands) printed = await runCommand(t, folder, command, asks, isComplete)
    assert.deepStrictEqual(found(printed), wanted.slice().sort(), printed)
  })
}
