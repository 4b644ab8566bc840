/** Moves 1 from one account to the other. Call it with the lock held: then no other thread writes. */
export function transfer (database, from, to) {
  database.exec('BEGIN IMMEDIATE')
  try {
    const { balance } = database.prepare('SELECT balance FROM accounts WHERE name = ?').get(from)
    database.prepare('UPDATE accounts SET balance = ? WHERE name = ?').run(balance - 1, from)
    const { changes } = database.prepare('UPDATE accounts SET balance = balance + 1 WHERE name = ?').run(to)
    if (changes !== 1) throw new RangeError(`there is no account ${to}`)
    database.exec('COMMIT')
  } catch (error) {
    try {
      database.exec('ROLLBACK')
    } catch {} // SQLite has already rolled back, as on a full disk
    throw error
  }
}
