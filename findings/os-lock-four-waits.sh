#!/usr/bin/env bash
# Four waits for locks of os-lock stop all file functions of their process.
#
# Another process holds the lock for two seconds. Four promises wait for it, each in a thread of libuv, which has four. A file is read meanwhile.
set -euo pipefail
VERSION=2.0.0
EXPECTED='the file is read before the lock is free'
SEEN='the file is read after a lock'

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
npm install --prefix "$folder" --no-audit --no-fund --silent "os-lock@$VERSION"
cat > "$folder/holder.js" <<'PROGRAM'
const { openSync } = require('fs')
require('os-lock').lock(openSync('file', 'r+'), { exclusive: true }).then(() => {
  process.send('held')
  setTimeout(() => process.exit(), 2000)
})
PROGRAM
cat > "$folder/program.js" <<'PROGRAM'
const { fork } = require('child_process')
const { openSync, promises: { readFile } } = require('fs')
const { lock } = require('os-lock')

fork('holder.js').on('message', () => {
  const [first] = [1, 2, 3, 4].map(() => lock(openSync('file', 'r+'), { exclusive: true }))
  const locked = first.then(() => 'after a lock')
  const read = readFile('program.js').then(() => 'before the lock is free')
  Promise.race([locked, read]).then(text => console.log(`the file is read ${text}`))
})
PROGRAM
seen=$(cd "$folder" && touch file && UV_THREADPOOL_SIZE=4 node program.js)
printf '%s\n' "os-lock $VERSION on Node $(node -p process.versions.node)" "expected: $EXPECTED" "seen:     $seen"
[ "$seen" = "$SEEN" ]
