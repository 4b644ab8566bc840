'use strict'

// Commands and their arguments, by util.parseArgs. Every command takes --help; a wrong argument is an error that ends
// with the usage.

const fs = require('fs')
const path = require('path')
const { parseArgs } = require('util')

/**
 * @param {string} usage the text, or the path of the script whose first comment it is
 * @param {Object<string, { type: 'string' | 'boolean', default?: string | boolean, read?: (text: string) => any }>}
 *   options `read` makes an option's value of its text, or throws the allowed values
 * @param {{ args?: string[], most?: number }} [more] `most`: how many positional arguments are allowed
 * @returns {object} the options' values, and `positionals`
 */
function argumentsOf (usage, options, { args = process.argv.slice(2), most = 0 } = {}) {
  const text = path.isAbsolute(usage) ? firstComment(usage) : `usage: ${usage}`
  const wrong = message => new Error(`${message}\n\n${text}`)
  let parsed
  try {
    parsed = parseArgs({ args, options: { ...options, help: { type: 'boolean' } }, allowPositionals: most > 0 })
  } catch (error) {
    throw wrong(error.message)
  }
  const { values, positionals } = parsed
  if (values.help) {
    console.log(text)
    process.exit()
  }
  if (positionals.length > most) throw wrong(`Unexpected argument '${positionals[most]}'`)
  const result = { positionals }
  for (const [name, { read }] of Object.entries(options)) {
    const given = values[name]
    try {
      result[name] = read === undefined || given === undefined ? given : read(given)
    } catch (error) {
      throw wrong(`--${name} ${given}: ${error.message}`)
    }
  }
  return result
}

function firstComment (file) {
  const [comment] = /(?:^\/\/.*\n)+/m.exec(fs.readFileSync(file, 'utf8'))
  return comment.replace(/^\/\/ ?/gm, '').trimEnd()
}

/** Returns the items of a list with commas between them. */
const list = text => text.split(',').map(item => item.trim()).filter(item => item !== '')

const someOf = words => text => {
  const chosen = list(text)
  if (chosen.length === 0 || !chosen.every((word) => words.includes(word)))
    throw new Error(`one or more of ${words.join(', ')} are allowed`)
  return chosen
}

const oneOf = words => text => {
  if (!words.includes(text)) throw new Error(`one of ${words.join(', ')} is allowed`)
  return text
}

function positive (text) {
  if (!(Number(text) > 0)) throw new Error('a number above 0 is allowed')
  return Number(text)
}

function whole (text) {
  if (!Number.isInteger(positive(text))) throw new Error('a whole number above 0 is allowed')
  return Number(text)
}

/** Returns the absolute path of a folder that has to be given: its option's default is ''. */
function folder (text) {
  if (text === '') throw new Error('a folder is needed')
  return path.resolve(text)
}

/** Runs a command's `main`; an error ends it, by its message. */
function command (main) {
  main().catch(error => {
    console.error(error.message)
    process.exitCode = 1
  })
}

module.exports = { argumentsOf, command, folder, list, oneOf, positive, someOf, whole }
