#!/usr/bin/env bash
# withLock() of cross-process-lock unlocks before an asynchronous callback has ended.
#
# Three callbacks of 200 ms ask for the lock of one file.
set -euo pipefail
VERSION=2.2.0
EXPECTED='1 callback at most at once'
SEEN='3 callbacks at most at once'

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
npm install --prefix "$folder" --no-audit --no-fund --silent "cross-process-lock@$VERSION"
cat > "$folder/program.js" <<'PROGRAM'
const { setTimeout: sleep } = require('timers/promises')
const { withLock } = require('cross-process-lock')

let [running, most] = [0, 0]
async function callback () {
  most = Math.max(most, ++running)
  await sleep(200)
  running--
}

async function main () {
  await Promise.all([1, 2, 3].map(() => withLock('file', callback)))
  console.log(`${most} callback${most > 1 ? 's' : ''} at most at once`)
}

main()
PROGRAM
seen=$(cd "$folder" && touch file && node program.js)
printf '%s\n' "cross-process-lock $VERSION on Node $(node -p process.versions.node)" "expected: $EXPECTED" "seen:     $seen"
[ "$seen" = "$SEEN" ]
