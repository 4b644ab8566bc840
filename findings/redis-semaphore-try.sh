#!/usr/bin/env bash
# tryAcquire() of redis-semaphore waits for ten seconds.
#
# A mutex is taken, and another one of its key tries to take it. ioredis-mock stands for the server.
set -euo pipefail
VERSION=5.8.0
EXPECTED='false at once'
SEEN='false after 10 s'

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
npm install --prefix "$folder" --no-audit --no-fund --silent "redis-semaphore@$VERSION" ioredis@5.11.1 ioredis-mock@8.13.1
cat > "$folder/program.js" <<'PROGRAM'
const Redis = require('ioredis-mock')
const { Mutex } = require('redis-semaphore')

async function main () {
  const client = new Redis()
  const [holder, other] = [new Mutex(client, 'a'), new Mutex(client, 'a')]
  await holder.acquire()
  const start = Date.now()
  const isTaken = await other.tryAcquire()
  const seconds = Math.round((Date.now() - start) / 1000)
  console.log(`${isTaken} ${seconds === 0 ? 'at once' : `after ${seconds} s`}`)
  await holder.release()
  process.exit()
}

main()
PROGRAM
seen=$(node "$folder/program.js")
printf '%s\n' "redis-semaphore $VERSION on Node $(node -p process.versions.node)" "expected: $EXPECTED" "seen:     $seen"
[ "$seen" = "$SEEN" ]
