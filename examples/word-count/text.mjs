// Finds text files, extracts their prose, and defines a word.

import fs from 'fs'
import path from 'path'

const DOCUMENT = /\.(?:md|mdx|markdown|txt|rst|adoc)$/i
const NAMED_DOCUMENT =
  /^(?:readme|licen[cs]e|copying|notice|authors|contribut\w+|change\w+|history|security)(?:-[\w-]+)?$/i
const DECLARATIONS = /\.d\.[cm]?ts$/

const MAX_FILE = 256 * 1024 * 1024
const MAX_TEXT = 2 * 1024 * 1024 * 1024 - 1 // so that every number of bytes or words fits an Int32

/** Lists the documentation below a folder: documents, and type declarations for their doc comments. */
function documentation (folder) {
  return list(folder, ['.git'], (file, name) => {
    if (DOCUMENT.test(name) || NAMED_DOCUMENT.test(name)) return 'text'
    if (DECLARATIONS.test(name)) return 'doc comments'
    return null
  })
}

/** Lists every text file below a folder, or the given file: except in `.git` and `node_modules`. */
function everything (folder) {
  return list(folder, ['.git', 'node_modules'], file => isBinary(file) ? null : 'text')
}

// Gives [{ file, bytes, prose }], the longest file first, so that no worker begins a long file when the others are
// done.
function list (root, leaveOut, proseOf) {
  const files = []
  const visit = (file, name, stat) => {
    if (stat.isDirectory()) {
      for (const child of fs.readdirSync(file)) {
        if (leaveOut.includes(child)) continue
        const inner = path.join(file, child)
        visit(inner, child, fs.lstatSync(inner)) // lstat: links are not followed, so there are no cycles
      }
    } else if (stat.isFile() && stat.size > 0) {
      const prose = proseOf(file, name)
      if (prose !== null) files.push({ file, bytes: stat.size, prose })
    }
  }
  visit(root, path.basename(root), fs.statSync(root))

  const tooLong = files.find(({ bytes }) => bytes > MAX_FILE)
  if (tooLong) throw new RangeError(`${tooLong.file} has ${tooLong.bytes} bytes, ${MAX_FILE} is the most for one file`)
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0)
  if (bytes > MAX_TEXT) throw new RangeError(`${root} holds ${bytes} bytes of text, ${MAX_TEXT} is the most`)
  return files.sort((a, b) => b.bytes - a.bytes || (a.file < b.file ? -1 : 1))
}

// Like grep and git: a file with a NUL among its first bytes is not text.
function isBinary (file) {
  const head = Buffer.alloc(8192)
  const fd = fs.openSync(file, 'r')
  try {
    return head.slice(0, fs.readSync(fd, head, 0, head.length, 0)).includes(0)
  } finally {
    fs.closeSync(fd)
  }
}

/** Returns the prose of a listed file, in lower case. */
function read ({ file, bytes, prose }) {
  const content = fs.readFileSync(file)
  if (content.length !== bytes) throw new Error(`${file} has changed while its words were being counted`)
  const text = content.toString('utf8').toLowerCase()
  if (prose === 'text') return text
  return (text.match(/\/\*\*(?!\/)[^]*?\*\//g) || []).join('\n')
}

/** A word: letters, marks and digits of any script; an apostrophe counts within. Always begin at `lastIndex` 0. */
const WORD = /[\p{L}\p{M}\p{N}]+(?:['’][\p{L}\p{M}\p{N}]+)*/gu

export { documentation, everything, read, WORD }
