#!/usr/bin/env bash
# A waiting writer of async-rwlock never gets its turn while readers overlap.
#
# Two readers take turns: each leaves only after the other has entered. Meanwhile a writer waits for a second.
set -euo pipefail
VERSION=1.1.1
EXPECTED='the writer: granted'
SEEN='the writer: late'

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
npm install --prefix "$folder" --no-audit --no-fund --silent "async-rwlock@$VERSION"
cat > "$folder/program.js" <<'PROGRAM'
const { setTimeout: sleep } = require('timers/promises')
const { RWLock } = require('async-rwlock')

async function main () {
  const lock = new RWLock()
  let isOver = false
  await lock.readLock()
  const writer = lock.writeLock(1000).then(() => 'granted', () => 'late').finally(() => { isOver = true })
  while (!isOver) {
    const next = lock.readLock()
    await sleep(20)
    lock.unlock()
    await next
  }
  console.log(`the writer: ${await writer}`)
}

main()
PROGRAM
seen=$(node "$folder/program.js")
printf '%s\n' "async-rwlock $VERSION on Node $(node -p process.versions.node)" "expected: $EXPECTED" "seen:     $seen"
[ "$seen" = "$SEEN" ]
