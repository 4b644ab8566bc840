'use strict'

// The verdict on a figure's samples: medians, the ratio to its peer, whether the goal is reached, and the noise.

const { VARIANTS } = require('./figures')
const { median } = require('./sampling')

/**
 * Returns a figure's value of each variant: the median of its samples, their sum, or the least, where nothing makes a
 * sample shorter.
 */
function summarise (figure, samples) {
  const values = {}
  for (const [variant, numbers] of Object.entries(samples)) {
    if (figure.sum) values[variant] = numbers.reduce((total, number) => total + number, 0)
    else values[variant] = figure.minimum ? Math.min(...numbers) : median(numbers)
  }
  return values
}

/**
 * @param {object} figure an entry of figures.js
 * @param {Object<string, number>} values by variant
 * @returns {{ ratio?: number, noise?: number, goals: { text: string, value?: number, reached?: boolean, close?: boolean
 *   }[] }} `ratio`: ours to the host's; `noise`: how far ours and ours again differ, as a share; `reached` is missing
 *   where its peer is; `close`: with so much noise it might as well be the other way round
 */
function judge (figure, values) {
  const { ours, again, host } = values
  const ratio = host === undefined || figure.sum || host === 0 || ours === 0 ? undefined : ours / host
  const isNoisy = again !== undefined && !figure.sum && ours !== 0 && again !== 0
  const noise = isNoisy ? Math.max(ours / again, again / ours) - 1 : undefined
  return { ratio, noise, goals: figure.goals.map(goal => judgeGoal(goal, values, noise)) }
}

/** The peers of a goal, other than the host. */
const NAMES = { ...VARIANTS, floor: 'the floor' }

function judgeGoal (goal, values, noise = 0) {
  const { most, least } = goal
  const limit = most === undefined ? least : most
  const text = textOf(goal, most === undefined ? '≥' : '≤', limit)
  const value = valueOf(goal, values)
  if (value === undefined || Number.isNaN(value)) return { text }
  const close = Math.max(value / limit, limit / value) - 1 < noise
  return { text, value, reached: most === undefined ? value >= least : value <= most, close }
}

/** Of which two variants a goal is the difference. */
const ENTRIES = { index: 'the plain entry', ours: '`/force`' }

function textOf ({ to, over, of }, sign, limit) {
  if (over !== undefined) return `${sign} +${limit} (${ENTRIES[of]})`
  return to === undefined ? `${sign} ${limit}` : `${sign} ${limit} ×${to === 'host' ? '' : ` ${NAMES[to]}`}`
}

function valueOf ({ to, over, of = 'ours' }, values) {
  if (over !== undefined) return values[of] - values[over]
  return to === undefined ? values[of] : values[of] / values[to]
}

module.exports = { judge, summarise }
