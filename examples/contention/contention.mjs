/**
 * How often and for how long a thread has waited for each lock. A lock is known by its id, which is the same in all
 * threads.
 */

import diagnostics from 'diagnostics_channel'

// Kept here: a channel that nothing refers to may be collected with its subscribers, before Node 18.
const waitChannel = diagnostics.channel('atomics-waitasync:wait')

/** Starts to count the waits of this thread; returns the table, by id. */
function count () {
  const table = createTable()
  waitChannel.subscribe(({ id, kind, name, milliseconds }) => {
    add(table, new Map([[id, { kind, name, waits: 1, milliseconds, longest: milliseconds }]]))
  })
  return table
}

const createTable = () => new Map()

/** Adds one table to another. */
function add (total, table) {
  for (const [id, { kind, name, waits, milliseconds, longest }] of table) {
    const row = total.get(id) || { kind, name, waits: 0, milliseconds: 0, longest: 0 }
    row.waits += waits
    row.milliseconds += milliseconds
    row.longest = Math.max(row.longest, longest)
    total.set(id, row)
  }
}

/** Returns the rows, those with the most time first. */
function mostContended (table) {
  const rows = Array.from(table.values()).sort((a, b) => b.milliseconds - a.milliseconds)
  for (const row of rows) {
    row.milliseconds = Math.round(row.milliseconds)
    row.longest = Math.round(row.longest)
  }
  return rows
}

export { add, count, createTable, mostContended }
