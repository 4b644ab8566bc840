'use strict'

/**
 * Mutations of one file that the same check catches.
 * @param {string} file
 * @param {object} check see run.js
 * @param {[string, string, string][]} mutations what breaks, the text to find, what is put in its place
 */
module.exports = (file, check, mutations) => mutations.map(([what, find, put]) => ({ what, file, find, put, ...check }))
