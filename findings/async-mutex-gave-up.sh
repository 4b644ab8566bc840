#!/usr/bin/env bash
# In async-mutex, a waiter that has given up still blocks those behind it.
#
# One of two permits is taken. A wait for two times out; then a wait for one begins, for which a permit is there.
set -euo pipefail
VERSION=0.5.0
EXPECTED='the wait for one: granted'
SEEN='the wait for one: still waiting after 200 ms'

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
npm install --prefix "$folder" --no-audit --no-fund --silent "async-mutex@$VERSION"
cat > "$folder/program.js" <<'PROGRAM'
const { setTimeout: sleep } = require('timers/promises')
const { Semaphore, withTimeout } = require('async-mutex')

async function main () {
  const semaphore = new Semaphore(2)
  await semaphore.acquire()
  await withTimeout(semaphore, 50).acquire(2).catch(() => {})
  const one = semaphore.acquire().then(() => 'granted')
  console.log(`the wait for one: ${await Promise.race([one, sleep(200, 'still waiting after 200 ms')])}`)
}

main()
PROGRAM
seen=$(node "$folder/program.js")
printf '%s\n' "async-mutex $VERSION on Node $(node -p process.versions.node)" "expected: $EXPECTED" "seen:     $seen"
[ "$seen" = "$SEEN" ]
