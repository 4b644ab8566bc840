'use strict'

// subjects: none

// The programs in README.md run: each ```js block is a file of its own, beside a node_modules with this package in it. What a
// block says that it prints, after `// → `, is all that it prints, in whatever order.

const assert = require('assert')
const { spawn } = require('child_process')
const fs = require('fs')
const os = require('os')
const path = require('path')
const { test } = require('./harness')

const root = path.join(__dirname, '..')
const text = fs.readFileSync(path.join(root, 'README.md'), 'utf8')

const blocks = []
for (const part of text.split(/^```js\n/m).slice(1)) blocks.push(part.slice(0, part.indexOf('```')))

function makeProject () {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'readme-'))
  const modules = path.join(folder, 'node_modules')
  fs.mkdirSync(modules)
  fs.symlinkSync(root, path.join(modules, 'atomics-waitasync'), 'junction')
  return {
    write (code) {
      const file = path.join(folder, 'program.js')
      fs.writeFileSync(file, code)
      return file
    },
    remove () {
      for (const name of fs.readdirSync(folder)) {
        if (name !== 'node_modules') fs.unlinkSync(path.join(folder, name))
      }
      fs.unlinkSync(path.join(modules, 'atomics-waitasync'))
      fs.rmdirSync(modules)
      fs.rmdirSync(folder)
    }
  }
}

function run (file) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [...process.execArgv, file], { stdio: ['ignore', 'pipe', 'pipe'] })
    const output = { stdout: '', stderr: '' }
    child.stdout.on('data', chunk => { output.stdout += chunk })
    child.stderr.on('data', chunk => { output.stderr += chunk })
    child.on('error', reject)
    child.on('close', (code, signal) => resolve(Object.assign(output, { code, signal })))
  })
}

function heading (block) {
  const before = text.slice(0, text.indexOf(block))
  return before.slice(before.lastIndexOf('\n## ') + 4).split('\n', 1)[0]
}

test('README.md has programs, and each says what it prints', () => {
  assert(blocks.length > 3)
  for (const block of blocks) assert(block.includes('// → '), block)
})

blocks.forEach((block, number) => {
  test(`README.md, program ${number + 1} (${heading(block)}) prints what it says`, async t => {
    const project = makeProject()
    t.after(() => project.remove())
    const said = block.split('\n').filter(line => line.includes('// → ')).map(line => line.split('// → ')[1].trim())
    const { code, signal, stdout, stderr } = await run(project.write(block))
    // Node 10 warns of --experimental-worker.
    const complaints = stderr.split('\n').filter(line => line !== '' && !/ExperimentalWarning/.test(line))
    assert.deepStrictEqual({ code, signal, complaints }, { code: 0, signal: null, complaints: [] })
    assert.deepStrictEqual(stdout.trim().split('\n').sort(), said.sort())
  })
})
