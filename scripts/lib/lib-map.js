'use strict'

// docs/internals/map.md, the map of lib/: each file with the first sentence of its head.

const fs = require('fs')
const path = require('path')

const root = path.join(__dirname, '..', '..')
const BEGIN = '<!-- map of lib/: `npm run lint -- --fix` writes it -->\n'
const END = '<!-- end of the map -->\n'

/** Returns the files of lib/, by folder: those of a folder before its folders. */
function files () {
  const found = fs
    .readdirSync(path.join(root, 'lib'), { recursive: true })
    .filter((name) => name.endsWith('.js'))
    .map((name) => path.posix.join('lib', ...name.split(path.sep)))
  const key = file => `${path.posix.dirname(file)}/\0${file}`
  return found.sort((a, b) => key(a) < key(b) ? -1 : 1)
}

function sentenceOf (file) {
  const [, head] = /\/\*\*([^]*?)\*\//.exec(fs.readFileSync(path.join(root, file), 'utf8'))
  const text = head.replace(/^ *\* ?/gm, '').trim().split(/\n\n/)[0].replace(/\s+/g, ' ')
  return /^.*?[.](?= |$)/.exec(text)[0].slice(0, -1)
}

function map () {
  let folder = ''
  const rows = files().flatMap(file => {
    const row = `| \`${path.posix.basename(file)}\` | ${sentenceOf(file)} |`
    if (path.posix.dirname(file) === folder) return [row]
    folder = path.posix.dirname(file)
    return [`| **\`${folder}/\`** | |`, row]
  })
  return `${BEGIN}| | |\n|---|---|\n${rows.join('\n')}\n${END}`
}

/** Returns the page with the map as it should be. */
function withMap (text) {
  const [before, after] = [text.indexOf(BEGIN), text.indexOf(END)]
  if (before < 0 || after < 0) throw new Error('docs/internals/map.md has no place for the map of lib/')
  return text.slice(0, before) + map() + text.slice(after + END.length)
}

module.exports = { page: path.join(root, 'docs', 'internals', 'map.md'), withMap }
