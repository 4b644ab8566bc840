#!/usr/bin/env bash
# Two requests of async-lock for the same two keys wait for each other.
#
# Both keys are taken. Then one request asks for both, and another one for both in the other order; the keys are released one by one.
set -euo pipefail
VERSION=1.5.0
EXPECTED='done, done'
SEEN='async-lock timed out in queue b, done'

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
npm install --prefix "$folder" --no-audit --no-fund --silent "async-lock@$VERSION"
cat > "$folder/program.js" <<'PROGRAM'
const AsyncLock = require('async-lock')
const { setTimeout: sleep } = require('timers/promises')

async function main () {
  const lock = new AsyncLock({ timeout: 1000 })
  lock.acquire('a', () => sleep(50))
  lock.acquire('b', () => sleep(100))
  const requests = [['a', 'b'], ['b', 'a']].map(keys => lock.acquire(keys, () => 'done').catch(error => error.message))
  console.log((await Promise.all(requests)).join(', '))
}

main()
PROGRAM
seen=$(node "$folder/program.js")
printf '%s\n' "async-lock $VERSION on Node $(node -p process.versions.node)" "expected: $EXPECTED" "seen:     $seen"
[ "$seen" = "$SEEN" ]
