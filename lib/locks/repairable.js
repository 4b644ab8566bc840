'use strict'

/** Views whose callback forms run a repair after a death: those of AsyncLock and RwLock. They may detect re-entry. */

const { define } = require('../util/intrinsics')
const { option } = require('../util/options')
const { isObject } = require('../util/values')
const { assertFunction } = require('../waiting/options')
const { detectReentry, detectsReentry } = require('./hold/reentry')
const { REPAIR } = require('./hold/repair')
const { becomeView, oneWord } = require('./view')

const SHAPE = oneWord([], ['repair', 'detectReentry', 'byteOffset', 'name'])

/** Makes an instance a view. Its callback forms have the option `repair`; its clones have none of these options. */
function becomeRepairable (instance, given, options, owner) {
  const repair = isObject(options) ? option(options, 'repair') : undefined
  if (repair !== undefined) assertFunction(repair, owner, 'repair')
  const detects = detectsReentry(options, owner)
  const { word } = becomeView(instance, given, options, owner, SHAPE)
  if (repair !== undefined) define(instance, REPAIR, repair)
  if (detects) detectReentry(word)
}

module.exports = becomeRepairable
