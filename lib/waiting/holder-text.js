'use strict'

/** The text of a holder, from its entry in a snapshot: for how long, which thread, and where it took what it holds, as far as that is known. */

const { floor, round } = Math

/** A thread, by the name that it was given, if it has one. */
function threadText ({ threadId, threadName }) {
  if (threadName !== undefined) return 'thread ' + threadId + ' ' + JSON.stringify(threadName)
  return threadId === 0 ? 'the main thread' : 'thread ' + threadId
}

function durationText (milliseconds) {
  const seconds = milliseconds / 1000
  if (seconds < 1) return round(milliseconds) + ' ms'
  if (seconds < 60) return seconds.toFixed(1) + ' s'
  if (seconds < 3600) return floor(seconds / 60) + ' min ' + floor(seconds % 60) + ' s'
  return floor(seconds / 3600) + ' h ' + floor(seconds % 3600 / 60) + ' min'
}

/** Where a holder took what it holds: the innermost frame. '' if that is not known. */
function placeText ({ taken }) {
  return taken === undefined ? '' : 'taken ' + taken.split('\n')[0].trim()
}

/** What releases a lock whose token has been collected. */
const releaserText = ({ kind }) => 'only ' + (kind === 'AsyncLock' ? 'lock.unlock() in that thread' : 'the end of that thread')

/** As in `held for 5.2 s by thread 2 "billing0", taken at charge (billing.js:27:18)`. */
function holderText (entry) {
  const place = placeText(entry)
  // Without a place, nobody has noted when it was taken.
  const verb = entry.kind === 'Queue' ? 'in use for ' : 'held for '
  return verb + (place === '' ? 'at least ' : '') + durationText(entry.milliseconds) + ' by ' + threadText(entry) + (place === '' ? '' : ', ' + place)
}

module.exports = { durationText, holderText, placeText, releaserText, threadText }
