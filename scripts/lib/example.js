'use strict'

// A copy of an example with dependencies: in a folder that has them.

const fs = require('fs')
const path = require('path')

const ROOT = path.join(__dirname, '..', '..')

/** Makes it in `folder`. `modules`: the folder of the dependencies, if there are any. Gives that of the sources. */
exports.copyExample = function copyExample (folder, modules, example) {
  const home = path.join(folder, path.basename(example))
  fs.mkdirSync(path.join(home, 'node_modules'), { recursive: true })
  fs.cpSync(example, home, { recursive: true, filter: file => path.basename(file) !== 'node_modules' })
  fs.symlinkSync(ROOT, path.join(home, 'node_modules', 'atomics-waitasync'), 'junction')
  if (modules !== undefined) fs.symlinkSync(modules, path.join(folder, 'node_modules'), 'junction')
  return home
}
